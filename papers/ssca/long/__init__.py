"""Study of SSCA beyond the paper's 100 rounds: stationarity, the constraint, the penalty."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from fedlib.steps import PowerLaw
from papers.kit.parameters import parameters
from papers.kit.store import Spec
from papers.kit.study import Params, Study
from papers.ssca import common
from papers.ssca.common import ssca
from papers.ssca.long import claims
from papers.ssca.long.numbers import FIGURES, REPORTS, derive
from papers.ssca.long.problem import long_problem, one_constraint

#: Step sizes rho and gamma that satisfy (4) and (6), with a finite sum of rho^2 besides.
VALID: dict[str, Any] = {"rho": PowerLaw(1.0, 0.6), "gamma": PowerLaw(1.0, 0.65)}

PARAMETERS = parameters(
    seeds=("seeds; each fixes start, split and batches", tuple(range(10)), (0, 1)),
    limit_seeds=("seeds of the runs with a constraint", (0, 1, 2, 3, 4), (0, 1)),
    rounds=("communication rounds T", 1000, 120),
    every=("rounds between two evaluations", 50, 20),
    batches=(
        "rows of a client's batch; the first also for the constrained runs",
        claims.BATCHES,
        (100,),
    ),
    levels=("levels U of the cost", claims.LEVELS, (0.6,)),
    penalties=("first penalties c of the runs in which c grows", claims.PENALTIES, (30.0,)),
    growth=("factor by which c grows, a whole number", 10),
    patience=("rounds between two checks of the slack", 50, 20),
    tolerance=("slack up to which c stays", 1e-3),
    **common.TASK,
)


def specs(p: Params) -> dict[str, Spec]:
    """Without a constraint by batch and step sizes; constrained; with a growing penalty."""
    found: dict[str, Spec] = {}
    for size in map(int, p["batches"]):
        for name, changes in (("paper", {}), ("valid", VALID)):
            method = ssca("samples", size, clients=p["clients"], **changes)
            found[f"ssca_{name}_B{size}"] = base(method, p, "gradient")
    size = int(p["batches"][0])
    growth = {k: p[k] for k in ("growth", "patience", "tolerance")}
    forms: dict[str, dict[str, Any]] = {"paper": {}, "valid": VALID}
    forms |= {f"c{c:g}": {"penalty": float(c), **growth} for c in p["penalties"]}
    for level in p["levels"]:
        for name, changes in forms.items():
            limited = one_constraint(size, float(level), clients=p["clients"], **changes)
            reports = REPORTS if name.startswith("c") else REPORTS[:-1]  # a penalty that changes
            run = base(limited, p, "cost_all", reports)
            found[f"limit_{name}_U{level:g}"] = replace(run, seeds=p["limit_seeds"])
    return found


def base(method: Any, p: Params, also: str, reports: tuple[str, ...] = ()) -> Spec:
    problem = partial(long_problem, also=also, **common.task(p))
    keep = ("cost", "accuracy", "norm", also, *reports)
    return Spec(method, problem, p["rounds"], p["seeds"], p["every"], keep)


STUDY = Study(
    name="ssca_long",
    title="Longer runs, SSCA",
    paper="Y",
    data=("mnist",),
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    figures=FIGURES,
    **PARAMETERS,
)
