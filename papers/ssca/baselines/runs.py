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
        f"{start_prefix}{split}_B{b}": (start_prefix, split, int(b))
        for start_prefix, split, b in product(("", HE), SPLITS, p["batches"])
    }


def task(cell: tuple[str, str, int], p: Params) -> Any:
    """The function that makes the problem of a cell."""
    start_prefix, split, _ = cell
    if start_prefix:
        return partial(he_problem, split=split, **common.task(p))
    problem = digits_problem if split == "samples" else vertical_problem
    return partial(problem, **common.task(p))


def baseline(method: str, point: tuple[float, float], cell: tuple[str, str, int], p: Params) -> Any:
    """SGD with the step a / t^p, or momentum SGD with the step a and the weight beta."""
    _, split, batch = cell
    scale, second_setting = point
    clients = int(p["clients"])
    if method == "sgd":
        return common.sgd(split, batch, 1, PowerLaw(scale, second_setting), clients=clients)
    settings: dict[str, Any] = {
        "lr": PowerLaw(scale, 0.0),
        "batch_size": rows(split, batch, clients),
        "ridge": RIDGE,
        "beta": second_setting,
    }
    return MomentumSGD(**settings) if split == "samples" else VerticalMomentumSGD(**settings)


def grid(method: str, p: Params) -> list[tuple[float, float]]:
    """The points of a method's grid."""
    scales, second_settings = (
        (p["rates"], p["falls"]) if method == "sgd" else (p["momentum_rates"], p["betas"])
    )
    return [(float(a), float(b)) for a, b in product(scales, second_settings)]


def specs(p: Params) -> dict[str, Spec]:
    """`tuning_METHOD_CELL_aX_pY` on the tuning seeds; `ssca_CELL`, `METHOD_CELL` on the fresh."""
    specs_by_name: dict[str, Spec] = {}
    for name, cell in cells(p).items():
        problem = task(cell, p)
        for method in METHODS:
            for a, b in grid(method, p):
                tried = baseline(method, (a, b), cell, p)
                run = Spec(tried, problem, p["rounds"], p["tuning_seeds"], EVERY, ("cost",))
                specs_by_name[f"tuning_{method}_{name}_a{a:g}_p{b:g}"] = run
            if f"{method}_{name}" in CHOSEN:
                best = baseline(method, CHOSEN[f"{method}_{name}"], cell, p)
                specs_by_name[f"{method}_{name}"] = judged(best, problem, p)
        if CHOSEN:
            algorithm = common.ssca(cell[1], cell[2], clients=int(p["clients"]))
            specs_by_name[f"ssca_{name}"] = judged(algorithm, problem, p)
    return specs_by_name


def judged(algorithm: Any, problem: Any, p: Params) -> Spec:
    """A run on the seeds that judge."""
    return Spec(algorithm, problem, p["rounds"], p["seeds"], EVERY, ("cost", "accuracy"))
