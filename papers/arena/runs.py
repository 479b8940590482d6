"""The runs of the arena: every configuration of every method that applies, and the optima."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from papers.arena.methods import METHODS, applies, form_of, grid, units
from papers.arena.problems import arena_problem
from papers.arena.reference import Resting, Stopped, solved
from papers.kit.quantities import Defaults, by_name
from papers.kit.store import Spec
from papers.kit.study import Params

#: Configurations count from 1 on. The method `reference` rests at the optimum.
DEFAULTS: Defaults = dict.fromkeys(("problem", "method", "config", "budget"))
REFERENCE = "reference"

SHARE = 0.4  # of FedAvg's rounds, whose messages both ways are the budget of bits
SHORTER = {"np": 0.5}  # of the passes, where they are costly
KEEP = ("f", "g", "val_f", "val_g", "test_f", "test_g")
COARSE = 10  # evaluations of a run, about
FINE = 16


def specs(p: Params) -> dict[str, Spec]:
    """All runs by the names that their labels give."""
    specs: list[Spec] = []
    for problem in p["problems"]:
        specs += runs(problem, p)
    return by_name(specs, DEFAULTS)


def runs(problem: str, p: Params) -> Iterator[Spec]:
    """The runs on a problem."""
    for method in p["methods"]:
        if applies(method, problem):
            yield from configurations(method, problem, p)
    yield Spec(
        Resting(),
        partial(solved, name=problem, stand_in=p["stand_in"]),
        rounds=1,
        seeds=p["seeds"],
        evaluate_every=1,
        keep=(*KEEP, "residual"),
        labels={"problem": problem, "method": REFERENCE},
    )


def configurations(method: str, problem: str, p: Params) -> Iterator[Spec]:
    """The configurations of a method on a problem."""
    entry = METHODS[method]
    steps = p["local_steps"]
    unit = units(
        problem,
        p["seeds"][0],
        steps,
        p["batch"],
        p["stand_in"],
    )
    passes = passes_on(problem, p)
    rounds = max(1, passes // entry.passes(steps))
    budget = SHARE * (passes // steps) * 2 * unit.dim
    paid = budget / entry.sent(steps, unit.dim)
    form = form_of(method, problem)
    for number, (x, y) in enumerate(grid(entry, p["grid"]), start=1):
        task = partial(arena_problem, name=problem, form=form, stand_in=p["stand_in"])
        if entry.ratio:
            task = partial(task, ratio=y * unit.start / unit.level)
        yield Spec(
            Stopped(entry.make(unit, x, y)),
            task,
            rounds=rounds,
            seeds=p["seeds"],
            evaluate_every=evaluations(rounds, int(paid)),
            keep=KEEP,
            labels={"problem": problem, "method": method, "config": number},
        )


def passes_on(problem: str, p: Params) -> int:
    """Gradients of every client in a run."""
    return int(SHORTER.get(problem, 1.0) * p["passes"])


def evaluations(rounds: int, paid: int) -> int:
    """Rounds between two evaluations: some `FINE` or fewer of them, one near round `paid`.

    So many rounds, about, the budget of bits pays for.
    """
    least = max(1, rounds // FINE)
    most = max(1, rounds // COARSE)
    if paid < least:
        return max(1, paid)
    choices = [n for n in range(least, most + 1) if n <= paid]
    return min(choices, key=lambda n: paid % n)
