"""The runs of the study of longer SSCA runs, with the labels by which everything finds them."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from fedlib.steps import PowerLaw
from papers.kit.quantities import Defaults, Label, by_name
from papers.kit.store import Spec
from papers.kit.study import Params
from papers.ssca import common
from papers.ssca.common import ssca
from papers.ssca.long.problem import long_problem, one_constraint

#: Step sizes rho and gamma that satisfy (4) and (6), with a finite sum of rho^2 besides.
VALID: dict[str, Any] = {"rho": PowerLaw(1.0, 0.6), "gamma": PowerLaw(1.0, 0.65)}
STEPS: dict[str, dict[str, Any]] = {"paper": {}, "valid": VALID}

#: The labels of runs: `c` is the first penalty of those in which it grows, at the paper's steps.
DEFAULTS: Defaults = {
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
    for size in p["batches"]:
        for steps, changes in STEPS.items():
            method = ssca("samples", size, clients=p["clients"], **changes)
            yield run(
                method,
                p,
                "gradient",
                method="ssca",
                steps=steps,
                B=size,
            )


def constrained(p: Params) -> Iterator[Spec]:
    """With a constraint, by level: both step sizes, then penalties that grow."""
    limited: Any = partial(one_constraint, p["batches"][0], clients=p["clients"])
    growth = {name: p[name] for name in ("growth", "patience", "tolerance")}
    for level in p["levels"]:
        for steps, changes in STEPS.items():
            yield run(
                limited(level, **changes),
                p,
                "cost_all",
                method="limit",
                U=level,
                steps=steps,
            )
        for c in p["penalties"]:
            method = limited(level, penalty=c, **growth)
            yield run(method, p, "cost_all", method="limit", U=level, c=c)


def run(algorithm: Any, p: Params, also: str, /, **labels: Label) -> Spec:
    """A run that also measures the whole cost, or the whole gradient."""
    problem = partial(long_problem, also=also, **common.task(p))
    is_limited = labels["method"] == "limit"
    seeds = p["limit_seeds"] if is_limited else p["seeds"]
    reports: tuple[str, ...] = ("nu", "slack") if is_limited else ()
    if "c" in labels:
        reports = (*reports, "penalty")
    keep = ("cost", "accuracy", "norm", also, *reports)
    return Spec(
        algorithm,
        problem,
        p["rounds"],
        seeds,
        p["every"],
        keep,
        labels=labels,
    )
