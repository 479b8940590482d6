"""The runs of the study of Federated Frank-Wolfe's rates, with their labels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from fedlib.algorithms.fedfw import FedFW, FedFWPlus, FedFWSto
from fedlib.algorithms.fedfw_reset import FedFWReset
from fedlib.algorithms.naive_fw import NaiveFW
from fedlib.steps import Convex, Fixed, Nonconvex
from papers.fedfw.authors.rows import authors_problem
from papers.fedfw.rates.data import generated, photographed, tasks
from papers.fedfw.rates.oracles import InexactFW, NoisyFW
from papers.fedfw.rates.problems import (
    LABELS,
    RADIUS,
    convex_problem,
    convex_reference,
    nonconvex_problem,
    nonconvex_reference,
    pair,
)
from papers.kit.quantities import Label, by_name
from papers.kit.store import Spec
from papers.kit.study import Params

STEP = 0.1  # of the naive scheme with a constant step
LOCAL = 5  # local steps of the published code's variant
STILL = 1e-3  # Figure 3's fixed penalty
CONSTANTS = ("smooth", "dual", "slope", "first", "noise")
CONVEX_CONSTANTS = (*CONSTANTS, "least", "certificate")
NONCONVEX_CONSTANTS = (*CONSTANTS, "spread")
CURVES = ("loss", "gap", "accuracy")

#: The labels of runs: `L` is lambda_0, `p` the participation, `k` the steps of Lanczos; `quality`,
#: `slip`, `falling` and `noise` are the errors of oracles; `rows` are generated here or, where they
#: are `theirs`, by the authors' program.
DEFAULTS: dict[str, Label | None] = {
    "part": None,
    "model": None,
    "norm": None,
    "method": None,
    "step": None,
    "L": None,
    "T": None,
    "p": None,
    "quality": None,
    "slip": None,
    "falling": None,
    "noise": None,
    "k": None,
    "rows": None,
}
Labels = dict[str, Label]


def norms(p: Params) -> list[str]:
    """The sets of the theorems: `l1`, `l2`."""
    return [f"l{int(k)}" for k in p["balls"]]


def between(rounds: int, looks: int = 100) -> int:
    """Rounds between two evaluations: as many as give some looks, all rounds if there are few."""
    return max(1, rounds // looks)


def specs(p: Params) -> dict[str, Spec]:
    """All runs by the names that their labels give; see the page for what each is for."""
    runs = [*counterexample(p), *participation(p), *penalties(p), *nuclear(p)]
    for norm in norms(p):
        runs += [*convex(norm, p), *nonconvex(norm, p), *wrong(norm, p), *noisy(norm, p)]
    return by_name(runs, DEFAULTS)


def counterexample(p: Params) -> Iterator[Spec]:
    """The naive scheme and the three methods on the problem of appendix A."""
    T = p["pair_rounds"]

    def run(method: Any, /, **labels: Label) -> Spec:
        labels = {"part": "pair", **labels}
        return Spec(method, pair, T, p["seeds"], between(T), ("x", "excess"), labels=labels)

    yield run(NaiveFW(), method="naive", step="falling")
    yield run(NaiveFW(schedule=Fixed(STEP)), method="naive", step="constant")
    for lam in map(float, p["pair_penalties"]):
        yield run(FedFW(lam), method="fedfw", L=lam)
        yield run(FedFWPlus(lam), method="plus", L=lam)
        yield run(FedFWReset(lam, local_steps=LOCAL), method="code", L=lam)


def reference(part: str, norm: str, make: Any, keep: tuple[str, ...], p: Params) -> Spec:
    """The constants of a problem, as a run of one round."""
    labels: Labels = {"part": part, "norm": norm, "method": "reference"}
    problem = partial(make, norm=norm, rows=p["rows"])
    return Spec(NaiveFW(), problem, 1, p["seeds"], 1, keep, labels=labels)


def convex(norm: str, p: Params) -> Iterator[Spec]:
    """Theorems 1 and 3 on one set."""
    yield reference("convex", norm, convex_reference, CONVEX_CONSTANTS, p)
    problem = partial(convex_problem, norm=norm, rows=p["rows"])
    keep = ("excess", "fw_gap")
    T = p["convex_rounds"]
    for lam in map(float, p["convex_penalties"]):
        labels: Labels = {"part": "convex", "norm": norm, "method": "fedfw", "L": lam}
        yield Spec(FedFW(lam), problem, T, p["seeds"], between(T, 400), keep, labels=labels)
    T = p["stochastic_rounds"]
    for lam in map(float, p["stochastic_penalties"]):
        method = FedFWSto(lam, p["batch"])
        labels = {"part": "sto", "norm": norm, "L": lam}
        yield Spec(method, problem, T, p["seeds"], between(T, 400), keep, labels=labels)


def nonconvex(norm: str, p: Params) -> Iterator[Spec]:
    """Theorem 2 on one set."""
    yield reference("nonconvex", norm, nonconvex_reference, NONCONVEX_CONSTANTS, p)
    problem = partial(nonconvex_problem, norm=norm, rows=p["rows"])
    keep = ("loss", "fw_gap")
    for lam in map(float, p["nonconvex_penalties"]):
        for T in p["horizons"]:
            method = FedFW(lam, schedule=Nonconvex(T))
            labels: Labels = {"part": "nonconvex", "norm": norm, "L": lam, "T": T}
            yield Spec(method, problem, T, p["seeds"], between(T, 256), keep, labels=labels)


def wrong(norm: str, p: Params) -> Iterator[Spec]:
    """Oracles with errors, beside the exact one."""
    oracle = partial(InexactFW, float(p["wrong_penalty"]))
    problem = partial(convex_problem, norm=norm, rows=p["rows"])
    T = p["convex_rounds"]

    def run(method: Any, /, **labels: Label) -> Spec:
        labels = {"part": "wrong", "norm": norm, **labels}
        keep = ("excess", "fw_gap")
        return Spec(method, problem, T, p["seeds"], between(T, 400), keep, labels=labels)

    yield run(oracle(), method="exact")
    for quality in map(float, p["qualities"]):
        yield run(oracle(quality=quality), quality=quality)
    for slip in map(float, p["slips"]):
        yield run(oracle(slip=slip), slip=slip)
        yield run(oracle(slip=slip, fall=1.0), falling=slip)


def noisy(norm: str, p: Params) -> Iterator[Spec]:
    """Oracles that are asked with noise, beside the same without."""
    problem = partial(convex_problem, norm=norm, rows=p["rows"])
    T = p["convex_rounds"]
    for noise in (0.0, *map(float, p["noises"])):
        method = NoisyFW(float(p["wrong_penalty"]), noise=noise)
        labels: Labels = {"part": "noisy", "norm": norm, "noise": noise}
        keep = ("excess", "fw_gap", "gap")
        yield Spec(method, problem, T, p["noise_seeds"], between(T, 400), keep, labels=labels)


def nuclear(p: Params) -> Iterator[Spec]:
    """Few and many steps of Lanczos on the nuclear ball."""
    T = p["lanczos_rounds"]
    method = FedFW(float(p["wrong_penalty"]))
    for k in p["lanczos"]:
        labels: Labels = {"part": "nuclear", "k": k}
        keep = ("loss", "fw_gap")
        problem = partial(tasks, steps=k)
        yield Spec(method, problem, T, p["seeds"], between(T), keep, labels=labels)


def participation(p: Params) -> Iterator[Spec]:
    """Figures 2 and 3: shares of the clients for logistic regression and for a network."""
    T = p["share_rounds"]
    linear = partial(generated, model="linear", norm="l1", most=p["most"])
    net = partial(generated, model="mlp", norm="l2", most=p["most"])
    fixed = Convex(grows=False)

    def run(method: Any, problem: Any, seeds: Any, T: int = T, /, **labels: Label) -> Spec:
        labels = {"part": "share", **labels}
        return Spec(method, problem, T, seeds, between(T, 60), CURVES, labels=labels)

    for q in map(float, p["shares"]):
        for lam in map(float, p["share_penalties"]):
            yield run(FedFW(lam, q), linear, p["figure_seeds"], model="mclr", L=lam, p=q)
        yield run(FedFW(STILL, q, fixed), net, p["seeds"], method="fedfw", p=q)
        yield run(FedFWPlus(STILL, q, fixed), net, p["seeds"], method="plus", p=q)
        theirs = partial(authors_problem, net="dnn", classes=LABELS, ball=RADIUS)
        fresh = p["network_seeds"]
        longer = p["network_rounds"]
        yield run(FedFW(STILL, q, fixed), theirs, fresh, longer, method="fedfw", p=q, rows="theirs")
        plus = FedFWPlus(STILL, q, fixed)
        yield run(plus, theirs, fresh, longer, method="plus", p=q, rows="theirs")


def penalties(p: Params) -> Iterator[Spec]:
    """Figure 4: lambda_0 for logistic regression on pictures and a network on generated data."""
    seen = {name: p[name] for name in ("data", "pictures", "tested")}
    for norm in norms(p):
        models = {
            "mclr": (0.5, partial(photographed, norm=norm, **seen)),
            "net": (1.0, partial(generated, model="mlp", norm=norm, most=p["most"])),
        }
        for model, (q, problem) in models.items():
            for lam in map(float, p["penalties"]):
                labels: Labels = {"part": "penalty", "model": model, "norm": norm, "L": lam}
                method = FedFW(lam, q)
                T = p["penalty_rounds"]
                yield Spec(method, problem, T, p["figure_seeds"], 1, CURVES, labels=labels)
