"""The measures of study `np_protocol`, and its null data: one run on disjoint sets of splits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedsgm.curves import FEASIBLE, START, halves, jitter, oscillation, over_limit, tuned
from papers.fedsgm.np_protocol.runs import PENALTY, TUNING, defaults
from papers.fedsgm.np_unified.quantities import PARTS
from papers.kit.numbers import Number, exact, mean, share
from papers.kit.quantities import (
    Defaults,
    Quantities,
    Row,
    labels_of,
    of_runs,
    row,
    run_of,
    sweep,
)
from papers.kit.study import Params, Traces

MERIT = 4.0  # the weight of the excess of g in `merit`, more than every multiplier
EARLY = 50  # rounds
SLACK = 0.05  # of the fall from the start: what counts as no difference
LEVEL_SLACK = 1.25  # the earlier rule's slack of C10, a factor on the level
#: Label of a grid -> what its values are called.
KNOBS = {"beta": "beta", "rho": "penalty"}
#: Runs along a grid by the value there; the grids of sharpnesses and of penalties by their label.
Grids = Mapping[str, Mapping[float, Trace]]


def derive(traces: Traces, p: Params) -> Quantities:
    """The table of quantities: measures of runs, right penalties, spreads, and null data."""
    tolerance = float(p["tolerance"])
    usual = defaults(p)
    judged = {
        name: trace
        for name, trace in traces.items()
        if labels_of(trace)["splits"] != TUNING["splits"]
    }
    grids = {
        "beta": sweep(traces, usual, "beta", method="FedSGM", switch="soft"),
        "rho": sweep(judged, usual, "rho", **PENALTY),
    }
    modes = [run_of(traces, usual, switch=mode) for mode in ("hard", "soft")]
    tables = [
        of_runs(judged, partial(measures, tolerance)),
        null_data(modes[0], tolerance),
        shares_of_threes([*modes, *grids["rho"].values()], tolerance),
        tuned_steps(traces, p, usual),
        right(grids, modes[1], tolerance),
        spreads(grids),
    ]
    return Quantities.of(tables, usual)


def measures(tolerance: float, trace: Trace) -> dict[str, Number]:
    """Late values and falls of one run, and its course where every round was evaluated."""
    f = trace.late("f")
    g = trace.late("g")
    numbers = {
        "f": mean(f),
        "g": mean(g),
        "f_fall": mean(START - f),
        "g_fall": mean(START - g),
        "infeasible": share(g > FEASIBLE * tolerance, "of splits"),
    }
    if trace.rounds[1] == 1:
        numbers["oscillation"] = mean(oscillation(trace), "1e-3")
        numbers["scatter"] = mean(jitter(trace, trace.rounds[-1] // 5), "1e-3")
        numbers["merit"] = mean(over_limit(trace, tolerance, MERIT).mean(1))
        numbers["early"] = mean(over_limit(trace, tolerance, 1.0)[:, :EARLY].mean(1))
    return numbers


def null_data(trace: Trace, tolerance: float) -> Iterator[Row]:
    """The measures of a run on disjoint sets of its splits: between them there is no effect."""
    for number, subset in enumerate(disjoint(trace)):
        for name, measured in measures(tolerance, subset).items():
            yield row(name, measured, part=number)


def disjoint(trace: Trace) -> list[Trace]:
    """A run on disjoint sets of its splits, equal in size."""
    size = len(trace.seeds) // PARTS
    if size == 0:
        return []
    return [some_splits(trace, slice(k * size, (k + 1) * size)) for k in range(PARTS)]


def some_splits(trace: Trace, rows: slice) -> Trace:
    """A run on some of its splits."""
    metrics = {name: curve[rows] for name, curve in trace.metrics.items()}
    seeds = trace.seeds[rows]
    return replace(trace, metrics=metrics, info={}, seeds=seeds, state=None, output=None)


def shares_of_threes(traces: list[Trace], tolerance: float) -> Iterator[Row]:
    """Of some runs the share of feasible means over three splits."""
    for trace in traces:
        yield row("of_three", share_of_threes(trace, tolerance), **labels_of(trace))


def share_of_threes(trace: Trace, tolerance: float) -> Number:
    """The share of all choices of three splits whose mean late g is feasible."""
    late = trace.late("g")
    choices = np.array([*combinations(range(len(late)), min(3, len(late)))])
    feasible = late[choices].mean(1) <= FEASIBLE * tolerance
    return exact(feasible.mean(), "of means over three splits")


def tuned_steps(traces: Traces, p: Params, usual: Defaults) -> Iterator[Row]:
    """The step that the tuning splits pick for each penalty, by the paper's rule."""
    for rho in p["rhos"]:
        labels = {**PENALTY, **TUNING, "rho": float(rho)}
        steps = sweep(traces, usual, "lr", **labels)
        yield row("lr", exact(tuned(steps, float(p["tolerance"]))), **labels)


def right(grids: Grids, soft: Trace, tolerance: float) -> Iterator[Row]:
    """On which splits a penalty, or a sharpness, is right: feasible, and as good as soft FedSGM.

    `right` allows a late f that is above by a share of the fall from the start; `right_level`
    allows a factor.
    """
    f = soft.late("f")
    bounds = {"right": f + SLACK * (START - f), "right_level": LEVEL_SLACK * f}
    for measure, bound in bounds.items():
        for knob, runs in grids.items():
            flags = []
            for trace in runs.values():
                flags.append(is_right(trace, bound, tolerance))
                yield row(measure, share(flags[-1], "of splits"), **labels_of(trace))
            yield row(measure, mean(np.mean(flags, axis=0), f"of {KNOBS[knob]} values"), knob=knob)


def is_right(trace: Trace, bound: Array, tolerance: float) -> Array:
    """On which splits a run ends feasible with a late f within the bound."""
    feasible = trace.late("g") <= FEASIBLE * tolerance
    return np.asarray(feasible & (trace.late("f") <= bound))


def spreads(grids: Grids) -> Iterator[Row]:
    """How far late f and g move along the grid of sharpnesses, and of penalties.

    The penalties are those of the upper part of the grid, a factor 200 from end to end as the
    sharpnesses. Label `half` is of disjoint halves of the splits.
    """
    for knob, runs in grids.items():
        upper = [trace for x, trace in runs.items() if knob == "beta" or x >= max(runs) / 200]
        for curve in "fg":
            spread = np.ptp([trace.late(curve) for trace in upper], axis=0)
            yield row(f"spread_{curve}", mean(spread), knob=knob)
            for number, half in enumerate(halves(spread)):
                yield row(f"spread_{curve}", mean(half), knob=knob, half=number)
