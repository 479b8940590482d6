"""The derived numbers of the study of many objectives."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.kit.numbers import Number, exact, mean
from papers.kit.study import Params, Traces

METHODS = ("fsmgda", "pref", "fedcmoo")

#: Sets of tasks -> M: two halves and five groups of the attributes, and each by itself.
SETS = {"halves": 2, "groups": 5, "attributes": 40}
LAST = 0.2  # share of the evaluations, the final model's among them, that a final value averages
STAND_IN = "stand-in"


def final(trace: Trace, metric: str) -> Array:
    x = trace.metrics[metric]
    return np.asarray(x[:, -max(1, round(LAST * x.shape[1])) :].mean(1))


def per_task(trace: Trace, what: str) -> Array:
    count = sum(name.startswith(f"{what}_") for name in trace.metrics)
    return np.stack([final(trace, f"{what}_{k}") for k in range(1, count + 1)], 1)


def megabytes(trace: Trace) -> float:
    """What a participant uploads in a round, in units of 10^6 bytes."""
    participants = int(trace.config["algorithm"]["participants"])
    return float(trace.config["bits"]["bits_up"]) / participants / 8e6


def steps(trace: Trace) -> int:
    """Minibatch gradients, each of one loss, that a participant computes in a round."""
    own = trace.config["algorithm"]
    tasks, local = int(trace.config["problem"]["objectives"]), int(own["local_steps"])
    return tasks * local if kind(trace) == "FSMGDA" else tasks + local - 1


def kind(trace: Trace) -> str:
    return str(trace.config["algorithm"]["type"])


def at(trace: Trace, metric: str, rounds: float) -> Array:
    """Per seed, a metric after a number of rounds, linear between evaluations, `[S]`."""
    return np.array([np.interp(rounds, trace.rounds, x) for x in trace.metrics[metric]])


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    numbers: dict[str, Number] = {}
    for name, trace in traces.items():
        numbers |= {f"{name}.{k}": v for k, v in measures(trace).items()}
    for tasks in SETS:
        ours, theirs = traces[f"{tasks}_fedcmoo"], traces[f"{tasks}_fsmgda"]
        numbers |= {f"{tasks}.{k}": v for k, v in gaps(ours, theirs).items()}
        pref = spread(per_task(traces[f"{tasks}_pref"], "loss"))
        for name in ("fedcmoo", "fsmgda"):
            other = spread(per_task(traces[f"{tasks}_{name}"], "loss"))
            for k in pref:
                numbers[f"{tasks}_pref_vs_{name}.{k}"] = mean(pref[k] / other[k])
            runs = traces[f"{tasks}_pref"], traces[f"{tasks}_{name}"]
            pair = deviations_at_equal_loss(*runs)
            numbers[f"{tasks}_pref_vs_{name}.alike"] = mean(pair[0] / pair[1])
    for tasks in ("groups", "attributes"):
        grown = gap(traces, tasks) - gap(traces, "halves")
        numbers[f"{tasks}_vs_halves.gap"] = mean(grown, "points")
    source: Any = traces["halves_fedcmoo"].config["problem"]
    numbers["majority"] = exact(100 * source["majority"], "%")
    numbers["rounds"] = exact(p["rounds"], "rounds")
    return numbers


def measures(trace: Trace) -> dict[str, Number]:
    losses, accuracies = per_task(trace, "loss"), per_task(trace, "accuracy")
    found = {
        "accuracy": mean(100 * final(trace, "accuracy"), "%"),
        "worst_accuracy": mean(100 * accuracies.min(1), "%"),
        "loss": mean(final(trace, "loss")),
        "worst_loss": mean(losses.max(1)),
        "upload": exact(megabytes(trace), "MB"),
        "gradients": exact(steps(trace)),
    }
    found |= {k: mean(v) for k, v in spread(losses).items()}
    if "fallback" in trace.info:
        found["fallback"] = mean(trace.info["fallback"].mean(1), "of rounds")
        found["mu"] = mean(trace.info["mu"][:, -1])
        tolerance = float(trace.config["algorithm"]["preference"]["epsilon"])
        found["balancing"] = mean((trace.info["mu"] > tolerance).mean(1), "of rounds")
    return found


def spread(values: Array) -> dict[str, Array]:
    deviation = values.std(1)
    return {
        "deviation": deviation,
        "range": values.max(1) - values.min(1),
        "relative": deviation / values.mean(1),
    }


def deviations_at_equal_loss(ours: Trace, theirs: Trace) -> tuple[Array, Array]:
    """Per seed each run's deviation over tasks where its mean loss first is what both end below.

    A run that has learnt nothing has equal losses, so that a spread is compared at one mean loss:
    the larger one of the two final ones. Losses are taken as linear between evaluations.
    """
    level = np.maximum(final(ours, "loss"), final(theirs, "loss"))
    return deviation_at(ours, level), deviation_at(theirs, level)


def deviation_at(trace: Trace, level: Array) -> Array:
    """Per seed the standard deviation over the tasks where the mean loss first reaches `level`."""
    count = sum(name.startswith("loss_") for name in trace.metrics)
    losses = np.stack([trace.metrics[f"loss_{k}"] for k in range(1, count + 1)], -1)  # [S, T, M]
    found = []
    for mean_loss, each, wanted in zip(trace.metrics["loss"], losses, level, strict=True):
        there = np.flatnonzero(mean_loss <= wanted)
        if not len(there):  # a loss that is no number
            found.append(np.nan)
            continue
        i = int(there[0])
        before = max(i - 1, 0)
        fall = mean_loss[before] - mean_loss[i]
        share = (mean_loss[before] - wanted) / fall if fall > 0 else 1.0
        found.append(((1 - share) * each[before] + share * each[i]).std())
    return np.array(found)


def gap(traces: Traces, tasks: str) -> Array:
    ours, theirs = (final(traces[f"{tasks}_{name}"], "accuracy") for name in ("fedcmoo", "fsmgda"))
    return np.asarray(100 * (ours - theirs))


def gaps(ours: Trace, theirs: Trace) -> dict[str, Number]:
    """FedCMOO minus FSMGDA in accuracy: at equal rounds, equal uploads and equal gradients.

    For the last two FSMGDA stops in the round in which it has spent what all rounds of FedCMOO do,
    or at its last round if that comes first.
    """
    total = float(ours.rounds[-1])
    by_upload = min(total, total * megabytes(ours) / megabytes(theirs))
    by_gradients = min(total, total * steps(ours) / steps(theirs))
    end = ours.metrics["accuracy"][:, -1]

    def ahead(rounds: float) -> Number:
        return mean(100 * (end - at(theirs, "accuracy", rounds)), "points")

    return {
        "gap": mean(100 * (final(ours, "accuracy") - final(theirs, "accuracy")), "points"),
        "gap_upload": ahead(by_upload),
        "gap_gradients": ahead(by_gradients),
        "upload_ratio": exact(megabytes(theirs) / megabytes(ours)),
        "gradient_ratio": exact(steps(theirs) / steps(ours)),
    }
