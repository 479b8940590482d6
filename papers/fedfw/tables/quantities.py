"""The derived numbers of the study of FedFW's Tables 1 and 2."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedfw.cells import (
    BEST_FEDDR,
    CELLS,
    COLUMNS,
    METHODS,
    NON_IID,
    NORMS,
    SYNTHETIC,
    TABLES,
    as_coded,
    traced,
)
from papers.kit.numbers import Number, exact, mean, measured, share
from papers.kit.study import Params, Traces, after

LATE = 3  # evaluated models, the last ones, whose mean training loss decides about a setting
LEVELS = (0.9, 0.75, 0.5)  # of the start's training loss, to which rounds are counted
Measure = Callable[[Trace], Array]


def percent(trace: Trace) -> Array:
    return np.asarray(100 * trace.metrics["accuracy"])


def late(trace: Trace) -> Array:
    """Per seed the training loss, its mean over the last evaluated models, `[S]`."""
    return np.asarray(trace.metrics["loss"][:, -LATE:].mean(1))


#: Of a run, with units.
MEASURES: dict[str, tuple[Measure, str]] = {
    "accuracy": (lambda t: percent(t)[:, -1], "%"),
    "best": (lambda t: percent(t).max(1), "%"),
}
#: FedFW, or FedFW+, minus FedDR by both protocols: a column and a method -> the number.
DIFFERENCES = {"written": "{}_l2_{}_vs_feddr.accuracy", "code": "{}_l2_code_{}_vs_feddr.best"}


def cells(traces: Traces) -> list[tuple[str, str, str]]:
    there = [(c, norm, f"{c}_{norm}") for norm in NORMS for c in COLUMNS]
    return [x for x in there if after(traces, f"{x[2]}_")]


def settings(traces: Traces, cell: str, method: str) -> dict[str, Trace]:
    """The runs of a method in a cell, by their setting: `"0.001"`, or `"0.01_10"` of FedDR."""
    return after(traces, f"{cell}_{method}_")


def chosen(traces: Traces, cell: str, method: str) -> str:
    """The setting with the lowest mean training loss at the end; accuracy plays no part."""
    runs = settings(traces, cell, method)
    return min(runs, key=lambda x: float(late(runs[x]).mean()))


def picked(traces: Traces, cell: str, methods: Iterable[str]) -> dict[str, Trace]:
    runs = {m: settings(traces, cell, m) for m in methods}
    return {m: own[chosen(traces, cell, m)] for m, own in runs.items() if own}


def code_run(column: str, norm: str, method: str) -> str:
    cell = f"{column}_{norm}"
    if method == "feddr":
        return f"{cell}_code_feddr"
    lam, radius = traced(column, norm, method)
    return f"{cell}_code_fw_{lam:g}_r{radius:g}"


def derive(traces: Traces, _: Params) -> dict[str, Number]:
    """Every cell by both protocols, differences by seed, rounds to levels, and counts."""
    found: dict[str, Number] = {}
    for column, norm, cell in cells(traces):
        best = picked(traces, cell, METHODS)
        for m in best:
            names = ("lr", "eta") if m == "feddr" else ("lam",)
            values = map(float, chosen(traces, cell, m).split("_"))
            found |= {f"{cell}_{m}.{k}": exact(x) for k, x in zip(names, values, strict=True)}
        coded = {m: code_run(column, norm, m) for m in METHODS}
        run = {m: traces[name] for m, name in coded.items() if name in traces}
        for start, shown, key in ((cell, best, "accuracy"), (f"{cell}_code", run, "best")):
            found |= measured({f"{start}_{m}": t for m, t in shown.items()}, MEASURES)
            for m in ("fedfw", "plus"):
                if m in shown and "feddr" in shown:
                    gap = difference(shown[m], shown["feddr"], key)
                    found[f"{start}_{m}_vs_feddr.{key}"] = gap
        found |= levels(traces, cell)
    return found | counts(found) | pooled(found) | faster(found)


def difference(a: Trace, b: Trace, key: str) -> Number:
    of, _ = MEASURES[key]
    return mean(of(a) - of(b), "points")


def levels(traces: Traces, cell: str) -> dict[str, Number]:
    """FedFW+ minus FedFW: rounds to a share of the start's loss, mean over levels and lambda_0."""
    one = settings(traces, cell, "fedfw")
    other = settings(traces, cell, "plus")
    differences = [
        rounds_to(other[lam], level) - rounds_to(one[lam], level)
        for lam in one
        if lam in other
        for level in LEVELS
    ]
    if not differences:
        return {}
    return {f"{cell}_plus_vs_fedfw.rounds": mean(np.mean(differences, 0), "rounds")}


def rounds_to(trace: Trace, level: float) -> Array:
    """The round at which each loss first falls to a share of its start; the last if it never does.

    Between two evaluations a curve is taken as straight.
    """
    t = trace.rounds
    found = []
    for loss in trace.metrics["loss"]:
        below = np.flatnonzero(loss <= level * loss[0])
        two = slice(max(below[0] - 1, 0), below[0] + 1) if len(below) else slice(0)
        found.append(np.interp(-level * loss[0], -loss[two], t[two]) if len(below) else t[-1])
    return np.array(found, float)


def pooled(found: Mapping[str, Number]) -> dict[str, Number]:
    """C7's sentences: means over columns, seed by seed, of differences with the l2 ball.

    `ahead` is FedFW minus FedDR, `best` FedDR minus the better of FedFW and FedFW+; `written` has
    final accuracies, `code` the best of the rounds by the protocol behind the printed values.
    """

    def over(columns: Iterable[str], form: str, methods: Sequence[str], sign: int) -> Number | None:
        keys = [[form.format(c, m) for m in methods] for c in columns]
        if not all(k in found for own in keys for k in own):
            return None
        each = [np.max([found[k].per_seed for k in own], axis=0) for own in keys]
        return mean(sign * np.mean(each, axis=0), "points")

    numbers: dict[str, Number | None] = {}
    for kind, form in DIFFERENCES.items():
        read = as_coded if kind == "code" else str
        for name, columns in (("labels", NON_IID), ("synthetic", SYNTHETIC)):
            numbers[f"{kind}_l2_{name}.ahead"] = over(map(read, columns), form, ["fedfw"], 1)
        numbers[f"{kind}_l2_iid.best"] = over(BEST_FEDDR, form, ["fedfw", "plus"], -1)
    return {k: n for k, n in numbers.items() if n is not None}


def faster(found: Mapping[str, Number]) -> dict[str, Number]:
    """C10: rounds of FedFW+ minus those of FedFW over all cells, and in which share it is fewer.

    The share is of the cells that differ, with its exact binomial interval: where neither method
    gets to a level there is nothing to compare.
    """
    keys = [f"{column}_{norm}_plus_vs_fedfw.rounds" for column, norm in CELLS]
    each = [found[k].per_seed for k in keys if k in found]
    if not each:
        return {}
    less = [bool(np.mean(x) < 0) for x in each if np.mean(x)]
    numbers = {"plus_vs_fedfw.rounds": mean(np.mean(each, axis=0), "rounds")}
    numbers["plus_vs_fedfw.ties"] = exact(len(each) - len(less), "cells")
    return numbers | ({"plus_vs_fedfw.fewer": share(less, "%")} if less else {})


def counts(found: Mapping[str, Number]) -> dict[str, Number]:
    """In how many cells of the tables FedFW is ahead, and how far values lie from printed ones.

    `written` counts final values, `code` the best ones of the printed protocol, `printed` the
    tables; each only over cells that have all three, the last two over the same cells.
    """
    numbers: dict[str, Number] = {}
    printed = {f"{column}_{norm}": values for (column, norm), values in TABLES.items()}
    for kind, ours, theirs in counted(found, printed, METHODS):
        ahead, as_printed = ([x[1] > x[0] for x in values] for values in (ours, theirs))
        numbers[f"count_{kind}.cells"] = exact(len(ours), "cells")
        numbers[f"count_{kind}.fedfw_ahead"] = exact(sum(ahead), "cells")
        numbers[f"count_{kind}_printed.fedfw_ahead"] = exact(sum(as_printed), "cells")
        far = np.abs(np.array(ours) - np.array(theirs)).mean()
        numbers[f"count_{kind}.distance"] = exact(far, "points")
    return numbers


Values = Sequence[Sequence[float]]


def counted(
    found: Mapping[str, Number], printed: Mapping[str, Sequence[float]], methods: Iterable[str]
) -> Iterator[tuple[str, Values, Values]]:
    """Protocol, our values and the printed ones, of the cells that have all of ours."""
    forms = {"written": ("{}_{}.accuracy", "classes"), "code": ("{}_code_{}.best", "tic_labels")}
    for kind, (form, skipped) in forms.items():
        keys = {c: [form.format(c, m) for m in methods] for c in printed if skipped not in c}
        there = [c for c, own in keys.items() if all(k in found for k in own)]
        if there:
            ours = [[found[k].value for k in keys[c]] for c in there]
            yield kind, ours, [printed[c] for c in there]
