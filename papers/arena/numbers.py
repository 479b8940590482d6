"""The derived numbers of the arena."""

from __future__ import annotations

import numpy as np

from fedlib.core import Trace
from papers.arena.aggregates import aggregates
from papers.arena.contest import contest
from papers.arena.rules import PLACES, ROOM, Field, excess, fields, passes_of, sent
from papers.kit.numbers import Number, mean
from papers.kit.study import Params, Traces

NEAR = 1.1  # times the tuned configuration's f: what counts as nearly as good


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Tuned methods in every place, who is behind whom, and what tuning did.

    Keys are `PROBLEM_METHOD_PLACE.measure`, `PROBLEM_METHOD_tuning.measure`,
    `PROBLEM_METHOD_round.measure`, `PROBLEM_reference.measure`, `GROUP_METHOD_PLACE.measure`.
    """
    found = fields(traces)
    numbers: dict[str, Number] = {}
    for field in found:
        numbers |= of_reference(field)
        for method in field.runs:
            numbers |= tuning(field, method)
            numbers |= round_of(field, method)
        for place in PLACES:
            numbers |= contest(field, place)
    if "rank_clock" in traces:
        numbers |= oracles(traces["rank_clock"])
    seconds = sum(float(t.provenance.get("wall_s") or 0) for t in traces.values())
    numbers["all.passes"] = mean([p["passes"]], "gradients")
    return numbers | aggregates(found) | {"all.wall": mean([seconds / 60], "min")}


def of_reference(field: Field) -> dict[str, Number]:
    """The optimum: its losses, how exact it is, its multiplier, and what it violates elsewhere."""
    last = {k: v[:, -1] for k, v in field.reference.metrics.items()}
    found = {
        "f": mean(last["f"]),
        "test_f": mean(last["test_f"]),
        "residual": mean([last["residual"].max()]),
        "multiplier": mean(last["multiplier"]),
    }
    for side in ("val", "test"):
        found[f"{side}_excess"] = mean(excess(last[f"{side}_g"], field.problem), "%")
    return {f"{field.problem}_reference.{k}": x for k, x in found.items()}


def round_of(field: Field, method: str) -> dict[str, Number]:
    """What a round costs."""
    one = next(iter(field.runs[method].values()))
    found = {
        "passes": mean([passes_of(method, field.p)], "gradients"),
        "sent": mean([sent(method, one, field.p) / 8e3], "kB"),
        "up": mean([float(one.config["bits"]["bits_up"]) / 8e3], "kB"),
    }
    return {f"{field.problem}_{method}_round.{k}": x for k, x in found.items()}


def tuning(field: Field, method: str) -> dict[str, Number]:
    """What the validation rows say of a grid, at equal gradients, of the last iterate."""
    runs = field.runs[method].values()
    chosen = field.tuned(method).trace
    far = [field.off(t, "val_")[:, -1].mean() for t in runs]
    f = np.array([t.metrics["val_f"][:, -1].mean() for t in runs])
    g = np.array([t.metrics["val_g"][:, -1].mean() for t in runs])
    fine = excess(g, field.problem) <= ROOM
    near = fine & (f <= NEAR * chosen.metrics["val_f"][:, -1].mean())
    shares = {"feasible": 100 * np.mean(fine), "near": 100 * np.mean(near)}
    ends = {"best": min(far), "median": np.median(far), "worst": max(far)}
    spent = sum(passes_of(method, field.p) * int(t.rounds[-1]) for t in runs)
    found = {k: mean([x], "% of configurations") for k, x in shares.items()}
    found |= {k: mean([x], "%") for k, x in ends.items()}
    found["passes"] = mean([spent], "gradients")
    return {f"{field.problem}_{method}_tuning.{k}": x for k, x in found.items()}


def oracles(clock: Trace) -> dict[str, Number]:
    """Milliseconds of a call of the two oracles of the nuclear ball, warm."""
    return {
        f"rank_oracle.{k}": mean([1e3 * np.median(clock.info[k][0, 1:])], "ms")
        for k in ("lmo", "project")
    }
