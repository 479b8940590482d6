"""The derived numbers of the fairness study."""

from __future__ import annotations

from typing import Any

from papers.fedsgm.curves import FEASIBLE, oscillation, tuned
from papers.fedsgm.fairness import many
from papers.kit.numbers import Number, exact, measured
from papers.kit.study import Params, Traces

METRICS = ("f", "f_clients", "g", "test_loss", "test_accuracy", "test_gap")


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Measures of every run, and of the tuned penalties."""
    in_all = many.derive(traces, p["tolerance"]) if p["many"] else {}
    traces = {name: trace for name, trace in traces.items() if name not in many.RUNS}
    measures = _measures(float(p["tolerance"]))
    numbers = in_all | measured(traces, measures)
    for group in ("penalty", "central_penalty"):
        best = tuned(traces, [f"{group}_rho{rho:g}" for rho in p["rhos"]], p["tolerance"])
        numbers |= measured({group: traces[best]}, measures)
        numbers[f"{group}.rho"] = exact(float(best.rpartition("rho")[2]))
    return numbers | {"majority": exact(traces["hard"].config["problem"]["majority"])}


def _measures(tolerance: float) -> dict[str, Any]:
    """Late means, the share of infeasible seeds, and the speed and oscillation of one run."""
    late = ("f", "f_clients", "g", "test_accuracy")
    return {k: lambda t, k=k: t.late(k) for k in late} | {
        "infeasible": (lambda t: t.late("g") > FEASIBLE * tolerance, "of seeds"),
        "mean_f": lambda t: t.of_rounds("f").mean(1),
        "oscillation": (oscillation, "1e-3"),
    }
