"""The rules of the arena: where a budget ends, which configuration is taken, who wins."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from fedlib.core import Trace
from fedlib.core.federation import FLOAT_BITS
from papers.arena.methods import METHODS
from papers.arena.problems import LEVELS
from papers.kit.numbers import Number, mean
from papers.kit.study import Params, Traces

__all__ = [
    "BUDGETS",
    "SHARE",
    "TOLERANCE",
    "best_of",
    "column",
    "excess",
    "grid_runs",
    "off",
    "passes_of",
    "reference_of",
    "setting",
    "shown",
    "taken",
    "uploads",
]

Array = NDArray[np.float64]
BUDGETS = {"grads": "equal gradients", "bits": "equal bits"}
TOLERANCE = 5.0  # % of the level
SHARE = 0.4  # of FedAvg's rounds, whose uploads are the budget of bits


def grid_runs(traces: Traces, problem: str, method: str) -> dict[str, Trace]:
    """All configurations of a method that there are, by name."""
    found = {n: t for n, t in traces.items() if n.rpartition("_")[0] == f"{problem}_{method}"}
    return dict(sorted(found.items(), key=lambda item: int(item[0].rpartition("_")[2])))


def reference_of(traces: Traces, problem: str) -> Trace | None:
    """The run that rests at the optimum of the training rows."""
    return traces.get(f"{problem}_reference")


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
    """The number of parameters d."""
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
    """The tuned configuration, from validation rows alone.

    The smallest mean f among the configurations whose violation is not shown; if it is of all, the
    smallest mean g.
    """
    at = {name: column(method, trace, budget, p) for name, trace in runs.items()}
    f = {n: float(t.metrics["val_f"][:, at[n]].mean()) for n, t in runs.items()}
    g = {n: excess(t.metrics["val_g"][:, at[n]], problem) for n, t in runs.items()}
    fine = {n: f[n] for n in runs if not shown(mean(g[n]))}
    if fine:
        return min(fine, key=fine.__getitem__)
    return min(g, key=lambda n: float(g[n].mean()))


def off(trace: Trace, reference: Trace, problem: str, side: str = "") -> Array:
    """How far a run is from the optimum of the training rows, in %, `[S, T_eval]`.

    The larger of: how far f is above the optimum's, in % of it, and how far g is above its level
    (or above the optimum's g, if that exceeds the level on these rows), in % of the level. At least
    0, and 0 at the optimum alone where f is strictly convex and g convex.
    """
    seeds = [reference.seeds.index(s) for s in trace.seeds]
    f, g = (trace.metrics[f"{side}{loss}"] for loss in "fg")
    best, bound = (reference.metrics[f"{side}{loss}"][seeds, -1:] for loss in "fg")
    level = LEVELS[problem]
    above = 100 * np.maximum((f - best) / best, (g - np.maximum(bound, level)) / level)
    return np.asarray(np.maximum(above, 0))


def best_of(gaps: Mapping[str, Number], violations: Mapping[str, Number]) -> str:
    """The winner among some methods, from test rows alone.

    The smallest mean test f among those whose violation is not shown; if it is of all, the smallest
    mean violation.
    """
    fine = {m: x.value for m, x in gaps.items() if not shown(violations[m])}
    if fine:
        return min(fine, key=fine.__getitem__)
    return min(violations, key=lambda m: violations[m].value)
