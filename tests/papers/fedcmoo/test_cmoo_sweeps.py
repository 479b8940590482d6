"""The sweeps over local steps and preferences: numbers by hand, rules in both directions."""

import math

import numpy as np
import pytest

from fedlib.core import Trace
from papers.fedcmoo.sweeps import CURVES, STUDY, by_preference, derive, final, ratios

FULL = STUDY.resolve("full")
ROUNDS = np.arange(0, 61, 5)


def made(loss_1=1.0, loss_2=1.0, accuracy=0.5, rule=None):
    """A run whose last tenth has these values in both seeds, with other ones before."""
    late = ROUNDS >= 54
    values = {"loss_1": loss_1, "loss_2": loss_2, "accuracy": accuracy}
    names = (*CURVES, "loss_1", "loss_2")
    metrics = {k: np.tile(np.where(late, values.get(k, 0.0), 9.0), (2, 1)) for k in names}
    return Trace(metrics, {}, ROUNDS, (0, 1), {"algorithm": {"preference": rule}})


def whole(lead=None, quotients=None, fashion=None):
    """All runs, with leads by local steps in points and F1/F2 by r2/r1."""
    lead = lead or {1: 0.0, 20: 3.0}
    traces = {}
    for data, of in (("multi_mnist", quotients), ("mnist_fashion", fashion)):
        for steps in FULL["steps"]:
            traces[f"{data}_fsmgda_steps{steps}"] = made(accuracy=0.5)
            traces[f"{data}_fedcmoo_steps{steps}"] = made(accuracy=0.5 + lead[steps] / 100)
        for second in FULL["ratios"]:
            run = made((of or {}).get(second, 1.0), 1.0, rule={"ratios": list(ratios(second))})
            traces[f"{data}_ratio{second:g}_tolerance0.01"] = run
    return traces


MET = {0.25: 0.4, 0.5: 0.55, 1.0: 1.0, 2.0: 1.9, 4.0: 2.5}
MNIST = {0.25: 0.3, 0.5: 0.4, 1.0: 0.5, 2.0: 0.6, 4.0: 0.7}


def test_the_final_value_is_that_of_the_last_tenth():
    assert final(made(loss_1=2.0), "loss_1").tolist() == [2.0, 2.0]
    trace = made()
    short = Trace(trace.metrics, {}, np.arange(13), (0, 1), {})
    assert final(short, "loss_1").tolist() == [1.0, 1.0]


def test_balance_by_hand():
    n = derive(whole(quotients=MET, fashion=MNIST), FULL)
    run = "multi_mnist_ratio4_tolerance0.01"
    assert n[f"{run}.quotient"].value == pytest.approx(2.5)
    u = 2.5 / 6.5
    mu = u * math.log(2 * u) + (1 - u) * math.log(2 * (1 - u))
    assert n[f"{run}.mu"].value == pytest.approx(mu)
    assert n["mnist_fashion.lead20"].value == pytest.approx(3)
    assert n["mnist_fashion.growth"].value == pytest.approx(3)


@pytest.mark.parametrize(
    ("lead", "verdict"),
    [
        ({1: 0.0, 20: 3.0}, "reproduced"),
        ({1: -4.0, 20: -1.0}, "not reproduced"),  # a growing lead that never is one
        ({1: 3.0, 20: 1.0}, "not reproduced"),
    ],
)
def test_fsmgda_falls_behind_if_the_lead_grows_and_is_one(lead, verdict):
    assert STUDY.claims[0].rule(derive(whole(lead), FULL)).verdict == verdict


def test_figures_find_their_runs():
    traces = whole(quotients=MET, fashion=MNIST)
    ordered = ["4 : 1", "2 : 1", "1 : 1", "1 : 2", "1 : 4"]
    assert list(by_preference(traces, "multi_mnist")) == ordered


def test_a_shortened_sweep_still_gives_numbers():
    p = STUDY.resolve("full", steps=[20], ratios=[2.0])
    names = set(STUDY.specs(p))
    some = {n: t for n, t in whole(quotients=MET, fashion=MNIST).items() if n in names}
    assert len(some) == len(names) == 6
    assert derive(some, p)["multi_mnist.growth"].value == 0
