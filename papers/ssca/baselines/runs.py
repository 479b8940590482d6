"""The runs of the study of momentum SGD beside SSCA, with the labels by which all finds them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from fedlib.steps import PowerLaw
from papers.kit.quantities import Label, by_name
from papers.kit.store import Spec
from papers.kit.study import Params
from papers.ssca import common
from papers.ssca.baselines.methods import MomentumSGD, VerticalMomentumSGD
from papers.ssca.common import RIDGE, SPLITS, digits_problem, rows, vertical_problem
from papers.ssca.convergence.runs import he_problem

EVERY = 10  # rounds between two evaluations
STARTS = ("usual", "he")
#: Draw -> parameter.
SEEDS = {"tuning": "tuning_seeds", "fresh": "seeds"}

#: The labels of runs: `B` is the batch of a client, `a` and `beta` are the step size of momentum
#: SGD and the weight of its last change. Runs of the draw `tuning` are momentum SGD over its grid;
#: those of the draw `fresh` compare SSCA with the best point.
DEFAULTS: dict[str, Label | None] = {
    "draw": "fresh",
    "start": "usual",
    "split": None,
    "method": None,
    "B": None,
    "a": None,
    "beta": None,
}

#: Start, split and batch -> the point (a, beta) of the grid with the lowest mean cost on the tuning
#: seeds. Without it no fresh run is declared.
CHOSEN: dict[tuple[str, str, int], tuple[float, float]] = {
    ("usual", "samples", 1): (0.2, 0.5),
    ("usual", "samples", 10): (0.7, 0.7),
    ("usual", "samples", 100): (0.4, 0.85),
    ("usual", "features", 1): (0.2, 0.5),
    ("usual", "features", 10): (0.4, 0.85),
    ("usual", "features", 100): (1.0, 0.85),
    ("he", "samples", 1): (0.1, 0.7),
    ("he", "samples", 10): (0.2, 0.85),
    ("he", "samples", 100): (1.0, 0.85),
    ("he", "features", 1): (0.1, 0.7),
    ("he", "features", 10): (0.7, 0.7),
    ("he", "features", 100): (1.0, 0.7),
}


def specs(p: Params) -> dict[str, Spec]:
    """All runs by the names that their labels give."""
    return by_name([*runs(p)], DEFAULTS)


def runs(p: Params) -> Iterator[Spec]:
    """Momentum SGD over its grid on tuning seeds, its best point beside SSCA on fresh ones."""
    for start in STARTS:
        for split in SPLITS:
            for batch in map(int, p["batches"]):
                cell: dict[str, Label] = {"start": start, "split": split, "B": batch}
                yield from tried(p, cell)
                yield from judged(p, cell)


def tried(p: Params, cell: dict[str, Label]) -> Iterator[Spec]:
    """Momentum SGD at every point of its grid."""
    for a in map(float, p["rates"]):
        for beta in map(float, p["betas"]):
            labels: dict[str, Label] = {**cell, "method": "momentum", "a": a, "beta": beta}
            yield run(momentum(p, cell, a, beta), p, {"draw": "tuning", **labels})


def judged(p: Params, cell: dict[str, Label]) -> Iterator[Spec]:
    """SSCA and momentum SGD at the chosen point, if one is chosen."""
    start, split, batch = str(cell["start"]), str(cell["split"]), int(str(cell["B"]))
    point = CHOSEN.get((start, split, batch))
    if point is not None:
        best = momentum(p, cell, *point)
        yield run(best, p, {"draw": "fresh", **cell, "method": "momentum"})
        method = common.ssca(split, batch, clients=int(p["clients"]))
        yield run(method, p, {"draw": "fresh", **cell, "method": "ssca"})


def momentum(p: Params, cell: dict[str, Label], a: float, beta: float) -> Any:
    """Momentum SGD with the constant step size a and the weight beta."""
    split = str(cell["split"])
    algorithm = MomentumSGD if split == "samples" else VerticalMomentumSGD
    return algorithm(
        lr=PowerLaw(a, 0.0),
        batch_size=rows(split, int(str(cell["B"])), int(p["clients"])),
        ridge=RIDGE,
        beta=beta,
    )


def run(algorithm: Any, p: Params, labels: dict[str, Label]) -> Spec:
    """A run with these labels, on the seeds of its draw."""
    split = str(labels["split"])
    make = digits_problem if split == "samples" else vertical_problem
    problem: Any = partial(make, **common.task(p))
    if labels["start"] == "he":
        problem = partial(he_problem, split=split, **common.task(p))
    seeds = p[SEEDS[str(labels["draw"])]]
    keep = ("cost", "accuracy")
    return Spec(algorithm, problem, p["rounds"], seeds, EVERY, keep, labels=labels)
