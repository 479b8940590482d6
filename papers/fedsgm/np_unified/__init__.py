"""Study F: the full paper's Neyman-Pearson figures (20 clients, 10 a round, Top-K both ways)."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from fedlib import data
from fedlib.algorithms.fedsgm import FedSGM
from fedlib.algorithms.penalty import PenaltyFedAvg
from fedlib.algorithms.sgm import SGM
from fedlib.compress import TopK
from fedlib.core import Problem
from fedlib.problems import neyman_pearson
from fedlib.steps import Hard, Soft
from fedlib.steps.switching import Switch
from papers.fedsgm import multiverse
from papers.fedsgm.np_unified import claims, figures
from papers.fedsgm.np_unified.numbers import derive
from papers.kit.health import HealthCheck
from papers.kit.parameters import parameters
from papers.kit.store import Spec
from papers.kit.study import Params, Study

CLIENTS = 20
LIMIT = 1e9  # a sharpness so large that soft is hard

PARAMETERS = parameters(
    seeds=("seeds; each fixes test split, partition and participants", tuple(range(10)), (0, 1, 2)),
    rounds=("communication rounds T", 500, 40),
    lr=("step size of all runs that are not tuned", 0.3),
    lrs=(
        "step sizes that are tuned over for Figure 6",
        (1.0, 0.3, 0.1, 0.03, 0.01, 0.001, 0.0001),
        (1.0, 0.1),
    ),
    tolerance=("switching threshold and level of the constraint, epsilon", 0.05),
    beta=("sharpness of soft switching", 40.0),
    betas=("sharpnesses of the sweep", (20.0, 80.0, 120.0, 400.0, 4000.0), (20.0, 400.0)),
    participants=("clients a round", 10),
    participations=("clients a round in the sweep", (2, 5, 15), (5,)),
    local_steps=("local steps E", 5),
    local_steps_sweep=("local steps in the sweep", (1, 2, 10, 20), (1,)),
    fraction=("K/d of Top-K, uplink and downlink", 0.1),
    fractions=("K/d in the sweep", (0.04, 0.25, 0.5, 1.0), (1.0,)),
    rhos=("penalties of Penalty-FedAvg", (0.001, 0.5, 2.0, 20.0, 100.0), (0.5, 20.0)),
    fresh=("splits that judge claim C26 alone", tuple(range(100, 420)), (100, 101)),
    many=("whether the settings that the paper leaves open are run", True, False),
)


@lru_cache(maxsize=64)
def problem(seed: int, clients: int = CLIENTS) -> Problem:
    """80 % of the 569 samples on equal, stratified clients, the rest held out."""
    table = data.breast_cancer()
    return neyman_pearson(
        table.X,
        table.y,
        clients=clients,
        seed=seed,
        train_fraction=0.8,
        config={"data": "breast_cancer", "positive": "malignant"},
    )


@lru_cache(maxsize=64)
def pooled(seed: int) -> Problem:
    """The training rows of all clients in one place, with the same test rows."""
    federated = problem(seed)
    own = federated.rows.flatten()
    return neyman_pearson(
        federated.data[0][own],
        federated.data[1][own].long(),
        clients=1,
        seed=seed,
        standardize=False,
        config={"data": "breast_cancer", "positive": "malignant", "rows": "of all clients"},
    )


def specs(p: Params) -> dict[str, Spec]:
    """All runs: `hard`, `soft` at the paper's setting, `_all` for full participation, sweeps."""
    found: dict[str, Spec] = {}
    modes: dict[str, Switch] = {"hard": Hard(), "soft": Soft(float(p["beta"]))}
    for mode, switch in modes.items():
        topk = TopK(float(p["fraction"]))
        main = FedSGM(
            lr=float(p["lr"]),
            local_steps=p["local_steps"],
            participants=p["participants"],
            tolerance=float(p["tolerance"]),
            switch=switch,
            uplink=topk,
            downlink=topk,
        )
        base = Spec(main, problem, p["rounds"], p["seeds"])
        rich = replace(base, keep=("f", "g", "g_max"))
        everyone = replace(main, participants=CLIENTS)
        found[mode] = rich
        found[f"{mode}_all"] = replace(rich, algorithm=everyone)
        for group, start in (("", main), ("_all", everyone)):
            found |= _sweeps(f"{mode}{group}", start, base, p)
        for m in p["participations"]:
            found[f"{mode}_m{m}"] = replace(base, algorithm=replace(main, participants=m))
        for x in p["lrs"]:
            if x != p["lr"]:
                slower = replace(base, algorithm=replace(main, lr=float(x)), evaluate_every=5)
                found[f"{mode}_lr{x:g}"] = slower
        without = replace(main, error_feedback=False)
        found[f"{mode}_nofeedback"] = replace(base, algorithm=without)
        central = SGM(lr=main.lr, tolerance=main.tolerance, steps=main.local_steps, switch=switch)
        found[f"{mode}_central"] = replace(base, algorithm=central, problem=pooled)
        for name in (f"{mode}_all", f"{mode}_central"):
            found[f"fresh_{name}"] = replace(
                found[name], seeds=p["fresh"], evaluate_every=10, keep=("f", "g")
            )
    found |= multiverse.unified_specs(found["soft"]) if p["many"] else {}
    return found | _penalties(found["hard"], p)


def _sweeps(name: str, start: FedSGM, base: Spec, p: Params) -> dict[str, Spec]:
    """Local steps, compression, and sharpness for soft."""
    found = {
        f"{name}_E{e}": replace(base, algorithm=replace(start, local_steps=e))
        for e in p["local_steps_sweep"]
    }
    for x in p["fractions"]:
        c = TopK(float(x))
        found[f"{name}_K{x:g}"] = replace(base, algorithm=replace(start, uplink=c, downlink=c))
    for b in (*p["betas"], LIMIT) if name.startswith("soft") else ():
        found[f"{name}_beta{b:g}"] = replace(base, algorithm=replace(start, switch=Soft(float(b))))
    return found


def _penalties(hard: Spec, p: Params) -> dict[str, Spec]:
    """Penalty-FedAvg: every penalty at every step size, and with full participation at one."""
    found: dict[str, Spec] = {}
    for rho in p["rhos"]:
        start = PenaltyFedAvg(
            lr=float(p["lr"]),
            local_steps=p["local_steps"],
            participants=p["participants"],
            tolerance=float(p["tolerance"]),
            rho=float(rho),
        )
        thin = replace(hard, algorithm=start, evaluate_every=5, keep=("f", "g"))
        for x in sorted({p["lr"], *p["lrs"]}):
            run = replace(thin, algorithm=replace(start, lr=float(x)))
            found[f"penalty_rho{rho:g}_lr{x:g}"] = run
        everyone = replace(start, participants=CLIENTS)
        found[f"penalty_all_rho{rho:g}"] = replace(thin, algorithm=everyone)
    return found


LEVEL = PARAMETERS["profiles"]["full"]["tolerance"]


STUDY = Study(
    name="np_unified",
    title="Neyman-Pearson classification, full paper",
    paper="F",
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    paper_values=claims.PAPER_VALUES,
    figures=figures.FIGURES,
    watch={"*": HealthCheck("f", guard="g", level=LEVEL)},
    **PARAMETERS,
)
