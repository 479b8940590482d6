"""The stored runs and numbers are those that the code gives, and no part contradicts another."""

import re
from collections import Counter
from itertools import islice

import pytest

from fedlib.data import cache
from fedlib.sets import Box
from papers import STUDIES, all_claims
from papers.__main__ import main
from papers.kit import archive, store
from papers.kit import reproduce as kit
from papers.kit.numbers import Number
from papers.kit.reproduce import Comparison, RunPrefix, sample
from papers.kit.rules import VERDICTS
from tests.helpers import loose, stored
from tests.helpers.expect import refuses

WORKSHOP = STUDIES["np_workshop"]
#: Studies whose numbers take a second or more: `bounds` has 1,500 solutions of a program.
MANY_NUMBERS = ("bounds", "np_unified", "np_protocol")


@pytest.mark.parametrize(
    ("study", "profile"),
    [(study, "full") for study in STUDIES.values() if study.name not in MANY_NUMBERS]
    + [pytest.param(STUDIES[name], "full", marks=pytest.mark.weekly) for name in MANY_NUMBERS]
    + [(study, "paper") for study in STUDIES.values() if study.at_paper],
    ids=lambda one: getattr(one, "name", one),
)
def test_everything_stored_of_a_study_stands_together(study, profile):
    wrong = stored.faults(study, profile)
    kinds = Counter(sentence.partition(": ")[2][:40] for sentence in wrong)
    assert not wrong, f"{len(wrong)} in {study.name}: {wrong[:3]}; by kind {kinds}"


def test_nothing_else_is_among_the_results():
    files = {path.name for path in store.results_dir().iterdir()} - {*STUDIES, "recheck.json"}
    needed = {f"{name}{end}" for name in STUDIES for end in (".json", ".parquet")}
    assert needed <= files
    assert files <= {f"{name}{end}" for name in STUDIES for end in archive.FILES}


def planted(tmp_path, run, change, study=WORKSHOP):
    """A copy of a study's results with one run changed and its digest made anew."""
    loose.copy(study.name, tmp_path)
    loose.change(tmp_path / study.name / "full" / f"{run}.json", change)


def whole(run, study=WORKSHOP):
    """All rounds of a run."""
    spec = study.specs(study.resolve("full"))[run]
    return spec, RunPrefix(study.name, run, spec.rounds, spec.rounds)


class TestRecomputing:
    def test_a_stored_run_is_what_the_code_gives_and_what_is_not_is_said(
        self, tmp_path, monkeypatch
    ):
        spec, part = whole("hard")
        made = store.compute({"hard": spec}, "cpu", progress=False)["hard"]
        found = kit.compare(WORKSHOP, spec, part, made)
        assert found.wrong == []
        assert found.difference < 1e-5

        def change(held):
            held["metrics"]["g"][4][95] = 0.123
            held["info"]["sigma"][3][99] = 0.5
            held["bits"]["bits_up"] = 1281.0
            held["final_w"][3][7] = 0.5
            held["output_w"][3][7] = 0.5

        planted(tmp_path, "hard", change)
        monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path))
        expected = (
            "g must be .* 95",
            "sigma must .* 99",
            "1280, got 1281",
            "model must",
            "output must",
        )
        wrong = kit.compare(WORKSHOP, spec, part, made).wrong
        assert len(wrong) == len(expected)
        for what in expected:
            assert re.search(what, " ".join(wrong))

    def test_a_draw_takes_the_studies_in_turn_and_is_the_seeds(self):
        def drawn(seed):
            each = islice(sample([WORKSHOP, STUDIES["bounds"]], seed), 6)
            return [(study.name, name) for study, name, _ in each]

        assert [study for study, _ in drawn(0)] == ["np_workshop", "bounds"] * 3
        assert drawn(0) == drawn(0) != drawn(1)

    def test_a_draw_comes_to_every_run_once(self):
        runs = WORKSHOP.specs(WORKSHOP.resolve("full"))
        assert sorted(name for _, name, _ in sample([WORKSHOP], 0)) == sorted(runs)

    def test_a_run_is_recomputed_as_far_as_the_time_goes(self, monkeypatch):
        spec, part = whole("hard")
        monkeypatch.setattr(kit, "SAMPLE_S", 1e6)
        assert kit.prefix_of(WORKSHOP, "hard", spec) == part
        monkeypatch.setattr(kit, "SAMPLE_S", 0.0)
        assert kit.prefix_of(WORKSHOP, "hard", spec).rounds == 1

    def test_data_that_are_not_there_are_not_downloaded(self, tmp_path, monkeypatch, capsys):
        monkeypatch.setenv("FEDLIB_DATA", str(tmp_path))
        monkeypatch.setattr(cache, "_stream", lambda *_: pytest.fail("something was fetched"))
        assert main(["recheck", "ssca_long", "--seconds", "1"]) == 2
        told = capsys.readouterr()
        assert "without their data: 12 of ssca_long" in told.out
        assert told.err == "recheck: nothing was compared\n"

    def test_runs_that_need_no_data_are_compared_without_the_data_of_others(
        self, tmp_path, monkeypatch, capsys
    ):
        study = STUDIES["fw_rates"]
        specs = study.specs(study.resolve("full"))
        names = ("penalty_mclr_l1_L1", "convex_l1_reference")
        drawn = [(study, name, specs[name]) for name in names]
        monkeypatch.setattr(kit, "sample", lambda *_: iter(drawn))
        monkeypatch.setenv("FEDLIB_DATA", str(tmp_path))
        assert main(["recheck", "fw_rates"]) == 0
        told = capsys.readouterr().out
        assert "recheck: 1 runs of 1 studies are what the code gives" in told
        assert "without their data: 1 of fw_rates" in told

    def test_a_step_to_the_other_side_is_noticed_without_the_data(
        self, tmp_path, monkeypatch, capsys
    ):
        monkeypatch.setenv("FEDLIB_DATA", str(tmp_path))
        usual = Box.lmo
        monkeypatch.setattr(Box, "lmo", lambda ball, g: usual(ball, -g))
        study = STUDIES["fw_rates"]
        spec = study.specs(study.resolve("full"))["pair_fedfw_L0.1"]
        monkeypatch.setattr(kit, "sample", lambda *_: iter([(study, "pair_fedfw_L0.1", spec)]))
        monkeypatch.setattr(kit, "SAMPLED", 100)
        assert main(["recheck", "fw_rates"]) == 2
        assert "must be what the code gives, it is not at entry" in capsys.readouterr().err

    def test_the_command_says_what_it_saw(self, monkeypatch, capsys):
        monkeypatch.setattr(kit, "SAMPLED", 10)
        assert main(["recheck", "np_workshop", "--seconds", "0", "--seed", "3"]) == 0
        out = capsys.readouterr().out
        assert re.search(r"np_workshop/\S+: \d+ of \d+ rounds", out)
        assert "of 1 studies are what the code gives" in out

    def test_the_command_fails_where_a_run_is_not_what_the_code_gives(self, monkeypatch, capsys):
        wrong = Comparison(["np_workshop/x: f must be."], 0.5)
        monkeypatch.setattr(kit, "compare", lambda *_: wrong)
        monkeypatch.setattr(kit, "SAMPLED", 1)
        assert main(["recheck", "np_workshop", "--seconds", "0"]) == 2
        assert "np_workshop/x: f must be." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda held: held["config"].update(rounds=101),
            "it must fit *(key must be",
        ),
        (lambda held: held["seeds"].pop(), "it must fit *(seeds must be"),
        (
            lambda held: held["metrics"]["f"][3].pop(),
            "it must fit *(*inhomogeneous",
        ),
        (lambda held: held["bits"].update(bits_up=-1.0), "bits.bits_up must fit"),
        (lambda held: held.update(more=1), "more must fit the schema of a run"),
    ],
)
def test_a_run_that_contradicts_itself_is_not_read(tmp_path, monkeypatch, change, sentence):
    planted(tmp_path, "hard", change)
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path))
    refuses(f"np_workshop/hard: {sentence}", WORKSHOP.load)


def test_every_claim_has_a_verdict_by_rule_from_runs_that_exist(judged):
    ids = [claim.id for _, claim in all_claims()]
    assert len(ids) == len(set(ids)) > 80
    for name in ids:
        assert re.fullmatch(r"[a-z]+/[CPR]\d+", name), f"{name}: C, P or R with a number"
    for _, claim in all_claims():
        assert judged[claim.id][claim.reading].verdict in VERDICTS
        assert claim.runs


def test_a_verdict_changes_with_the_numbers():
    study = WORKSHOP
    numbers = store.read_numbers("np_workshop")
    (c4,) = (c for c in study.claims if c.id == "fedsgm/C4")
    most, half, few = (Number(x, x, x, ()) for x in (0.95, 0.6, 0.1))
    for late, mean, verdict in (
        (half, few, "not reproduced"),
        (most, most, "reproduced"),
        (most, half, "mixed"),
    ):
        changed = {"late_within_fall": late, "mean_within_fall": mean}
        assert c4.rule({**numbers, **changed}).verdict == verdict
    controls = {f"{name}_within_fall_control": most for name in ("late", "mean")}
    reached = {f"{name}_within_fall": most for name in ("late", "mean")}
    assert c4.rule({**numbers, **reached, **controls}).verdict == "not judged"


def test_an_unknown_profile_is_one_sentence(capsys):
    assert main(["reproduce", "np_workshop", "--profile", "ful"]) == 2
    assert "profile must" in capsys.readouterr().err


def test_data_that_are_not_there_are_one_sentence(capsys, tmp_path, monkeypatch):
    from papers.fedsgm.fairness.runs import people, problem

    monkeypatch.setenv("FEDLIB_DATA", str(tmp_path))
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path))
    monkeypatch.setattr("pooch.HTTPDownloader.__call__", offline)
    people.cache_clear()
    problem.cache_clear()
    assert main(["reproduce", "fairness", "--device", "cpu", "--missing"]) == 2
    assert re.search(r"(?m)^adult: adult\.data is not in .*FEDLIB_DATA", capsys.readouterr().err)


def offline(*_, **__):
    raise OSError("no network")


@pytest.mark.parametrize("name", ["np_workshop", "np_unified", "fairness"])
def test_what_is_on_can_be_switched_off(name):
    assert STUDIES[name].resolve("full", many=False)["many"] is False


def test_an_unknown_parameter_is_refused():
    refuses("np_unified: parameter must", STUDIES["np_unified"].resolve, "full", lrr=0.1)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"seeds": "three"}, r"seeds must be a list such as \[0, 1, 2\], got 'three'"),
        ({"lrs": []}, "lrs must be a list"),
        ({"rounds": 0}, "rounds must"),
        ({"many": 1}, "many must be True or False, got 1"),
        ({"lr": float("nan")}, "lr must"),
        ({"betas": [20.0, "x"]}, "every entry of betas must"),
    ],
)
def test_a_parameter_of_another_kind_is_refused(change, sentence):
    with pytest.raises((ValueError, TypeError), match=f"np_unified: {sentence}"):
        STUDIES["np_unified"].resolve("full", **change)
