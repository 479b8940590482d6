"""Study of FedCMOO on quadratics whose Pareto front is known: what the theory is about."""

from __future__ import annotations

from functools import partial
from typing import Any

from fedlib.algorithms.fedcmoo import FedCMOO, FedCMOOPref, FedCMOOTheory
from fedlib.algorithms.fsmgda import FSMGDA
from fedlib.algorithms.scalarized import Scalarized
from fedlib.compress import Exact, Identity, RandK
from fedlib.compress.compressors import Compressor
from fedlib.weights import MinNorm, OneWay, Preference
from papers.fedcmoo.theory import Setting, corollary
from papers.fedcmoo.toy import claims
from papers.fedcmoo.toy.numbers import FIGURES, derive, edge_ratios
from papers.fedcmoo.toy.problems import CLIENTS, DirectionProbe, federation
from papers.kit.health import HealthCheck, nothing
from papers.kit.parameters import parameters
from papers.kit.store import Spec
from papers.kit.study import Params, Study

PARAMETERS = parameters(
    seeds=("seeds; each fixes the instance, participants and batches", tuple(range(10)), (0, 1)),
    lr=("client step size, except in the runs on the rate", 0.1),
    rounds=("rounds of the sweep over local steps", 400, 20),
    edge_rounds=("rounds of the sweeps over tolerance and scale", 150, 20),
    local_steps_grid=("local steps E of the sweep", (1, 5, 10, 20, 50), (1, 10)),
    spreads=(
        "root mean square distances of the clients' optima from the common ones",
        (0.0, 1.0),
        (0.0,),
    ),
    horizons=("rounds T of the runs on the rate", (50, 100, 200, 400, 800, 1600), (20, 40)),
    rate_local_steps=("local steps E of the runs on the rate", 5),
    rate_participants=(
        "clients a round, of 20, of the runs on the rate; also for each of the two Gram factors",
        10,
    ),
    tolerances=("FedCMOO-Pref's epsilon", (0.1, 0.01, 0.001, 0.0001), (0.1, 0.01)),
    objectives=("M of the sweep over tolerances and of the direction", (2, 5), (2,)),
    scale=("factor of objective 1 in the scale mismatch", 20.0),
    points=("random models and preferences a seed, for the direction", 100, 10),
)
EXACT = OneWay(Exact())
ENDS = ("f_1", "f_2", "stationarity", "distance")


def specs(p: Params) -> dict[str, Spec]:
    parts = (_drift, _rate, _edge, _scale, _probe)
    return {name: spec for part in parts for name, spec in part(p).items()}


def _spec(p: Params, algorithm: Any, task: Any, rounds: int, looks: int, *keep: str) -> Spec:
    return Spec(algorithm, task, rounds, tuple(p["seeds"]), max(1, rounds // looks), keep)


def _drift(p: Params) -> dict[str, Spec]:
    """FedCMOO and FSMGDA with all clients, exact gradients and exact weights, E local steps."""
    found = {}
    for spread in p["spreads"]:
        task = partial(federation, spread=float(spread))
        for E in p["local_steps_grid"]:
            work: dict[str, Any] = {"lr": float(p["lr"]), "local_steps": E, "participants": CLIENTS}
            both: dict[str, Any] = {
                "fedcmoo": FedCMOO(**work, gram=EXACT, weights=MinNorm()),
                "fsmgda": FSMGDA(**work),
            }
            for name, method in both.items():
                spec = _spec(p, method, task, p["rounds"], 20, *ENDS, "weight_1")
                found[f"drift_{name}_spread{spread:g}_E{E}"] = spec
    return found


def _rate(p: Params) -> dict[str, Spec]:
    """Algorithm 10 with the step sizes of Corollary 1.1, exact and with half of the entries.

    And with weights that never move, on which the theorem says nothing.
    """
    E, n, found = p["rate_local_steps"], p["rate_participants"], {}
    task = partial(federation, spread=0.5, noise=1.0, rows=4)
    unbiased: dict[str, Compressor] = {
        **{"exact": Identity(), "randk": RandK(0.5)},
        "plain": Identity(),  # the control: weights that stay equal, which is federated averaging
    }
    for name, compressor in unbiased.items():
        for T in p["horizons"]:
            # of the setting, the corollary uses L, M, tau and T alone
            rates = corollary(Setting(b=1.0, M=2, N=CLIENTS, n=n, n_gram=n, tau=E, T=T))
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
            found[f"rate_{name}_T{T}"] = _spec(p, method, task, T, T, *keep)
    return found


def _edge(p: Params) -> dict[str, Spec]:
    """FedCMOO-Pref with r from 1 to 2, one exact step a round, for every tolerance."""
    found = {}
    for M in p["objectives"]:
        task = partial(federation, tasks=M, spread=0.5)
        ratios = edge_ratios(M)
        for epsilon in p["tolerances"]:
            method = FedCMOOPref(
                lr=2 * float(p["lr"]),
                local_steps=1,
                participants=CLIENTS,
                gram=EXACT,
                preference=Preference(ratios=ratios, epsilon=float(epsilon)),
                least=None,
            )
            keep = [f"f_{k + 1}" for k in range(M)] + ["stationarity", "fallback"]
            keep += ["distance"] if M == 2 else []
            found[f"edge_M{M}_eps{epsilon:g}"] = _spec(p, method, task, p["edge_rounds"], 20, *keep)
    return found


def _scale(p: Params) -> dict[str, Spec]:
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
    found = {}
    for name, method in methods.items():
        keep = ENDS if name == "scalarized" else (*ENDS, "weight_1")
        found[f"scale_{name}"] = _spec(p, method, task, p["edge_rounds"], 20, *keep)
    return found


def _probe(p: Params) -> dict[str, Spec]:
    keep = ("mu", "slope", "error", "change", "change_1", "change_2", "change_3")
    return {
        f"probe_M{M}": _spec(
            p, DirectionProbe(), partial(federation, tasks=M, spread=0.5), p["points"], 1, *keep
        )
        for M in p["objectives"]
    }


STUDY = Study(
    name="cmoo_toy",
    title="FedCMOO on quadratics with a known front",
    paper="C",
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    paper_values=claims.PAPER_VALUES,
    figures=FIGURES,
    watch={
        "probe_*": nothing("directions at random models"),
        "rate_*": HealthCheck("g_12"),  # the inner product of both gradients, which end opposed
        "*": HealthCheck(
            "stationarity", exact="exact gradients of quadratics come to rest within one look"
        ),
    },
    **PARAMETERS,
)
