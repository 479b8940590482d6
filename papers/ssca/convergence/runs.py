"""The runs of the study of SSCA's convergence, with the labels by which everything finds them."""

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

from fedlib.steps import PowerLaw
from papers.kit.quantities import Defaults, Label, by_name, completed
from papers.kit.store import Spec
from papers.kit.study import Params
from papers.ssca import common
from papers.ssca.common import SPLITS

KEEP = ("cost", "accuracy", "norm")
#: Draw -> parameter.
SEEDS = {"tuning": "tuning_seeds", "fresh": "fresh_seeds", "later": "later_seeds"}
#: The labels of runs: `B` is the batch of a client, `a` and `p` are the first step size of SGD and
#: the exponent with which it falls. `sgd2` has two local steps. Runs of the draw `tuning` are SGD
#: over a fine grid, those of the draw `fresh` compare SSCA with the best point of it, and those of
#: the draw `later` compare Algorithms 1 to 4 by batch, by split, and with SGD.
DEFAULTS: Defaults = {
    "draw": "usual",
    "start": "usual",
    "split": None,
    "method": None,
    "B": None,
    "U": None,
    "a": None,
    "p": None,
    "debiased": False,
}


#: Split and batch -> the point (a, p) of the fine grid with the lowest mean cost on the tuning
#: seeds. Without it no fresh run is declared.
CHOSEN: dict[tuple[str, int], tuple[float, float]] = {
    ("samples", 100): (2.8, 0.45),
    ("features", 100): (2.0, 0.3),
}

#: Method, split and batch -> the point of SGD's grid with the lowest mean cost on the seeds that
#: tuned it: the fine grid for B = 100, the coarse one for the others.
TUNED: dict[tuple[str, str, int], tuple[float, float]] = {
    ("sgd", "samples", 1): (1.0, 0.3),
    ("sgd", "samples", 10): (1.0, 0.3),
    ("sgd", "samples", 100): CHOSEN["samples", 100],
    ("sgd", "features", 1): (1.0, 0.3),
    ("sgd", "features", 10): (1.0, 0.3),
    ("sgd", "features", 100): CHOSEN["features", 100],
    ("sgd2", "samples", 5): (1.0, 0.3),
    ("sgd2", "samples", 50): (1.0, 0.0),
}


#: Method -> the steps of SGD in a round.
LOCAL_STEPS = {"sgd": 1, "sgd2": 2}


def specs(p: Params) -> dict[str, Spec]:
    """All runs by the names that their labels give."""
    return by_name([*runs(p)], DEFAULTS)


def halves(batches: Iterable[int]) -> tuple[int, ...]:
    """Batches of SGD with two steps a round that cost a client what `batches` do with one."""
    return tuple(batch // 2 for batch in batches if batch % 2 == 0)


def runs(p: Params) -> Iterator[Spec]:
    """Algorithms 1 to 4, Algorithms 1 and 3 without their bias, and SGD over its grid."""
    for split, batch in product(SPLITS, p["batches"]):
        yield from of_ssca(p, split, batch)
        yield from sgd_grid(p, split=split, B=batch)
    for batch in halves(p["batches"]):
        yield from sgd_grid(p, split="samples", B=batch, method="sgd2")
    for (method, split, batch), point in TUNED.items():
        if LOCAL_STEPS[method] * batch in p["batches"]:
            yield sgd(
                p,
                point,
                draw="later",
                split=split,
                B=batch,
                method=method,
            )
    for split in SPLITS:
        cell: dict[str, Any] = {"start": "he", "split": split, "B": min(p["batches"])}
        yield ssca(p, **cell)
        yield from sgd_grid(p, **cell)
    for split, batch in product(SPLITS, p["fine_batches"]):
        yield from beside_tuned(p, split, batch)


def of_ssca(p: Params, split: str, batch: int) -> Iterator[Spec]:
    """Algorithms 1 to 4 for one split and batch, on both sets of seeds, and without their bias."""
    cell: dict[str, Any] = {"split": split, "B": batch}
    yield ssca(p, **cell)
    yield ssca(p, **cell, draw="later")
    yield ssca(p, **cell, debiased=True)
    for level in p["levels"]:
        method = common.constrained(split, batch, level, clients=p["clients"])
        for draw in ("usual", "later"):
            yield run(method, p, **cell, draw=draw, method="limit", U=level)


def beside_tuned(p: Params, split: str, batch: int) -> Iterator[Spec]:
    """SGD over the fine grid, and with its best point beside SSCA on fresh seeds."""
    cell: dict[str, Any] = {"split": split, "B": batch}
    for a, fall in product(p["fine_rates"], p["fine_falls"]):
        yield sgd(p, (a, fall), **cell, draw="tuning", a=a, p=fall)
    if (split, batch) in CHOSEN:
        yield sgd(p, CHOSEN[split, batch], **cell, draw="fresh")
        yield ssca(p, **cell, draw="fresh")


def ssca(
    params: Params,
    /,
    *,
    split: str,
    B: int,
    debiased: bool = False,
    **labels: Label,
) -> Spec:
    """Algorithm 1 or 3 on a batch, as printed or without its bias."""
    method = common.ssca(split, B, clients=params["clients"], debias=debiased)
    return run(
        method,
        params,
        split=split,
        method="ssca",
        B=B,
        debiased=debiased,
        **labels,
    )


def sgd_grid(params: Params, /, **labels: Any) -> Iterator[Spec]:
    """SGD at every point of its grid."""
    for a, fall in product(params["rates"], params["falls"]):
        yield sgd(params, (a, fall), **labels, a=a, p=fall)


def sgd(
    params: Params,
    point: tuple[float, float],
    /,
    *,
    split: str,
    B: int,
    method: str = "sgd",
    **labels: Label,
) -> Spec:
    """SGD on a batch with one point of a grid: its first step size and the exponent of its fall."""
    steps = LOCAL_STEPS[method]
    algorithm = common.sgd(
        split,
        B,
        steps,
        PowerLaw(*point),
        clients=params["clients"],
    )
    return run(
        algorithm,
        params,
        split=split,
        method=method,
        B=B,
        **labels,
    )


def run(algorithm: Any, params: Params, /, **labels: Label) -> Spec:
    """A run with these labels; SGD is evaluated less often than the others."""
    without = () if labels["method"] == "ssca" else ("debiased",)
    complete = completed(labels, DEFAULTS, without)
    start = complete["start"]
    draw = complete["draw"]
    sparse = start == "he" or draw != "usual" or "a" in complete
    interval = params["sgd_every"] if sparse else params["evaluate_every"]
    usual_seeds = "start_seeds" if start == "he" else "seeds"
    seeds = params[SEEDS.get(draw, usual_seeds)]
    problem = common.problem_of(params, complete["split"], start)
    return Spec(
        algorithm,
        problem,
        params["rounds"],
        seeds,
        interval,
        KEEP,
        labels=complete,
    )
