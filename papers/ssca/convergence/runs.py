"""The runs of the study of SSCA's convergence, with the labels by which everything finds them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from itertools import product
from typing import Any

from fedlib.core import Problem
from fedlib.core.describe import renamed_from
from fedlib.steps import PowerLaw
from papers.kit.quantities import Label, by_name, completed
from papers.kit.store import Spec
from papers.kit.study import Params
from papers.ssca import common
from papers.ssca.common import SPLITS, digits_problem, vertical_problem

KEEP = ("cost", "accuracy", "norm")
#: Draw -> parameter.
SEEDS = {"tuning": "tuning_seeds", "fresh": "fresh_seeds", "later": "later_seeds"}
WIDER = 6**0.5  # He's start is uniform, within +-sqrt(6 / inputs) of a layer

#: The labels of runs: `B` is the batch of a client, `a` and `p` are the first step size of SGD and
#: the exponent with which it falls. `sgd2` has two local steps. Runs of the draw `tuning` are SGD
#: over a fine grid, those of the draw `fresh` compare SSCA with the best point of it, and those of
#: the draw `later` compare Algorithms 1 to 4 by batch, by split, and with SGD.
DEFAULTS: dict[str, Label | None] = {
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


#: Split -> the maker of its problem.
PROBLEMS: dict[str, Callable[..., Problem]] = {
    "samples": digits_problem,
    "features": vertical_problem,
}


def specs(p: Params) -> dict[str, Spec]:
    """All runs by the names that their labels give."""
    return by_name([*runs(p)], DEFAULTS)


def halves(batches: Iterable[int]) -> tuple[int, ...]:
    """Batches of SGD with two steps a round that cost a client what `batches` do with one."""
    return tuple(int(b) // 2 for b in batches if int(b) % 2 == 0)


def runs(p: Params) -> Iterator[Spec]:
    """Algorithms 1 to 4, Algorithms 1 and 3 without their bias, and SGD over its grid."""
    batches = [int(b) for b in p["batches"]]
    for split in SPLITS:
        for b in batches:
            yield from of_ssca(p, split, b)
            yield from sgd(p, split, b)
    for b in halves(batches):
        yield from sgd(p, "samples", b, local_steps=2)
    yield from tuned_before(p, batches)
    yield from from_he(p, min(batches))
    for split in SPLITS:
        for b in map(int, p["fine_batches"]):
            yield from beside_tuned(p, split, b)


def of_ssca(p: Params, split: str, batch: int) -> Iterator[Spec]:
    """Algorithms 1 to 4 for one split and batch, on both sets of seeds, and without their bias."""
    clients = int(p["clients"])
    cell: dict[str, Label] = {"split": split, "B": batch}
    method = common.ssca(split, batch, clients=clients)
    unbiased = replace(method, debias=True)
    yield run(method, p, **cell, method="ssca")
    yield run(method, p, **cell, method="ssca", draw="later")
    yield run(unbiased, p, **cell, method="ssca", debiased=True)
    for level in map(float, p["levels"]):
        limited = common.constrained(split, batch, level, clients=clients)
        yield run(limited, p, **cell, method="limit", U=level)
        yield run(limited, p, **cell, method="limit", U=level, draw="later")


def run(algorithm: Any, params: Params, /, **labels: Label) -> Spec:
    """A run with these labels; SGD is evaluated less often than the others."""
    without = () if labels["method"] == "ssca" else ("debiased",)
    labels = completed(labels, DEFAULTS, without)
    he = labels["start"] == "he"
    split = str(labels["split"])
    if he:
        problem = partial(he_problem, split=split, **common.task(params))
    else:
        problem = partial(PROBLEMS[split], **common.task(params))
    sparse = he or labels["draw"] != "usual" or "a" in labels
    every = params["sgd_every" if sparse else "evaluate_every"]
    usual_seeds = "start_seeds" if he else "seeds"
    seeds = params[SEEDS.get(str(labels["draw"]), usual_seeds)]
    return Spec(algorithm, problem, params["rounds"], seeds, every, KEEP, labels=labels)


def sgd(p: Params, split: str, batch: int, local_steps: int = 1, **labels: Label) -> Iterator[Spec]:
    """SGD at every point of its grid."""
    method = "sgd" if local_steps == 1 else f"sgd{local_steps}"
    clients = int(p["clients"])
    cell: dict[str, Label] = {"split": split, "method": method, "B": batch}
    for a, fall in grid(p["rates"], p["falls"]):
        algorithm = common.sgd(split, batch, local_steps, PowerLaw(a, fall), clients=clients)
        yield run(algorithm, p, **labels, **cell, a=a, p=fall)


def grid(rates: Iterable[Any], falls: Iterable[Any]) -> list[tuple[float, float]]:
    """The points of a grid of SGD: first step sizes, and the exponents with which they fall."""
    return [*product(map(float, rates), map(float, falls))]


def beside_tuned(p: Params, split: str, batch: int) -> Iterator[Spec]:
    """SGD over the fine grid, and with its best point beside SSCA on fresh seeds."""
    clients = int(p["clients"])
    cell: dict[str, Label] = {"split": split, "B": batch}
    for a, fall in grid(p["fine_rates"], p["fine_falls"]):
        algorithm = common.sgd(split, batch, 1, PowerLaw(a, fall), clients=clients)
        yield run(algorithm, p, draw="tuning", **cell, method="sgd", a=a, p=fall)
    if (split, batch) in CHOSEN:
        step = PowerLaw(*CHOSEN[split, batch])
        tuned = common.sgd(split, batch, 1, step, clients=clients)
        yield run(tuned, p, draw="fresh", **cell, method="sgd")
        method = common.ssca(split, batch, clients=clients)
        yield run(method, p, draw="fresh", **cell, method="ssca")


def tuned_before(p: Params, batches: list[int]) -> Iterator[Spec]:
    """SGD with one and with two steps a round, tuned on other seeds."""
    for (method, split, b), (a, fall) in TUNED.items():
        local_steps = 2 if method == "sgd2" else 1
        if local_steps * b in batches:
            step = PowerLaw(a, fall)
            algorithm = common.sgd(split, b, local_steps, step, clients=int(p["clients"]))
            yield run(algorithm, p, draw="later", split=split, method=method, B=b)


def from_he(p: Params, batch: int) -> Iterator[Spec]:
    """Algorithms 1 and 3, and SGD over its grid, from He's start."""
    for split in SPLITS:
        method = common.ssca(split, batch, clients=int(p["clients"]))
        yield run(method, p, start="he", split=split, method="ssca", B=batch)
        yield from sgd(p, split, batch, start="he")


@renamed_from("papers.ssca.convergence.he_problem")
@lru_cache(maxsize=64)
def he_problem(seed: int, *, split: str, **task: Any) -> Problem:
    """The problem of the other runs, its start wider: what the paper may have meant, or not."""
    usual = PROBLEMS[split](seed, **task)
    config = {**usual.config, "start": "He, uniform"}
    return replace(usual, w0=WIDER * usual.w0, config=config)
