"""Rates of Federated Frank-Wolfe: numbers by hand, rules both ways, sweeps, figures."""

import math
from dataclasses import replace

import numpy as np
import pytest
from planted import drawn

from fedlib.core import Trace
from papers.fedfw import theory_fw
from papers.fedfw.rates import STUDY, rules, specs
from papers.fedfw.rates.figures import FIGURES
from papers.fedfw.rates.numbers import bounds, derive, power, trends
from papers.kit.numbers import Number, exact

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
    assert n["convex_l1_fedfw_L0.01.bound"].value == pytest.approx(end)
    first = theory_fw.convex_excess(known, 41)
    assert n["convex_l1_fedfw_L0.01.ratio"].value >= 41**-0.6 / first
    assert n["nonconvex_l2_L0.1.slope"].value == pytest.approx(-0.4)
    bound = theory_fw.nonconvex_gap(replace(known, lam0=0.1, spread=0.5), 64)
    assert n["nonconvex_l2_L0.1_T64.bound"].value == pytest.approx(bound)
    assert n["share_mclr_L0.01_p0.5_vs_0.2.mean_loss"].value == pytest.approx(-0.3)
    assert n["share_plus_p1_vs_0.8.mean_accuracy"].value == pytest.approx(2)
    assert n["penalty_net_l2_L1_vs_0.1.early_gap"].value == pytest.approx(1)
    assert n["penalty_net_l2_L1_vs_0.1.early_surrogate"].value == pytest.approx(2)
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


CLAIMS = {claim.id.removeprefix("fedfw/"): claim for claim in STUDY.claims}
VACUOUS = {"C2", "C3", "C4"}


def test_every_claim_can_hold(whole):
    biting = {f"{kind}.by_most": exact(0.5) for kind in ("convex", "nonconvex", "sto")}
    for name, claim in CLAIMS.items():
        for rule in (claim.rule, *(reading.rule for reading in claim.readings)):
            found = rule({**whole, **biting})
            assert found.verdict == "reproduced", (name, found)
            assert found.measured


@pytest.mark.parametrize(
    ("name", "changes", "verdict", "text"),
    [
        ("C1", {"naive": 0.5}, "partly", "the naive scheme ends at 0, constant step"),
        ("C1", {"fedfw": 0.0}, "partly", "FedFW comes nearer to 1, lambda_0 = 0.01"),
        ("C1", {"naive": 0.5, "fedfw": -0.5}, "not reproduced", "lambda_0 = 1"),
        ("C5", {"share": 1.0}, "not reproduced", "regression, lambda_0 = 0.001"),
        ("C15", {"share": 1.0}, "not reproduced", "network, FedFW+"),
        ("C6", {"lam": -1.0}, "not reproduced", "network, l2"),
        ("C13", {"times": 1.5}, "partly", "a share m of the gap costs at most 1/m^2, l1, m = 0.5"),
        ("C13", {"more": 1.5}, "partly", "an error e costs at most e, l2, e = 0.1"),
        ("C13", {"falls": 1e-3}, "partly", "that falls with the step costs nothing, l1, e = 0.01"),
        ("C13", {"times": 1.5, "more": 1.5, "falls": 1.0}, "not reproduced", "l1"),
    ],
)
def test_every_part_can_fail(name, changes, verdict, text):
    found = CLAIMS[name].judge(derive(traces(FULL, **changes), FULL))
    assert found.verdict == verdict
    assert text in found.reason


@pytest.mark.parametrize("name", sorted(VACUOUS))
def test_a_bound_is_judged_only_where_a_run_could_break_it(name, whole):
    claim = CLAIMS[name]
    (bound,) = (key for c in claim.rule.proviso.values() for key in c.keys)
    assert whole[bound].value > 1
    idle = claim.judge(whole)
    assert idle.verdict == "not judged"
    assert "no run could break" in idle.reason
    assert [p.state for p in idle.parts if p.primary] == ["holds"]
    broken = derive(traces(FULL, size=1e9), FULL)
    assert claim.judge({**broken, bound: exact(0.5)}).verdict == "not reproduced"
    assert claim.judge({**broken, bound: exact(1.0)}).verdict == "not judged"


def test_a_slope_is_observed_and_does_not_count():
    flat_ones = derive(traces(FULL, convex=-0.1), FULL)
    found = rules.C2({**flat_ones, "convex.by_most": exact(0.5)})
    assert found.verdict == "reproduced"
    assert {p.state for p in found.parts if not p.primary} == {"fails"}


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


def test_the_two_gaps_are_judged_apart(whole):
    claim = CLAIMS["C6"]
    other = {**whole, "penalty_mclr_l1.trend_gap": exact(-1.0)}
    assert claim.judge(other).verdict == "reproduced"
    (text,) = claim.readings
    assert text.rule(other).label == "partly (2 of 3)"


def test_the_set_in_which_nothing_trains_is_observed_only(whole):
    other = {**whole, "penalty_net_l1.trend_surrogate": exact(-1.0)}
    assert CLAIMS["C6"].judge(other).verdict == "reproduced"
    assert not any(run.startswith("penalty_net_l1") for run in CLAIMS["C6"].runs)


def test_intervals_and_single_seeds_count(whole):
    wide = Number(-0.6, -1.3, 0.1, (-0.6,))
    assert rules.C5({**whole, "share_mclr_L0.01.trend": wide}).verdict == "undecided"
    ratio, biting = Number(0.5, 0.1, 0.9, (0.1, 1.1)), exact(0.5)
    assert rules.C4({**whole, "sto.ratio": ratio, "sto.by_most": biting}).verdict != "reproduced"
    near = Number(1.0, 0.9, 1.1, (0.9, 1.1))
    assert rules.C13({**whole, "wrong_l1_falling0.1.times": near}).verdict == "undecided"


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ({"horizons": (16, *FULL["horizons"])}, {"C3"}),
        ({"shares": (0.2, 0.3, 0.5, 0.8, 1.0)}, {"C5", "C15"}),
        ({"penalties": (*FULL["penalties"], 10.0)}, {"C6"}),
        ({"lanczos": (*FULL["lanczos"], 60)}, {"C13"}),
        ({"balls": (2,)}, {"C2", "C3", "C4", "C6", "C13"}),
        ({"horizons": (64,), "convex_penalties": (0.1,), "lanczos": (5,)}, {"C2", "C3", "C13"}),
    ],
)
def test_other_sweeps_give_numbers_and_no_verdict_where_it_hangs_on_them(changes, lost):
    p = {**FULL, **changes}
    numbers, paper, now = derive(traces(p), p), specs(FULL), specs(p)
    assert ("nonconvex_l2_L0.1.slope" in numbers) is (len(p["horizons"]) > 1)
    configs, full = ({run: {"seeds": SEEDS} for run in runs} for runs in (now, paper))
    other = {k: (v, FULL[k]) for k, v in changes.items()}
    found = {k: c.verdict(numbers, configs, full, other) for k, c in CLAIMS.items()}
    lacking = {k for k, x in found.items() if x.verdict == "not judged" and not x.parts}
    assert lacking == lost


@pytest.mark.parametrize("profile", ["full", "quick"])
def test_figures_draw_what_there_is(profile):
    made = traces(STUDY.resolve(profile))
    for make in FIGURES.values():
        axes = drawn(make, made)
        assert all(ax.lines for ax in axes)
    assert len(axes) == 3
