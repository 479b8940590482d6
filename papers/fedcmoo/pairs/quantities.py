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
CURVES = ("accuracy", "accuracy_1", "accuracy_2", "loss", "loss_1", "loss_2")
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
    rows = estimates(by_seed, {measure: unit(measure) for measure in by_seed})
    whole_runs = kit.of_runs(traces, of_whole_run)
    return Quantities.of([rows, whole_runs, differences(values)], DEFAULTS)


def unit(measure: str) -> str:
    """The unit of a measure."""
    return UNITS.get(measure.removeprefix("held_").partition("_")[0], "")


def measures(trace: Trace) -> dict[str, Array]:
    """Final values of a run, the worse task, and rounds, by seed.

    Those of round 300, where the authors' demo ends, are those of the end of a shorter run.
    """
    columns = {}
    for prefix in ("", "held_"):
        for curve in CURVES:
            name = f"{prefix}{curve}"
            if name in trace.metrics:
                columns[name] = scale(name) * final(trace, name)
    end = min(END, int(trace.rounds[-1]))
    at_demo = {name: final(trace, name, end=end) for name in CURVES}
    for name in ("accuracy", "accuracy_1", "accuracy_2"):
        columns[f"{name}_{END}"] = scale(name) * at_demo[name]
    columns[f"loss_ratio_{END}"] = at_demo["loss_2"] / at_demo["loss_1"]
    columns["worst"] = np.minimum(columns["accuracy_1"], columns["accuracy_2"])
    columns["loss_ratio"] = columns["loss_2"] / columns["loss_1"]
    for level in LEVELS:
        columns[f"rounds_{level}"] = rounds_to(trace, level)
    return columns


def scale(measure: str) -> int:
    """What turns a share of correct answers into %."""
    return 100 if "accuracy" in measure else 1


def rounds_to(trace: Trace, level: float) -> Array:
    """Per seed the round in which the mean test accuracy first reaches `level` %, T if none does.

    Between two evaluations the curve is taken as straight. T in place of "never" makes differences
    between runs smaller than they are, not larger.
    """
    curves = 100 * trace.metrics["accuracy"]
    rounds = trace.rounds
    reached = np.full(len(curves), float(rounds[-1]))
    for number, curve in enumerate(curves):
        above = np.flatnonzero(curve >= level)
        if len(above) == 0:
            continue
        first = above[0]
        if first == 0:
            reached[number] = rounds[0]
            continue
        around = slice(first - 1, first + 1)
        reached[number] = np.interp(level, curve[around], rounds[around])
    return reached


def decline(accuracies: Sequence[ArrayLike], alone: Sequence[ArrayLike]) -> Array:
    r"""$\Delta_M$ in %: the mean over tasks of (alone - accuracy) / alone.

    `alone` are the accuracies of models trained in one task alone (the caption of Table 4).
    """
    shares = []
    for accuracy, single in zip(accuracies, alone, strict=True):
        loss = np.asarray(single) - np.asarray(accuracy)
        shares.append(loss / single)
    return np.asarray(100 * np.mean(shares, axis=0))


def with_decline(values: pd.DataFrame) -> pd.DataFrame:
    """The rows with Delta_M of the three methods on both grey data sets.

    Single tasks have no dropout; the methods are measured by them with and without it.
    """
    values = values.assign(decline=np.nan)
    if "task" not in values:
        return values
    for data in GREY:
        alone = {task: alone_in(values, data, task) for task in (1, 2)}
        of_data = values["data"] == data
        usual = values["method"].isin(METHODS) & is_usual(values)
        on_both = values["seed"].isin(alone[1].index) & values["seed"].isin(alone[2].index)
        chosen = of_data & usual & on_both
        rows = values[chosen]
        accuracies = [rows["accuracy_1"], rows["accuracy_2"]]
        references = [rows["seed"].map(alone[task]).to_numpy() for task in (1, 2)]
        values.loc[chosen, "decline"] = decline(accuracies, references)
    return values


def alone_in(values: pd.DataFrame, data: str, task: int) -> pd.Series[float]:
    """The accuracy of models trained in one task alone, by seed."""
    single = values["method"] == "single"
    of_task = (values["data"] == data) & (values["task"] == task)
    by_seed = values[single & of_task].set_index("seed")
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
    numbers = {
        "rounds": exact(trace.rounds[-1], "rounds"),
        "growth": exact(growth(trace)),
    }
    labels = kit.labels_of(trace)
    public = PUBLIC.get(str(labels["data"]), {}).get(str(labels["method"]))
    as_theirs = labels.get("dropout") and is_usual(pd.DataFrame([labels]))[0]
    if public and as_theirs and trace.rounds[-1] >= END:
        distance = np.abs(np.subtract(blocks(trace), public))
        numbers["from_authors"] = exact(distance[1:].max(), "points")
    if "rejected" in trace.info:
        numbers |= of_guard(trace)
    return numbers


def blocks(trace: Trace) -> list[float]:
    """The mean test accuracy of a run in %, over seeds and each thirty rounds; nan where none."""
    accuracy = 100 * trace.metrics["accuracy"].mean(0)
    means = []
    for number in range(BLOCKS):
        start = BLOCK * number
        inside = (trace.rounds > start) & (trace.rounds <= start + BLOCK)
        means.append(float(accuracy[inside].mean()) if inside.any() else np.nan)
    return means


def growth(trace: Trace) -> float:
    """The most, over seeds and evaluations, by which the mean test loss has multiplied since one.

    The authors' code sets a model back whose training loss has grown by half in a round.
    """
    loss = trace.metrics["loss"]
    previous = np.where(loss[:, :-1] > 0, loss[:, :-1], np.inf)
    return float((loss[:, 1:] / previous).max(initial=0.0))


def of_guard(trace: Trace) -> dict[str, Number]:
    """In how many rounds it set a model back: of all seeds, and of the seed with the most."""
    rejections = trace.info["rejected"]
    rejected = rejections.sum(1)
    return {
        "judge_rows": exact(trace.config["algorithm"]["judge_rows"], "rows"),
        "rejected": exact(rejected.sum(), "rounds"),
        "rejected_most": exact(rejected.max(), "rounds"),
        "all_rounds": exact(rejections.size, "rounds"),
    }


def differences(values: pd.DataFrame) -> Iterator[Row]:
    """Differences of two runs: labelled as the first, and by what it is held against."""
    for labels, ours, theirs in compared():
        apart = kit.minus(values, DEFAULTS, ours, theirs)
        if apart.empty:
            continue
        units = {name: "points" if unit(name) == "%" else unit(name) for name in apart}
        yield from estimates(apart, units, **labels)
    for data, method, dropout in product(GREY, METHODS, (False, True)):
        run: dict[str, Label] = {"data": data, "method": method, "dropout": dropout}
        apart = kit.halves_apart(values, DEFAULTS, run)
        if len(apart):
            units = {name: "points" if unit(name) == "%" else unit(name) for name in apart}
            yield from estimates(apart, units, **run, minus="nothing")


#: The labels of a difference, and of both runs.
Comparison = tuple[Labels, Labels, Labels]


def against(ours: Labels, minus: str, **changed: Label) -> Comparison:
    """A run minus the same with some labels changed, which `minus` names."""
    return {**ours, "minus": minus}, ours, {**ours, **changed}


def compared() -> Iterator[Comparison]:
    """The pairs of runs that are compared."""
    for data, dropout in product(DATA, (False, True)):
        shared: dict[str, Label] = {"data": data, "dropout": dropout}
        for name, rival in (("fedcmoo", "fsmgda"), ("pref", "fedcmoo"), ("pref", "fsmgda")):
            yield against({**shared, "method": name}, rival, method=rival)
    yield from variants("mnist_fashion")
    for _, lr in STEP_SIZES:
        ours = stepped("fedcmoo", "mnist_fashion", lr)
        for rival in ("fsmgda", "scalarized"):
            theirs = stepped(rival, "mnist_fashion", lr)
            yield {**ours, "lr": lr, "minus": rival}, ours, theirs
    mixed: dict[str, Label] = {"data": "multi_mnist", "losses": "mixed", "dropout": True}
    for rival in ("fsmgda", "scalarized"):
        yield against({**mixed, "method": "fedcmoo"}, rival, method=rival)


def variants(data: str) -> Iterator[Comparison]:
    """FedCMOO-Pref without its least weight, and both methods with a one-way Gram matrix."""
    for dropout in (False, True):
        pref: dict[str, Label] = {"data": data, "method": "pref", "dropout": dropout}
        ours = {**pref, "least_weight": False}
        yield {**ours, "minus": "least_weight"}, ours, pref
    for name in ("fedcmoo", "pref"):
        run: dict[str, Label] = {"data": data, "method": name, "dropout": True}
        ours = {**run, "gram": "one-way"}
        yield {**ours, "minus": "two-way"}, ours, run
