"""The derived numbers of the arena."""

from __future__ import annotations

from papers.arena.contest import contest
from papers.arena.rules import BUDGETS, Field, excess, fields
from papers.kit.numbers import Number, mean
from papers.kit.study import Params, Traces


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Tuned methods under both budgets, who is behind whom, and the optimum.

    Keys are `PROBLEM_METHOD_BUDGET.measure` and `PROBLEM_reference.measure`.
    """
    del p
    numbers: dict[str, Number] = {}
    for field in fields(traces):
        numbers |= of_reference(field)
        for budget in BUDGETS:
            numbers |= contest(field, budget)
    return numbers


def of_reference(field: Field) -> dict[str, Number]:
    """The optimum: its losses, how exact it is, its multiplier, and what it violates elsewhere."""
    last = {k: v[:, -1] for k, v in field.reference.metrics.items()}
    found = {k: mean(last[k]) for k in ("f", "test_f", "multiplier")}
    found["residual"] = mean([last["residual"].max()])
    for side in ("val", "test"):
        found[f"{side}_excess"] = mean(excess(last[f"{side}_g"], field.problem), "%")
    return {f"{field.problem}_reference.{k}": x for k, x in found.items()}
