"""The runs of study `ssca_baselines`: fine grids on tuning seeds, the best points on fresh ones."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

from fedlib.steps import PowerLaw
from papers.kit.store import Spec
from papers.kit.study import Params
from papers.ssca import common
from papers.ssca.baselines.claims import HE
from papers.ssca.baselines.methods import MomentumSGD, VerticalMomentumSGD
from papers.ssca.common import RIDGE, SPLITS, digits_problem, rows, vertical_problem
from papers.ssca.convergence.runs import he_problem

EVERY = 10  # rounds between two evaluations
METHODS = ("sgd", "momentum")
#: Cell and method -> the point of the grid with the lowest mean cost on the tuning seeds; filled in
#: when these have run, before any seed that judges is drawn.
CHOSEN: dict[str, tuple[float, float]] = {}


def cells(p: Params) -> dict[str, tuple[str, str, int]]:
    """`[he_]SPLIT_BATCH` -> before a name, split, batch of a client."""
    return {
        f"{before}{split}_B{b}": (before, split, int(b))
        for before, split, b in product(("", HE), SPLITS, p["batches"])
    }


def task(cell: tuple[str, str, int], p: Params) -> Any:
    """The function that makes the problem of a cell."""
    before, split, _ = cell
    if before:
        return partial(he_problem, split=split, **common.task(p))
    problem = digits_problem if split == "samples" else vertical_problem
    return partial(problem, **common.task(p))


def baseline(method: str, point: tuple[float, float], cell: tuple[str, str, int], p: Params) -> Any:
    """SGD with the step a / t^p, or momentum SGD with the step a and the weight beta."""
    _, split, batch = cell
    scale, other = point
    clients = int(p["clients"])
    if method == "sgd":
        return common.sgd(split, batch, 1, PowerLaw(scale, other), clients=clients)
    given: dict[str, Any] = {
        "lr": PowerLaw(scale, 0.0),
        "batch_size": rows(split, batch, clients),
        "ridge": RIDGE,
        "beta": other,
    }
    return MomentumSGD(**given) if split == "samples" else VerticalMomentumSGD(**given)


def grid(method: str, p: Params) -> list[tuple[float, float]]:
    """The points of a method's grid."""
    scales, others = (
        (p["rates"], p["falls"]) if method == "sgd" else (p["momentum_rates"], p["betas"])
    )
    return [(float(a), float(b)) for a, b in product(scales, others)]


def specs(p: Params) -> dict[str, Spec]:
    """`tuning_METHOD_CELL_aX_pY` on the tuning seeds; `ssca_CELL`, `METHOD_CELL` on the fresh."""
    found: dict[str, Spec] = {}
    for name, cell in cells(p).items():
        problem = task(cell, p)
        for method in METHODS:
            for a, b in grid(method, p):
                tried = baseline(method, (a, b), cell, p)
                run = Spec(tried, problem, p["rounds"], p["tuning_seeds"], EVERY, ("cost",))
                found[f"tuning_{method}_{name}_a{a:g}_p{b:g}"] = run
            if f"{method}_{name}" in CHOSEN:
                best = baseline(method, CHOSEN[f"{method}_{name}"], cell, p)
                found[f"{method}_{name}"] = judged(best, problem, p)
        if CHOSEN:
            own = common.ssca(cell[1], cell[2], clients=int(p["clients"]))
            found[f"ssca_{name}"] = judged(own, problem, p)
    return found


def judged(algorithm: Any, problem: Any, p: Params) -> Spec:
    """A run on the seeds that judge."""
    return Spec(algorithm, problem, p["rounds"], p["seeds"], EVERY, ("cost", "accuracy"))
