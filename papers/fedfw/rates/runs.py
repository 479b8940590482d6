"""The runs of the study of Federated Frank-Wolfe's rates, with their labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product
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
from papers.kit.quantities import Defaults, Label, by_name
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
DEFAULTS: Defaults = {
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
        return Spec(
            method,
            pair,
            rounds=T,
            seeds=p["seeds"],
            evaluate_every=between(T),
            keep=("x", "excess"),
            labels={"part": "pair", **labels},
        )

    yield run(NaiveFW(), method="naive", step="falling")
    yield run(NaiveFW(schedule=Fixed(STEP)), method="naive", step="constant")
    for lam in map(float, p["pair_penalties"]):
        yield run(FedFW(lam), method="fedfw", L=lam)
        yield run(FedFWPlus(lam), method="plus", L=lam)
        yield run(FedFWReset(lam, local_steps=LOCAL), method="code", L=lam)


def reference(
    part: str,
    norm: str,
    make: Any,
    keep: tuple[str, ...],
    p: Params,
) -> Spec:
    """The constants of a problem, as a run of one round."""
    return Spec(
        NaiveFW(),
        partial(make, norm=norm, rows=p["rows"]),
        rounds=1,
        seeds=p["seeds"],
        evaluate_every=1,
        keep=keep,
        labels={"part": part, "norm": norm, "method": "reference"},
    )


def on_convex(method: Any, norm: str, rounds: int, p: Params, /, **labels: Label) -> Spec:
    """A run on the convex problem of one set."""
    return Spec(
        method,
        partial(convex_problem, norm=norm, rows=p["rows"]),
        rounds=rounds,
        seeds=p["seeds"],
        evaluate_every=between(rounds, 400),
        keep=("excess", "fw_gap"),
        labels={"norm": norm, **labels},
    )


def convex(norm: str, p: Params) -> Iterator[Spec]:
    """Theorems 1 and 3 on one set."""
    yield reference("convex", norm, convex_reference, CONVEX_CONSTANTS, p)
    rounds = p["convex_rounds"]
    for lam in map(float, p["convex_penalties"]):
        yield on_convex(
            FedFW(lam),
            norm,
            rounds,
            p,
            part="convex",
            method="fedfw",
            L=lam,
        )
    rounds = p["stochastic_rounds"]
    for lam in map(float, p["stochastic_penalties"]):
        method = FedFWSto(lam, p["batch"])
        yield on_convex(
            method,
            norm,
            rounds,
            p,
            part="sto",
            L=lam,
        )


def nonconvex(norm: str, p: Params) -> Iterator[Spec]:
    """Theorem 2 on one set."""
    yield reference("nonconvex", norm, nonconvex_reference, NONCONVEX_CONSTANTS, p)
    problem = partial(nonconvex_problem, norm=norm, rows=p["rows"])
    for lam in map(float, p["nonconvex_penalties"]):
        for T in p["horizons"]:
            yield Spec(
                FedFW(lam, schedule=Nonconvex(T)),
                problem,
                rounds=T,
                seeds=p["seeds"],
                evaluate_every=between(T, 256),
                keep=("loss", "fw_gap"),
                labels={"part": "nonconvex", "norm": norm, "L": lam, "T": T},
            )


def wrong(norm: str, p: Params) -> Iterator[Spec]:
    """Oracles with errors, beside the exact one."""
    oracle = partial(InexactFW, float(p["wrong_penalty"]))
    rounds = p["convex_rounds"]

    def run(method: Any, /, **labels: Label) -> Spec:
        return on_convex(
            method,
            norm,
            rounds,
            p,
            part="wrong",
            **labels,
        )

    yield run(oracle(), method="exact")
    for quality in map(float, p["qualities"]):
        yield run(oracle(quality=quality), quality=quality)
    for slip in map(float, p["slips"]):
        yield run(oracle(slip=slip), slip=slip)
        yield run(oracle(slip=slip, fall=1.0), falling=slip)


def noisy(norm: str, p: Params) -> Iterator[Spec]:
    """Oracles that are asked with noise, beside the same without."""
    penalty = float(p["wrong_penalty"])
    rounds = p["convex_rounds"]
    for noise in (0.0, *map(float, p["noises"])):
        method = NoisyFW(penalty, noise=noise)
        yield replace(
            on_convex(method, norm, rounds, p),
            seeds=p["noise_seeds"],
            keep=("excess", "fw_gap", "gap"),
            labels={"part": "noisy", "norm": norm, "noise": noise},
        )


def nuclear(p: Params) -> Iterator[Spec]:
    """Few and many steps of Lanczos on the nuclear ball."""
    T = p["lanczos_rounds"]
    for k in p["lanczos"]:
        yield Spec(
            FedFW(float(p["wrong_penalty"])),
            partial(tasks, steps=k),
            rounds=T,
            seeds=p["seeds"],
            evaluate_every=between(T),
            keep=("loss", "fw_gap"),
            labels={"part": "nuclear", "k": k},
        )


def participation(p: Params) -> Iterator[Spec]:
    """Figures 2 and 3: shares of the clients for logistic regression and for a network."""
    for q in map(float, p["shares"]):
        yield from by_regression(q, p)
        yield from by_network(q, p)
        yield from by_their_network(q, p)


def share_run(
    method: Any,
    problem: Any,
    rounds: int,
    seeds: Any,
    /,
    q: float,
    **labels: Label,
) -> Spec:
    """A run with a share q of the clients."""
    return Spec(
        method,
        problem,
        rounds,
        seeds,
        evaluate_every=between(rounds, 60),
        keep=CURVES,
        labels={"part": "share", "p": q, **labels},
    )


def by_regression(q: float, p: Params) -> Iterator[Spec]:
    """Figure 2: logistic regression with a share of the clients."""
    problem = partial(generated, model="linear", norm="l1", most=p["most"])
    rounds = p["share_rounds"]
    seeds = p["figure_seeds"]
    for lam in map(float, p["share_penalties"]):
        yield share_run(
            FedFW(lam, q),
            problem,
            rounds,
            seeds,
            q,
            model="mclr",
            L=lam,
        )


def still_methods(q: float) -> dict[str, Any]:
    """Figure 3's methods, whose penalty does not grow, with a share of the clients."""
    schedule = Convex(grows=False)
    return {"fedfw": FedFW(STILL, q, schedule), "plus": FedFWPlus(STILL, q, schedule)}


def by_network(q: float, p: Params) -> Iterator[Spec]:
    """Figure 3: a network with a share of the clients."""
    problem = partial(generated, model="mlp", norm="l2", most=p["most"])
    for name, method in still_methods(q).items():
        yield share_run(
            method,
            problem,
            p["share_rounds"],
            p["seeds"],
            q,
            method=name,
        )


def by_their_network(q: float, p: Params) -> Iterator[Spec]:
    """Figure 3 on the rows of the authors' program, for longer and on fresh seeds."""
    problem = partial(authors_problem, net="dnn", classes=LABELS, ball=RADIUS)
    rounds = p["network_rounds"]
    seeds = p["network_seeds"]
    for name, method in still_methods(q).items():
        yield share_run(
            method,
            problem,
            rounds,
            seeds,
            q,
            method=name,
            rows="theirs",
        )


def penalties(p: Params) -> Iterator[Spec]:
    """Figure 4: lambda_0 for logistic regression on pictures and a network on generated data."""
    sizes = {name: p[name] for name in ("data", "pictures", "tested")}
    shares = {"mclr": 0.5, "net": 1.0}
    problems: dict[str, Any] = {
        "mclr": partial(photographed, **sizes),
        "net": partial(generated, model="mlp", most=p["most"]),
    }
    penalties = map(float, p["penalties"])
    for norm, model, lam in product(norms(p), problems, penalties):
        yield Spec(
            FedFW(lam, shares[model]),
            partial(problems[model], norm=norm),
            rounds=p["penalty_rounds"],
            seeds=p["figure_seeds"],
            evaluate_every=1,
            keep=CURVES,
            labels={"part": "penalty", "model": model, "norm": norm, "L": lam},
        )
