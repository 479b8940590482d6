"""What is stored at the paper's scale is judged there, on whole runs."""

from dataclasses import replace

import pytest

from fedlib import FedSGM, data
from fedlib.problems import neyman_pearson
from papers import STUDIES
from papers.__main__ import main
from papers.kit import archive, report, store
from papers.kit.claims import Claim, Reading
from papers.kit.health import HealthCheck, Needs
from papers.kit.numbers import measured
from papers.kit.parameters import parameters
from papers.kit.rules import Rule, of, stat
from papers.kit.run_groups import listed
from papers.kit.store import Spec
from papers.kit.study import Study, setting
from tests.helpers import loose, stored
from tests.helpers.expect import refuses

RATES = (0.1, 0.3)


def problem(seed):
    """Breast cancer on four clients."""
    table = data.breast_cancer()
    return neyman_pearson(table.X, table.y, clients=4, seed=seed, config={"data": "breast_cancer"})


def specs(p):
    """One grid of steps for every number of local steps."""
    return {
        f"E{e}_{lr:g}": Spec(FedSGM(lr=lr, local_steps=e, participants=4, tolerance=0.3), problem,
                             p["rounds"] if e == 2 else 5, tuple(p["seeds"]))
        for e in (1, 2) for lr in p["lrs"]
    }  # fmt: skip


RULE = Rule({"falls": of("E2_0.1.f") < 9}, f"f {stat('E2_0.1.f')}")
CLAIM = Claim("own/C1", "ours", "", "It falls.", RULE, ("E2_0.1",))
STUDY = Study(
    name="own",
    title="Local steps",
    paper="all",
    specs=specs,
    derive=lambda traces, _: measured(traces, {"f": lambda t: t.late("f")}),
    claims=(CLAIM,),
    at_paper={"rounds": 8, "seeds": (0, 1, 2)},
    watch={"*": HealthCheck("f")},
    **parameters(
        seeds=("seeds", (0,), (0,)), rounds=("rounds", 4, 2), lrs=("step sizes", RATES)
    ),
)  # fmt: skip


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The study with its full profile stored, and the paper's setting where it is asked for."""
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path))
    STUDY.reproduce("full", device="cpu", recompute=False)
    return STUDY


def outcome(study, claim=CLAIM):
    return study.evaluate(claim)


def at_paper(study, runs="*"):
    study.reproduce("paper", device="cpu", recompute=False, runs=runs)


def changed(name, change):
    """A stored run of the paper's setting with something changed, and sealed anew."""
    loose.change(store.run_path("own", "paper", name), change)


def test_what_the_full_profile_cannot_judge_is_judged_where_it_can(own):
    short = "a run of FedSGM has 1 seed, at least 3 are needed"
    assert outcome(own).reason == f"not judged, because {short}"
    at_paper(own)
    found = outcome(own)
    numbers = store.read_numbers("own", "paper")
    assert found.verdict == "reproduced"
    where = "at the paper's scale (rounds 8, seeds 3)"
    assert found.measured == f"{where}: f {numbers['E2_0.1.f'].text('.3g')}"
    assert len(numbers["E2_0.1.f"].per_seed) == 3
    traces, params = own.load(), own.resolve("full")
    assert own.verdicts(CLAIM, traces, own.numbers(traces), params)[""] == found
    assert not stored.faults(own, "paper")


def test_a_page_with_other_parameters_is_not_judged_on_stored_runs(own):
    at_paper(own)
    table = report.claims_table(own.open("full", rounds=3))
    assert [*table["verdict"]] == ["not judged"]


def test_what_is_stored_at_the_papers_scale_is_judged_there_and_every_reading_for_itself(own):
    counted = replace(CLAIM, needs=Needs(exact=True))
    assert outcome(own, counted).measured.startswith("f ")
    at_paper(own, "E2_*")
    assert outcome(own, counted).measured.startswith("at the paper's scale")
    other = Reading("one step", RULE, ("E1_0.1",), Needs(exact=True))
    done = own.outcomes(replace(CLAIM, reading="two steps", readings=(other,)))
    assert done["two steps"].measured.startswith("at the paper's scale")
    assert done["one step"].measured.startswith("f ")


def test_runs_that_are_the_same_at_both_scales_are_the_full_profiles(own):
    longer = replace(own, at_paper={"rounds": 8})  # of E1 the rounds are fixed
    at_paper(longer)
    exact = replace(CLAIM, needs=Needs(exact=True))
    assert outcome(longer, exact).measured.startswith("at the paper's scale")
    assert outcome(longer, replace(exact, runs=("E1_0.1",))).measured.startswith("f ")


def test_a_grid_of_which_a_point_is_missing_decides_nothing(own):
    at_paper(own, "E2_0.1")
    assert not own.held("paper")
    assert outcome(own).verdict == "not judged"
    at_paper(own, "E2_*")
    assert {*store.read_derived("own", "paper").runs} == {"E2_0.1", "E2_0.3"}  # E1 is not there
    assert outcome(own).verdict == "reproduced"
    both = replace(CLAIM, runs=("E1_0.1", "E2_0.1"))
    assert outcome(own, both).reason.endswith("at least 3 are needed (and 1 more)")
    assert not stored.faults(own, "paper")


def test_a_run_that_is_not_the_one_of_the_numbers_is_told(own):
    at_paper(own)
    changed("E2_0.1", lambda held: held["metrics"]["f"][0].__setitem__(2, 0.5))
    assert stored.faults(own, "paper")


def test_a_damaged_run_is_refused(own):
    at_paper(own)
    loose.spread("own")
    path = store.run_path("own", "paper", "E2_0.1")
    path.write_text(path.read_text(encoding="utf-8")[:-9], encoding="utf-8")
    refuses("own/paper/E2_0.1.json must be complete JSON", outcome, own)


def test_a_run_that_does_not_train_is_not_judged_at_any_scale(own):
    guessing = replace(
        own, watch={"*": HealthCheck("f", chance=lambda c: c["rounds"] * 0.0, best=-1.0)}
    )
    at_paper(guessing)
    assert outcome(guessing).reason.startswith(
        "at the paper's scale (rounds 8, seeds 3) not judged, because a run of FedSGM is not "
        "healthy: at chance: f "
    )


def test_numbers_that_ask_for_a_run_that_is_missing_wait_for_it(own):
    wants = replace(own, derive=lambda traces, _: {"n": traces["E1_0.1"]})
    at_paper(wants, "E2_*")
    assert not archive.exists(store.run_path("own", "paper", "numbers"))


def test_a_page_shows_the_papers_setting_where_it_is_stored(own):
    def shown():
        numbers, runs = store.read_numbers("own", "paper"), {"small": "E2_0.1", "other": "E1_0.1"}
        return report.runs_table(numbers, runs, {"f": "f"})

    assert shown().empty
    at_paper(own, "E2_*")
    assert [*shown().index] == ["small"]


def test_runs_of_the_papers_setting_are_recomputed_too(own, monkeypatch, capsys):
    monkeypatch.setitem(STUDIES, own.name, own)
    at_paper(own, "E2_*")
    again = ["reproduce", "own", "--profile", "paper", "--device", "cpu", "--runs", "E2_*"]
    assert main(again) == 0
    assert "own: 2 of 2 runs equal within" in capsys.readouterr().out
    changed("E2_0.3", lambda held: held["metrics"]["f"][0].__setitem__(0, 0.5))
    assert main(again) == 1
    assert "own/paper/E2_0.3: f must be what the code gives" in capsys.readouterr().err


def test_it_lists_what_is_left(own):
    lines = "\n".join(listed([own], "paper"))
    assert "own/E2_0.1 (2 runs)" in lines
    assert "E1_0.1" in lines
    at_paper(own, "E2_*")
    lines = "\n".join(listed([own], "paper"))
    assert "E2_0.1" not in lines
    assert "E1_0.1" in lines


def test_seeds_that_are_runs_of_their_own_are_counted_together():
    configs = {f"a_seed{k}": {"rounds": 300, "seeds": [k]} for k in range(3)}
    assert setting(configs) == "rounds 300, seeds 3"
