"""The runs of the study on quadratics, with the labels by which they are found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from fedlib.algorithms.fedcmoo import FedCMOO, FedCMOOPref, FedCMOOTheory
from fedlib.algorithms.fsmgda import FSMGDA
from fedlib.algorithms.scalarized import Scalarized
from fedlib.compress import Exact, Identity, RandK
from fedlib.compress.compressors import Compressor
from fedlib.weights import MinNorm, OneWay, Preference
from papers.fedcmoo.problems.federation import CLIENTS, DirectionProbe, federation
from papers.fedcmoo.theory.bounds import Setting, corollary
from papers.kit.quantities import Defaults, Label, by_name
from papers.kit.store import Spec
from papers.kit.study import Params

#: `part` is a section of the page; E local steps, T rounds, M objectives, `eps` the tolerance of
#: FedCMOO-Pref, `spread` the distance of the clients' optima.
DEFAULTS: Defaults = dict.fromkeys(("part", "method", "spread", "E", "T", "M", "eps"))
EXACT = OneWay(Exact())
ENDS = ("f_1", "f_2", "stationarity", "distance")


def specs(p: Params) -> dict[str, Spec]:
    """All runs by the names that their labels give."""
    makers = (drift, rate, edge, scale, probe)
    return by_name([run for maker in makers for run in maker(p)], DEFAULTS)


def run(
    p: Params,
    algorithm: Any,
    problem: Callable[..., Any],
    rounds: int,
    evaluations: int,
    keep: tuple[str, ...],
    **labels: Label,
) -> Spec:
    """A run with labels, evaluated about so many times."""
    interval = max(1, rounds // evaluations)
    return Spec(
        algorithm,
        problem,
        rounds,
        tuple(p["seeds"]),
        interval,
        keep,
        labels=labels,
    )


def drift(p: Params) -> Iterator[Spec]:
    """FedCMOO and FSMGDA with all clients, exact gradients and exact weights, E local steps."""
    for spread in p["spreads"]:
        task = partial(federation, spread=float(spread))
        for E in p["local_steps_grid"]:
            work: dict[str, Any] = {"lr": float(p["lr"]), "local_steps": E, "participants": CLIENTS}
            methods: dict[str, Any] = {
                "fedcmoo": FedCMOO(**work, gram=EXACT, weights=MinNorm()),
                "fsmgda": FSMGDA(**work),
            }
            for name, algorithm in methods.items():
                labels = {
                    "part": "drift",
                    "method": name,
                    "spread": float(spread),
                    "E": E,
                }
                yield run(
                    p,
                    algorithm,
                    task,
                    p["rounds"],
                    20,
                    (*ENDS, "weight_1"),
                    **labels,
                )


def rate(p: Params) -> Iterator[Spec]:
    """Algorithm 10 with the step sizes of Corollary 1.1, exact and with half of the entries.

    And with weights that never move, on which the theorem says nothing.
    """
    E = p["rate_local_steps"]
    n = p["rate_participants"]
    task = partial(federation, spread=0.5, noise=1.0, rows=4)
    compressors: dict[str, Compressor] = {
        "exact": Identity(),
        "randk": RandK(0.5),
        "plain": Identity(),  # the control: weights that stay equal, which is federated averaging
    }
    for name, compressor in compressors.items():
        for T in p["horizons"]:
            # of the setting, the corollary uses L, M, tau and T alone
            rates = corollary(
                Setting(
                    b=1.0,
                    M=2,
                    N=CLIENTS,
                    n=n,
                    n_gram=n,
                    tau=E,
                    T=T,
                )
            )
            method = FedCMOOTheory(
                lr=rates.eta_c,
                server_lr=rates.eta_s,
                step=0.0 if name == "plain" else rates.beta,
                local_steps=E,
                participants=n,
                gram_participants=n,
                batch_size=1,
                compressor=compressor,
            )
            # of every round: the claim is about their mean
            keep = ("g_11", "g_12", "g_22", "weight_1")
            yield run(
                p,
                method,
                task,
                T,
                T,
                keep,
                part="rate",
                method=name,
                T=T,
            )


def preferences(tasks: int) -> tuple[float, ...]:
    """The preferences of the sweep over tolerances, evenly from 1 to 2."""
    return tuple(1 + k / (tasks - 1) for k in range(tasks))


def edge(p: Params) -> Iterator[Spec]:
    """FedCMOO-Pref with r from 1 to 2, one exact step a round, for every tolerance."""
    for M in p["objectives"]:
        task = partial(federation, tasks=M, spread=0.5)
        keep = (*(f"f_{k + 1}" for k in range(M)), "stationarity", "fallback")
        keep += ("distance",) if M == 2 else ()
        for eps in map(float, p["tolerances"]):
            method = FedCMOOPref(
                lr=2 * float(p["lr"]),
                local_steps=1,
                participants=CLIENTS,
                gram=EXACT,
                preference=Preference(ratios=preferences(M), epsilon=eps),
                least=None,
            )
            yield run(
                p,
                method,
                task,
                p["edge_rounds"],
                20,
                keep,
                part="edge",
                M=M,
                eps=eps,
            )


def scale(p: Params) -> Iterator[Spec]:
    """Objective 1 multiplied, all clients, exact Gram matrix, the step divided by the factor."""
    work: dict[str, Any] = {"local_steps": 5, "participants": CLIENTS}
    work["lr"] = float(p["lr"]) / float(p["scale"]) ** 0.5
    methods: dict[str, Any] = {
        "scalarized": Scalarized(**work),
        "fedcmoo": FedCMOO(**work, gram=EXACT),
        "fsmgda": FSMGDA(**work),
        "pref": FedCMOOPref(**work, gram=EXACT, least=None),
    }
    task = partial(federation, spread=0.5, scale=float(p["scale"]))
    for name, algorithm in methods.items():
        keep = ENDS if name == "scalarized" else (*ENDS, "weight_1")
        yield run(
            p,
            algorithm,
            task,
            p["edge_rounds"],
            20,
            keep,
            part="scale",
            method=name,
        )


def probe(p: Params) -> Iterator[Spec]:
    """The balancing direction at random models."""
    keep = ("mu", "slope", "error", "change", "change_1", "change_2", "change_3")
    for M in p["objectives"]:
        task = partial(federation, tasks=M, spread=0.5)
        yield run(
            p,
            DirectionProbe(),
            task,
            p["points"],
            1,
            keep,
            part="probe",
            M=M,
        )
