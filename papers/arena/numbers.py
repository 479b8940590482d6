"""The derived numbers of the arena."""

from __future__ import annotations

import numpy as np

from fedlib.core import Trace
from papers.arena.methods import METHODS
from papers.arena.problems import NAMES
from papers.arena.rules import (
    BUDGETS,
    best_of,
    column,
    excess,
    grid_runs,
    off,
    passes_of,
    reference_of,
    shown,
    taken,
    uploads,
)
from papers.kit.numbers import Number, mean
from papers.kit.study import Params, Traces

__all__ = ["NEAR", "derive", "there"]

NEAR = 1.1  # times the tuned configuration's f: what counts as nearly as good


def there(traces: Traces, problem: str) -> list[str]:
    """The methods that have runs on a problem."""
    return [m for m in METHODS if grid_runs(traces, problem, m)]


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Tuned methods under both budgets, who is behind whom, and what tuning did.

    Keys are `PROBLEM_METHOD_BUDGET.measure`, `PROBLEM_METHOD_tuning.measure`,
    `PROBLEM_METHOD_round.measure`, `PROBLEM_reference.measure`.
    """
    numbers: dict[str, Number] = {}
    for problem in NAMES:
        reference = reference_of(traces, problem)
        if reference is None:
            continue
        numbers |= of_reference(problem, reference)
        for method in there(traces, problem):
            runs = grid_runs(traces, problem, method)
            numbers |= tuning(problem, method, runs, reference, p)
            one = next(iter(runs.values()))
            name = f"{problem}_{method}_round"
            numbers[f"{name}.passes"] = mean([float(passes_of(method, p))], "gradients")
            numbers[f"{name}.upload"] = mean([uploads(method, one, p) / 8e3], "kB")
        for budget in BUDGETS:
            numbers |= contest(traces, problem, budget, reference, p)
    numbers["all.passes"] = mean([float(p["passes"])], "gradients")
    numbers["all.wall"] = mean(
        [sum(float(t.provenance.get("wall_s") or 0) for t in traces.values()) / 60], "min"
    )
    return numbers


def of_reference(problem: str, reference: Trace) -> dict[str, Number]:
    """The optimum: its losses, how exact it is, and its multiplier."""
    last = {k: v[:, -1] for k, v in reference.metrics.items()}
    name = f"{problem}_reference"
    return {
        f"{name}.f": mean(last["f"]),
        f"{name}.test_f": mean(last["test_f"]),
        f"{name}.train_excess": mean(excess(last["g"], problem), "%"),
        f"{name}.test_excess": mean(excess(last["test_g"], problem), "%"),
        f"{name}.residual": mean([last["residual"].max()]),
        f"{name}.multiplier": mean(last["multiplier"]),
    }


def tuning(
    problem: str, method: str, runs: dict[str, Trace], reference: Trace, p: Params
) -> dict[str, Number]:
    """What the validation rows say of a grid, at equal gradients."""
    name = f"{problem}_{method}_tuning"
    chosen = runs[taken(runs, problem, method, "grads", p)]
    far = [off(t, reference, problem, "val_")[:, -1].mean() for t in runs.values()]
    f = [t.metrics["val_f"][:, -1].mean() for t in runs.values()]
    fine = [not shown(mean(excess(t.metrics["val_g"][:, -1], problem), "%")) for t in runs.values()]
    best = chosen.metrics["val_f"][:, -1].mean()
    near = [good and x <= NEAR * best for x, good in zip(f, fine, strict=True)]
    spent = sum(passes_of(method, p) * int(t.rounds[-1]) for t in runs.values())
    return {
        f"{name}.feasible": mean([100 * np.mean(fine)], "% of configurations"),
        f"{name}.near": mean([100 * np.mean(near)], "% of configurations"),
        f"{name}.best": mean([min(far)], "%"),
        f"{name}.median": mean([float(np.median(far))], "%"),
        f"{name}.worst": mean([max(far)], "%"),
        f"{name}.spread": mean([max(far) - min(far)], "points"),
        f"{name}.passes": mean([float(spent)], "gradients"),
    }


def contest(
    traces: Traces, problem: str, budget: str, reference: Trace, p: Params
) -> dict[str, Number]:
    """All methods on one problem under one budget, tuned, and how far each is behind the winner."""
    found: dict[str, Number] = {}
    test: dict[str, tuple[Trace, int]] = {}
    for method in there(traces, problem):
        runs = grid_runs(traces, problem, method)
        chosen = taken(runs, problem, method, budget, p)
        trace, at = runs[chosen], column(method, runs[chosen], budget, p)
        test[method] = trace, at
        name = f"{problem}_{method}_{budget}"
        found |= {f"{name}.{k}": v for k, v in measures(trace, at, reference, problem).items()}
        found[f"{name}.config"] = mean([float(chosen.rpartition("_")[2])])
        found[f"{name}.rounds"] = mean([float(trace.rounds[at])], "rounds")
    names = {m: f"{problem}_{m}_{budget}" for m in test}
    if not names:
        return found
    gaps = {m: found[f"{n}.test_gap"] for m, n in names.items()}
    violations = {m: found[f"{n}.test_excess"] for m, n in names.items()}
    winner = best_of(gaps, violations)
    first = np.array(gaps[winner].per_seed)
    for method, name in names.items():
        found[f"{name}.behind"] = mean(np.array(gaps[method].per_seed) - first)
        found[f"{name}.out"] = mean([float(shown(violations[method]))])
        found[f"{name}.wins"] = mean([float(method == winner)])
    return found


def measures(trace: Trace, at: int, reference: Trace, problem: str) -> dict[str, Number]:
    """A model's gap to the optimum, its violation, and its distance in %."""
    seeds = [reference.seeds.index(s) for s in trace.seeds]
    now = {k: v[:, at] for k, v in trace.metrics.items()}
    best = {k: v[seeds, -1] for k, v in reference.metrics.items()}
    found = {
        "test_gap": mean(now["test_f"] - best["test_f"]),
        "train_gap": mean(now["f"] - best["f"]),
        "test_excess": mean(excess(now["test_g"], problem), "%"),
        "train_excess": mean(excess(now["g"], problem), "%"),
        "off": mean(off(trace, reference, problem)[:, at], "%"),
    }
    if "stationary" in now:
        found["stationary"] = mean(now["stationary"])
    return found
