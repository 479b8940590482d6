"""Study of the arena: every method that applies, on three common problems, under one protocol."""

from __future__ import annotations

from functools import partial

from papers.arena.contest import SHARE, derive, passes_on
from papers.arena.methods import COUNT, METHODS, applies, form_of, grid, units
from papers.arena.problems import LEVELS, NAMES, arena_problem
from papers.arena.reference import Resting, Stopped, solved
from papers.kit.health import HealthCheck, nothing
from papers.kit.parameters import parameters
from papers.kit.store import Spec
from papers.kit.study import Params, Study

PARAMETERS = parameters(
    problems=("the problems", tuple(NAMES), ("np", "sparse")),
    methods=(
        "the methods; each problem leaves out those that do not apply",
        tuple(METHODS),
        ("soft", "fedfw"),
    ),
    seeds=(
        "seeds; each fixes the data or their split, and the batches",
        tuple(range(10)),
        (0, 1, 2),
    ),
    passes=("gradients of every client in a run: the budget of every configuration", 1200, 60),
    local_steps=("local steps E of the methods with local steps", 5, 2),
    batch=("largest batch of a client, on the problems with minibatches", 64),
    grid=("configurations of every method", COUNT, 4),
    stand_in=("0: the files of Adult; else that many generated people in their place", 0, 2000),
)
SIDES = ("val_f", "val_g", "test_f", "test_g")
KEEP = ("f", "g", *SIDES)
COARSE, FINE = 10, 16  # evaluations of a run, about


def specs(p: Params) -> dict[str, Spec]:
    """`PROBLEM_METHOD_CONFIGURATION`, from 1 on, and `PROBLEM_reference`."""
    found: dict[str, Spec] = {}
    for name in p["problems"]:
        own = {**p, "passes": passes_on(name, p)}
        for method in p["methods"]:
            if applies(method, name):
                found |= grid_of(method, name, own)
        best = partial(solved, name=name, stand_in=p["stand_in"])
        found[f"{name}_reference"] = Spec(Resting(), best, 1, own["seeds"], 1, (*KEEP, "residual"))
    return found


def grid_of(method: str, name: str, p: Params) -> dict[str, Spec]:
    """The configurations of a method on a problem."""
    entry, form, found = METHODS[method], form_of(method, name), {}
    of = units(name, p["seeds"][0], p["local_steps"], p["batch"], p["stand_in"])
    rounds = max(1, p["passes"] // entry.passes(p["local_steps"]))
    budget = SHARE * (p["passes"] // p["local_steps"]) * 2 * of.dim
    every = evaluations(rounds, int(budget / entry.sent(p["local_steps"], of.dim)))
    for i, (x, y) in enumerate(grid(entry, p["grid"]), start=1):
        make = partial(arena_problem, name=name, form=form, stand_in=p["stand_in"])
        if entry.ratio:
            make = partial(make, ratio=y * of.start / of.level)
        algorithm = Stopped(entry.make(of, x, y))
        found[f"{name}_{method}_{i}"] = Spec(algorithm, make, rounds, p["seeds"], every, KEEP)
    return found


def evaluations(rounds: int, paid: int) -> int:
    """Rounds between two evaluations: some `FINE` or fewer of them, one near round `paid`.

    So many rounds, about, the budget of bits pays for.
    """
    least, most = max(1, rounds // FINE), max(1, rounds // COARSE)
    if paid < least:
        return max(1, paid)
    choices = [n for n in range(least, most + 1) if n <= paid]
    return min(choices, key=lambda n: paid % n)


STUDY = Study(
    name="arena",
    title="One problem, every method that applies",
    paper="all",
    data=("adult",),
    specs=specs,
    derive=derive,
    watch={
        "*_reference": nothing("the optimum, solved beforehand"),
        **{f"{name}_*": HealthCheck("f", guard="g", level=LEVELS[name]) for name in NAMES},
    },
    **PARAMETERS,
)
