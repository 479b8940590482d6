"""The derived numbers of the arena."""

from __future__ import annotations

import numpy as np

from fedlib.core import Trace
from papers.arena.rules import BUDGETS, Field, best_of, column, fields, passes_of, shown, uploads
from papers.kit.numbers import Number, mean
from papers.kit.study import Params, Traces

__all__ = ["NEAR", "contest", "derive", "tuning"]

NEAR = 1.1  # times the tuned configuration's f: what counts as nearly as good


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Tuned methods under both budgets, who is behind whom, and what tuning did.

    Keys are `PROBLEM_METHOD_BUDGET.measure`, `PROBLEM_METHOD_tuning.measure`,
    `PROBLEM_METHOD_round.measure`, `PROBLEM_reference.measure`.
    """
    numbers: dict[str, Number] = {}
    for field in fields(traces, p):
        numbers |= of_reference(field)
        for method, runs in field.runs.items():
            numbers |= tuning(field, method)
            name, one = f"{field.problem}_{method}_round", next(iter(runs.values()))
            numbers[f"{name}.passes"] = mean([passes_of(method, p)], "gradients")
            numbers[f"{name}.upload"] = mean([uploads(method, one, p) / 8e3], "kB")
        for budget in BUDGETS:
            numbers |= contest(field, budget)
    seconds = sum(float(t.provenance.get("wall_s") or 0) for t in traces.values())
    numbers["all.passes"] = mean([p["passes"]], "gradients")
    return numbers | {"all.wall": mean([seconds / 60], "min")}


def of_reference(field: Field) -> dict[str, Number]:
    """The optimum: its losses, how exact it is, and its multiplier."""
    run = field.reference
    last = {k: v[:, -1] for k, v in run.metrics.items()}
    found = {
        "f": mean(last["f"]),
        "test_f": mean(last["test_f"]),
        "train_excess": field.violation(run, "g"),
        "test_excess": field.violation(run, "test_g"),
        "residual": mean([last["residual"].max()]),
        "multiplier": mean(last["multiplier"]),
    }
    return {f"{field.problem}_reference.{k}": x for k, x in found.items()}


def tuning(field: Field, method: str) -> dict[str, Number]:
    """What the validation rows say of a grid, at equal gradients."""
    runs = field.runs[method].values()
    chosen = field.tuned(method, "grads")[1]
    far = [field.off(t, "val_")[:, -1].mean() for t in runs]
    f = np.array([t.metrics["val_f"][:, -1].mean() for t in runs])
    fine = np.array([not shown(field.violation(t, "val_g")) for t in runs])
    near = fine & (f <= NEAR * chosen.metrics["val_f"][:, -1].mean())
    shares = {"feasible": 100 * np.mean(fine), "near": 100 * np.mean(near)}
    ends = {"best": min(far), "median": np.median(far), "worst": max(far)}
    spent = sum(passes_of(method, field.p) * int(t.rounds[-1]) for t in runs)
    found = {k: mean([x], "% of configurations") for k, x in shares.items()}
    found |= {k: mean([x], "%") for k, x in ends.items()}
    found["spread"] = mean([max(far) - min(far)], "points")
    found["passes"] = mean([spent], "gradients")
    return {f"{field.problem}_{method}_tuning.{k}": x for k, x in found.items()}


def contest(field: Field, budget: str) -> dict[str, Number]:
    """All methods on one problem under one budget, tuned, and how far each is behind the winner."""
    found: dict[str, dict[str, Number]] = {}
    for method in field.runs:
        name, trace = field.tuned(method, budget)
        at = column(method, trace, budget, field.p)
        found[method] = measures(field, trace, at)
        found[method]["config"] = mean([float(name.rpartition("_")[2])])
        found[method]["rounds"] = mean([float(trace.rounds[at])], "rounds")
    if not found:
        return {}
    gaps, violations = ({m: x[k] for m, x in found.items()} for k in ("test_gap", "test_excess"))
    winner = best_of({m: gap.value for m, gap in gaps.items()}, violations)
    first = np.array(found[winner]["test_gap"].per_seed)
    standing = {
        method: {
            "behind": mean(np.array(own["test_gap"].per_seed) - first),
            "out": mean([float(shown(own["test_excess"]))]),
            "wins": mean([float(method == winner)]),
        }
        for method, own in found.items()
    }
    return {
        f"{field.problem}_{method}_{budget}.{k}": x
        for each in (found, standing)
        for method, own in each.items()
        for k, x in own.items()
    }


def measures(field: Field, trace: Trace, at: int) -> dict[str, Number]:
    """A model's gap to the optimum, its violation, and its distance in %."""
    found = {
        "test_gap": mean(field.gap(trace, "test_f", at)),
        "train_gap": mean(field.gap(trace, "f", at)),
        "test_excess": field.violation(trace, "test_g", at),
        "train_excess": field.violation(trace, "g", at),
        "off": mean(field.off(trace)[:, at], "%"),
    }
    if "stationary" in trace.metrics:
        found["stationary"] = mean(trace.metrics["stationary"][:, at])
    return found
