"""The runs of the study of momentum SGD beside SSCA, with the labels by which all finds them."""

from collections.abc import Iterator
from itertools import product
from typing import Any

from fedlib.steps import PowerLaw
from papers.kit.quantities import Defaults, Label, by_name, completed
from papers.kit.store import Spec
from papers.kit.study import Params
from papers.ssca import common
from papers.ssca.baselines.methods import MomentumSGD, VerticalMomentumSGD
from papers.ssca.common import RIDGE, SPLITS, rows

EVERY = 10  # rounds between two evaluations
STARTS = ("usual", "he")
#: Draw -> parameter.
SEEDS = {"tuning": "tuning_seeds", "fresh": "seeds"}

#: The labels of runs: `B` is the batch of a client, `a` and `beta` are the step size of momentum
#: SGD and the weight of its last change. Runs of the draw `tuning` are momentum SGD over its grid;
#: those of the draw `fresh` compare SSCA with the best point.
DEFAULTS: Defaults = {
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


def cells(p: Params) -> Iterator[dict[str, Any]]:
    """The labels of every start, split and batch."""
    for start, split, batch in product(STARTS, SPLITS, p["batches"]):
        yield {"start": start, "split": split, "B": batch}


def runs(p: Params) -> Iterator[Spec]:
    """Momentum SGD over its grid on tuning seeds, its best point beside SSCA on fresh ones."""
    for cell in cells(p):
        for point in product(p["rates"], p["betas"]):
            yield momentum(
                p,
                cell,
                point,
                draw="tuning",
                a=point[0],
                beta=point[1],
            )
        chosen = CHOSEN.get((cell["start"], cell["split"], cell["B"]))
        if chosen is not None:
            yield momentum(p, cell, chosen, draw="fresh")
            method = common.ssca(cell["split"], cell["B"], clients=p["clients"])
            yield run(method, p, {**cell, "draw": "fresh", "method": "ssca"})


def momentum(
    p: Params,
    cell: dict[str, Any],
    point: tuple[float, float],
    **labels: Label,
) -> Spec:
    """Momentum SGD with a constant step size and weight of the last change."""
    rate, weight = point
    split = cell["split"]
    algorithm = MomentumSGD if split == "samples" else VerticalMomentumSGD
    method = algorithm(
        lr=PowerLaw(rate, 0.0),
        batch_size=rows(split, cell["B"], p["clients"]),
        ridge=RIDGE,
        beta=weight,
    )
    return run(method, p, {**cell, **labels, "method": "momentum"})


def run(algorithm: Any, p: Params, labels: dict[str, Any]) -> Spec:
    """A run with these labels, on the seeds of its draw."""
    problem = common.problem_of(p, labels["split"], labels["start"])
    seeds = p[SEEDS[labels["draw"]]]
    keep = ("cost", "accuracy")
    ordered = completed(labels, DEFAULTS)
    return Spec(
        algorithm,
        problem,
        p["rounds"],
        seeds,
        EVERY,
        keep,
        labels=ordered,
    )
