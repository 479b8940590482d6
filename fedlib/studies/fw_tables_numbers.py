"""The derived numbers of the study of FedFW's Tables 1 and 2."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from fedlib.numbers import Number, mean
from fedlib.studies.base import Params, Traces
from fedlib.studies.fw_cells import COLUMNS, METHODS, NORMS, TABLES, traced
from fedlib.trace import Trace

__all__ = [
    "LATE",
    "LEVELS",
    "WHOLE",
    "cells",
    "chosen",
    "code_run",
    "derive",
    "settings",
]

Array = NDArray[np.float64]

LATE = 3  # evaluated models, the last ones, whose mean training loss decides about a setting
LEVELS = (0.9, 0.75, 0.5)  # of the start's training loss, to which rounds are counted
ALL_METHODS = (*METHODS, "feddr5")
#: The least that the verdicts on the paper need.
WHOLE = {"rounds": 100, "rows": 6000, "cifar_rows": 2000, "cnn_rows": 400, "most": 1000}


def cells(traces: Traces) -> list[tuple[str, str, str]]:
    """Column, norm and name of every cell that has runs."""
    there = [(c, norm, f"{c}_{norm}") for norm in NORMS for c in COLUMNS]
    return [x for x in there if any(n.startswith(f"{x[2]}_") for n in traces)]


def settings(traces: Traces, cell: str, method: str) -> dict[str, Trace]:
    """The runs of a method in a cell, by their setting: `"0.001"`, or `"0.01_10"` of FedDR."""
    start = f"{cell}_{method}_"
    return {n.removeprefix(start): t for n, t in traces.items() if n.startswith(start)}


def late(trace: Trace, metric: str) -> Array:
    """Per seed, the mean over the last evaluated models, `[S]`."""
    return np.asarray(trace.metrics[metric][:, -LATE:].mean(1))


def chosen(traces: Traces, cell: str, method: str) -> str:
    """The setting with the lowest mean training loss at the end; accuracy plays no part."""
    runs = settings(traces, cell, method)
    return min(runs, key=lambda x: float(late(runs[x], "loss").mean()))


def code_run(column: str, norm: str, method: str) -> str:
    """The name of the run behind a printed value."""
    cell = f"{column}_{norm}"
    if method == "feddr":
        return f"{cell}_code_feddr"
    lam, radius = traced(column, norm)[method == "plus"]
    return f"{cell}_code_fw_{lam:g}_r{radius:g}"


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Every cell by both protocols, differences by seed, rounds to levels, and counts."""
    found: dict[str, Number] = {}
    for column, norm, cell in cells(traces):
        picked = {
            m: settings(traces, cell, m)[chosen(traces, cell, m)]
            for m in ALL_METHODS
            if settings(traces, cell, m)
        }
        for m, trace in picked.items():
            found |= {f"{cell}_{m}.{k}": v for k, v in measures(trace).items()}
            if m in ("fedfw", "plus"):
                lam = float(chosen(traces, cell, m))
                found[f"{cell}_{m}.lam"] = mean([lam])
            elif m == "feddr":
                lr, eta = map(float, chosen(traces, cell, m).split("_"))
                found |= {f"{cell}_{m}.lr": mean([lr]), f"{cell}_{m}.eta": mean([eta])}
        found |= apart(cell, picked)
        found |= levels(traces, cell)
        found |= printed_protocol(traces, column, norm)
    found |= counts(found)
    short = {k for k, least in WHOLE.items() if p[k] < least}
    if p["pictures"] == "mnist" and not short and len(p["seeds"]) >= 3:
        found["whole.pictures"] = mean([float(p["rows"])], "pictures")
    return found


def measures(trace: Trace) -> dict[str, Number]:
    """A run's accuracy at the end, late, and at its best; late loss and gap."""
    accuracy = 100 * trace.metrics["accuracy"]
    return {
        "accuracy": mean(accuracy[:, -1], "%"),
        "late": mean(accuracy[:, -LATE:].mean(1), "%"),
        "best": mean(accuracy.max(1), "%"),
        "loss": mean(late(trace, "loss")),
        "gap": mean(late(trace, "gap")),
    }


def apart(cell: str, picked: Mapping[str, Trace]) -> dict[str, Number]:
    """FedFW and FedFW+ minus the baselines, and FedFW+ minus FedFW, on the same seeds."""
    found = {}
    pairs = [(a, b) for a in ("fedfw", "plus") for b in ("feddr", "feddr5")]
    for a, b in (*pairs, ("plus", "fedfw")):
        if a in picked and b in picked:
            x, y = (100 * picked[m].metrics["accuracy"] for m in (a, b))
            pair = f"{cell}_{a}_vs_{b}"
            found[f"{pair}.accuracy"] = mean(x[:, -1] - y[:, -1], "points")
            found[f"{pair}.late"] = mean(x[:, -LATE:].mean(1) - y[:, -LATE:].mean(1), "points")
            found[f"{pair}.loss"] = mean(late(picked[a], "loss") - late(picked[b], "loss"))
    return found


def first_below(trace: Trace, level: float) -> Array:
    """Per seed the round in which the training loss first falls to a share of the start's, `[S]`.

    Between two evaluations the curve is taken as straight; T if it never does.
    """
    t, curves = trace.rounds.astype(float), trace.metrics["loss"]
    found = np.full(len(curves), t[-1])
    for s, x in enumerate(curves):
        goal = level * x[0]
        below = np.flatnonzero(x <= goal)
        if len(below):
            two = slice(below[0] - 1, below[0] + 1)
            found[s] = np.interp(-goal, -x[two], t[two])
    return found


def levels(traces: Traces, cell: str) -> dict[str, Number]:
    """Rounds to the levels of both methods at equal lambda_0, and their mean difference."""
    one, other = settings(traces, cell, "fedfw"), settings(traces, cell, "plus")
    found, differences = {}, []
    for lam in [x for x in one if x in other]:
        for level in LEVELS:
            plain, plus = first_below(one[lam], level), first_below(other[lam], level)
            differences.append(plus - plain)
            for m, rounds in (("fedfw", plain), ("plus", plus)):
                found[f"{cell}_{m}_{lam}.rounds_{level:g}"] = mean(rounds, "rounds")
    if differences:
        found[f"{cell}_plus_vs_fedfw.rounds"] = mean(np.mean(differences, 0), "rounds")
    return found


def printed_protocol(traces: Traces, column: str, norm: str) -> dict[str, Number]:
    """The best and the last accuracy of the runs like those behind the printed values."""
    found = {}
    for m in METHODS:
        name = code_run(column, norm, m)
        if name in traces:
            accuracy = 100 * traces[name].metrics["accuracy"]
            found[f"{column}_{norm}_code_{m}.best"] = mean(accuracy.max(1), "%")
            found[f"{column}_{norm}_code_{m}.accuracy"] = mean(accuracy[:, -1], "%")
    return found


def counts(found: Mapping[str, Number]) -> dict[str, Number]:
    """In how many cells of the tables FedFW is ahead, and how far values lie from printed ones.

    `written` counts final values, `code` the best ones of the printed protocol, `printed` the
    tables; each only over cells that have all three, the last two over the same cells.
    """
    values: dict[str, dict[tuple[str, str], list[float]]] = {"written": {}, "code": {}}
    for column, norm in TABLES:
        cell = f"{column}_{norm}"
        for kind, keys in (
            ("written", [f"{cell}_{m}.accuracy" for m in METHODS]),
            ("code", [f"{cell}_code_{m}.best" for m in METHODS]),
        ):
            skipped = "classes" if kind == "written" else "synthetic_labels"
            if skipped not in column and all(k in found for k in keys):
                values[kind][column, norm] = [found[k].value for k in keys]
    numbers: dict[str, Number] = {}
    for kind, each in values.items():
        if not each:
            continue
        theirs = {cell: TABLES[cell] for cell in each}
        for who, table in ((kind, each), (f"{kind}_printed", theirs)):
            ahead = [float(x[1] > x[0]) for x in table.values()]
            plus = [float(x[2] > x[1]) for x in table.values()]
            numbers[f"count_{who}.cells"] = mean([len(ahead)], "cells")
            numbers[f"count_{who}.fedfw_ahead"] = mean([sum(ahead)], "cells")
            numbers[f"count_{who}.plus_ahead"] = mean([sum(plus)], "cells")
        far = [abs(a - b) for c in each for a, b in zip(each[c], TABLES[c], strict=True)]
        same = [(each[c][1] > each[c][0]) == (TABLES[c][1] > TABLES[c][0]) for c in each]
        numbers[f"count_{kind}.distance"] = mean([float(np.mean(far))], "points")
        numbers[f"count_{kind}.same_order"] = mean([float(sum(same))], "cells")
    return numbers
