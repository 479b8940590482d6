"""Study of Federated Frank-Wolfe's theorems against runs, and of the paper's Figures 2, 3 and 4."""

from __future__ import annotations

from functools import partial
from typing import Any

from fedlib.algorithms.fedfw import FedFW, FedFWPlus, FedFWSto
from fedlib.algorithms.fedfw_reset import FedFWReset
from fedlib.algorithms.naive_fw import NaiveFW
from fedlib.core.algorithm import Algorithm
from fedlib.steps import Convex, Fixed, Nonconvex
from papers.fedfw.cells import guessing
from papers.fedfw.rates import claims
from papers.fedfw.rates.data import generated, photographed, tasks
from papers.fedfw.rates.numbers import derive, norms
from papers.fedfw.rates.oracles import InexactFW
from papers.fedfw.rates.problems import (
    convex_problem,
    convex_reference,
    nonconvex_problem,
    nonconvex_reference,
    pair,
)
from papers.kit.health import HealthCheck, learning, nothing
from papers.kit.parameters import parameters
from papers.kit.store import Spec
from papers.kit.study import Params, Study

STEP = 0.1  # of the naive scheme with a constant step
LOCAL = 5  # local steps of the published code's variant
STILL = 1e-3  # Figure 3's fixed penalty
CONSTANTS = ("smooth", "dual", "slope", "first", "noise")
CONVEX_CONSTANTS = (*CONSTANTS, "least", "certificate")
NONCONVEX_CONSTANTS = (*CONSTANTS, "spread")
CURVES = ("loss", "gap", "accuracy")

PARAMETERS = parameters(
    seeds=("seeds; each fixes a split, a network's start, coins and batches", (*range(5),), (0, 1)),
    balls=("sets: 1 for the l1 ball, 2 for the l2 ball", (1, 2), (1,)),
    pair_rounds=("rounds on the counterexample", 2000, 100),
    pair_penalties=("lambda_0 on the counterexample", claims.PAIR_PENALTIES, (0.1, 1.0)),
    rows=("digits for Theorems 1 to 3, all clients together", 600, 150),
    convex_rounds=("rounds for Theorem 1 and with wrong oracles", claims.CONVEX_ROUNDS, 60),
    convex_penalties=("lambda_0 for Theorem 1", claims.CONVEX_PENALTIES, (0.01, 0.1)),
    stochastic_rounds=("rounds for Theorem 3", 10_000, 60),
    stochastic_penalties=("lambda_0 for Theorem 3", claims.STOCHASTIC_PENALTIES, (0.1,)),
    batch=("rows of a client's minibatch for Theorem 3", 10, 4),
    horizons=("rounds T for Theorem 2", claims.HORIZONS, (16, 64)),
    nonconvex_penalties=("lambda_0 for Theorem 2", claims.NONCONVEX_PENALTIES, (0.1,)),
    shares=("participation p", claims.SHARES, (0.5, 1.0)),
    share_penalties=("lambda_0 of Figure 2", claims.SHARE_PENALTIES),
    share_rounds=("rounds of Figures 2 and 3", 300, 15),
    most=("generated rows of a client, at most", 2000, 200),
    penalties=("lambda_0 of Figure 4", claims.PENALTIES, (0.01, 1.0)),
    penalty_rounds=("rounds of Figure 4", 100, 21),
    data=("pictures of Figure 4", "mnist", "digits"),
    pictures=("training pictures, all clients together", 4000, 300),
    tested=("test pictures", 2000, 60),
    wrong_penalty=("lambda_0 with wrong oracles", 0.01),
    qualities=("share of the gap that a wrong oracle attains", claims.QUALITIES, (0.5,)),
    slips=("additive error of the oracles of all clients together", claims.SLIPS, (0.1,)),
    lanczos=("steps of the nuclear ball's oracle", claims.LANCZOS, (1, 40)),
    lanczos_rounds=("rounds with the nuclear ball", 1000, 30),
)


def specs(p: Params) -> dict[str, Spec]:
    """Every part of the study; see the page for what each is for."""
    found = pairs(p) | participation(p) | penalties(p) | nuclear(p)
    for norm in norms(p):
        found |= theorems(norm, p) | wrong(norm, p)
    return found


def pairs(p: Params) -> dict[str, Spec]:
    methods: dict[str, Algorithm] = {
        "pair_naive_falling": NaiveFW(),
        "pair_naive_constant": NaiveFW(schedule=Fixed(STEP)),
    }
    for lam in map(float, p["pair_penalties"]):
        methods[f"pair_fedfw_L{lam:g}"] = FedFW(lam)
        methods[f"pair_plus_L{lam:g}"] = FedFWPlus(lam)
        methods[f"pair_code_L{lam:g}"] = FedFWReset(lam, local_steps=LOCAL)
    T, seeds = p["pair_rounds"], tuple(p["seeds"])
    return {n: Spec(a, pair, T, seeds, between(T), ("x", "excess")) for n, a in methods.items()}


def between(rounds: int, looks: int = 100) -> int:
    """Rounds between two evaluations: as many as give some looks, all rounds if there are few."""
    return max(1, rounds // looks)


def theorems(norm: str, p: Params) -> dict[str, Spec]:
    """Theorems 1, 3 and 2 on one set, and the constants of their problems."""
    seeds, task = tuple(p["seeds"]), {"norm": norm, "rows": p["rows"]}
    convex, T = partial(convex_problem, **task), p["convex_rounds"]
    keep, every = ("excess", "fw_gap"), between(T, 400)
    known = partial(convex_reference, **task)
    found = {f"convex_{norm}_reference": Spec(NaiveFW(), known, 1, seeds, 1, CONVEX_CONSTANTS)}
    for lam in map(float, p["convex_penalties"]):
        found[f"convex_{norm}_fedfw_L{lam:g}"] = Spec(FedFW(lam), convex, T, seeds, every, keep)
    T = p["stochastic_rounds"]
    for lam in map(float, p["stochastic_penalties"]):
        noisy = FedFWSto(lam, p["batch"])
        found[f"sto_{norm}_L{lam:g}"] = Spec(noisy, convex, T, seeds, between(T, 400), keep)
    known = partial(nonconvex_reference, **task)
    reference = Spec(NaiveFW(), known, 1, seeds, 1, NONCONVEX_CONSTANTS)
    found[f"nonconvex_{norm}_reference"] = reference
    bumpy = partial(nonconvex_problem, **task)
    for lam in map(float, p["nonconvex_penalties"]):
        for T in p["horizons"]:
            method = FedFW(lam, schedule=Nonconvex(T))
            spec = Spec(method, bumpy, T, seeds, between(T, 256), ("loss", "fw_gap"))
            found[f"nonconvex_{norm}_L{lam:g}_T{T}"] = spec
    return found


def wrong(norm: str, p: Params) -> dict[str, Spec]:
    lam = float(p["wrong_penalty"])
    methods = {"exact": InexactFW(lam)}
    methods |= {f"quality{m:g}": InexactFW(lam, quality=float(m)) for m in p["qualities"]}
    methods |= {f"slip{x:g}": InexactFW(lam, slip=float(x)) for x in p["slips"]}
    methods |= {f"falling{x:g}": InexactFW(lam, slip=float(x), fall=1.0) for x in p["slips"]}
    made = partial(convex_problem, norm=norm, rows=p["rows"])
    T, seeds, keep = p["convex_rounds"], tuple(p["seeds"]), ("excess", "fw_gap")
    every = between(T, 400)
    return {f"wrong_{norm}_{n}": Spec(a, made, T, seeds, every, keep) for n, a in methods.items()}


def nuclear(p: Params) -> dict[str, Spec]:
    T, seeds, keep = p["lanczos_rounds"], tuple(p["seeds"]), ("loss", "fw_gap")
    method = FedFW(float(p["wrong_penalty"]))
    return {
        f"nuclear_k{k}": Spec(method, partial(tasks, steps=k), T, seeds, between(T), keep)
        for k in p["lanczos"]
    }


def participation(p: Params) -> dict[str, Spec]:
    T, seeds = p["share_rounds"], tuple(p["seeds"])
    linear, net = (
        partial(generated, model=model, norm=norm, most=p["most"])
        for model, norm in (("linear", "l1"), ("mlp", "l2"))
    )
    fixed = Convex(grows=False)
    found: dict[str, tuple[Algorithm, Any]] = {}
    for q in map(float, p["shares"]):
        for lam in map(float, p["share_penalties"]):
            found[f"share_mclr_L{lam:g}_p{q:g}"] = (FedFW(lam, q), linear)
        found[f"share_fedfw_p{q:g}"] = (FedFW(STILL, q, fixed), net)
        found[f"share_plus_p{q:g}"] = (FedFWPlus(STILL, q, fixed), net)
    return {n: Spec(*one, T, seeds, between(T, 60), CURVES) for n, one in found.items()}


def penalties(p: Params) -> dict[str, Spec]:
    """Figure 4: lambda_0 for logistic regression on pictures and a network on generated data."""
    T, seeds = p["penalty_rounds"], tuple(p["seeds"])
    seen = {k: p[k] for k in ("data", "pictures", "tested")}
    found: dict[str, Spec] = {}
    for norm in norms(p):
        shown = partial(photographed, norm=norm, **seen)
        net = partial(generated, model="mlp", norm=norm, most=p["most"])
        for lam in map(float, p["penalties"]):
            half, all_of_them = FedFW(lam, 0.5), FedFW(lam)
            found[f"penalty_mclr_{norm}_L{lam:g}"] = Spec(half, shown, T, seeds, 1, CURVES)
            found[f"penalty_net_{norm}_L{lam:g}"] = Spec(all_of_them, net, T, seeds, 1, CURVES)
    return found


STUDY = Study(
    name="fw_rates",
    title="Rates of Federated Frank-Wolfe",
    paper="D",
    data=("mnist",),
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    watch={
        "*_reference": nothing("constants of a problem"),
        "nonconvex_*": HealthCheck("fw_gap", best=0.0),
        "nuclear_*": HealthCheck("loss"),
        "penalty_mclr_*": learning(0.1),
        **{f"{part}_*": learning(guessing(0.34, 0.41)) for part in ("penalty", "share")},
        "*": HealthCheck("excess"),
    },
    at_paper={"pictures": 60_000, "tested": 10_000, "most": 100_000},
    **PARAMETERS,
)
