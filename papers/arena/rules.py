"""The rules of the arena: where a budget ends, which configuration is taken, who wins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from fedlib.core import Trace
from fedlib.core.federation import FLOAT_BITS
from fedlib.core.trace import Array
from papers.arena.methods import METHODS
from papers.arena.problems import LEVELS, NAMES
from papers.kit.numbers import Number, mean
from papers.kit.study import Params, Traces

__all__ = [
    *("BUDGETS", "SHARE", "TOLERANCE", "Field", "best_of", "column", "excess", "fields", "off"),
    *("passes_of", "setting", "shown", "taken", "uploads"),
]

BUDGETS = {"grads": "equal gradients", "bits": "equal bits"}
TOLERANCE = 5.0  # % of the level
SHARE = 0.4  # of FedAvg's rounds, whose uploads are the budget of bits


class Field(NamedTuple):
    """All runs on one problem."""

    problem: str
    reference: Trace  # rests at the optimum of the training rows
    runs: dict[str, dict[str, Trace]]  # method -> configuration -> run
    p: Params

    def tuned(self, method: str, budget: str) -> tuple[str, Trace]:
        """The run of the configuration that is taken, with its name."""
        name = taken(self.runs[method], self.problem, method, budget, self.p)
        return name, self.runs[method][name]

    def off(self, trace: Trace, side: str = "") -> Array:
        """How far a run is from the optimum, in %, `[S, T_eval]`; see `off`."""
        return off(trace, self.reference, self.problem, side)

    def gap(self, trace: Trace, metric: str, at: int = -1) -> Array:
        """How far a metric is above the optimum's, by seed."""
        best = self.reference.metrics[metric][seeds_of(trace, self.reference), -1]
        return np.asarray(trace.metrics[metric][:, at] - best)

    def violation(self, trace: Trace, metric: str, at: int = -1) -> Number:
        """How far g is above its level, in % of it."""
        return mean(excess(trace.metrics[metric][:, at], self.problem), "%")


def fields(traces: Traces, p: Params) -> list[Field]:
    """The problems that there are, with the methods that have runs on them."""
    return [
        Field(
            problem,
            traces[f"{problem}_reference"],
            {m: runs for m in METHODS if (runs := grid_runs(traces, problem, m))},
            p,
        )
        for problem in NAMES
        if f"{problem}_reference" in traces
    ]


def grid_runs(traces: Traces, problem: str, method: str) -> dict[str, Trace]:
    """All configurations of a method that there are, by name."""
    found = [name for name in traces if name.rpartition("_")[0] == f"{problem}_{method}"]
    return {name: traces[name] for name in sorted(found, key=lambda n: int(n.rpartition("_")[2]))}


def setting(traces: Traces) -> Params:
    """The parameters that the rules ask for, read off the runs: E, and the gradients of a run."""
    runs = {n: t for n, t in traces.items() if not n.endswith("_reference")}
    algorithms = [t.config["algorithm"] for t in runs.values()]
    steps = [a[k] for a in algorithms for k in ("local_steps", "steps") if k in a]
    p: Params = {"local_steps": max(steps, default=1)}
    spent = [int(t.rounds[-1]) * passes_of(n.split("_")[1], p) for n, t in runs.items()]
    return {**p, "passes": max(spent, default=1)}


def passes_of(method: str, p: Params) -> int:
    """Gradients of every client in a round."""
    return METHODS[method].passes(p["local_steps"])


def uploads(method: str, trace: Trace, p: Params) -> float:
    """Bits that all clients together send in a round.

    IPP ConEx is centralized and sends none; it is charged what the same steps would cost with the
    clients as they are: both gradients and the constraint's value of every client in every step.
    """
    if method != "conex":
        return float(trace.config["bits"]["bits_up"])
    clients: int = trace.config["problem"]["clients"]
    return FLOAT_BITS * clients * METHODS[method].sent(p["local_steps"], dimension(trace))


def dimension(trace: Trace) -> int:
    return int(trace.state.shape[-1])


def column(method: str, trace: Trace, budget: str, p: Params) -> int:
    """The last evaluation within a budget: the end of the run, or the last that the bits pay for.

    The budget of bits is what FedAvg's uploads of d numbers a client cost in the share `SHARE` of
    its rounds; a run that has used up its gradients before ends there.
    """
    if budget == "grads":
        return len(trace.rounds) - 1
    clients: int = trace.config["problem"]["clients"]
    rounds = SHARE * (p["passes"] // p["local_steps"])
    limit = rounds * FLOAT_BITS * clients * dimension(trace)
    paid = trace.rounds * uploads(method, trace, p) <= limit
    return int(np.flatnonzero(paid)[-1])


def excess(g: Array, problem: str) -> Array:
    """How far g is above its level, in % of the level; negative: room to spare."""
    return 100 * (g / LEVELS[problem] - 1)


def shown(violation: Number) -> bool:
    """Whether a mean excess is shown to be above the tolerance: its whole interval is."""
    return violation.low > TOLERANCE


def taken(runs: Mapping[str, Trace], problem: str, method: str, budget: str, p: Params) -> str:
    """The tuned configuration, from validation rows alone: the best of them by mean f."""
    f, violations = {}, {}
    for name, trace in runs.items():
        at = column(method, trace, budget, p)
        f[name] = float(trace.metrics["val_f"][:, at].mean())
        violations[name] = mean(excess(trace.metrics["val_g"][:, at], problem))
    return best_of(f, violations)


def best_of(losses: Mapping[str, float], violations: Mapping[str, Number]) -> str:
    """The smallest loss among those whose violation is not shown.

    If it is shown of all, the smallest mean violation.
    """
    fine = {name: x for name, x in losses.items() if not shown(violations[name])}
    if fine:
        return min(fine, key=fine.__getitem__)
    return min(violations, key=lambda name: violations[name].value)


def off(trace: Trace, reference: Trace, problem: str, side: str = "") -> Array:
    """How far a run is from the optimum of the training rows, in %, `[S, T_eval]`.

    The larger of: how far f is above the optimum's, in % of it, and how far g is above its level
    (or above the optimum's g, if that exceeds the level on these rows), in % of the level. At least
    0, and 0 at the optimum alone where f is strictly convex and g convex.
    """
    seeds = seeds_of(trace, reference)
    f, g = (trace.metrics[f"{side}{loss}"] for loss in "fg")
    best, bound = (reference.metrics[f"{side}{loss}"][seeds, -1:] for loss in "fg")
    level = LEVELS[problem]
    above = 100 * np.maximum((f - best) / best, (g - np.maximum(bound, level)) / level)
    return np.asarray(np.maximum(above, 0))


def seeds_of(trace: Trace, reference: Trace) -> list[int]:
    return [reference.seeds.index(s) for s in trace.seeds]
