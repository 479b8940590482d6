"""The quantities of the study of the authors' rows and loop."""

from __future__ import annotations

import numpy as np

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedfw.authors.runs import DEFAULTS, LAM, Labels, pairs, run_of
from papers.fedfw.cells import PRINTED, Printed, printed_gap
from papers.fedfw.tables.quantities import late, measures, meet, percent
from papers.kit import quantities as kit
from papers.kit.numbers import Number, exact, mean
from papers.kit.quantities import Quantities, Query, Row, estimates, row, sweep
from papers.kit.rules import Numbers
from papers.kit.study import Params, Traces

# points, fixed before the runs
SAME = 1.0
NEAR = 3.0
PRINTED_GAP = printed_gap("mclr_synthetic_iid", "l2", "fedfw").value
#: The steps from the text's protocol to the authors', each a change of one thing, in words.
STEPS = {
    "text": "as the text, our rows",
    "rows": "the authors' rows",
    "feddr": "their FedDR: a minibatch a round",
    "reset": "clients start from the server's model",
    "epoch": "an epoch of minibatches a round",
    "tensors": "a ball for every tensor",
    "rounds": "all rounds",
    "best": "best round, not the last",
    "chosen": "λ₀ with the best test accuracy",
}
UNITS = {"accuracy": "%", "best": "%"}


def derive(traces: Traces, p: Params) -> Quantities:
    """Cells, differences by split, how far printed values are, and the waterfall."""
    runs = {name: trace for name, trace in traces.items() if "step" not in kit.labels_of(trace)}
    gaps = waterfall(traces, p["text_rounds"])
    changes = [row("gap", mean(gap, "points"), change=change) for change, gap in gaps.items()]
    return Quantities.of([*tables(runs), changes], DEFAULTS)


def tables(traces: Traces) -> list[list[Row]]:
    """Tables of the cells, of differences by split, and of how far printed values are."""
    values = kit.measured(traces, measures)
    by_run = values.set_index(["run", "seed"])
    cells = kit.labelled(estimates(by_run[[*UNITS]], UNITS), traces)
    differences = []
    for run, rival in pairs():
        apart = kit.minus(values, DEFAULTS, run, rival)
        if len(apart):
            points = dict.fromkeys(UNITS, "points")
            differences.append(estimates(apart, points, **difference(run)))
    counts = counted(Quantities.of([cells], DEFAULTS))
    return [cells, *differences, counts]


def difference(run: Labels) -> Labels:
    """The labels of a run minus FedDR's: they do not name lambda_0."""
    labels = {**run, "minus": "feddr"}
    labels.pop("lam", None)
    return labels


def counted(numbers: Numbers) -> list[Row]:
    """How many printed values are the same, near and apart, and how many there are."""
    counts = dict.fromkeys(("meets", "same", "near", "apart"), 0)
    distances = []
    for printed in PRINTED:
        ours = numbers.get(Query.of("best", **run_of(printed)))
        if ours is not None:
            counts["meets"] += meet(ours, printed)
            counts[far(ours, printed)] += 1
            distances.append(abs(ours.value - printed.value))
    counts["compared"] = len(distances)
    counts["printed"] = len(PRINTED)
    rows = [row(name, exact(count, "values"), tables="all") for name, count in counts.items()]
    average = float(np.mean(distances)) if distances else np.nan
    return [*rows, row("distance", exact(average, "points"), tables="all")]


def far(ours: Number, printed: Printed) -> str:
    """Whether a printed value is the `same` as ours, `near` or `apart`."""
    distance = abs(ours.value - printed.value)
    if distance <= SAME:
        return "same"
    return "near" if distance <= NEAR else "apart"


def waterfall(traces: Traces, rounds: int) -> dict[str, Array]:
    """FedFW minus FedDR by split, after each change; the last models but where it says best."""
    cell: Labels = {"net": "mclr", "split": "iid", "norm": "l2"}
    feddr = kit.run_of(traces, DEFAULTS, **cell, method="feddr")
    fedfw = sweep(
        traces,
        DEFAULTS,
        "lam",
        **cell,
        method="fw",
    )
    plain = fedfw[LAM]
    rows = lowest_loss(traces, "rows", "fw")
    reset = kit.run_of(traces, DEFAULTS, step="reset", method="fw")
    epoch = kit.run_of(traces, DEFAULTS, step="epoch", method="fw")
    feddr_then = at(feddr, rounds)
    feddr_best = best_round(feddr)
    best_rounds = [best_round(trace) for trace in fedfw.values()]
    highest = max(best_rounds, key=np.mean)
    return {
        "text": difference_of_last(traces, "ours"),
        "rows": difference_of_last(traces, "rows"),
        "feddr": last(rows) - feddr_then,
        "reset": last(reset) - feddr_then,
        "epoch": last(epoch) - feddr_then,
        "tensors": at(plain, rounds) - feddr_then,
        "rounds": last(plain) - last(feddr),
        "best": best_round(plain) - feddr_best,
        "chosen": highest - feddr_best,
    }


def difference_of_last(traces: Traces, step: str) -> Array:
    """FedFW minus FedDR at the end, each with the lowest training loss of its grid."""
    fedfw = lowest_loss(traces, step, "fw")
    feddr = lowest_loss(traces, step, "feddr")
    return last(fedfw) - last(feddr)


def lowest_loss(traces: Traces, step: str, method: str) -> Trace:
    """The run of a grid with the lowest mean training loss at the end."""
    grid = kit.chosen(
        traces,
        ["lam", "lr", "eta"],
        DEFAULTS,
        step=step,
        method=method,
    )
    return min(grid.values(), key=lambda trace: late(trace).mean())


def last(trace: Trace) -> Array:
    """Test accuracy in % of the last model."""
    return measures(trace)["accuracy"]


def best_round(trace: Trace) -> Array:
    """The best test accuracy in % of the rounds."""
    return measures(trace)["best"]


def at(trace: Trace, rounds: int) -> Array:
    """Test accuracy in % after some rounds, or the last of fewer."""
    first_after = int(np.searchsorted(trace.rounds, rounds))
    column = min(first_after, len(trace.rounds) - 1)
    return np.asarray(percent(trace)[:, column])
