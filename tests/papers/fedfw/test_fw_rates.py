"""Rates of Federated Frank-Wolfe: problems and oracles, numbers by hand, rules both ways."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from problems import batches
from torch.func import grad, jacrev

import fedlib as fl
from fedlib.algorithms import FedFW, NaiveFW
from fedlib.core import Trace
from fedlib.steps import Fixed
from papers.fedfw import theory_fw
from papers.fedfw.rates import STUDY, rules, specs
from papers.fedfw.rates.data import tasks
from papers.fedfw.rates.figures import FIGURES
from papers.fedfw.rates.numbers import bounds, derive, power
from papers.fedfw.rates.oracles import InexactFW, Towards
from papers.fedfw.rates.problems import (
    SIGMOID,
    convex_problem,
    convex_reference,
    nonconvex_problem,
    nonconvex_reference,
    pair,
)
from papers.kit.numbers import Number

FULL = STUDY.resolve("full")
SEEDS = (0, 1, 2)
SMALL = {"norm": "l2", "rows": 120}


def random_points(problem, count, seed=0):
    """Points of the set, some on its boundary."""
    rng = torch.Generator().manual_seed(seed)
    raw = 3 * torch.randn(count, problem.dim, generator=rng, dtype=torch.float64)
    return [problem.set.project(x) for x in raw]


# Problems


@pytest.mark.parametrize("schedule", [fl.Convex(), Fixed(0.1)])
def test_the_naive_scheme_goes_to_zero_and_fedfw_does_not(schedule):
    naive = fl.run(NaiveFW(schedule=schedule), pair, rounds=200, seeds=(0, 1, 2), progress=False)
    assert naive.metrics["x"][:, -1] == pytest.approx(0, abs=1e-6)
    assert naive.metrics["x"][1, 0] != naive.metrics["x"][2, 0]
    ours = fl.run(FedFW(1.0), pair, rounds=200, seeds=(0, 1), progress=False)
    assert (ours.metrics["x"][:, -1] > 0.5).all()
    assert ours.metrics["excess"] == pytest.approx((ours.metrics["x"] - 1) ** 2)


def test_the_least_value_is_the_least_and_is_certified():
    problem = convex_problem(0, **SMALL)
    assert all(problem.metrics(x, problem)["excess"] > 0 for x in random_points(problem, 5))
    best = problem.heldout[1]
    found = problem.metrics(best, problem)
    assert 0 <= float(found["fw_gap"]) <= 1e-8
    assert float(found["excess"]) == pytest.approx(0, abs=1e-12)
    assert bool(problem.set.contains(best))


def test_the_problems_of_all_seeds_have_equal_shapes():
    for maker in (convex_problem, nonconvex_problem, convex_reference):
        shapes = set()
        for seed in range(4):
            made = maker(seed, **SMALL)
            assert sum(made.sizes) == SMALL["rows"]
            shapes.add(tuple(x.shape for x in (*made.data, *made.heldout, made.w0)))
        assert len(shapes) == 1


def test_the_constants_are_those_of_autograd():
    problem = convex_problem(1, **SMALL)
    made = convex_reference(1, **SMALL)
    known = made.metrics(problem.w0, made)
    best = problem.heldout[1]
    parts = batches(problem)
    gradients = torch.stack([grad(lambda w, b=b: problem.losses(w, b)[0])(best) for b in parts])
    assert float(known["slope"]) == pytest.approx(float(gradients.norm() / 10))
    apart = (gradients - gradients.mean(0)).norm() / 10
    assert float(known["dual"]) == pytest.approx(float(apart))
    start = torch.stack([grad(lambda w, b=b: problem.losses(w, b)[0])(problem.w0) for b in parts])
    assert float(known["first"]) == pytest.approx(float(start.norm() / 10))
    X, y = parts[0].data
    for point in random_points(problem, 2):
        rows = torch.stack(
            [
                problem.gradient(point, fl.core.types.Batch((X[k : k + 1], y[k : k + 1]), one), one)
                for k, one in enumerate(torch.ones(len(y), 1).double())
            ]
        )
        real = parts[0].weight > 0
        spread = (rows[real] - rows[real].mean(0)).square().sum(1).mean()
        assert float(spread) <= float(known["noise"])


def test_no_client_bends_more_than_its_smoothness_constant():
    problem = nonconvex_problem(0, **SMALL)
    made = nonconvex_reference(0, **SMALL)
    known = made.metrics(problem.w0, made)
    least = []
    for point in [problem.w0, *random_points(problem, 3)]:
        for batch in batches(problem):
            H = jacrev(grad(lambda w, b=batch: problem.losses(w, b)[0]))(point)
            values = torch.linalg.eigvalsh(H)
            least.append(float(values[0]))
            assert float(values.abs().max()) <= float(known["smooth"]) * (1 + 1e-9)
    assert min(least) < -1e-3  # not convex
    assert float(known["spread"]) == pytest.approx(0.5)


def test_the_sigmoids_curvature_is_at_most_its_constant():
    z = torch.linspace(-8, 8, 4001, dtype=torch.float64)
    s = torch.sigmoid(z)
    assert float((s * (1 - s) * (1 - 2 * s)).abs().max()) == pytest.approx(SIGMOID, rel=1e-5)


def test_the_closed_gradient_of_the_sigmoid_loss():
    problem = nonconvex_problem(2, **SMALL)
    (batch, *_), (w, *_) = batches(problem), random_points(problem, 1)
    ours = problem.gradient(w, batch, torch.tensor([2.0]).double())
    torch.testing.assert_close(ours, 2 * grad(lambda u: problem.losses(u, batch)[0])(w))


def test_few_steps_of_lanczos_change_the_oracle_and_not_the_measure():
    few, many = tasks(0, steps=1), tasks(0, steps=40)
    w = many.set.lmo(torch.randn(many.dim, generator=torch.Generator().manual_seed(0)).double())
    assert float(few.metrics(w, few)["fw_gap"]) == float(many.metrics(w, many)["fw_gap"])
    g = fl.metrics.mean_gradient(few, w)
    assert float(g @ few.set.lmo(g)) > float(g @ many.set.lmo(g))


# Oracles


@pytest.mark.parametrize(("quality", "slip"), [(1.0, 0.0), (0.4, 0.0), (1.0, 0.3), (0.5, 0.3)])
def test_a_wrong_oracle_attains_what_it_may(quality, slip):
    x, g = torch.tensor([0.5, -0.2, 0.1]), torch.tensor([1.0, 2.0, -3.0])
    inner = fl.L1Ball(1.0)
    wrong = Towards(inner, x, quality, slip)
    gap = g @ (x - inner.lmo(g))
    s = wrong.lmo(g)
    assert float(g @ (x - s)) == pytest.approx(float(quality * gap - slip), rel=1e-5)
    assert bool(wrong.contains(s))
    far = Towards(inner, x, quality, 100.0)
    torch.testing.assert_close(far.lmo(g), x)


def test_an_oracle_without_error_gives_fedfw_and_a_share_slows_the_step():
    problem = nonconvex_problem(0, **SMALL)
    first = {"rounds": 3, "progress": False}
    plain, exact = (fl.run(a, problem, **first) for a in (FedFW(0.1), InexactFW(0.1)))
    torch.testing.assert_close(plain.state.w, exact.state.w, atol=1e-12, rtol=0)
    step = Fixed(0.4)
    half = fl.run(InexactFW(0.1, schedule=step, quality=0.5), problem, **first)
    slow = fl.run(FedFW(0.1, schedule=Fixed(0.2)), problem, **first)
    torch.testing.assert_close(half.state.w, slow.state.w, atol=1e-12, rtol=0)
    never = fl.run(InexactFW(0.1, slip=1e9), problem, **first)
    torch.testing.assert_close(never.state.w[0], problem.w0)


def test_a_falling_error_is_the_step_size_times_the_other():
    problem = nonconvex_problem(0, **SMALL)
    runs = [
        fl.run(InexactFW(0.1, schedule=Fixed(0.25), slip=a, fall=b), problem, rounds=2,
               progress=False).state.w
        for a, b in ((0.04, 0.0), (0.16, 1.0), (0.16, 0.0))
    ]  # fmt: skip
    torch.testing.assert_close(runs[0], runs[1], atol=1e-12, rtol=0)
    assert not torch.allclose(runs[0], runs[2])


@pytest.mark.parametrize(
    "bad", [{"quality": 0.0}, {"quality": 1.1}, {"slip": -1.0}, {"fall": -1.0}]
)
def test_wrong_errors_are_refused(bad):
    with pytest.raises(ValueError, match=f"InexactFW: {next(iter(bad))} must"):
        InexactFW(0.1, **bad)


# Numbers


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
         "share": -1.0, "lam": 1.0, "times": 0.5, "more": 0.5, "nuclear": 1.5, **c}  # fmt: skip
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
                    "falling": lambda v: c["more"] * 4 * v / 4001}  # fmt: skip
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


# Rules


def test_every_claim_can_hold(whole):
    for claim in STUDY.claims:
        found = claim.judge(whole)
        assert found.verdict == "reproduced", (claim.id, found)
        assert found.measured


@pytest.mark.parametrize(
    ("rule", "changes", "verdict", "text"),
    [
        ("C1", {"naive": 0.5}, "partly", "naive scheme at 0"),
        ("C1", {"fedfw": 0.5}, "partly", "within 0.1 of 1"),
        ("C1", {"naive": 0.5, "fedfw": -0.5}, "not reproduced", "coming nearer"),
        ("C2", {"convex": -0.4}, "partly", "slope"),
        ("C2", {"size": 1e9}, "partly", "bound"),
        ("C2", {"convex": -0.1, "size": 1e9}, "not reproduced", "l2"),
        ("C3", {"nonconvex": -0.2}, "partly", "slope"),
        ("C3", {"size": 1e9}, "partly", "bound, T = 64"),
        ("C4", {"sto": -0.2}, "partly", "slope"),
        ("C4", {"sto": -0.2, "size": 1e9}, "not reproduced", "bound"),
        ("C5", {"share": 1.0}, "partly", "loss, p = 0.5 below 0.2"),
        ("C6", {"lam": -1.0}, "not reproduced", "network, l2"),
        ("C13", {"times": 1.5}, "partly", "share 0.5"),
        ("C13", {"more": 1.5}, "partly", "error 0.1 times the step"),
        ("C13", {"nuclear": 2.5}, "partly", "5 steps of Lanczos"),
        ("C13", {"times": 1.5, "more": 1.5, "nuclear": 3.0}, "not reproduced", "l1"),
    ],
)
def test_every_part_can_fail(rule, changes, verdict, text):
    found = getattr(rules, rule)(derive(traces(FULL, **changes), FULL))
    assert found.verdict == verdict
    assert text in found.reason


def test_the_order_of_p_must_be_that_of_both_penalties(whole):
    other = {f"share_mclr_L0.001_p{q:g}.mean_loss": whole[f"share_mclr_L0.01_p{r:g}.mean_loss"]
             for q, r in ((0.2, 1.0), (1.0, 0.2))}  # fmt: skip
    found = rules.C5({**whole, **other})
    assert found.verdict == "partly"
    assert found.reason.endswith("role of p (the same order for both lambda_0)")


def test_intervals_and_single_seeds_count(whole):
    wide = Number(-0.6, -0.8, -0.4, (-0.6,))
    assert rules.C2({**whole, "convex_l1_fedfw_L0.1.slope": wide}).verdict == "partly"
    once = Number(0.5, 0.1, 0.9, (0.1, 1.1))
    assert rules.C4({**whole, "sto_l1_L0.1.ratio": once}).verdict == "partly"


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ({"horizons": (16, *FULL["horizons"])}, {"C3"}),
        ({"shares": (0.2, 0.3, 0.5, 0.8, 1.0)}, {"C5"}),
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
    found = {c.id: c.verdict(numbers, configs, full, other) for c in STUDY.claims}
    assert {k for k, x in found.items() if x.verdict == "not judged"} == {
        f"fedfw/{k}" for k in lost
    }


# The study


@pytest.mark.parametrize("profile", ["full", "quick"])
def test_figures_draw_what_there_is(profile):
    from matplotlib.figure import Figure

    made = traces(STUDY.resolve(profile))
    for make in FIGURES.values():
        fig = Figure()
        make(made)(fig)
        assert all(ax.lines for ax in fig.axes)
    assert len(fig.axes) == 3
