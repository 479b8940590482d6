"""Rates of Federated Frank-Wolfe: quantities of stored runs by hand, and their bounds."""

import math

import numpy as np
import pytest

from papers.fedfw import theory_fw
from papers.fedfw.rates import STUDY
from papers.fedfw.rates.quantities import bounds, derive, power
from papers.kit.quantities import Query


@pytest.fixture(scope="module")
def traces():
    return STUDY.load()


@pytest.fixture(scope="module")
def quantities(traces):
    return STUDY.numbers(traces)


def final(trace, metric):
    return trace.metrics[metric][:, -1]


def test_quantities_by_hand(traces, quantities):
    x = traces["pair_fedfw_L1"].metrics["x"]
    assert quantities["pair_fedfw_L1.x"].per_seed == pytest.approx(x[:, -1])
    assert traces["pair_fedfw_L1"].rounds[10] == 200
    assert quantities["pair_fedfw_L1.early"].per_seed == pytest.approx(1 - x[:, 10])
    exact = final(traces["wrong_l1_exact"], "excess")
    half = final(traces["wrong_l1_quality0.5"], "excess")
    times = quantities[Query.of("times", part="wrong", norm="l1", quality=0.5)]
    assert times.value == pytest.approx(half.mean() / exact.mean())
    slip = final(traces["wrong_l1_slip0.1"], "excess")
    assert quantities["wrong_l1_slip0.1.more"].per_seed == pytest.approx(slip - exact)
    loss = traces["share_mclr_L0.01_p0.5"].metrics["loss"]
    mean_loss = quantities["share_mclr_L0.01_p0.5.mean_loss"]
    assert mean_loss.per_seed == pytest.approx(loss[:, 1:].mean(1))


def test_bounds_are_those_of_the_theorems(traces, quantities):
    constants = {
        name: curve[0, 0] for name, curve in traces["nonconvex_l2_reference"].metrics.items()
    }
    known = theory_fw.Constants(
        L=constants["smooth"],
        D=20,
        N=10,
        lam0=0.1,
        dual=constants["dual"],
        slope=constants["slope"],
        spread=constants["spread"],
    )
    run = traces["nonconvex_l2_L0.1_T64"]
    smallest = run.metrics["fw_gap"][0, run.rounds < 64].min()
    share = smallest / theory_fw.nonconvex_gap(known, 64)
    assert quantities["nonconvex_l2_L0.1_T64.ratio"].per_seed[0] == pytest.approx(share, rel=1e-5)
    of_runs = [
        number.per_seed
        for name, number in quantities.items()
        if name.endswith(".ratio") and name.startswith("nonconvex_")
    ]
    assert len(of_runs) == 2 * 2 * 4
    assert quantities["nonconvex.ratio"].per_seed == pytest.approx(np.max(of_runs, axis=0))


def test_the_noise_of_a_minibatch_enters_the_bound(traces):
    reference = traces["convex_l1_reference"]
    known = {name: float(curve[0, 0]) for name, curve in reference.metrics.items()}
    constants = theory_fw.Constants(
        L=known["smooth"],
        D=20,
        N=10,
        lam0=0.1,
        dual=known["dual"],
        slope=known["slope"],
        sigma=math.sqrt(known["noise"] / 10),
        first=known["first"],
    )
    ours = bounds(theory_fw.stochastic_excess, reference, 0.1, np.array([0, 99]), 10)
    assert ours.shape == (len(reference.seeds), 2)
    assert ours[0, 1] == pytest.approx(theory_fw.stochastic_excess(constants, 100))


def test_the_slope_is_that_of_the_late_rounds():
    rounds = np.arange(0, 2001)
    values = np.where(rounds < 100, 5.0, (rounds + 1.0) ** -0.7)[None]
    assert power(rounds, values) == pytest.approx([-0.7])


def test_trends_by_hand(traces, quantities):
    shares = (0.2, 0.5, 0.8, 1.0)
    losses = [final(traces[f"share_plus_p{p:g}"], "loss") for p in shares]
    slopes = np.polyfit(shares, losses, 1)[0]
    trend = quantities[Query.of("trend_last", part="share", method="plus")]
    assert trend.per_seed == pytest.approx(slopes)
    penalties = (1e-3, 1e-2, 1e-1, 1.0)
    gaps = [quantities[f"penalty_net_l2_L{lam:g}.early_gap"].per_seed for lam in penalties]
    slopes = np.polyfit(np.log(penalties), np.log(gaps), 1)[0]
    assert quantities["penalty_net_l2.trend_gap"].per_seed == pytest.approx(slopes)


def test_a_sweep_of_one_run_has_no_trend(traces):
    p = STUDY.resolve("full", shares=[0.2])
    runs = {name: traces[name] for name in STUDY.specs(p)}
    assert Query.of("trend", part="share", method="fedfw") not in derive(runs, p)
