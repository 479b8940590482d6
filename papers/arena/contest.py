"""The derived numbers: methods that keep the constraint, compared in pairs of seeds, all at once.

First is the smallest mean test objective among the methods that are shown to keep. The others that
keep are compared with it: a difference is shown by a paired t test, with Holm's correction over the
methods of a contest (S. Holm, *A simple sequentially rejective multiple test procedure*,
Scandinavian Journal of Statistics 6, 1979).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy

from fedlib.compress.wire import FLOAT_BITS
from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.arena.methods import METHODS, form_of, label_of
from papers.arena.problems import LEVELS, NAMES
from papers.kit.numbers import Number, mean
from papers.kit.rules import Numbers
from papers.kit.study import Params, Traces, swept

if TYPE_CHECKING:
    import pandas as pd

BUDGETS = {"grads": "equal gradients", "bits": "equal bits"}
TOLERANCE = 5.0  # % of the level: a mean violation that is shown to be no larger is none
ROOM = 2.5  # % of the level: the largest mean violation on validation rows that tuning takes
SHARE = 0.4  # of FedAvg's rounds, whose messages both ways are the budget of bits
SHORTER = {"np": 0.5}  # of the passes, where they are costly


class Tuned(NamedTuple):
    """A run that was chosen, and where it is looked at."""

    name: str
    trace: Trace
    at: int  # column of the evaluations

    def on(self, metric: str) -> Array:
        """A metric of the last iterate, a value a seed."""
        return np.asarray(self.trace.metrics[metric][:, self.at])


class Field(NamedTuple):
    """All runs on one problem."""

    problem: str
    reference: Trace  # rests at the optimum of the training rows
    runs: dict[str, dict[str, Trace]]  # method -> configuration -> run
    p: Params

    def tuned(self, method: str, budget: str = "grads") -> Tuned:
        """The configuration that is taken, from validation rows alone."""
        grid = {
            name: Tuned(name, trace, column(trace, budget, self.p))
            for name, trace in self.runs[method].items()
        }
        f = {name: float(x.on("val_f").mean()) for name, x in grid.items()}
        above = {name: excess(x.on("val_g"), self.problem) for name, x in grid.items()}
        return grid[best_of(f, {name: float(x.mean()) for name, x in above.items()})]

    def gap(self, x: Tuned) -> Array:
        """How far f on test rows is above the optimum's, in % of the optimum's mean."""
        seeds = [self.reference.seeds.index(s) for s in x.trace.seeds]
        best = self.reference.metrics["test_f"][seeds, -1]
        return np.asarray(100 * (x.on("test_f") - best) / best.mean())


def passes_on(problem: str, p: Params) -> int:
    """Gradients of every client in a run."""
    return int(SHORTER.get(problem, 1.0) * p["passes"])


def fields(traces: Traces, p: Params) -> list[Field]:
    """The problems that there are, with the methods that have runs on them."""
    found = []
    for problem in NAMES:
        if f"{problem}_reference" in traces:
            runs = {m: one for m in METHODS if (one := grid_runs(traces, problem, m))}
            own = {**p, "passes": passes_on(problem, p)}
            found.append(Field(problem, traces[f"{problem}_reference"], runs, own))
    return found


def grid_runs(traces: Traces, problem: str, method: str) -> dict[str, Trace]:
    """All configurations of a method that there are, by name."""
    start = f"{problem}_{method}_"
    return {f"{start}{i:g}": trace for i, trace in swept(traces, start).items()}


def column(trace: Trace, budget: str, p: Params) -> int:
    """The last evaluation within a budget: the end of the run, or the last that the bits pay for.

    The budget of bits is what models of d numbers cost, down to all clients and up again, in the
    share `SHARE` of FedAvg's rounds; a run that has used up its gradients before ends there.
    """
    if budget == "grads":
        return len(trace.rounds) - 1
    of, bits = trace.config["problem"], trace.config["bits"]
    rounds = SHARE * (p["passes"] // p["local_steps"])
    limit = rounds * FLOAT_BITS * of["clients"] * 2 * of["dim"]
    paid = trace.rounds * float(bits["bits_up"] + bits["bits_down"]) <= limit
    return int(np.flatnonzero(paid)[-1])


def excess(g: Array, problem: str) -> Array:
    """How far g is above its level, in % of the level; negative: room to spare."""
    return 100 * (g / LEVELS[problem] - 1)


def kept(violation: Number) -> bool | None:
    """Whether a constraint is kept: the whole interval of the mean violation is at most 5 %.

    False if all of it is above, None if the seeds do not decide.
    """
    if not np.isfinite([violation.low, violation.high]).all():
        return None
    if violation.high <= TOLERANCE:
        return True
    return False if violation.low > TOLERANCE else None


def best_of(losses: Mapping[str, float], violations: Mapping[str, float]) -> str:
    """The smallest loss among those with a mean violation of at most `ROOM` %.

    If there is none, the smallest mean violation.
    """
    fine = {name: x for name, x in losses.items() if violations[name] <= ROOM} or violations
    return min(fine, key=fine.__getitem__)


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
        last = {k: v[:, -1] for k, v in field.reference.metrics.items()}
        above = mean(excess(last["test_g"], field.problem), "%")
        numbers[f"{field.problem}_reference.residual"] = mean([last["residual"].max()])
        numbers[f"{field.problem}_reference.test_excess"] = above
        for budget in BUDGETS:
            numbers |= contest(field, budget)
    return numbers


def contest(field: Field, budget: str) -> dict[str, Number]:
    """All methods on one problem under one budget, tuned, and how each stands."""
    there = {m: field.tuned(m, budget) for m in field.runs}
    found = {
        m: {
            "test_gap": mean(field.gap(x), "%"),
            "test_excess": mean(excess(x.on("test_g"), field.problem), "%"),
        }
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


WORDS = {"open": "not decided", "unclear": "violation not decided"}
FORMS = {"constraint": "constraint function", "objectives": "second objective", "set": "set"}


def problems(numbers: Numbers) -> list[str]:
    """The problems on which somebody took part."""
    return [p for p in NAMES if ranked(numbers, p)]


def standing(numbers: Numbers, problem: str, method: str, budget: str = "grads") -> str:
    """How a method stands, one of `STANDINGS`."""
    return STANDINGS[int(numbers[f"{problem}_{method}_{budget}.standing"].value)]


def ranked(numbers: Numbers, problem: str) -> list[str]:
    """The methods on a problem, those that keep the constraint first, then by test objective."""
    last = STANDINGS.index("behind")

    def place(method: str) -> tuple[int, float]:
        own = f"{problem}_{method}_grads"
        return max(last, int(numbers[f"{own}.standing"].value)), numbers[f"{own}.test_gap"].value

    return sorted((m for m in METHODS if f"{problem}_{m}_grads.standing" in numbers), key=place)


def table(numbers: Numbers, problem: str, health: Mapping[str, str] = {}) -> pd.DataFrame:
    """All methods at equal gradients, the best first, and how they stand at equal bits."""
    import pandas as pd

    from papers.kit.report import unbroken

    rows = {}
    for method in ranked(numbers, problem):
        own = f"{problem}_{method}_grads"
        row = {"takes g as": FORMS[form_of(method, problem)]}
        for budget, text in BUDGETS.items():
            found = standing(numbers, problem, method, budget)
            row[text] = WORDS.get(found, found)
        for text, key in {"behind, %": "behind", "above optimum, %": "test_gap"}.items():
            row[text] = unbroken(numbers[f"{own}.{key}"]) if f"{own}.{key}" in numbers else ""
        row["violation, %"] = unbroken(numbers[f"{own}.test_excess"])
        if wrong := health.get(f"{problem}_{method}_{numbers[f'{own}.config'].value:.0f}"):
            row["not healthy"] = wrong
        rows[label_of(method, problem)] = row
    return pd.DataFrame.from_dict(rows, orient="index").fillna("")
