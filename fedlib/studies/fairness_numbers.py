"""The derived numbers of the fairness study."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedlib.numbers import Number, mean
from fedlib.studies.base import Params, Traces
from fedlib.trace import Trace

__all__ = ["FEASIBLE", "METRICS", "derive", "tuned"]

FEASIBLE = 1.05  # a method counts as feasible if its late mean of g is below this times epsilon
METRICS = (
    "f",
    "f_clients",
    "g",
    "test_loss",
    "test_accuracy",
    "test_gap",
    "test_decision_gap",
)


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Measures of every run, the tuned penalties, and differences paired by seed."""
    tolerance = float(p["tolerance"])
    numbers: dict[str, Number] = {}
    for name, trace in traces.items():
        numbers |= {f"{name}.{k}": v for k, v in measures(trace, tolerance).items()}
    best = {}
    for group in ("penalty", "central_penalty"):
        best[group] = tuned(traces, [f"{group}_rho{r:g}" for r in p["rhos"]], tolerance)
        for k, v in measures(traces[best[group]], tolerance).items():
            numbers[f"{group}.{k}"] = v
        numbers[f"{group}.rho"] = mean([float(best[group].rpartition("rho")[2])])
    pairs = {
        "hard_vs_penalty": ("hard", best["penalty"]),
        "soft_vs_hard": ("soft", "hard"),
        "soft_vs_penalty": ("soft", best["penalty"]),
        "hard_vs_central": ("hard", "central_hard"),
        "soft_vs_central": ("soft", "central_soft"),
        "hard_client_vs_hard": ("hard_client", "hard"),
        "soft_client_vs_soft": ("soft_client", "soft"),
    }
    for name, (a, b) in pairs.items():
        numbers |= {f"{name}.{k}": v for k, v in difference(traces[a], traces[b]).items()}
    problem = traces["hard"].config["problem"]
    numbers["majority"] = mean([problem["majority"]])
    if problem["data"] == "adult":  # no verdict on the paper without its data
        numbers["adult.rows"] = mean([problem["train_rows"]], "rows")
    return numbers


def measures(trace: Trace, tolerance: float) -> dict[str, Number]:
    """Late means, violations of the second half, and the best feasible loss of one run."""
    found = {k: mean(trace.late(k)) for k in METRICS}
    found["infeasible"] = mean(trace.late("g") > FEASIBLE * tolerance, "of seeds")
    g = trace.of_rounds("g")
    found["violations"] = mean((g[:, g.shape[1] // 2 :] > tolerance).mean(1), "of rounds")
    found["best_f"] = mean(best_feasible(trace, tolerance))
    return found


def best_feasible(trace: Trace, tolerance: float) -> NDArray[np.float64]:
    """Per seed the smallest f at an evaluated round with g within the tolerance, NaN if none."""
    f = np.where(trace.of_rounds("g") <= tolerance, trace.of_rounds("f"), np.inf).min(1)
    return np.asarray(np.where(np.isfinite(f), f, np.nan))


def tuned(traces: Traces, names: Sequence[str], tolerance: float) -> str:
    """The run with the smallest late f among those with mean late g <= 1.05 tolerance.

    If none is feasible, the one with the smallest late g. Training data only.
    """
    late = {n: (traces[n].late("f").mean(), traces[n].late("g").mean()) for n in names}
    feasible = {n: f for n, (f, g) in late.items() if g <= FEASIBLE * tolerance}
    if feasible:
        return min(feasible, key=feasible.__getitem__)
    return min(late, key=lambda n: late[n][1])


def difference(a: Trace, b: Trace) -> dict[str, Number]:
    """Late f, g and test accuracy of run a minus those of run b, on the seeds that both have."""
    seeds = [s for s in a.seeds if s in b.seeds]
    one, other = ([t.seeds.index(s) for s in seeds] for t in (a, b))
    return {k: mean(a.late(k)[one] - b.late(k)[other]) for k in ("f", "g", "test_accuracy")}
