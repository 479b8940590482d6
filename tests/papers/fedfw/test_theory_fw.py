"""The FedFW bounds: values by hand, corrections, order in t, and measured runs below them."""

import math
from dataclasses import replace

import pytest

import fedlib as fl
from fedlib.metrics import fw_gap
from papers.fedfw import theory
from papers.fedfw import theory_fw as th
from tests.helpers.problems import objectives

ONE = th.Constants(
    L=2.0,
    D=3.0,
    N=4,
    lam0=0.5,
    dual=1.0,
    slope=0.25,
    spread=1.5,
    sigma=1.0,
)


def test_values_by_hand():
    assert pytest.approx(2 * 3 / 2 + 0.25) == ONE.G
    expected = 2 * 4 * 9 * (0.5 / 4 + 0.5 / 2)
    assert th.convex_surrogate(ONE, 3) == pytest.approx(expected)
    root = 3 * math.sqrt(0.5 * (2 + 2))
    expected = 2 / (0.5 * 2) * (1 + root)
    assert th.convex_distance(ONE, 3) == pytest.approx(expected)
    near = 3 * math.sqrt(0.5 * (2 / 2 + 2))
    excess = 2 * 4 * 9 * (0.5 / 4 + 0.5 / 2) + 2 * 3.25 / (0.5 * 2) * (1 + near)
    assert th.convex_excess(ONE, 4) == pytest.approx(excess)
    gap = (1.5 + 4 * 9 * 0.5 / 2) / 2 + 2 * 9 / 2 / 4
    assert th.nonconvex_surrogate(ONE, 8) == pytest.approx(gap)
    away = 3.25 / (0.5 * 2) + math.sqrt(gap / (0.5 * 2))
    assert th.nonconvex_distance(ONE, 8) == pytest.approx(away)
    expected = gap + (3.25 + 6) * away
    assert th.nonconvex_gap(ONE, 8) == pytest.approx(expected)
    Q = 16 / 4 + 81 * 4 * 9 / 4
    C = 81 / 2 * 4 * 9 * (0.5 + 0.5) + 9 * 2 * 3 * math.sqrt(Q)
    expected = (9 / 8) ** (1 / 3) * C
    assert th.stochastic_surrogate(ONE, 1) == pytest.approx(expected)
    noisy = replace(ONE, first=100.0)
    assert th.stochastic_surrogate(noisy, 1) > th.stochastic_surrogate(ONE, 1)


def test_the_corrected_bound_for_some_clients_holds():
    """f(x) = x on [-1, 1] from 1, one client with p = 0.1: the first round mostly does nothing."""
    tiny = th.Constants(L=1e-9, D=2.0, N=1, lam0=1e-9)
    expected = 0.1 * 0 + 0.9 * 2  # of F - F* after the first round, whose step is 1
    assert theory.convex(tiny, 1, share=0.1, start=2.0) >= expected


@pytest.mark.parametrize(
    ("bound", "power"),
    [
        (th.convex_surrogate, 1 / 2),
        (th.convex_distance, 1 / 2),
        (th.convex_excess, 1 / 2),
        (th.nonconvex_surrogate, 1 / 3),
        (th.nonconvex_distance, 1 / 3),
        (th.nonconvex_gap, 1 / 3),
        (th.stochastic_surrogate, 1 / 3),
        (th.stochastic_excess, 1 / 3),
    ],
)
def test_rates(bound, power):
    ratio = bound(ONE, 10**9) / bound(ONE, 10**10)
    assert math.log10(ratio) == pytest.approx(power, abs=0.02)


def measured(method, rounds, lam0):
    """A run on quadratics with known constants, and its metrics in every round."""
    problem = objectives(
        clients=4,
        rows=1,
        tasks=1,
        dim=5,
        spread=0.5,
    ).within(fl.L1Ball(0.5))
    centres = problem.data[0][:, 0]
    best = problem.set.project(centres.mean(0))
    slopes = best - centres
    least = [0.5 * (problem.set.project(c) - c).square().sum() for c in centres]
    constants = th.Constants(
        L=1.0,
        D=1.0,
        N=4,
        lam0=lam0,
        dual=float((slopes.mean(0) - slopes).norm()) / 4,
        slope=float(slopes.norm()) / 4,
        spread=float((0.5 * centres.square().sum(1).mean()) - sum(least) / 4),
        first=float(centres.norm()) / 4,
    )

    def metrics(w, of):
        F = 0.5 * ((w - centres) ** 2 - (best - centres) ** 2).sum(-1).mean()
        return {"excess": F, "fw_gap": fw_gap(of, w)}

    task = replace(problem, metrics=metrics)
    return constants, fl.run(
        method,
        task,
        rounds=rounds,
        seeds=range(10),
        progress=False,
    )


@pytest.mark.parametrize("rounds", [27, 216])
def test_theorem_2_holds(rounds):
    constants, run = measured(fl.FedFW(0.3, schedule=fl.Nonconvex(rounds)), rounds, 0.3)
    surrogate = run.info["gap"][0]
    best = surrogate.argmin()
    assert surrogate[best] <= th.nonconvex_surrogate(constants, rounds)
    assert run.info["distance"][0, best] <= th.nonconvex_distance(constants, rounds)
    assert run.metrics["fw_gap"][0].min() <= th.nonconvex_gap(constants, rounds)
    assert constants.spread > 0


def test_theorem_1_holds_for_some_clients_and_theorem_3_for_minibatches_of_one_row():
    constants, run = measured(fl.FedFW(0.3, participation=0.4), 100, 0.3)
    excess = run.metrics["excess"].mean(0)
    for t in (1, 5, 20, 100):  # convexity: F(w) <= F_hat(X), up to G dist
        near = constants.G * th.convex_distance(constants, max(1, int(0.4 * t)))
        bound = theory.convex(constants, t, share=0.4, start=excess[0])
        assert excess[t] <= bound + near
    constants, run = measured(fl.FedFWSto(0.3, batch_size=1), 100, 0.3)
    for t in (2, 10, 101):
        assert run.metrics["excess"][:, t - 1].mean() <= th.stochastic_excess(constants, t)
        assert run.info["distance"][:, t - 2].mean() <= th.stochastic_distance(constants, t - 1)
