"""The programs that pages show make the very runs that are stored."""

from functools import partial
from inspect import unwrap

import pytest

import fedlib
from papers import STUDIES
from papers.kit import report, runfile, snippet, store


def executed(code, monkeypatch, run):
    """The names of a program after it ran, with `run` in place of fedlib's."""
    monkeypatch.setattr(fedlib, "run", run)
    names = {}
    exec(compile(code, "snippet", "exec"), names)
    return names


def parts(problem):
    if isinstance(problem, partial):
        return unwrap(problem.func), problem.args, problem.keywords
    return unwrap(problem), (), {}


@pytest.mark.parametrize("profile", ["quick", "full"])
@pytest.mark.parametrize("study", STUDIES.values(), ids=[*STUDIES])
def test_every_run_of_a_study_is_what_its_program_makes(study, profile, monkeypatch):
    monkeypatch.setattr(store, "groups", lambda specs: [specs])  # which need the problems' data
    specs = study.specs(study.resolve(profile))
    for name, spec in [*specs.items()][:: 1 + len(specs) // 40]:
        made = {}

        def run(algorithm, problem, made=made, **options):
            made |= {"algorithm": algorithm, "problem": problem, **options}

        executed(snippet.snippet({name: spec}, name), monkeypatch, run)
        assert made["algorithm"] == spec.algorithm, name
        assert parts(made["problem"]) == parts(spec.problem), name
        assert made["rounds"] == spec.rounds
        assert tuple(made["seeds"]) == spec.seeds
        assert made.get("evaluate_every", 1) == spec.evaluate_every


def test_a_grid_is_written_with_what_differs(monkeypatch):
    study = STUDIES["ssca_tradeoff"]
    specs = study.specs(study.resolve("full"))
    ridges = {n: s for n, s in specs.items() if n.startswith("samples_ssca_ridge")}
    monkeypatch.setattr(store, "groups", lambda specs: [dict(specs)])
    code = snippet.snippet(ridges, "samples_ssca_ridge0.001")
    found = executed(code, monkeypatch, lambda grid, *_, **__: grid)
    assert next(iter(found["grid"])) == "samples_ssca_ridge0.001"
    assert len(found["grid"]) == snippet.SHOWN
    assert all(found["grid"][name] == specs[name].algorithm for name in found["grid"])
    assert len(code.splitlines()) <= snippet.MOST


def test_a_program_gives_the_stored_run():
    study = STUDIES["np_workshop"]
    specs = study.specs(study.resolve("full"))
    names = {}
    exec(snippet.snippet(specs, "soft_K1"), names)
    stored = runfile.to_trace(study.payload("soft_K1"))
    now = names["traces"]["soft_K1"] if "traces" in names else names["trace"]
    assert now.metrics["g"] == pytest.approx(stored.metrics["g"], rel=1e-4, abs=1e-6)


def test_unknown_runs_are_refused():
    study = STUDIES["np_workshop"]
    with pytest.raises(ValueError, match=r"snippet: name must be a run such as hard, .*got 'x'\."):
        snippet.snippet(study.specs(study.resolve("quick")), "x")


def test_a_page_shows_the_run_of_the_nearest_name_where_parameters_do_not_make_the_one_it_names():
    study = STUDIES["bounds"]
    for horizons, rounds in ((100, 31), 100), ((31, 7), 31):
        params = study.resolve("quick", horizons=horizons)
        code = report.program(study, params, "soft_corrected_T100").data
        assert f"rounds={rounds}," in code
        assert f'"soft_corrected_T{rounds}": algorithm' in code
