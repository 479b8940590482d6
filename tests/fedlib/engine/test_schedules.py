"""Schedules: asked for rounds of the run alone, within the field's range, from zero on."""

import re
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

import fedlib as fl
from fedlib.checks import Checked, Positive, Share
from fedlib.engine.batch import CAPTURE
from fedlib.problems import quadratics
from fedlib.testing.examples import examples
from tests.helpers.expect import refuses

AVG = fl.FedAvg(0.1, 2, 4)


def go(method, rule, field="lr", problem=None, rounds=6, **options):
    problem = problem or quadratics()
    schedules = {field: rule}
    return fl.run(
        method,
        problem,
        rounds=rounds,
        schedules=schedules,
        progress=False,
        **options,
    )


@pytest.mark.parametrize("rounds", [1, 2, 20, CAPTURE])
def test_a_rule_is_asked_for_rounds_of_the_run_alone(rounds):
    rounds_seen = []

    def rule(t):
        rounds_seen.append(t)
        return [0.0, 1.0][t <= rounds] / t

    trace = go(AVG, rule, rounds=rounds, evaluate_every=rounds)
    assert set(rounds_seen) == set(range(1, rounds + 1))
    shown = [t for t in (1, 2, 3, 10, 100, 1000) if t <= rounds]
    assert trace.config["schedules"]["lr"] == {str(t): 1 / t for t in shown}


def test_a_table_of_as_many_entries_as_rounds_is_enough(tmp_path):
    table = [1.0] * 3 + [0.1] * 3
    uninterrupted = go(AVG, lambda t: table[t - 1])
    by_hand = quadratics().w0
    for factor in table:
        for _ in range(2):
            slope = torch.func.grad(lambda u: quadratics().mean_losses(u)[0])(by_hand)
            by_hand = by_hand - 0.1 * factor * slope
    torch.testing.assert_close(uninterrupted.state.w[0], by_hand)
    rule = {"rule": lambda t: table[t - 1], "checkpoint": tmp_path / "c"}
    stop = {"callback": lambda t, *_: t >= 2}
    assert go(AVG, **rule, **stop).config["schedules"]["lr"] == {"1": 1.0, "2": 1.0}
    again = go(AVG, **rule)
    assert again.config == uninterrupted.config
    assert torch.equal(again.state.w, uninterrupted.state.w)


BAD = {
    "negative": (lambda t: 1.0 if t < 3 else -1.0, "lr", r"its range, got 0.1 \* -1.0 .*round 3"),
    "no number": (lambda t: 1.0 if t < 2 else float("nan"), "lr", r"\(2\) must be a finite number"),
    "a tensor without value": (
        lambda t: torch.tensor(1.0 if t < 4 else float("nan")),
        "lr",
        r"\(4\) must be a finite",
    ),
    "an array": (lambda _: np.array(np.inf), "lr", r"\(1\) must be a finite number, got inf"),
    "several": (lambda _: torch.ones(2), "lr", r"\(1\) must be a number"),
    "a word": (lambda _: "0.1", "lr", r"\(1\) must be a number, got '0.1'"),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_value_that_no_field_can_have_is_refused_in_its_round(bad):
    rule, field, words = bad
    with pytest.raises((ValueError, TypeError), match=words):
        go(AVG, rule, field)


def test_a_field_of_an_ingredient_and_a_share_keep_their_range():
    method, problem = examples()["FedFW"][1]
    with pytest.raises(ValueError, match=r"participation in its range, got 0.8 \* 4.0 .*round 1"):
        go(method, lambda _: 4.0, "participation", problem)
    method, problem = examples()["SSCA"][0]
    with pytest.raises(ValueError, match=r"rho.scale in its range, .* in round 2"):
        go(method, lambda t: float(t), "rho.scale", problem)


@dataclass(frozen=True)
class Paired(fl.FedAvg):
    """A method whose constructor compares two fields."""

    most: float = 0.15

    def __post_init__(self):
        super().__post_init__()
        if self.lr > self.most:
            raise ValueError("Paired: lr must be at most most.")


def test_the_constructors_own_checks_hold_too():
    with pytest.raises(ValueError, match=re.escape("got 0.14 * 1.2 (Paired: lr must be at most")):
        go(Paired(0.14, 2, 4), lambda t: 1.2 if t == 2 else 1.0)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (lambda t: 1 / (2 - t), "failed in round 2: division by zero."),
        (lambda t, T: t / T, "failed in round 1: *missing 1 required positional argument: 'T'."),
        (lambda: 1.0, "failed in round 1: *takes 0 positional arguments but 1 was given."),
        (dict, "failed in round 1: 'int' object is not iterable."),
    ],
)
def test_a_rule_that_fails_is_named_with_its_round(rule, words):
    sentence = "run: schedules['lr'] must be a function of the round that gives a factor, but "
    refuses(sentence + words, go, AVG, rule)


def test_the_range_holds_for_every_point_of_a_grid():
    method, problem = examples()["FedFW"][1]
    grid = [replace(method, participation=share) for share in (0.5, 0.8)]
    with pytest.raises(ValueError, match=r"got 0.8 \* 1.5 .*FedFW: participation must .*round 2"):
        go(grid, lambda t: 1.5 if t == 2 else 1.0, "participation", problem)


@pytest.mark.parametrize(
    ("name", "rounds"),
    [
        *((name, 5) for name in ("FedAvg", "FedSGM", "FedCMOO", "PenaltyFedAvg", "FSMGDA")),
        *((name, CAPTURE) for name in ("FedAvg", "FSMGDA")),  # by one set of weights, by several
    ],
)
def test_a_warm_up_from_zero_stands_still_in_its_first_round(name, rounds):
    method, problem = examples()[name][0]
    trace = go(method, lambda t: min(1.0, (t - 1) / 4), problem=problem, rounds=rounds)
    curve = trace.metrics[next(iter(trace.metrics))][0]
    assert curve[0] == pytest.approx(curve[1], abs=1e-12)
    assert torch.isfinite(trace.state.w).all()
    assert curve[0] != curve[3]


class Loose(Checked):
    """A record of two numbers."""


@dataclass(frozen=True)
class Numbers(Loose):
    rate: Positive = 1.0
    share: Share = 1.0


def test_records_of_the_kind_are_checked_as_their_constructor_does():
    from fedlib.engine.schedules import check_field, is_allowed

    assert is_allowed(Numbers(), "rate", 5.0)
    assert not is_allowed(Numbers(), "share", 5.0)
    with pytest.raises(ValueError, match="Numbers: rate must be positive, got 0"):
        check_field(Numbers(), "rate", 0.0)
