"""What a reader edits in the experiment of a page is computed and never taken for the book's."""

from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np
import pytest

import fedlib
import fedlib.algorithms.fedsgm
from fedlib import FedAvg, data
from fedlib.compress import RandK
from fedlib.core.client import Client
from fedlib.problems import neyman_pearson
from fedlib.steps import Hard, Soft
from papers import STUDIES
from papers.arena import problems as arena_problems
from papers.fedcmoo.data.pairs import MNIST_SCALE
from papers.fedsgm.np_workshop import quantities as workshop
from papers.fedsgm.np_workshop import runs as workshop_runs
from papers.kit import edits, report, snapshot, store
from papers.ssca import common
from tests.helpers.expect import refuses

STUDY = STUDIES["np_workshop"]
HARD = STUDY.specs(STUDY.resolve("full"))["hard"].algorithm
ABOUT = {"data": "breast_cancer", "positive": "malignant"}


#: Asked for once: each of the problems below reads one of them.
TABLES = {positive: data.breast_cancer(positive) for positive in ("malignant", "benign")}


def problem(seed):
    """The page's own function."""
    table = TABLES["malignant"]
    return neyman_pearson(table.X, table.y, clients=10, seed=seed, config=ABOUT)


def with_rows(change, positive="malignant"):
    """The page's function with another table."""

    def changed(seed):
        table = TABLES[positive]
        X, y = change(table.X, table.y)
        return neyman_pearson(X, y, clients=10, seed=seed, config=ABOUT)

    return changed


def instead(**changes):
    """The page's function whose problems have other parts."""
    return lambda seed: replace(
        problem(seed), **{name: change(problem(seed)) for name, change in changes.items()}
    )


def alike(kind, thing):
    """A record of another class with the same fields."""
    return kind(**{f.name: getattr(thing, f.name) for f in fields(thing)})


def pasted():
    @dataclass(frozen=True)
    class FedSGM(fedlib.FedSGM):
        def round(self, fed, state, draw):
            new, info = super().round(fed, state, draw)
            return new._replace(w=state.w), info

    return alike(FedSGM, HARD)


def own_compressor():
    class RandK(fedlib.RandK):
        def __call__(self, *given):
            return 2 * super().__call__(*given)

    return replace(HARD, uplink=alike(RandK, HARD.uplink))


def own_switch():
    class Hard(fedlib.steps.Hard):
        def __call__(self, z):
            return 1 - super().__call__(z)

    return replace(HARD, switch=Hard())


def with_a_method():
    method = replace(HARD)
    object.__setattr__(method, "round", lambda _, state, __: (state, {}))
    return method


EDITS = {
    "a pasted class of the same name": ((problem, pasted), "code: pasted.<locals>.FedSGM of "),
    "an own compressor of the same name": ((problem, own_compressor), "code: own_compressor.<"),
    "an own switch of the same name": ((problem, own_switch), "code: own_switch.<locals>.Hard of"),
    "a method of one object": ((problem, with_a_method), "code: with_a_method.<locals>.<lambda>"),
    "another step": ((problem, lambda: replace(HARD, lr=0.1)), "parameter: lr 0.1, not 0.3"),
    "another switch": (
        (problem, lambda: replace(HARD, switch=Soft(20.0))),
        "parameter: switch Soft, not Hard",
    ),
    "another method": ((problem, lambda: FedAvg(0.3, 10, 5)), "parameter: algorithm FedAvg, not "),
    "constant features": (
        with_rows(lambda X, y: (X * 0 + 1, y)),
        "data: problem.data of seed 8100",
    ),
    "ten features": (with_rows(lambda X, y: (X[:, :10], y)), "data: problem.data of seed 8100"),
    "half of the patients": (with_rows(lambda X, y: (X[::2], y[::2])), "data: problem.data of"),
    "exchanged classes": (with_rows(lambda X, y: (X, y), "benign"), "data: problem.data of"),
    "one split for all seeds": (lambda seed: problem(100 + 0 * seed), "data: problem.data of seed"),
    "three splits": (
        lambda seed: problem(8100 + (seed - 8100) % 3),
        "data: problem.data of seed 8103",
    ),
    "another loss": (
        instead(losses=lambda p: lambda w, batch: 2 * p.losses(w, batch)),
        "code: problem.losses",
    ),
    "another metric": (
        instead(metrics=lambda p: lambda w, whole: {**p.metrics(w, whole)}),
        "code: problem.metrics",
    ),
    "another start": (instead(w0=lambda p: p.w0 + 1), "data: problem.w0 of seed 8100"),
    "weighted clients": (
        instead(client_weights=lambda _: tuple(map(float, range(1, 11)))),
        "data: problem.client_weights of seed 8100",
    ),
}


class Computed(Exception):
    """Runs were computed."""


@pytest.fixture
def page(monkeypatch):
    """The page in its full profile, which may load and must not compute."""

    def computed(group, *_, **__):
        raise Computed(*group)

    monkeypatch.setattr(store, "compute", computed)
    return STUDY.open("full", device="cpu")


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_is_computed_and_the_line_says_what_it_is(edit, page, capsys):
    given, words = EDITS[edit]
    make, method = given if isinstance(given, tuple) else (given, lambda: HARD)
    with pytest.raises(Computed, match="hard"):
        page.run(make, hard=method())
    line = capsys.readouterr().out
    assert line.startswith("70 of 71 runs are the study's, profile 'full'; your own: hard (")
    assert words in line
    assert line.endswith(
        "The result above, and the sentences and captions below, are about the book's runs.\n"
    )


UNEDITED = {
    "the page's function": problem,
    "the study's function": workshop_runs.problem,
    "a function around it": lambda seed: workshop_runs.problem(seed),
    "bound": partial(workshop_runs.problem),
    "other names for the same rows": with_rows(lambda X, y: (X + 0, y)),
}


@pytest.mark.parametrize("form", UNEDITED)
def test_what_gives_the_stored_data_is_loaded(form, page, capsys):
    traces = page.run(UNEDITED[form], hard=replace(HARD, lr=0.3))
    assert capsys.readouterr().out == "71 of 71 runs are the study's, profile 'full'.\n"
    assert traces["hard"].provenance == STUDY.payload("hard")["provenance"]


REPLACED = {
    "a method": (fedlib.FedSGM, "round"),
    "a method that was inherited": (fedlib.FedSGM, "sample"),
    "a method of an ingredient": (RandK, "__call__"),
    "a loader of data": (data, "breast_cancer"),
    "a function that the library calls": (fedlib.algorithms.fedsgm, "check_work"),
    "the problem of a study": (workshop_runs, "neyman_pearson"),
}


@pytest.mark.parametrize("name", REPLACED)
def test_where_our_code_was_replaced_no_run_is_loaded(name, page, monkeypatch, capsys):
    owner, attribute = REPLACED[name]
    usual = getattr(owner, attribute, None)
    monkeypatch.setattr(owner, attribute, lambda *a, **k: usual(*a, **k), raising=False)
    with pytest.raises(Computed):
        page.run()
    line = capsys.readouterr().out
    assert line.startswith("0 of 71 runs are the study's, profile 'full'; your own: 71 runs (code:")
    assert f".{attribute} was replaced)" in line
    monkeypatch.undo()
    assert snapshot.replaced() == []


def test_a_constant_and_the_body_of_a_function_count_as_code(monkeypatch):
    monkeypatch.setattr(workshop, "LATE", 0.5)
    monkeypatch.setitem(common.STEPS, 10, common.STEPS[100])
    monkeypatch.setattr(Hard.__call__, "__code__", (lambda _, z: z).__code__)
    assert snapshot.replaced() == [
        "fedlib.steps.switching.Hard.__call__",
        "papers.fedsgm.np_workshop.quantities.LATE",
        "papers.ssca.common.STEPS",
    ]


def test_a_record_and_a_function_that_remembers_count_as_code(monkeypatch):
    monkeypatch.setattr(arena_problems, "people", lambda: None)  # it was decorated with `cache`
    monkeypatch.setattr(fedlib.Problem, "gradient", "another default")
    monkeypatch.setattr(Client, "rows", property(lambda _: None))
    field = fields(MNIST_SCALE)[0].name
    usual = getattr(MNIST_SCALE, field)
    object.__setattr__(MNIST_SCALE, field, 9.0)
    names = snapshot.replaced()
    object.__setattr__(MNIST_SCALE, field, usual)
    assert {
        "papers.arena.problems.people",
        "papers.fedcmoo.data.pairs.MNIST_SCALE",
        "fedlib.core.problem.Problem.gradient",
        "fedlib.core.client.Client.rows",
    } <= {*names}
    monkeypatch.undo()
    assert snapshot.replaced() == []


def test_an_argument_of_a_foreign_class_is_not_the_studys():
    study = STUDIES["fw_lowrank"]
    own = study.specs(study.resolve("full"))["messages_l1"]

    class L1Ball(fedlib.sets.L1Ball):
        pass

    given = replace(
        own,
        problem=partial(own.problem.func, **{**own.problem.keywords, "convex_set": L1Ball(10.0)}),
    )
    assert given.key() == own.key()  # a configuration knows names alone
    (words,) = edits.of_problem(given, own)
    assert words.startswith("code: ")


def test_a_problem_for_no_run_is_refused(page):
    refuses("np_workshop.run: problem must come with the algorithm of a run", page.run, problem)


@pytest.fixture
def still():
    """A page whose hard switching never moves, computed."""
    page = STUDY.open("full", device="cpu")
    page.run(problem, hard=pasted())
    return page


def test_an_edited_run_is_the_readers_and_judges_nothing(still):
    assert snapshot.replaced() == []  # a run leaves our code as it was
    np.testing.assert_allclose(still.traces["hard"].metrics["f"], np.log(2), rtol=1e-5)
    assert {*report.paper_table(still)["status"]} == {"not judged: not the book's runs"}
    table = report.claims_table(still)
    for claim in STUDY.claims:
        names = [name for name in table.index if name.partition(":")[0] == claim.id]
        for reading, name in zip(claim.each, names, strict=True):
            if "hard" in reading.runs:
                assert table["verdict"][name] == "not judged"
                assert "hard is your own (code: pasted.<locals>.FedSGM" in table["why"][name]
    (other,) = {"fedsgm/P1"} & {*table.index}
    assert table["verdict"][other] != "not judged"


def test_a_trace_that_is_put_among_the_runs_later_judges_nothing():
    page = STUDY.open("full", device="cpu")
    traces = page.run()
    assert "agrees" in {*report.paper_table(page)["status"]}
    traces["hard"] = replace(traces["soft"])
    assert {*report.paper_table(page)["status"]} == {"not judged: not the book's runs"}
    verdicts = report.claims_table(page)
    assert "hard is your own (code: put among the traces)" in " ".join(verdicts["why"])


def test_curves_cannot_be_written_to_and_another_curve_is_noticed():
    page = STUDY.open("full", device="cpu")
    traces = page.run()
    with pytest.raises(ValueError, match="read-only"):
        traces["hard"].metrics["f"][:] = 0.0
    assert page.changed_runs == {}
    traces["hard"].metrics["f"] = traces["soft"].metrics["f"]
    assert page.changed_runs == {"hard": "code: put among the traces"}


def test_a_curve_made_writable_again_is_noticed():
    page = STUDY.open("full", device="cpu")
    curve = page.run()["soft"].metrics["g"]
    curve.setflags(write=True)
    curve[:] = 0.0
    assert "soft" in page.changed_runs


def test_data_changed_in_place_are_the_readers(monkeypatch):
    study = STUDIES["np_unified"]
    declared = study.specs(study.resolve("full"))["hard"]

    def altered(seed):
        made = declared.problem(seed)
        made.data[0][0] += 1.0
        return made

    words = edits.of_problem(replace(declared, problem=altered), declared)
    assert words == [f"data: problem.data of seed {declared.seeds[0]}"]
    again = declared.problem(declared.seeds[0])  # the study's own runs have the data as they were
    assert edits.of_problem(replace(declared, problem=lambda _: again), declared)[0].endswith(
        f"of seed {declared.seeds[1]}"
    )


def test_a_parameter_is_not_set_on_the_page(page):
    with pytest.raises(AttributeError, match="rounds must be changed in the parameters cell"):
        page.rounds = 7


@pytest.mark.parametrize("options", [{"profile": "quick"}, {"recompute": True}])
def test_an_edit_is_said_in_every_profile(options, monkeypatch, capsys):
    monkeypatch.setattr(store, "compute_or_load", lambda *given, **_: dict.fromkeys(given[2]))
    monkeypatch.setattr("papers.kit.study.curves_of", lambda _: {})
    page = STUDY.open(**options, device="cpu")
    page.run(problem, hard=pasted())
    total = len(STUDY.specs(page.params))
    assert f"{total - 1} of {total} runs are the study's" in capsys.readouterr().out
    page.run(problem, hard=STUDY.specs(page.params)["hard"].algorithm)
    assert f"{total} of {total} runs are the study's" in capsys.readouterr().out


def test_changed_parameters_give_no_status(monkeypatch):
    page = STUDY.open("full", device="cpu", tolerance=0.05)
    page.__dict__["traces"] = STUDY.load()
    assert {*report.paper_table(page)["status"]} == {"not judged: not the book's runs"}
    unchanged = STUDY.open("full", device="cpu")
    assert "agrees" in {*report.paper_table(unchanged)["status"]}
