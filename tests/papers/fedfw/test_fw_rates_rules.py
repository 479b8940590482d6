"""Rates of Federated Frank-Wolfe: numbers by hand, rules both ways, sweeps."""

import math
from dataclasses import replace

import numpy as np
import pytest

from fedlib.core import Trace
from papers.fedfw import theory_fw
from papers.fedfw.rates import STUDY, specs
from papers.fedfw.rates.numbers import bounds, derive, power, trends

FULL = STUDY.resolve("full")
SEEDS = (0, 1, 2)


def curve(rounds, **metrics):
    """A run whose metrics are functions of the round, the same for all seeds."""
    made = {
        k: np.repeat(np.array([[f(t) for t in rounds]], float), len(SEEDS), 0)
        for k, f in metrics.items()
    }
    config = {"algorithm": {"batch_size": 10}}
    return Trace(made, {}, np.asarray(rounds), SEEDS, config)


REFERENCE = {"smooth": 10.0, "dual": 0.5, "slope": 0.6, "first": 0.7, "noise": 80.0, "spread": 0.5}


def flat(value):
    return lambda _: value


def reference(**more):
    return curve([0, 1], **{k: flat(v) for k, v in {**REFERENCE, **more}.items()})


def falling(scale, k):
    return lambda t: scale * (t + 1.0) ** k


def shown(value):
    """A run of Figures 2 to 4."""
    made = curve(range(0, 101, 5), loss=flat(value), gap=flat(value), accuracy=flat(1 - value / 10))
    return replace(made, info={"gap": np.full((len(SEEDS), 100), 2 * value)})


def traces(p, **c):
    """All runs of some parameters, of a kind that makes every claim hold unless told otherwise."""
    c = {"naive": 0.0, "fedfw": 0.95, "convex": -0.6, "sto": -0.4, "nonconvex": -0.4, "size": 1.0,
         "share": -1.0, "lam": 1.0, "times": 0.5, "more": 0.5, "nuclear": 1.5, "falls": 0.0,
         **c}  # fmt: skip
    long = [*range(0, 4001, 40)]
    found = {}
    for name in specs(p):
        kind, *rest = name.split("_")
        value = float(rest[-1].lstrip("LTpk").removeprefix("quality").removeprefix("slip")
                      .removeprefix("falling")) if rest[-1][-1].isdigit() else 0.0  # fmt: skip
        if name.endswith("reference"):
            found[name] = reference(least=1.0, certificate=1e-9)
        elif kind == "pair":
            end = c["naive"] if rest[0] == "naive" else c["fedfw"]
            found[name] = curve(
                range(0, 2001, 20), x=lambda t, e=end: e * t / 2000, excess=flat(1.0)
            )
        elif kind in ("convex", "sto"):
            found[name] = curve(long, excess=falling(c["size"], c[kind]), fw_gap=falling(1, -0.5))
        elif kind == "nonconvex":
            gap = c["size"] * value ** c["nonconvex"]
            found[name] = curve([0, int(value)], loss=flat(1.0), fw_gap=flat(gap))
        elif kind == "share":
            found[name] = shown(2 + c["share"] * value)
        elif kind == "penalty":
            found[name] = shown(5 + c["lam"] * math.log10(value))
        elif kind == "nuclear":
            gap = 1.0 if value == 40 else c["nuclear"]
            found[name] = curve(range(0, 1001, 10), loss=flat(1.0), fw_gap=flat(gap))
        else:
            more = {"quality": lambda v: c["times"] * v**-2 * 1e-2 - 1e-2 if v else 0,
                    "slip": lambda v: c["more"] * v,
                    "falling": lambda _: c["falls"]}  # fmt: skip
            size = next((f(value) for k, f in more.items() if rest[-1].startswith(k)), 0.0)
            end = 1e-2 + size
            found[name] = curve(long, excess=flat(end), fw_gap=flat(1.0))
    return found


@pytest.fixture(scope="module")
def whole():
    return derive(traces(FULL), FULL)


def test_numbers_by_hand(whole):
    n = whole
    assert n["pair_fedfw_L1.x"].value == pytest.approx(0.95)
    assert n["pair_fedfw_L1.early"].value == pytest.approx(1 - 0.095)
    assert n["pair_fedfw_L1.nearer"].value == pytest.approx(0.855)
    assert n["convex_l1_fedfw_L0.01.slope"].value == pytest.approx(-0.6)
    assert n["convex_l1_fedfw_L0.01.excess"].value == pytest.approx(4001**-0.6)
    known = theory_fw.Constants(L=10, D=20, N=10, lam0=0.01, dual=0.5, slope=0.6)
    end = theory_fw.convex_excess(known, 4001)
    most = math.log(10) + 10
    assert n["convex_l1_fedfw_L0.01.by_most"].value == pytest.approx(end / most)
    first = theory_fw.convex_excess(known, 41)
    assert n["convex_l1_fedfw_L0.01.ratio"].value >= 41**-0.6 / first
    assert n["nonconvex_l2_L0.1.slope"].value == pytest.approx(-0.4)
    bound = theory_fw.nonconvex_gap(replace(known, lam0=0.1, spread=0.5), 64)
    assert n["nonconvex_l2_L0.1_T64.ratio"].value == pytest.approx(64**-0.4 / bound)
    assert n["share_mclr_L0.01_p0.5.mean_loss"].value == pytest.approx(1.5)
    assert n["penalty_net_l2_L1.early_gap"].value == pytest.approx(5)
    assert n["penalty_net_l2_L1.early_surrogate"].value == pytest.approx(10)
    assert n["wrong_l1_quality0.5.times"].value == pytest.approx(2)
    assert n["wrong_l1_slip0.1.more"].value == pytest.approx(0.05)
    assert n["nuclear_k3.times"].value == pytest.approx(1.5)


def test_the_noise_of_a_minibatch_enters_the_bound():
    known = theory_fw.Constants(
        L=10, D=20, N=10, lam0=0.1, dual=0.5, slope=0.6, spread=0.5, sigma=math.sqrt(8), first=0.7
    )
    ours = bounds(theory_fw.stochastic_excess, reference(), 0.1, np.array([0, 99]), 10)
    assert ours.shape == (3, 2)
    assert ours[0, 1] == pytest.approx(theory_fw.stochastic_excess(known, 100))


def test_the_slope_is_that_of_the_late_rounds():
    t = np.arange(0, 2001)
    values = np.where(t < 100, 5.0, (t + 1.0) ** -0.7)[None]
    assert power(t, values) == pytest.approx([-0.7])


def test_trends_by_hand(whole):
    assert whole["share_mclr_L0.01.trend"].value == pytest.approx(-1)
    assert whole["share_plus.trend_last"].value == pytest.approx(-1)
    flat_ones = {f"penalty_net_l2_L{x:g}": shown(x**0.25) for x in FULL["penalties"]}
    made = trends({**traces(FULL), **flat_ones}, FULL)
    assert made["penalty_net_l2.trend_gap"].value == pytest.approx(0.25)
    assert made["penalty_net_l2.trend_surrogate"].value == pytest.approx(0.25)
    one = FULL | {"share_penalties": (0.01,)}
    few = {k: t for k, t in traces(one).items() if not k.startswith("share_fedfw_p0")}
    assert "share_fedfw.trend" not in trends(few, one)
