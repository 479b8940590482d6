"""The measures of study `ssca_baselines`."""

from __future__ import annotations

import numpy as np

from papers.kit.numbers import Number, exact, mean
from papers.kit.study import Params, Traces
from papers.ssca.baselines.runs import METHODS, cells, grid
from papers.ssca.convergence.quantities import area, at

LAST = 100  # the round whose cost is recorded beside the mean over the rounds


def tuned(traces: Traces, method: str, cell: str, p: Params) -> tuple[float, float]:
    """The point of a grid with the lowest mean cost over the rounds and the tuning seeds."""
    costs = {
        (a, b): float(area(traces[f"tuning_{method}_{cell}_a{a:g}_p{b:g}"]).mean())
        for a, b in grid(method, p)
    }
    return min(costs, key=lambda point: costs[point] if np.isfinite(costs[point]) else np.inf)


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Mean costs, SSCA minus each baseline, what tuning picks, and a difference of nothing.

    `CELL_vs_METHOD.area` is SSCA's mean cost over the rounds minus the baseline's, seed by seed;
    `CELL_vs_METHOD.null` that of the baseline on half of the seeds minus that on the others.
    """
    numbers: dict[str, Number] = {}
    for cell in cells(p):
        for method in METHODS:
            a, b = tuned(traces, method, cell, p)
            numbers[f"tuning_{method}_{cell}.scale"] = exact(a)
            numbers[f"tuning_{method}_{cell}.other"] = exact(b)
        for method in ("ssca", *METHODS):
            trace = traces[f"{method}_{cell}"]
            numbers[f"{method}_{cell}.area"] = mean(area(trace))
            numbers[f"{method}_{cell}.cost"] = mean(at(trace, min(LAST, p["rounds"])))
        ssca_area = area(traces[f"ssca_{cell}"])
        for method in METHODS:
            rival_area = area(traces[f"{method}_{cell}"])
            half = len(rival_area) // 2
            numbers[f"{cell}_vs_{method}.area"] = mean(ssca_area - rival_area)
            numbers[f"{cell}_vs_{method}.null"] = mean(
                rival_area[:half] - rival_area[half : 2 * half]
            )
    return numbers
