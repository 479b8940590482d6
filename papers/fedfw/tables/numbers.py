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
from papers.kit.study import Params, Traces

LATE = 3  # evaluated models, the last ones, whose mean training loss decides about a setting
LEVELS = (0.9, 0.75, 0.5)  # of the start's training loss, to which rounds are counted
ALL_METHODS = (*METHODS, "feddr5")
Measure = Callable[[Trace], Array]


def percent(trace: Trace) -> Array:
    return np.asarray(100 * trace.metrics["accuracy"])


def late(trace: Trace, metric: str = "loss") -> Array:
    """Per seed, the mean over the last evaluated models, `[S]`."""
    return np.asarray(trace.metrics[metric][:, -LATE:].mean(1))


#: Of a chosen run, with units.
MEASURES: dict[str, tuple[Measure, str]] = {
    "accuracy": (lambda t: percent(t)[:, -1], "%"),
    "late": (lambda t: percent(t)[:, -LATE:].mean(1), "%"),
    "best": (lambda t: percent(t).max(1), "%"),
    "loss": (late, ""),
    "gap": (lambda t: late(t, "gap"), ""),
}
#: Of a run by the protocol behind the printed values.
PRINTED = {k: MEASURES[k] for k in ("best", "accuracy")}
#: FedFW, or FedFW+, minus FedDR by both protocols: a column and a method -> the number.
DIFFERENCES = {"written": "{}_l2_{}_vs_feddr.accuracy", "code": "{}_l2_code_{}_vs_feddr.best"}


def cells(traces: Traces) -> list[tuple[str, str, str]]:
    there = [(c, norm, f"{c}_{norm}") for norm in NORMS for c in COLUMNS]
    return [x for x in there if any(n.startswith(f"{x[2]}_") for n in traces)]


def settings(traces: Traces, cell: str, method: str) -> dict[str, Trace]:
    """The runs of a method in a cell, by their setting: `"0.001"`, or `"0.01_10"` of FedDR."""
    start = f"{cell}_{method}_"
    return {n.removeprefix(start): t for n, t in traces.items() if n.startswith(start)}


def chosen(traces: Traces, cell: str, method: str) -> str:
    """The setting with the lowest mean training loss at the end; accuracy plays no part."""
    runs = settings(traces, cell, method)
    return min(runs, key=lambda x: float(late(runs[x]).mean()))


def picked(traces: Traces, cell: str, methods: Iterable[str]) -> dict[str, Trace]:
    runs = {m: settings(traces, cell, m) for m in methods}
    return {m: own[chosen(traces, cell, m)] for m, own in runs.items() if own}


def source(traces: Traces) -> str:
    first = next(t for n, t in traces.items() if n.split("_")[1] == "pictures")
    return str(first.config["problem"]["data"])


def code_run(column: str, norm: str, method: str) -> str:
    cell = f"{column}_{norm}"
    if method == "feddr":
        return f"{cell}_code_feddr"
    lam, radius = traced(column, norm)[method == "plus"]
    return f"{cell}_code_fw_{lam:g}_r{radius:g}"


def derive(traces: Traces, _: Params) -> dict[str, Number]:
    """Every cell by both protocols, differences by seed, rounds to levels, and counts."""
    found: dict[str, Number] = {}
    for column, norm, cell in cells(traces):
        best = picked(traces, cell, ALL_METHODS)
        for m, trace in best.items():
            found |= measured({f"{cell}_{m}": trace}, MEASURES)
            names = {"feddr": ("lr", "eta"), "feddr5": ()}.get(m, ("lam",))
            values = map(float, chosen(traces, cell, m).split("_"))
            found |= {f"{cell}_{m}.{k}": exact(x) for k, x in zip(names, values, strict=False)}
        pairs = [(a, b) for a in ("fedfw", "plus") for b in ("feddr", "feddr5")]
        for a, b in (*pairs, ("plus", "fedfw")):
            if a in best and b in best:
                pair = f"{cell}_{a}_vs_{b}"
                found |= apart(pair, best[a], best[b], ("accuracy", "late", "loss"))
        coded = {m: traces.get(code_run(column, norm, m)) for m in METHODS}
        run = {m: t for m, t in coded.items() if t is not None}
        found |= measured({f"{cell}_code_{m}": t for m, t in run.items()}, PRINTED)
        for a in ("fedfw", "plus"):
            if a in run and "feddr" in run:
                found |= apart(f"{cell}_code_{a}_vs_feddr", run[a], run["feddr"], PRINTED)
        found |= levels(traces, cell)
    return found | counts(found) | pooled(found) | faster(found)


def apart(pair: str, a: Trace, b: Trace, measures: Iterable[str]) -> dict[str, Number]:
    chosen = {k: MEASURES[k] for k in measures}
    return {
        f"{pair}.{k}": mean(of(a) - of(b), "points" if unit else "")
        for k, (of, unit) in chosen.items()
    }


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
        for who, table in ((kind, ours), (f"{kind}_printed", theirs)):
            numbers[f"count_{who}.cells"] = exact(len(table), "cells")
            for k, (a, b) in {"fedfw_ahead": (1, 0), "plus_ahead": (2, 1)}.items():
                numbers[f"count_{who}.{k}"] = exact(sum(x[a] > x[b] for x in table), "cells")
        same = [(x[1] > x[0]) == (y[1] > y[0]) for x, y in zip(ours, theirs, strict=True)]
        numbers[f"count_{kind}.distance"] = distance(ours, theirs)
        numbers[f"count_{kind}.same_order"] = exact(sum(same), "cells")
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


def distance(ours: Values, theirs: Values) -> Number:
    far = np.abs(np.array(ours) - np.array(theirs)).ravel()
    return exact(np.mean(far), "points")
