"""The rules of the arena: where a budget ends, which configuration is taken, who wins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from fedlib.compress.compressors import FLOAT_BITS
from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.arena.methods import METHODS
from papers.arena.problems import LEVELS, NAMES
from papers.kit.numbers import Number
from papers.kit.study import Params, Traces

BUDGETS = {"grads": "equal gradients", "bits": "equal bits"}
TOLERANCE = 5.0  # % of the level: a mean violation that is shown to be no larger is none
ROOM = 2.5  # % of the level: the largest mean violation on validation rows that tuning takes
SHARE = 0.4  # of FedAvg's rounds, whose messages both ways are the budget of bits
SHORTER = {"np": 0.5}  # of the passes, where they are costly


class Tuned(NamedTuple):
    """A run that was chosen, and where it is looked at."""

    name: str
    trace: Trace
    at: int  # column of the evaluations

    def on(self, metric: str) -> Array:
        """A metric of the last iterate, a value a seed."""
        return np.asarray(self.trace.metrics[metric][:, self.at])


class Field(NamedTuple):
    """All runs on one problem."""

    problem: str
    reference: Trace  # rests at the optimum of the training rows
    runs: dict[str, dict[str, Trace]]  # method -> configuration -> run
    p: Params

    def tuned(self, method: str, budget: str = "grads") -> Tuned:
        """The configuration that is taken, from validation rows alone."""
        grid = {
            name: Tuned(name, trace, column(trace, budget, self.p))
            for name, trace in self.runs[method].items()
        }
        f = {name: float(x.on("val_f").mean()) for name, x in grid.items()}
        violations = {name: float(self.excess(x, "val_").mean()) for name, x in grid.items()}
        return grid[best_of(f, violations)]

    def excess(self, x: Tuned, side: str) -> Array:
        """How far g is above its level, in % of it."""
        return excess(x.on(f"{side}g"), self.problem)

    def gap(self, x: Tuned, side: str) -> Array:
        """How far f is above the optimum's, in % of the optimum's mean."""
        best = self.best(f"{side}f", x.trace)
        return np.asarray(100 * (x.on(f"{side}f") - best) / best.mean())

    def best(self, metric: str, trace: Trace) -> Array:
        """A metric of the optimum, on the seeds of a run."""
        seeds = [self.reference.seeds.index(s) for s in trace.seeds]
        return np.asarray(self.reference.metrics[metric][seeds, -1])


def passes_on(problem: str, p: Params) -> int:
    """Gradients of every client in a run."""
    return int(SHORTER.get(problem, 1.0) * p["passes"])


def fields(traces: Traces, p: Params) -> list[Field]:
    """The problems that there are, with the methods that have runs on them."""
    found = []
    for problem in NAMES:
        if f"{problem}_reference" in traces:
            runs = {m: one for m in METHODS if (one := grid_runs(traces, problem, m))}
            own = {**p, "passes": passes_on(problem, p)}
            found.append(Field(problem, traces[f"{problem}_reference"], runs, own))
    return found


def grid_runs(traces: Traces, problem: str, method: str) -> dict[str, Trace]:
    """All configurations of a method that there are, by name."""
    found = [name for name in traces if name.rpartition("_")[0] == f"{problem}_{method}"]
    return {name: traces[name] for name in sorted(found, key=lambda n: int(n.rpartition("_")[2]))}


def sent(trace: Trace) -> float:
    """Bits of a round, up and down, all clients together."""
    bits = trace.config["bits"]
    return float(bits["bits_up"] + bits["bits_down"])


def column(trace: Trace, budget: str, p: Params) -> int:
    """The last evaluation within a budget: the end of the run, or the last that the bits pay for.

    The budget of bits is what models of d numbers cost, down to all clients and up again, in the
    share `SHARE` of FedAvg's rounds; a run that has used up its gradients before ends there.
    """
    if budget == "grads":
        return len(trace.rounds) - 1
    of = trace.config["problem"]
    rounds = SHARE * (p["passes"] // p["local_steps"])
    limit = rounds * FLOAT_BITS * of["clients"] * 2 * of["dim"]
    paid = trace.rounds * sent(trace) <= limit
    return int(np.flatnonzero(paid)[-1])


def excess(g: Array, problem: str) -> Array:
    """How far g is above its level, in % of the level; negative: room to spare."""
    return 100 * (g / LEVELS[problem] - 1)


def kept(violation: Number) -> bool | None:
    """Whether a constraint is kept: the whole interval of the mean violation is at most 5 %.

    False if all of it is above, None if the seeds do not decide.
    """
    if not np.isfinite([violation.low, violation.high]).all():
        return None
    if violation.high <= TOLERANCE:
        return True
    return False if violation.low > TOLERANCE else None


def best_of(losses: Mapping[str, float], violations: Mapping[str, float]) -> str:
    """The smallest loss among those with a mean violation of at most `ROOM` %.

    If there is none, the smallest mean violation.
    """
    fine = {name: x for name, x in losses.items() if violations[name] <= ROOM}
    if fine:
        return min(fine, key=fine.__getitem__)
    return min(violations, key=violations.__getitem__)
