"""The derived numbers: methods that keep the constraint, compared in pairs of seeds, all at once.

First is the smallest mean test objective among the methods that are shown to keep. The others that
keep are compared with it: a difference is shown by a paired t test, with Holm's correction over the
methods of a contest (S. Holm, *A simple sequentially rejective multiple test procedure*,
Scandinavian Journal of Statistics 6, 1979).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import scipy

from fedlib.core.trace import Array
from papers.arena.rules import BUDGETS, Field, excess, fields, kept
from papers.kit.numbers import Number, mean
from papers.kit.study import Params, Traces

ERROR = 0.05  # of a contest
#: From the first to the last, as numbers have them. `winner` is a first that everybody else who
#: keeps is shown to be behind; `open` and `unclear` are not decided by the seeds: the difference,
#: and whether the constraint is kept.
STANDINGS = ("winner", "first", "open", "behind", "unclear", "violates")


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Tuned methods under both budgets, who is behind whom, and the optimum.

    Keys are `PROBLEM_METHOD_BUDGET.measure` and `PROBLEM_reference.measure`.
    """
    numbers: dict[str, Number] = {}
    for field in fields(traces, p):
        numbers |= of_reference(field)
        for budget in BUDGETS:
            numbers |= contest(field, budget)
    return numbers


def of_reference(field: Field) -> dict[str, Number]:
    """How exact the optimum is, and what it violates on test rows."""
    last = {k: v[:, -1] for k, v in field.reference.metrics.items()}
    found = {"residual": mean([last["residual"].max()])}
    found["test_excess"] = mean(excess(last["test_g"], field.problem), "%")
    return {f"{field.problem}_reference.{k}": x for k, x in found.items()}


def contest(field: Field, budget: str) -> dict[str, Number]:
    """All methods on one problem under one budget, tuned, and how each stands."""
    there = {m: field.tuned(m, budget) for m in field.runs}
    found = {
        m: {"test_gap": mean(field.gap(x, "test_"), "%")}
        | {"test_excess": mean(field.excess(x, "test_"), "%")}
        for m, x in there.items()
    }
    gaps = {m: np.array(x["test_gap"].per_seed) for m, x in found.items()}
    standing = standings(gaps, {m: kept(x["test_excess"]) for m, x in found.items()})
    first = [m for m in found if standing[m] in STANDINGS[:2]]
    for method, own in found.items():
        own["standing"] = mean([float(STANDINGS.index(standing[method]))])
        own["config"] = mean([float(there[method].name.rpartition("_")[2])])
        for best in first:
            own["behind"] = mean(gaps[method] - gaps[best], "%")
    return {
        f"{field.problem}_{method}_{budget}.{k}": x
        for method, own in found.items()
        for k, x in own.items()
    }


def standings(gaps: Mapping[str, Array], keeps: Mapping[str, bool | None]) -> dict[str, str]:
    """How every method stands, from the objectives of the seeds and from who keeps."""
    standing = {m: "unclear" if keeps[m] is None else "violates" for m in gaps}
    fine = sorted((m for m in gaps if keeps[m]), key=lambda m: float(gaps[m].mean()))
    if not fine:
        return standing
    first, *others = fine
    different = holm([difference(gaps[m] - gaps[first]) for m in others])
    for method, p in zip(others, different, strict=True):
        standing[method] = "behind" if p < ERROR else "open"
    alone = all(standing[m] == "behind" for m in others)
    return standing | {first: "winner" if alone else "first"}


def difference(d: Array) -> float:
    """The p-value of a paired t test of no difference."""
    if np.ptp(d) == 0:
        return float(d[0] == 0)
    return float(scipy.stats.ttest_1samp(d, 0.0).pvalue) if len(d) > 1 else 1.0


def holm(p: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values: the k-th smallest times m - k + 1, never falling, at most 1."""
    order, adjusted, largest = np.argsort(p), [1.0] * len(p), 0.0
    for k, i in enumerate(order):
        largest = max(largest, min(1.0, (len(p) - k) * p[i]))
        adjusted[i] = largest
    return adjusted
