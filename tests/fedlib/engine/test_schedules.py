"""Schedules: asked for rounds of the run alone, within the field's range, from zero on."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

import fedlib as fl
from fedlib.checks import Checked, Positive, Share
from fedlib.engine.batch import CAPTURE
from fedlib.engine.schedules import check_field, is_allowed
from fedlib.problems import quadratics
from fedlib.testing.examples import examples
from tests.helpers.expect import refuses

AVG = fl.FedAvg(0.1, 2, 4)
CHANCE, IN_A_SET = examples()["FedFW"][1]
SSCA, FOR_SSCA = examples()["SSCA"][0]


def go(method, rule, field="lr", problem=None, rounds=6, **options):
    schedules = {field: rule}
    return fl.run(
        method,
        problem or quadratics(),
        rounds=rounds,
        schedules=schedules,
        **options,
    )


@pytest.mark.parametrize("rounds", [1, 2, 20, CAPTURE])
def test_a_rule_is_asked_for_rounds_of_the_run_alone(rounds):
    rounds_seen = set()

    def rule(t):
        rounds_seen.add(t)
        return 1 / t

    trace = go(AVG, rule, rounds=rounds, evaluate_every=rounds)
    assert rounds_seen == set(range(1, rounds + 1))
    shown = [t for t in (1, 2, 3, 10, 100, 1000) if t <= rounds]
    assert trace.config["schedules"]["lr"] == {str(t): 1 / t for t in shown}


TABLE = [1.0] * 3 + [0.1] * 3


def from_table(t):
    return TABLE[t - 1]


def test_rounds_with_a_table_by_hand():
    w = quadratics().w0
    slope = torch.func.grad(lambda u: quadratics().mean_losses(u)[0])
    for factor in TABLE:
        for _ in range(2):
            w = w - 0.1 * factor * slope(w)
    torch.testing.assert_close(go(AVG, from_table).state.w[0], w)


def test_a_stopped_run_with_a_table_goes_on(tmp_path):
    path = tmp_path / "c"
    stopped = go(AVG, from_table, checkpoint=path, callback=lambda t, *_: t >= 2)
    assert stopped.config["schedules"]["lr"] == {"1": 1.0, "2": 1.0}
    resumed = go(AVG, from_table, checkpoint=path)
    uninterrupted = go(AVG, from_table)
    assert resumed.config == uninterrupted.config
    assert torch.equal(resumed.state.w, uninterrupted.state.w)


def from_round(number, value):
    """A rule that is 1 before a round, and then another value."""
    return lambda t: value if t >= number else 1.0


@dataclass(frozen=True)
class Paired(fl.FedAvg):
    """A method whose constructor compares two fields."""

    most: float = 0.15

    def __post_init__(self):
        super().__post_init__()
        if self.lr > self.most:
            raise ValueError("Paired: lr must be at most most.")


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (from_round(3, -1.0), "its range, got 0.14 * -1.0*round 3"),
        (from_round(2, float("nan")), "(2) must be a finite number"),
        (from_round(4, torch.tensor(torch.nan)), "(4) must be a finite"),
        (from_round(1, np.array(np.inf)), "(1) must be a finite number, got inf"),
        (from_round(1, torch.ones(2)), "(1) must be a number"),
        (from_round(1, "0.1"), "(1) must be a number, got '0.1'"),
        # the constructor's own check
        (from_round(2, 1.2), "got 0.14 * 1.2 (Paired: lr must be at most"),
        (lambda t: 1 / (2 - t), "failed in round 2: division by zero."),
        (
            lambda t, T: t / T,
            "failed in round 1: *missing 1 required positional argument: 'T'.",
        ),
        (dict, "failed in round 1: 'int' object is not iterable."),
    ],
)
def test_a_rule_or_a_value_that_does_not_fit_is_named_with_its_round(rule, words):
    refuses(
        words,
        go,
        Paired(0.14, 2, 4),
        rule,
        error=(TypeError, ValueError),
    )


@pytest.mark.parametrize(
    ("method", "field", "problem", "rule", "words"),
    [
        (
            CHANCE,
            "participation",
            IN_A_SET,
            from_round(1, 4.0),
            "participation in its range, got 0.8 * 4.0 *round 1",
        ),
        (SSCA, "rho.scale", FOR_SSCA, float, "rho.scale in its range, * in round 2"),
        # the range holds for every point of a grid
        (
            [replace(CHANCE, participation=share) for share in (0.5, 0.8)],
            "participation",
            IN_A_SET,
            from_round(2, 1.5),
            "got 0.8 * 1.5 *FedFW: participation must *round 2",
        ),
    ],
)
def test_a_field_of_an_ingredient_and_a_share_keep_their_range(
    method,
    field,
    problem,
    rule,
    words,
):
    refuses(
        words,
        go,
        method,
        rule,
        field,
        problem,
    )


@pytest.mark.parametrize(
    ("name", "rounds"),
    [
        ("FedAvg", 5),
        ("FedSGM", 5),
        ("FedCMOO", 5),
        ("PenaltyFedAvg", 5),
        ("FedAvg", CAPTURE),  # by one set of weights
        ("FSMGDA", CAPTURE),  # by several
    ],
)
def test_a_warm_up_from_zero_stands_still_in_its_first_round(name, rounds):
    method, problem = examples()[name][0]
    trace = go(method, lambda t: min(1.0, (t - 1) / 4), problem=problem, rounds=rounds)
    curve, *_ = trace.metrics.values()
    curve = curve[0]
    assert curve[0] == pytest.approx(curve[1], abs=1e-12)
    assert curve[0] != curve[3]
    assert torch.isfinite(trace.state.w).all()


class Loose(Checked):
    """A record of two numbers."""


@dataclass(frozen=True)
class Numbers(Loose):
    rate: Positive = 1.0
    share: Share = 1.0


def test_records_of_the_kind_are_checked_as_their_constructor_does():
    assert is_allowed(Numbers(), "rate", 5.0)
    assert not is_allowed(Numbers(), "share", 5.0)
    refuses(
        "Numbers: rate must be positive, got 0",
        check_field,
        Numbers(),
        "rate",
        0.0,
    )
