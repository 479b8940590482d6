"""The quantities of the study of many objectives; accuracies are in %."""

from __future__ import annotations

import numpy as np

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedcmoo.common import final
from papers.fedcmoo.many.runs import DEFAULTS, SETS
from papers.kit import quantities as kit
from papers.kit.numbers import Number, exact, mean
from papers.kit.quantities import Quantities, Row, null_rows, row, run_of
from papers.kit.study import Params, Traces

LAST = 0.2  # share of the rounds that a final value averages


def derive(traces: Traces, p: Params) -> Quantities:
    """The table of quantities: of every run, and FedCMOO's lead by the number of tasks."""
    del p
    any_run = run_of(traces, DEFAULTS, tasks="halves", method="fedcmoo")
    majority = any_run.config["problem"]["majority"]
    rows = [
        row("majority", exact(100 * majority, "%")),
        row("rounds", exact(any_run.rounds[-1], "rounds")),
        *leads(traces),
    ]
    return Quantities.of([kit.of_runs(traces, measures), rows], DEFAULTS)


def measures(trace: Trace) -> dict[str, Number]:
    """The final accuracy, and what a participant uploads in a round."""
    return {
        "accuracy": mean(accuracy(trace), "%"),
        "upload": exact(megabytes(trace), "MB"),
    }


def accuracy(trace: Trace) -> Array:
    """The final accuracy in %, by seed."""
    return 100 * final(trace, "accuracy", LAST)


def megabytes(trace: Trace) -> float:
    """What a participant uploads in a round, in units of 10^6 bytes."""
    bits = float(trace.config["bits"]["bits_up"])
    participants = int(trace.config["algorithm"]["participants"])
    return bits / participants / 8e6


def leads(traces: Traces) -> list[Row]:
    """FedCMOO minus FSMGDA in final accuracy, for each set of tasks, and against two tasks.

    Also FedCMOO on two halves of its seeds.
    """
    rows = []
    points = {}
    for tasks in SETS:
        ours = run_of(traces, DEFAULTS, tasks=tasks, method="fedcmoo")
        theirs = run_of(traces, DEFAULTS, tasks=tasks, method="fsmgda")
        points[tasks] = accuracy(ours) - accuracy(theirs)
        at_equal_upload = gap_at_equal_upload(ours, theirs)
        ratio = megabytes(theirs) / megabytes(ours)
        rows += null_rows("gap", accuracy(ours), "points", tasks=tasks)
        rows += [
            row("gap", mean(points[tasks], "points"), tasks=tasks),
            row("gap_upload", mean(at_equal_upload, "points"), tasks=tasks),
            row("upload_ratio", exact(ratio), tasks=tasks),
        ]
    for tasks in ("groups", "attributes"):
        growth = mean(points[tasks] - points["halves"], "points")
        rows.append(row("gap", growth, tasks=tasks, minus="halves"))
    return rows


def gap_at_equal_upload(ours: Trace, theirs: Trace) -> Array:
    """Per seed FedCMOO minus FSMGDA in accuracy, in points, after equal uploads.

    FSMGDA stops where it has sent what all rounds of FedCMOO send, or at its last round if that
    comes first; between two evaluations its curve is taken as straight.
    """
    total = float(ours.rounds[-1])
    stop = min(total, total * megabytes(ours) / megabytes(theirs))
    curves = theirs.metrics["accuracy"]
    at_stop = [np.interp(stop, theirs.rounds, curve) for curve in curves]
    at_end = ours.metrics["accuracy"][:, -1]
    return np.asarray(100 * (at_end - at_stop))
