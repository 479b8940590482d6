"""The measures of study `np_pairing`: how far a pairing moves the model, and turns it."""

from __future__ import annotations

import numpy as np
import torch

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedsgm.np_pairing.runs import paired, settings
from papers.fedsgm.skewness import client_gradients, skewness
from papers.kit.numbers import Number, mean
from papers.kit.study import Params, Traces

ZERO = 1e-9  # the displacement whose logarithm stands for that of none


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Of every setting: displacement, skewness, and turning with the most and the least skewness.

    `moved` is the largest distance of the final model from that with the data's own pairing, as a
    share of its length, `moved_log` its decimal logarithm. `skewness` is the largest |K_loc| of a
    pairing divided by the smallest, at that final model. `turn` are degrees a round, a mean over
    the second half; `turn_more` is the turning with the largest |K_loc| minus that with the
    smallest, `turn_null` that of two pairings that are named without looking at K_loc.
    """
    numbers: dict[str, Number] = {}
    for name in settings(p):
        pairings = [traces[f"{name}_shift{shift}"] for shift in p["shifts"]]
        own = pairings[0]
        norms = local_norms(own, p["shifts"])
        turns = np.array([turning(trace) for trace in pairings])  # [pairings, S]
        by_norm = np.take_along_axis(turns, norms.argsort(0), 0)
        moved = np.max([distance(t, own) for t in pairings[1:]], axis=0)
        numbers |= {
            f"{name}.f": mean(own.late("f")),
            f"{name}.g": mean(own.late("g")),
            f"{name}.moved": mean(moved),
            f"{name}.moved_log": mean(np.log10(np.maximum(moved, ZERO))),
            f"{name}.skewness": mean(norms.max(0) / norms.min(0)),
            f"{name}.turn": mean(turns[0], "degrees a round"),
            f"{name}.turn_more": mean(by_norm[-1] - by_norm[0], "degrees a round"),
            f"{name}.turn_null": mean(turns[-1] - turns[0], "degrees a round"),
            f"{name}.mixing": mean(mixing(own)),
        }
    return numbers


def distance(trace: Trace, other: Trace) -> Array:
    """Per split the distance of the final models, as a share of the other's length."""
    w, v = np.asarray(trace.state), np.asarray(other.state)
    return np.asarray(np.linalg.norm(w - v, axis=1) / np.linalg.norm(v, axis=1))


def second_half(trace: Trace, name: str) -> Array:
    """The reports of the second half of the rounds, `[S, T / 2]`."""
    values = np.asarray(trace.info[name])
    return values[:, values.shape[1] // 2 :]


def turning(trace: Trace) -> Array:
    """Per split the mean angle between the changes of two rounds."""
    return np.asarray(second_half(trace, "turn").mean(1))


def mixing(trace: Trace) -> Array:
    """Per split the mean of sigma (1 - sigma): how far a client mixes its two gradients."""
    sigma = second_half(trace, "sigma")
    return np.asarray((sigma * (1 - sigma)).mean(1))


def local_norms(trace: Trace, shifts: tuple[int, ...]) -> Array:
    """|K_loc| of every pairing at the final models of a run, `[pairings, S]`."""
    models = torch.as_tensor(np.asarray(trace.state), dtype=torch.float64)
    rows = []
    for shift in shifts:
        problems = [paired(seed, shift=shift) for seed in trace.seeds]
        pairs = zip(problems, models, strict=True)
        rows.append([float(skewness(*client_gradients(task, w)).local) for task, w in pairs])
    return np.array(rows)
