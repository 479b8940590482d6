"""The stored numbers are those that the code gives: digests, derivations, recomputed prefixes."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedlib import data
from fedlib.core import jsonfile
from papers import STUDIES, all_claims
from papers.__main__ import main
from papers.kit import store
from papers.kit.rules import VERDICTS

ROOT = Path(__file__).resolve().parents[2]
PREFIX = 12  # rounds that are recomputed
#: Chaotic or long runs (rounding in another order ends an episode a step earlier, or doubles in a
#: network every few steps): how many of the first rounds are recomputed, how close their metrics
#: must be, and which reports of the rounds, how close.
FEW = {
    "cartpole": (3, 0.5, "g_hat", 0.5),
    "cmoo_pairs": (1, 1e-3, "direction weight_1", 1e-2),
    "cmoo_sweeps": (1, 1e-3, "direction weight_1", 1e-2),
    "cmoo_probe": (1, 1e-3, "direction weight_1", 1e-2),
    "cmoo_many": (1, 1e-3, "direction weight_1", 1e-2),
    "cmoo_qm9": (1, 1e-3, "direction weight_1", 1e-2),
    "fw_leakage": (3, 1.0, "", 0.0),
    "arena": (20, 1e-4, "", 0.0),  # more rounds: it is evaluated every ninth or so
}


def case(study):
    """The study as a parameter, skipped where its data are not in the cache."""
    missing = [name for name in study.data if not data.available(name)]
    reason = f"{', '.join(missing)} not in the data cache; set FEDLIB_DATA"
    return pytest.param(study, marks=pytest.mark.skipif(bool(missing), reason=reason))


studies = pytest.mark.parametrize(
    "study", [case(s) for s in STUDIES.values()], ids=lambda s: s.name
)


def sample(study):
    """Some runs of every kind: those without a suffix, and one in nine of the others."""
    names = list(study.specs(study.resolve("full")))
    return sorted({n for n in names if "_" not in n} | set(names[::9]))


@studies
def test_every_run_is_stored_whole_and_with_the_configuration_of_today(study):
    folder = store.results_dir() / study.name / "full"
    specs = study.specs(study.resolve("full"))
    assert {p.stem for p in folder.glob("*.json")} == {*specs, "numbers"}
    for name, spec in specs.items():
        held = study.payload(name)
        assert held["key"] == spec.key(), f"{name}: its configuration changed; reproduce it"
        assert held["name"] == name


@studies
def test_every_run_is_fresh(study):
    stale = [n for n in study.specs(study.resolve("full")) if not store.is_fresh(study.payload(n))]
    what = f"{len(stale)} runs of {study.name}, such as {stale[:3]}"
    assert not stale, f"{what}, were made by other code than today's; run `make reproduce`"


@studies
def test_the_stored_numbers_follow_from_the_stored_runs(study):
    stored = store.read_numbers(study.name)
    derived = study.numbers(study.load())
    assert derived.keys() == stored.keys()
    for key, number in derived.items():
        now = np.array([number.value, number.low, number.high, *number.per_seed])
        held = stored[key]
        then = np.array([held.value, held.low, held.high, *held.per_seed])
        np.testing.assert_allclose(then, now, rtol=1e-4, atol=1e-7, err_msg=key)


@studies
def test_the_first_rounds_of_stored_runs_are_what_the_code_gives(study):
    specs = study.specs(study.resolve("full"))
    rounds, close, reports, near = FEW.get(study.name, (PREFIX, 1e-5, "", 0.0))
    short = {
        name: replace(specs[name], rounds=rounds, seeds=specs[name].seeds[:2])
        for name in sample(study)
    }
    now = store.compute_or_load(study.name, "full", short, progress=False)
    for name, trace in now.items():
        held = store.to_trace(study.payload(name))
        columns = np.flatnonzero(trace.rounds[:-1] < min(rounds, held.rounds[-1]))
        for k, v in trace.metrics.items():
            np.testing.assert_allclose(
                v[:, columns],
                held.metrics[k][:2, columns],
                rtol=2e-3,
                atol=close,
                err_msg=f"{name} {k}",
            )
        for k in (k for k in reports.split() if k in held.info):
            then = held.info[k][:2, :rounds]
            what = f"{name} {k}"
            np.testing.assert_allclose(trace.info[k], then, rtol=near, atol=near, err_msg=what)


def copy_with(study, tmp_path, run, change):
    """A copy of a study's results with one digit of one run changed and the digest made anew."""
    shutil.copytree(store.results_dir() / study.name, tmp_path / study.name)
    path = tmp_path / study.name / "full" / f"{run}.json"
    held = json.loads(path.read_text(encoding="utf-8"))
    del held["digest"]
    change(held)
    path.write_text(json.dumps({**held, "digest": jsonfile.digest(held)}), encoding="utf-8")


@pytest.mark.parametrize(
    ("run", "metric", "place", "factor", "caught_by"),
    [
        ("hard", "g", 5, 1.01, test_the_first_rounds_of_stored_runs_are_what_the_code_gives),
        ("soft", "f", 95, 1.2, test_the_stored_numbers_follow_from_the_stored_runs),
    ],
)
def test_a_forged_digit_with_a_forged_digest_is_caught(
    tmp_path, monkeypatch, run, metric, place, factor, caught_by
):
    study = STUDIES["np_workshop"]

    def forge(held):
        held["metrics"][metric][0][place] *= factor

    copy_with(study, tmp_path, run, forge)
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path))
    with pytest.raises(AssertionError, match=rf"{run}[ .]{metric}"):
        caught_by(study)


def test_every_claim_has_a_verdict_by_rule_from_runs_that_exist():
    ids = [claim.id for _, claim in all_claims()]
    expected = {f"fedsgm/C{i}" for i in range(1, 34)} | {f"fedsgm/P{i}" for i in (1, 2, 3)}
    expected |= {f"fedcmoo/C{i}" for i in range(1, 21)} | {f"ssca/C{i}" for i in range(1, 13)}
    expected |= {f"fedfw/C{i}" for i in range(1, 16)}
    assert expected == set(ids)
    assert len(ids) == len(set(ids))
    for study, claim in all_claims():
        done = study.evaluate(claim)
        assert done.outcome.verdict in VERDICTS
        assert claim.runs
        assert done.fresh


def test_a_verdict_changes_with_the_numbers():
    study = STUDIES["np_workshop"]
    numbers = store.read_numbers("np_workshop")
    (c4,) = (c for c in study.claims if c.id == "fedsgm/C4")
    assert c4.judge(numbers).verdict == "reproduced"
    dear = {**numbers, "soft_beta200.f": numbers["soft.f"]}  # as at beta = 20
    assert c4.judge(dear).verdict == "not reproduced"


def test_the_command_line_lists_one_line_a_claim(capsys):
    assert main(["claims"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(all_claims()) + 1
    assert re.match(r"fedsgm/C1 +\w+.*np_workshop/hard.*fresh\)$", lines[0])


def test_an_unknown_profile_is_one_sentence(capsys):
    assert main(["reproduce", "np_workshop", "--profile", "ful"]) == 2
    assert "profile must" in capsys.readouterr().err


def test_data_that_are_not_there_are_one_sentence(capsys, tmp_path, monkeypatch):
    from papers.fedsgm.fairness import people, problem

    monkeypatch.setenv("FEDLIB_DATA", str(tmp_path))
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path))
    monkeypatch.setattr("pooch.HTTPDownloader.__call__", offline)
    people.cache_clear()
    problem.cache_clear()
    assert main(["reproduce", "fairness", "--device", "cpu"]) == 2
    assert re.search(r"^adult: adult\.data is not in .*FEDLIB_DATA", capsys.readouterr().err)


def offline(*_, **__):
    raise OSError("no network")


def test_an_unknown_parameter_is_refused():
    with pytest.raises(ValueError, match="np_unified: parameter must"):
        STUDIES["np_unified"].resolve("full", lrr=0.1)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"seeds": 3}, r"seeds must be a list such as \[0, 1, 2\], got 3"),
        ({"lrs": []}, "lrs must be a list"),
        ({"rounds": 0}, "rounds must"),
        ({"lr": float("nan")}, "lr must"),
        ({"betas": [20.0, "x"]}, "every entry of betas must"),
    ],
)
def test_a_parameter_of_another_kind_is_refused(change, sentence):
    with pytest.raises((ValueError, TypeError), match=f"np_unified: {sentence}"):
        STUDIES["np_unified"].resolve("full", **change)
