"""The quantities of the arena: methods that keep the constraint, compared in pairs of seeds.

First is the smallest mean test objective among the methods that are shown to keep. The others that
keep are compared with it: a difference is shown by a paired t test, with Holm's correction over the
methods of a contest (S. Holm, *A simple sequentially rejective multiple test procedure*,
Scandinavian Journal of Statistics 6, 1979).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import scipy

from fedlib.compress.wire import FLOAT_BITS
from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.arena.methods import METHODS
from papers.arena.problems import LEVELS, NAMES
from papers.arena.runs import DEFAULTS, REFERENCE, SHARE, passes_on
from papers.kit.numbers import Number, mean
from papers.kit.quantities import Quantities, Row, row, sweep
from papers.kit.study import Params, Traces

BUDGETS = {"grads": "equal gradients", "bits": "equal bits"}
TOLERANCE = 5.0  # % of the level: a mean violation that is shown to be no larger is none
ROOM = 2.5  # % of the level: the largest mean violation on validation rows that tuning takes
ERROR = 0.05  # of a contest
#: From the best on, as numbers have them. `winner` is a first that everybody else who keeps is
#: shown to be behind; `open` and `unclear` are not decided by the seeds: the difference, and
#: whether the constraint is kept.
STANDINGS = ("winner", "first", "open", "behind", "unclear", "violates")


class Tuned(NamedTuple):
    """A run that was chosen, and where it is looked at."""

    config: int
    trace: Trace
    column: int  # of the evaluations

    def end(self, curve: str) -> Array:
        """A curve at the end of the budget, a value a seed."""
        return np.asarray(self.trace.metrics[curve][:, self.column])


class Field(NamedTuple):
    """All runs on one problem."""

    problem: str
    optimum: Trace  # rests at the optimum of the training rows
    grids: dict[str, dict[int, Trace]]  # method -> configuration -> run
    p: Params

    def tuned(self, method: str, budget: str = "grads") -> Tuned:
        """The configuration that is taken, from validation rows alone."""
        grid = {}
        losses = {}
        violations = {}
        for config, trace in self.grids[method].items():
            end = column(trace, budget, self.p)
            run = Tuned(config, trace, end)
            loss = run.end("val_f")
            violation = excess(run.end("val_g"), self.problem)
            grid[config] = run
            losses[config] = float(loss.mean())
            violations[config] = float(violation.mean())
        return grid[best_of(losses, violations)]

    def gap(self, run: Tuned) -> Array:
        """How far f on test rows is above the optimum's, in % of the optimum's mean."""
        seeds = [self.optimum.seeds.index(seed) for seed in run.trace.seeds]
        smallest = self.optimum.metrics["test_f"][seeds, -1]
        above = run.end("test_f") - smallest
        return np.asarray(100 * above / smallest.mean())


def fields(traces: Traces, p: Params) -> Iterator[Field]:
    """The problems that have runs, with the methods that have runs on them."""
    optima = sweep(traces, DEFAULTS, "problem", method=REFERENCE)
    for problem in NAMES:
        if problem not in optima:
            continue
        grids = {}
        for method in METHODS:
            grid = sweep(
                traces,
                DEFAULTS,
                "config",
                problem=problem,
                method=method,
            )
            if grid:
                grids[method] = grid
        own_passes = {**p, "passes": passes_on(problem, p)}
        yield Field(problem, optima[problem], grids, own_passes)


def column(trace: Trace, budget: str, p: Params) -> int:
    """The last evaluation within a budget: the end of the run, or the last that the bits pay for.

    The budget of bits is what models of d numbers cost, down to all clients and up again, in the
    share `SHARE` of FedAvg's rounds; a run that has used up its gradients before ends there.
    """
    if budget == "grads":
        return len(trace.rounds) - 1
    problem = trace.config["problem"]
    bits = trace.config["bits"]
    rounds = SHARE * (p["passes"] // p["local_steps"])
    both_ways = 2 * problem["dim"] * FLOAT_BITS
    limit = rounds * problem["clients"] * both_ways
    per_round = float(bits["bits_up"] + bits["bits_down"])
    paid = trace.rounds * per_round <= limit
    return int(np.flatnonzero(paid)[-1])


def excess(g: Array, problem: str) -> Array:
    """How far g is above its level, in % of the level; negative: room to spare."""
    return 100 * (g / LEVELS[problem] - 1)


def kept(violation: Number) -> bool | None:
    """Whether a constraint is kept: the whole interval of the mean violation is at most 5 %.

    False if all of it is above, None if the seeds do not decide.
    """
    decided = np.isfinite([violation.low, violation.high]).all()
    if decided and violation.high <= TOLERANCE:
        return True
    if decided and violation.low > TOLERANCE:
        return False
    return None


def best_of(losses: Mapping[int, float], violations: Mapping[int, float]) -> int:
    """The smallest loss among those with a mean violation of at most `ROOM` %.

    If there is none, the smallest mean violation.
    """
    feasible = [config for config in losses if violations[config] <= ROOM]
    if feasible:
        return min(feasible, key=losses.__getitem__)
    return min(violations, key=violations.__getitem__)


def derive(traces: Traces, p: Params) -> Quantities:
    """The table of quantities: tuned methods under both budgets, who is behind whom, optima."""
    rows: list[Row] = []
    for field in fields(traces, p):
        rows += optimum(field)
        for budget in BUDGETS:
            rows += contest(field, budget)
    return Quantities.of([rows], DEFAULTS)


def optimum(field: Field) -> Iterator[Row]:
    """How exact an optimum is, and its violation on test rows."""
    metrics = field.optimum.metrics
    labels = {"problem": field.problem, "method": REFERENCE}
    residual = metrics["residual"][:, -1]
    violation = excess(metrics["test_g"][:, -1], field.problem)
    yield row("residual", mean([residual.max()]), **labels)
    yield row("test_excess", mean(violation, "%"), **labels)


def contest(field: Field, budget: str) -> Iterator[Row]:
    """All methods on one problem under one budget, tuned, and how each stands."""
    tuned = {method: field.tuned(method, budget) for method in field.grids}
    gaps = {}
    violations = {}
    keeps = {}
    for method, run in tuned.items():
        gaps[method] = field.gap(run)
        violation = excess(run.end("test_g"), field.problem)
        violations[method] = mean(violation, "%")
        keeps[method] = kept(violations[method])
    standing = standings(gaps, keeps)
    leaders = [method for method in tuned if standing[method] in ("winner", "first")]
    for method, run in tuned.items():
        rank = STANDINGS.index(standing[method])
        numbers = {
            "test_gap": mean(gaps[method], "%"),
            "test_excess": violations[method],
            "standing": mean([float(rank)]),
            "config": mean([float(run.config)]),
        }
        for leader in leaders:
            lag = gaps[method] - gaps[leader]
            numbers["behind"] = mean(lag, "%")
        for measure, number in numbers.items():
            yield row(
                measure,
                number,
                problem=field.problem,
                method=method,
                budget=budget,
            )


def standings(gaps: Mapping[str, Array], keeps: Mapping[str, bool | None]) -> dict[str, str]:
    """How every method stands, from the objectives of the seeds and from who keeps."""
    standing = {}
    for method, is_kept in keeps.items():
        standing[method] = "unclear" if is_kept is None else "violates"
    keeping = [method for method in gaps if keeps[method]]
    keeping.sort(key=lambda method: float(gaps[method].mean()))
    if not keeping:
        return standing
    leader, *followers = keeping
    p_values = [difference(gaps[method] - gaps[leader]) for method in followers]
    for method, p in zip(followers, holm(p_values), strict=True):
        standing[method] = "behind" if p < ERROR else "open"
    alone = all(standing[method] == "behind" for method in followers)
    standing[leader] = "winner" if alone else "first"
    return standing


def difference(d: Array) -> float:
    """The p-value of a paired t test of no difference."""
    if np.ptp(d) == 0:
        return float(d[0] == 0)
    if len(d) == 1:
        return 1.0
    return float(scipy.stats.ttest_1samp(d, 0.0).pvalue)


def holm(p: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values: the k-th smallest times m - k + 1, never falling, at most 1."""
    order = np.argsort(p)
    remaining = len(p) - np.arange(len(p))
    corrected = remaining * np.take(p, order)
    bounded = np.minimum(1.0, corrected)
    adjusted = np.empty(len(p))
    adjusted[order] = np.maximum.accumulate(bounded)
    return adjusted.tolist()
