"""What is stored at the paper's scale is judged there, on whole runs."""

from dataclasses import replace

import pytest

from fedlib import FedSGM, data
from fedlib.problems import neyman_pearson
from papers import STUDIES
from papers.__main__ import main
from papers.kit import report, store
from papers.kit.claims import Claim, Reading
from papers.kit.health import HealthCheck, Needs
from papers.kit.numbers import mean
from papers.kit.parameters import parameters
from papers.kit.rules import Rule, of
from papers.kit.store import Spec
from papers.kit.study import Study
from tests.helpers import loose, stored
from tests.helpers.unlabelled import quantities

RATES = (0.1, 0.3)


def problem(seed):
    """Breast cancer on four clients."""
    table = data.breast_cancer()
    return neyman_pearson(
        table.X,
        table.y,
        clients=4,
        seed=seed,
        config={"data": "breast_cancer"},
    )


def specs(p):
    """One grid of steps for every number of local steps."""
    grid = {}
    for steps, rounds in ((1, 5), (2, p["rounds"])):
        for lr in p["lrs"]:
            algorithm = FedSGM(lr=lr, local_steps=steps, participants=4, tolerance=0.3)
            name = f"E{steps}_{lr:g}"
            grid[name] = Spec(algorithm, problem, rounds, tuple(p["seeds"]))
    return grid


RULE = Rule({"falls": of("E2_0.1.f") < 9})
CLAIM = Claim(
    "own/C1",
    "ours",
    "",
    "It falls.",
    RULE,
    ("E2_0.1",),
)
STUDY = Study(
    name="own",
    title="Local steps",
    paper="all",
    specs=specs,
    derive=lambda traces, _: quantities(
        {f"{name}.f": mean(trace.late("f")) for name, trace in traces.items()}
    ),
    claims=(CLAIM,),
    at_paper={"rounds": 8, "seeds": (0, 1, 2)},
    watch={"*": HealthCheck("f")},
    **parameters(
        seeds=("seeds", (0,), (0,)),
        rounds=("rounds", 4, 2),
        lrs=("step sizes", RATES),
    ),
)


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """The study with its full profile stored, and the paper's setting where it is asked for."""
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path))
    STUDY.reproduce("full", device="cpu", recompute=False)
    return STUDY


def at_paper(study, runs="*"):
    study.reproduce("paper", device="cpu", recompute=False, runs=runs)


def change_curve(name):
    """Change a stored run of the paper's setting, and seal it anew."""

    def change(run):
        run["metrics"]["f"][0][0] = 0.5

    loose.change(store.run_path("own", "paper", name), change)


def test_what_the_full_profile_cannot_judge_is_judged_where_it_can(toy):
    short = "a run of FedSGM has 1 seed, at least 3 are needed"
    assert toy.evaluate(CLAIM).reason == f"not judged, because {short}"
    at_paper(toy)
    outcome = toy.evaluate(CLAIM)
    numbers = store.read_numbers("own", "paper")
    assert outcome.verdict == "reproduced"
    setting_text = "at the paper's scale (rounds 8, seeds 3)"
    assert outcome.measured == f"{setting_text}: falls: {numbers['E2_0.1.f'].text('.3g')}"
    assert len(numbers["E2_0.1.f"].per_seed) == 3
    assert toy.open().verdicts(CLAIM)[""] == outcome
    assert not stored.faults(toy, "paper")


def test_every_reading_is_judged_at_the_papers_scale_where_its_runs_are(toy):
    exact = replace(CLAIM, needs=Needs(exact=True))
    assert toy.evaluate(exact).measured.startswith("falls: ")
    at_paper(toy, "E2_*")
    assert toy.evaluate(exact).measured.startswith("at the paper's scale")
    one_step = Reading("one step", RULE, ("E1_0.1",), Needs(exact=True))
    outcomes = toy.outcomes(replace(CLAIM, reading="two steps", readings=(one_step,)))
    assert outcomes["two steps"].measured.startswith("at the paper's scale")
    assert outcomes["one step"].measured.startswith("falls: ")


def test_runs_that_are_the_same_at_both_scales_are_the_full_profiles(toy):
    longer = replace(toy, at_paper={"rounds": 8})  # of E1 the rounds are fixed
    at_paper(longer)
    exact = replace(CLAIM, needs=Needs(exact=True))
    assert longer.evaluate(exact).measured.startswith("at the paper's scale")
    assert longer.evaluate(replace(exact, runs=("E1_0.1",))).measured.startswith("falls: ")


def test_a_grid_of_which_a_point_is_missing_decides_nothing(toy):
    at_paper(toy, "E2_0.1")
    assert not toy.held("paper", toy.specs(toy.resolve("paper")))
    assert toy.evaluate(CLAIM).verdict == "not judged"
    at_paper(toy, "E2_*")
    assert {*store.read_derived("own", "paper").runs} == {"E2_0.1", "E2_0.3"}  # E1 is not there
    assert toy.evaluate(CLAIM).verdict == "reproduced"
    both = replace(CLAIM, runs=("E1_0.1", "E2_0.1"))
    assert toy.evaluate(both).reason.endswith("at least 3 are needed (and 1 more)")
    assert not stored.faults(toy, "paper")


def test_a_run_that_does_not_train_is_not_judged_at_any_scale(toy):
    check = HealthCheck("f", chance=lambda config: config["rounds"] * 0.0, best=-1.0)
    guessing = replace(toy, watch={"*": check})
    at_paper(guessing)
    assert guessing.evaluate(CLAIM).reason.startswith(
        "at the paper's scale (rounds 8, seeds 3) not judged, because a run of FedSGM is not "
        "healthy: at chance: f "
    )


def test_a_page_shows_the_papers_setting_where_it_is_stored(toy):
    def shown():
        runs = {"small": "E2_0.1", "other": "E1_0.1"}
        return report.runs_table(store.read_derived("own", "paper"), runs, {"f": "f"})

    assert shown().empty
    at_paper(toy, "E2_*")
    assert [*shown().index] == ["small"]


def test_runs_of_the_papers_setting_are_recomputed_too(toy, monkeypatch, capsys):
    monkeypatch.setitem(STUDIES, toy.name, toy)
    at_paper(toy, "E2_*")
    again = ["reproduce", "own", "--profile", "paper", "--device", "cpu", "--runs", "E2_*"]
    assert main(again) == 0
    assert "own: 2 of 2 runs equal within" in capsys.readouterr().out
    change_curve("E2_0.3")
    assert stored.faults(toy, "paper")
    assert main(again) == 1
    assert "own/paper/E2_0.3: f must be what the code gives" in capsys.readouterr().err
