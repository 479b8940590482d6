"""A planted dead run is caught and a healthy one is not; what is stored is what the runs give."""

import numpy as np
import pytest

from fedlib.core import Trace
from papers.kit import report, store
from papers.kit.health import HealthCheck, learning, nothing, of_run
from papers.kit.study import Study

ROUNDS = np.arange(41)  # 0 to 40
FALLING = 1 / (1 + ROUNDS / 4)
LOSS = HealthCheck("loss")
TASKS = (LOSS, HealthCheck("loss_*"))


def run_of(**curves):
    """A run of three seeds, or as many as its curves have."""
    metrics = {name: np.atleast_2d(curve) for name, curve in curves.items()}
    seeds, rounds = next(iter(metrics.values())).shape
    config = {"problem": {"share": 0.7}}
    return Trace(
        metrics,
        {},
        np.arange(rounds),
        tuple(range(seeds)),
        config,
    )


def noisy(curve, size=0.01, seeds=3):
    return curve + size * np.random.default_rng(0).normal(size=(seeds, len(ROUNDS)))


def stopping(curve, at):
    """The curve, exactly constant from a column on."""
    return np.where(np.arange(41) < at, curve, curve[at])


HEALTHY = {
    "settled": noisy(np.exp(-ROUNDS / 3)),
    "still improving": 1 - ROUNDS / 50,
    "worsening at the end": np.where(ROUNDS < 20, FALLING, FALLING[20] + (ROUNDS - 20) / 50),
}


@pytest.mark.parametrize("course", HEALTHY)
def test_nothing_is_wrong_with_a_live_run(course):
    assert of_run(run_of(loss=HEALTHY[course]), LOSS) == ""


def one_nan():
    curve = noisy(FALLING)
    curve[1, 7:] = np.nan
    return curve


PLANTED = {
    "never moved: loss constant": (run_of(loss=np.ones(41)), LOSS),
    "not finite from round 7 in 1 of 3 seeds": (run_of(loss=one_nan()), LOSS),
    "dead: loss constant from round 6": (run_of(loss=stopping(FALLING, 5)), LOSS),
    "dead: loss_1 and 1 more constant from round 6": (
        run_of(
            loss=FALLING,
            loss_1=stopping(FALLING, 5),
            loss_2=stopping(FALLING, 6),
            loss_3=FALLING,
        ),
        TASKS,
    ),
    "at chance: accuracy 10.4 % against 10 %": (
        run_of(loss=FALLING, accuracy=np.full(41, 0.104)),
        learning(0.1),
    ),
    "at chance: accuracy 70.5 % against 70 %": (
        run_of(accuracy=np.where(ROUNDS < 9, 0.2, 0.705) - ROUNDS / 1e5),
        (HealthCheck("accuracy", chance=lambda c: c["problem"]["share"]),),
    ),
    "no better than its start: loss 1.962 after 1": (run_of(loss=1 + ROUNDS / 40), LOSS),
    "no better than its start: reward 1.038 after 2": (
        run_of(reward=2 - ROUNDS / 40),
        (HealthCheck("reward"),),
    ),
}


@pytest.mark.parametrize("wrong", PLANTED)
def test_a_planted_fault_is_caught(wrong):
    assert of_run(*PLANTED[wrong]) == wrong


def test_noise_about_the_start_is_no_gain():
    health = of_run(run_of(loss=noisy(np.ones(41), 0.3)), LOSS)
    assert health.startswith("no better than its start")


def test_one_seed_that_does_not_gain_is_told_and_one_that_died_is_a_fault():
    curves = np.stack([FALLING, FALLING, 1 + ROUNDS / 50])
    assert of_run(run_of(loss=curves), LOSS) == ""
    curves[2] = stopping(FALLING, 3)
    assert of_run(run_of(loss=curves), LOSS).endswith("constant from round 4 in 1 of 3 seeds")


RESTING = {
    "it slowed down before": (np.round(np.exp(-ROUNDS / 1.2), 5), HealthCheck("f")),
    "nothing better is left": (stopping(1 - ROUNDS / 10, 10), HealthCheck("f_gap")),
    "the constraint holds": (np.ones(41), HealthCheck("f", guard="g")),
    "its gradients are exact": (stopping(FALLING, 5), HealthCheck("f", exact="exact gradients")),
    "nothing is to be trained": (np.ones(41), nothing("a probe")),
}


@pytest.mark.parametrize("why", RESTING)
def test_a_run_that_rests_for_a_reason_is_not_dead(why):
    curve, watch = RESTING[why]
    assert not of_run(run_of(f=curve, f_gap=curve, g=FALLING), (watch,))


def test_a_rising_objective_is_excused_by_a_violation_that_falls():
    run = run_of(f=1 - FALLING, g=FALLING)
    assert of_run(run, (HealthCheck("f"),))
    assert not of_run(run, (HealthCheck("f", guard="g", level=0.1),))
    assert of_run(run, (HealthCheck("f", guard="g", level=2.0),))  # it held from the start


def test_tasks_may_give_and_take_but_not_die():
    run = run_of(loss=FALLING, loss_1=FALLING, loss_2=2 - FALLING)
    assert not of_run(run, TASKS)
    assert of_run(run, (HealthCheck("loss_2"),))


def test_a_watch_that_names_nothing_is_refused():
    with pytest.raises(ValueError, match="HealthCheck: metric must be among f, got 'loss'"):
        of_run(run_of(f=FALLING), (HealthCheck("loss"),))


def test_the_first_pattern_that_fits_counts_and_tables_mark_the_run():
    watch = {"probe_*": nothing("a probe"), "*": HealthCheck("loss")}
    study = Study(
        "toy",
        "",
        "W",
        {},
        {},
        dict,
        lambda *_: {},
        watch=watch,
    )
    dead = run_of(loss=stopping(FALLING, 5))
    traces = {"probe_a": dead, "a": dead, "b": run_of(loss=FALLING)}
    health = study.health(traces)
    assert [*health.values()] == ["", "dead: loss constant from round 6", ""]
    number = next(iter(store.read_numbers("np_workshop").values()))
    numbers = {f"{run}.x": number for run in traces}
    derived = store.Derived(numbers, health, {})
    marked = report.runs_table(derived, {"A": "a", "B": "b"}, {"x": "x"})
    assert marked["not healthy"].tolist() == ["dead: loss constant from round 6", ""]
    assert "not healthy" not in report.runs_table(derived, {"B": "b"}, {"x": "x"})
