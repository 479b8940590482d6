"""The quantities of the study of local steps and preferences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedcmoo.common import GREY
from papers.fedcmoo.sweeps.runs import DEFAULTS
from papers.kit import quantities as kit
from papers.kit.numbers import Number, mean
from papers.kit.quantities import Quantities, Row, null_rows, row, run_of, sweep
from papers.kit.study import Params, Traces

LATE = 0.9  # final: the mean over the evaluations from this share of the rounds on


def derive(traces: Traces, p: Params) -> Quantities:
    """The table of quantities: of every run, and FedCMOO's lead by the number of local steps."""
    rows = [lead for data in GREY for lead in leads_on(data, traces, p)]
    rows += [slope for data in GREY for slope in slopes_on(data, traces)]
    return Quantities.of([kit.of_runs(traces, measures), rows], DEFAULTS)


def measures(trace: Trace) -> dict[str, Number]:
    """Final accuracies; with a preference also `quotient`, F_1 / F_2 of the final test losses."""
    numbers = {}
    for curve in ("accuracy", "accuracy_1"):
        numbers[curve] = mean(final(trace, curve))
    if "ratio" in kit.labels_of(trace):
        numbers["quotient"] = mean(quotient(trace))
    return numbers


def final(trace: Trace, curve: str) -> Array:
    """The final value of a curve, by seed."""
    late = trace.rounds >= LATE * trace.rounds[-1]
    return np.asarray(trace.metrics[curve][:, late].mean(1))


def quotient(trace: Trace) -> Array:
    """F_1 / F_2 of the final test losses, by seed."""
    return final(trace, "loss_1") / final(trace, "loss_2")


def slopes_on(data: str, traces: Traces) -> Iterator[Row]:
    """The slope of log F_1 / F_2 over log r_2 / r_1 by seed; 1 where the preference is met.

    That of the order `permuted` gives the seeds' quotients other preferences, in turn: null data.
    """
    runs = sweep(traces, DEFAULTS, "ratio", data=data)
    if len(runs) < 2:
        return
    preferences = np.log([*runs])
    quotients = np.log([quotient(run) for run in runs.values()])
    slope, _ = np.polyfit(preferences, quotients, 1)
    null, _ = np.polyfit(preferences, kit.permuted(quotients), 1)
    yield row("slope", mean(slope), data=data)
    yield row("slope", mean(null), data=data, order="permuted")


def leads_on(data: str, traces: Traces, p: Params) -> Iterator[Row]:
    """FedCMOO minus FSMGDA in points, with each number of local steps; most minus fewest steps.

    Also that on the first seeds minus that on the last: null data.
    """
    leads = {}
    for steps in p["steps"]:
        ours = run_of(
            traces,
            DEFAULTS,
            data=data,
            method="fedcmoo",
            steps=steps,
        )
        theirs = run_of(
            traces,
            DEFAULTS,
            data=data,
            method="fsmgda",
            steps=steps,
        )
        leads[steps] = 100 * (final(ours, "accuracy") - final(theirs, "accuracy"))
        yield row("lead", mean(leads[steps], "points"), data=data, steps=steps)
    most = max(leads)
    growth = leads[most] - leads[min(leads)]
    yield row(
        "lead",
        mean(growth, "points"),
        data=data,
        steps=most,
        minus="fewest",
    )
    yield from null_rows(
        "lead",
        leads[most],
        "points",
        data=data,
        steps=most,
    )
