"""The quantities of the study of two tasks in one picture.

Accuracies are in %. Differences of two methods are paired by seed, on the seeds that both have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedcmoo.common import GREY, METHODS, final
from papers.fedcmoo.pairs.runs import DATA, DEFAULTS, STEP_SIZES, stepped
from papers.kit import quantities as kit
from papers.kit.crossings import rounds_to
from papers.kit.numbers import Number, exact
from papers.kit.quantities import Label, Labels, Quantities, Row, estimates
from papers.kit.study import Params, Traces

BLOCK = 30  # rounds of a mean
BLOCKS = 10  # means of a curve

#: Means over rounds 1-30, 31-60, ..., 271-300, both tasks, one seed; data set -> method.
#: MNIST + Fashion-MNIST: read off the plot in the demo notebook of github askinb/FedCMOO, commit
#: c336a97, reading error 0.2. MultiMNIST: that public code run as it stands, own settings, on CPU.
PUBLIC: dict[str, dict[str, tuple[float, ...]]] = {
    "multi_mnist": {
        "fsmgda": (42.7, 77.0, 85.0, 87.2, 88.9, 89.9, 90.4, 91.1, 91.7, 91.9),
        "fedcmoo": (59.2, 85.9, 89.9, 91.0, 91.6, 92.0, 92.3, 92.6, 92.5, 92.7),
    },
    "mnist_fashion": {
        "fsmgda": (60.3, 70.8, 78.5, 80.1, 80.6, 82.4, 82.1, 82.9, 83.2, 83.9),
        "fedcmoo": (65.2, 78.6, 83.0, 84.5, 84.8, 85.5, 85.3, 85.7, 86.2, 86.3),
        "pref": (58.3, 73.2, 80.6, 82.6, 83.7, 83.9, 84.3, 84.6, 84.8, 84.9),
    },
}
SOURCE = {"multi_mnist": "public code, run as it stands", "mnist_fashion": "plot in its demo"}
END = BLOCK * BLOCKS  # rounds of these curves

LEVELS = (60, 75)  # mean test accuracies, in %, to which rounds are counted
ACCURACIES = ("accuracy", "accuracy_1", "accuracy_2")
CURVES = (*ACCURACIES, "loss", "loss_1", "loss_2")
MEASURED = (*CURVES, *(f"held_{curve}" for curve in CURVES))
UNITS = {
    "loss": "",
    "accuracy": "%",
    "worst": "%",
    "rounds": "rounds",
    "decline": "%",
}


def derive(traces: Traces, p: Params) -> Quantities:
    """The table of quantities: final values, rounds, Delta_M, and differences.

    Where a run is missing or two have no seed in common, the rows that need them are missing.
    """
    del p
    values = with_decline(kit.measured(traces, measures))
    labels = [label for label in DEFAULTS if label in values]
    by_seed = values.drop(columns="run").set_index([*labels, "seed"])
    units = {measure: unit(measure) for measure in by_seed}
    rows = [
        *estimates(by_seed, units),
        *kit.of_runs(traces, of_whole_run),
        *differences(values),
    ]
    return Quantities.of([rows], DEFAULTS)


def unit(measure: str) -> str:
    """The unit of a measure."""
    curve = measure.removeprefix("held_")
    kind, _, _ = curve.partition("_")
    return UNITS.get(kind, "")


def measures(trace: Trace) -> dict[str, Array]:
    """Final values of a run, the worse task, and rounds, by seed.

    Those of round 300, where the authors' demo ends, are those of the end of a shorter run.
    """
    columns = {}
    last_round = int(trace.rounds[-1])
    for name in MEASURED:
        if name in trace.metrics:
            columns[name] = value_at(trace, name, last_round)
    demo_end = min(END, last_round)
    for name in ACCURACIES:
        columns[f"{name}_{END}"] = value_at(trace, name, demo_end)
    loss_1 = value_at(trace, "loss_1", demo_end)
    loss_2 = value_at(trace, "loss_2", demo_end)
    columns[f"loss_ratio_{END}"] = loss_2 / loss_1
    columns["worst"] = np.minimum(columns["accuracy_1"], columns["accuracy_2"])
    columns["loss_ratio"] = columns["loss_2"] / columns["loss_1"]
    errors = -100 * trace.metrics["accuracy"]
    for level in LEVELS:
        levels = np.full(len(errors), -level)
        columns[f"rounds_{level}"] = rounds_to(trace.rounds, errors, levels)
    return columns


def value_at(trace: Trace, name: str, end: int) -> Array:
    """The value of a curve at the end of round `end`, by seed; accuracies in %."""
    value = final(trace, name, end=end)
    if "accuracy" in name:
        return 100 * value
    return value


def decline(accuracies: Sequence[ArrayLike], alone: Sequence[ArrayLike]) -> Array:
    r"""$\Delta_M$ in %: the mean over tasks of (alone - accuracy) / alone.

    `alone` are the accuracies of models trained in one task alone (the caption of Table 4).
    """
    shares = []
    for accuracy, single in zip(accuracies, alone, strict=True):
        loss = np.subtract(single, accuracy)
        shares.append(loss / single)
    mean_share = np.mean(shares, axis=0)
    return np.asarray(100 * mean_share)


def with_decline(values: pd.DataFrame) -> pd.DataFrame:
    """The rows with Delta_M of the three methods on both grey data sets.

    Single tasks have no dropout; the methods are measured by them with and without it.
    """
    values = values.assign(decline=np.nan)
    if "task" not in values:
        return values
    in_both = values["method"].isin(METHODS)
    usual = in_both & is_usual(values)
    seeds = values["seed"]
    accuracies = [values["accuracy_1"], values["accuracy_2"]]
    for data in GREY:
        on_data = values["data"] == data
        alone_1 = seeds.map(alone_in(values, data, 1))
        alone_2 = seeds.map(alone_in(values, data, 2))
        declines = decline(accuracies, [alone_1, alone_2])
        rows = usual & on_data
        values.loc[rows, "decline"] = declines[rows]
    return values


def alone_in(values: pd.DataFrame, data: str, task: int) -> pd.Series[float]:
    """The accuracy of models trained in one task alone, by seed."""
    single = values["method"] == "single"
    on_data = values["data"] == data
    in_task = values["task"] == task
    by_seed = values[single & on_data & in_task].set_index("seed")
    return by_seed[f"accuracy_{task}"]


def is_usual(values: pd.DataFrame) -> pd.Series[bool]:
    """Whether runs are those of the methods as they are, no variant and at their own step sizes."""
    usual = pd.Series(True, index=values.index)
    for label in ("losses", "gram", "least_weight"):
        usual &= values[label] == DEFAULTS[label]
    if "lr" in values:
        usual &= values["lr"].isna()
    return usual


def of_whole_run(trace: Trace) -> dict[str, Number]:
    """What no seed has alone: rounds, growth of the loss, the distance from the authors' code."""
    last_round = trace.rounds[-1]
    numbers = {
        "rounds": exact(last_round, "rounds"),
        "growth": exact(growth(trace)),
    }
    public = public_curve(kit.labels_of(trace))
    if public and last_round >= END:
        distance = np.abs(np.subtract(blocks(trace), public))
        farthest = distance[1:].max()
        numbers["from_authors"] = exact(farthest, "points")
    if "rejected" in trace.info:
        numbers |= of_guard(trace)
    return numbers


def public_curve(labels: Labels) -> tuple[float, ...]:
    """What the authors' code reached with the settings of a run; empty if it was not run so."""
    if not labels.get("dropout"):
        return ()
    usual = is_usual(pd.DataFrame([labels]))
    if not usual.all():
        return ()
    by_method = PUBLIC.get(str(labels["data"]), {})
    return by_method.get(str(labels["method"]), ())


def blocks(trace: Trace) -> list[float]:
    """The mean test accuracy of a run in %, over seeds and each thirty rounds; nan where none."""
    accuracy = 100 * trace.metrics["accuracy"].mean(0)
    block = (trace.rounds - 1) // BLOCK  # -1 of the start
    means = pd.Series(accuracy).groupby(block).mean()
    in_order = means.reindex(range(BLOCKS))
    return list(in_order)


def growth(trace: Trace) -> float:
    """The most, over seeds and evaluations, by which the mean test loss has multiplied since one.

    The authors' code sets a model back whose training loss has grown by half in a round.
    """
    loss = trace.metrics["loss"]
    earlier = loss[:, :-1]
    later = loss[:, 1:]
    positive = np.where(earlier > 0, earlier, np.inf)
    factors = later / positive
    return float(factors.max(initial=0.0))


def of_guard(trace: Trace) -> dict[str, Number]:
    """In how many rounds it set a model back: of all seeds, and of the seed with the most."""
    judge_rows = trace.config["algorithm"]["judge_rows"]
    rejections = trace.info["rejected"]
    rejected = rejections.sum(1)
    return {
        "judge_rows": exact(judge_rows, "rows"),
        "rejected": exact(rejected.sum(), "rounds"),
        "rejected_most": exact(rejected.max(), "rounds"),
        "all_rounds": exact(rejections.size, "rounds"),
    }


def differences(values: pd.DataFrame) -> Iterator[Row]:
    """Differences of two runs: labelled as the first, and by what it is held against."""
    for labels, ours, theirs in compared():
        apart = kit.minus(values, DEFAULTS, ours, theirs)
        yield from in_points(apart, labels)
    for data, method, dropout in product(GREY, METHODS, (False, True)):
        run: Labels = {"data": data, "method": method, "dropout": dropout}
        apart = kit.halves_apart(values, DEFAULTS, run)
        yield from in_points(apart, {**run, "minus": "nothing"})


def in_points(apart: pd.DataFrame, labels: Labels) -> list[Row]:
    """The rows of differences by seed; those of a share in % are in points."""
    if apart.empty:
        return []
    units = {}
    for measure in apart:
        name = unit(measure)
        units[measure] = "points" if name == "%" else name
    return estimates(apart, units, **labels)


#: The labels of a difference, and of both runs.
Comparison = tuple[Labels, Labels, Labels]


def against(ours: Labels, minus: str, **changed: Label) -> Comparison:
    """A run minus the same with some labels changed, which `minus` names."""
    return {**ours, "minus": minus}, ours, {**ours, **changed}


def compared() -> Iterator[Comparison]:
    """The pairs of runs that are compared."""
    for data, dropout in product(DATA, (False, True)):
        shared: Labels = {"data": data, "dropout": dropout}
        fedcmoo = {**shared, "method": "fedcmoo"}
        pref = {**shared, "method": "pref"}
        yield against(fedcmoo, "fsmgda", method="fsmgda")
        yield against(pref, "fedcmoo", method="fedcmoo")
        yield against(pref, "fsmgda", method="fsmgda")
    yield from variants("mnist_fashion")
    for _, lr in STEP_SIZES:
        ours = stepped("fedcmoo", "mnist_fashion", lr)
        for rival in ("fsmgda", "scalarized"):
            theirs = stepped(rival, "mnist_fashion", lr)
            yield {**ours, "lr": lr, "minus": rival}, ours, theirs
    mixed: Labels = {
        "data": "multi_mnist",
        "losses": "mixed",
        "dropout": True,
        "method": "fedcmoo",
    }
    for rival in ("fsmgda", "scalarized"):
        yield against(mixed, rival, method=rival)


def variants(data: str) -> Iterator[Comparison]:
    """FedCMOO-Pref without its least weight, and both methods with a one-way Gram matrix."""
    for dropout in (False, True):
        pref: Labels = {"data": data, "method": "pref", "dropout": dropout}
        ours = {**pref, "least_weight": False}
        yield {**ours, "minus": "least_weight"}, ours, pref
    for name in ("fedcmoo", "pref"):
        run: Labels = {"data": data, "method": name, "dropout": True}
        ours = {**run, "gram": "one-way"}
        yield {**ours, "minus": "two-way"}, ours, run
