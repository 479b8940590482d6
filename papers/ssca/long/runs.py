"""The runs of the study of longer SSCA runs, with the labels by which everything finds them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from fedlib.steps import PowerLaw
from papers.kit.quantities import Label, by_name
from papers.kit.store import Spec
from papers.kit.study import Params
from papers.ssca import common
from papers.ssca.common import ssca
from papers.ssca.long.problem import long_problem, one_constraint

#: Step sizes rho and gamma that satisfy (4) and (6), with a finite sum of rho^2 besides.
VALID: dict[str, Any] = {"rho": PowerLaw(1.0, 0.6), "gamma": PowerLaw(1.0, 0.65)}
STEPS: dict[str, dict[str, Any]] = {"paper": {}, "valid": VALID}
REPORTS = ("nu", "slack")  # of the constrained runs

#: The labels of runs: `c` is the first penalty of those in which it grows, at the paper's steps.
DEFAULTS: dict[str, Label | None] = {
    "method": None,
    "steps": None,
    "c": None,
    "B": None,
    "U": None,
}


def specs(p: Params) -> dict[str, Spec]:
    """All runs by the names that their labels give."""
    return by_name([*free(p), *constrained(p)], DEFAULTS)


def free(p: Params) -> Iterator[Spec]:
    """Without a constraint, by batch and step sizes."""
    for size in map(int, p["batches"]):
        for steps, changes in STEPS.items():
            method = ssca("samples", size, clients=p["clients"], **changes)
            labels: dict[str, Label] = {"method": "ssca", "steps": steps, "B": size}
            yield run(method, p, "gradient", p["seeds"], labels)


def constrained(p: Params) -> Iterator[Spec]:
    """With a constraint, by level: both step sizes, then penalties that grow."""
    limited: Any = partial(one_constraint, int(p["batches"][0]), clients=p["clients"])
    growth = {name: p[name] for name in ("growth", "patience", "tolerance")}
    for level in map(float, p["levels"]):
        labels: dict[str, Label] = {"method": "limit", "U": level}
        for steps, changes in STEPS.items():
            method = limited(level, **changes)
            yield run(method, p, "cost_all", p["limit_seeds"], {**labels, "steps": steps}, *REPORTS)
        for c in map(float, p["penalties"]):
            method = limited(level, penalty=c, **growth)
            reports = (*REPORTS, "penalty")
            yield run(method, p, "cost_all", p["limit_seeds"], {**labels, "c": c}, *reports)


def run(
    method: Any, p: Params, also: str, seeds: Any, labels: dict[str, Label], *reports: str
) -> Spec:
    """A run that also measures the whole cost, or the whole gradient."""
    problem = partial(long_problem, also=also, **common.task(p))
    keep = ("cost", "accuracy", "norm", also, *reports)
    return Spec(method, problem, p["rounds"], seeds, p["every"], keep, labels=labels)
