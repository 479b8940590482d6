"""Study of SSCA beyond the paper's 100 rounds: stationarity, the constraint, the penalty."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from fedlib import checks
from fedlib.algorithms.ssca import ConstrainedSSCA
from fedlib.steps import PowerLaw
from papers.kit.store import Spec
from papers.kit.study import Params, Study, parameters
from papers.ssca import common
from papers.ssca.common import constrained, sgd, ssca
from papers.ssca.long import claims, figures
from papers.ssca.long.numbers import METRICS, REPORTS, derive
from papers.ssca.long.problem import OneConstraint, long_problem

__all__ = ["STUDY", "VALID", "VARIANTS", "specs"]

#: Step sizes rho and gamma that satisfy (4) and (6), with a finite sum of rho^2 besides.
VALID: dict[str, Any] = {"rho": PowerLaw(1.0, 0.6), "gamma": PowerLaw(1.0, 0.65)}

#: With a rho that starts at 1 the average forgets its zero start: debiasing changes nothing there.
VARIANTS: dict[str, dict[str, Any]] = {
    "ssca_paper": {},
    "ssca_paper_debiased": {"debias": True},
    "ssca_valid": VALID,
}

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
    scales=("step sizes of SGD in the first round", (0.3, 1.0), (0.3,)),
    exponents=("exponents with which they fall", (0.0, 0.3)),
    penalties=("first penalties c of the runs in which it grows", claims.PENALTIES, (30.0,)),
    growth=("factor by which it grows, a whole number", 10),
    patience=("rounds between two looks at the slack", 50, 20),
    tolerance=("slack up to which it stays", 1e-3),
    **common.TASK,
)


def specs(p: Params) -> dict[str, Spec]:
    """Without a constraint by batch and step sizes, SGD; constrained; with a growing penalty."""
    found: dict[str, Spec] = {}
    method: Any
    for size in map(int, p["batches"]):
        for name, changes in VARIANTS.items():
            also = "" if name.endswith("debiased") else "gradient"
            method = ssca("samples", size, clients=p["clients"], **changes)
            found[f"{name}_B{size}"] = base(method, p, also)
        for a in p["scales"]:
            for x in p["exponents"]:
                rate = PowerLaw(float(a), float(x))
                method = sgd("samples", size, 1, rate, clients=p["clients"])
                found[f"sgd_a{a:g}_p{x:g}_B{size}"] = base(method, p)
    size = int(p["batches"][0])
    growth = {k: p[k] for k in ("growth", "patience", "tolerance")}
    forms: dict[str, dict[str, Any]] = {"paper": {}, "valid": VALID}
    forms |= {f"c{c:g}": {"penalty": float(c), **growth} for c in p["penalties"]}
    for level in p["levels"]:
        for name, changes in forms.items():
            method = limited(size, float(level), p["clients"], **changes)
            run = base(method, p, "cost_all")
            keep = run.keep if name.startswith("c") else run.keep[:-1]  # a penalty that changes
            few = p["limit_seeds"]
            found[f"limit_{name}_U{level:g}"] = replace(run, keep=keep, seeds=few)
    return found


def limited(batch: int, level: float, clients: int, **changes: Any) -> OneConstraint:
    """Algorithm 2, with numbers for its multiplier and its slack."""
    method = constrained("samples", batch, level, clients=clients, **changes)
    if not isinstance(method, ConstrainedSSCA):
        raise TypeError(checks.sentence("ssca_long", "method", "be split by samples", method))
    return OneConstraint(method)


def base(method: Any, p: Params, also: str = "") -> Spec:
    problem = partial(long_problem, also=also, **common.task(p))
    keep = (*METRICS, *REPORTS)
    return Spec(method, problem, p["rounds"], p["seeds"], p["every"], keep)


STUDY = Study(
    name="ssca_long",
    title="Longer runs, SSCA",
    paper="Y",
    data=("mnist",),
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    figures=figures.FIGURES,
    **PARAMETERS,
)
