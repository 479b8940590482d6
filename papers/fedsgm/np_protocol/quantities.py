"""The measures of study `np_protocol`, and its null data: one run on disjoint sets of splits."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from fedlib.core import Trace
from papers.fedsgm.common import without_splits
from papers.fedsgm.curves import START, tuned
from papers.fedsgm.np_protocol.runs import PENALTY, TUNING, defaults
from papers.fedsgm.np_unified.quantities import (
    Grids,
    is_right,
    measures,
    null_data,
    share_of_threes,
    spreads,
)
from papers.kit.numbers import exact, mean, share
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

SLACK = 0.05  # of the fall from the start: what counts as no difference
LEVEL_SLACK = 1.25  # the earlier rule's slack of C10, a factor on the level
#: Label of a grid -> what its values are called.
KNOBS = {"beta": "beta", "rho": "penalty"}


def derive(traces: Traces, p: Params) -> Quantities:
    """The table of quantities: measures of runs, right penalties, spreads, and null data."""
    tolerance = p["tolerance"]
    usual = defaults(p)
    judged = without_splits(traces, TUNING["splits"])
    grids = {
        "beta": sweep(traces, usual, "beta", switch="soft"),
        "rho": sweep(judged, usual, "rho", **PENALTY),
    }
    hard = run_of(traces, usual, switch="hard")
    soft = run_of(traces, usual, switch="soft")
    tables = [
        of_runs(judged, partial(measures, tolerance, "splits")),
        null_data(hard, tolerance),
        shares_of_threes([hard, soft, *grids["rho"].values()], tolerance),
        tuned_steps(traces, p, usual),
        right(grids, soft, tolerance),
        spreads(grids),
    ]
    return Quantities.of(tables, usual)


def shares_of_threes(traces: list[Trace], tolerance: float) -> Iterator[Row]:
    """Of some runs the share of feasible means over three splits."""
    for trace in traces:
        number = exact(share_of_threes(trace, tolerance), "of means over three splits")
        yield row("of_three", number, **labels_of(trace))


def tuned_steps(traces: Traces, p: Params, usual: Defaults) -> Iterator[Row]:
    """The step that the tuning splits pick for each penalty, by the paper's rule."""
    for rho in p["rhos"]:
        labels = {**PENALTY, **TUNING, "rho": rho}
        steps = sweep(traces, usual, "lr", **labels)
        yield row("lr", exact(tuned(steps, p["tolerance"])), **labels)


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
