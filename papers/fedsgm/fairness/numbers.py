"""The derived numbers of the fairness study."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedsgm.curves import FEASIBLE, oscillation, tuned
from papers.fedsgm.fairness import many
from papers.kit.numbers import Number, exact, mean, measured
from papers.kit.study import Params, Traces

METRICS = ("f", "f_clients", "g", "test_loss", "test_accuracy", "test_gap", "test_decision_gap")


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Measures of every run, the tuned penalties, and differences paired by seed."""
    in_all = many.derive(traces, p["tolerance"]) if p["many"] else {}
    traces = {name: trace for name, trace in traces.items() if name not in many.RUNS}
    measures = _measures(float(p["tolerance"]))
    numbers = in_all | measured(traces, measures)
    best = {}
    for group in ("penalty", "central_penalty"):
        runs = [f"{group}_rho{rho:g}" for rho in p["rhos"]]
        best[group] = tuned(traces, runs, p["tolerance"])
        numbers |= measured({group: traces[best[group]]}, measures)
        numbers[f"{group}.rho"] = exact(float(best[group].rpartition("rho")[2]))
    conex = [name for name in traces if "conex_" in name]
    best["conex"] = tuned(traces, conex, p["tolerance"])
    numbers |= measured({"conex": traces[best["conex"]]}, measures)
    for setting in ("lr", "dual_lr"):
        numbers[f"conex.{setting}"] = exact(traces[best["conex"]].config["algorithm"][setting])
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
    return numbers | {"majority": exact(traces["hard"].config["problem"]["majority"])}


def _measures(tolerance: float) -> dict[str, Any]:
    """Late means, violations of the second half, and the best feasible loss of one run."""

    def violating(t: Trace) -> Array:
        g = t.of_rounds("g")
        return np.asarray((g[:, g.shape[1] // 2 :] > tolerance).mean(1))

    return {k: lambda t, k=k: t.late(k) for k in METRICS} | {
        "infeasible": (lambda t: t.late("g") > FEASIBLE * tolerance, "of seeds"),
        "violations": (violating, "of rounds"),
        "best_f": lambda t: best_feasible(t, tolerance),
        "mean_f": lambda t: t.of_rounds("f").mean(1),
        "oscillation": (oscillation, "1e-3"),
    }


def best_feasible(trace: Trace, tolerance: float) -> Array:
    """Per seed the smallest f at an evaluated round with g within the tolerance, NaN if none."""
    f = np.where(trace.of_rounds("g") <= tolerance, trace.of_rounds("f"), np.inf).min(1)
    return np.asarray(np.where(np.isfinite(f), f, np.nan))


def difference(a: Trace, b: Trace) -> dict[str, Number]:
    """Late f, g and test accuracy of run a minus those of run b, on the seeds that both have."""
    seeds = [s for s in a.seeds if s in b.seeds]
    one, other = ([t.seeds.index(s) for s in seeds] for t in (a, b))
    shown = ("f", "g", "test_accuracy") if seeds else ()
    return {k: mean(a.late(k)[one] - b.late(k)[other]) for k in shown}
