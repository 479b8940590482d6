"""The measures of study `np_pairing`: how far a pairing moves the model, and turns it."""

from functools import partial

import numpy as np

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedsgm.curves import second_half
from papers.fedsgm.np_pairing.runs import DEFAULTS, paired, settings
from papers.fedsgm.skewness import client_gradients, final_models, skewness
from papers.kit.numbers import Number, mean
from papers.kit.quantities import Quantities, row, run_of
from papers.kit.study import Params, Traces

ZERO = 1e-9  # the displacement whose logarithm stands for that of none
TURN = "degrees a round"


def derive(traces: Traces, p: Params) -> Quantities:
    """The table of quantities: the measures of every setting, without a label for pairings."""
    rows = []
    for labels in settings(p):
        pairings = [run_of(traces, DEFAULTS, **labels, shift=shift) for shift in p["shifts"]]
        measured = measures(pairings, p["shifts"])
        rows += [row(name, number, **labels) for name, number in measured.items()]
    return Quantities.of([rows], DEFAULTS)


def measures(pairings: list[Trace], shifts: tuple[int, ...]) -> dict[str, Number]:
    """Of a setting: displacement, skewness, and turning with the most and the least skewness.

    `moved` is the largest distance of the final model from that with the data's own pairing, as a
    share of its length, `moved_log` its decimal logarithm. `skewness` is the largest |K_loc| of a
    pairing divided by the smallest, at that final model. `turn` are degrees a round, a mean over
    the second half; `turn_more` is the turning with the largest |K_loc| minus that with the
    smallest, `turn_null` that of two pairings that are named without looking at K_loc.
    """
    usual, *exchanged = pairings
    norms = local_norms(usual, shifts)
    turns = np.array([turning(trace) for trace in pairings])  # [pairings, S]
    by_norm = np.take_along_axis(turns, norms.argsort(0), 0)
    moved = np.max([distance(trace, usual) for trace in exchanged], axis=0)
    return {
        "moved": mean(moved),
        "moved_log": mean(np.log10(np.maximum(moved, ZERO))),
        "skewness": mean(norms.max(0) / norms.min(0)),
        "turn": mean(turns[0], TURN),
        "turn_more": mean(by_norm[-1] - by_norm[0], TURN),
        "turn_null": mean(turns[-1] - turns[0], TURN),
        "mixing": mean(mixing(usual)),
    }


def distance(trace: Trace, usual: Trace) -> Array:
    """Per split the distance of a final model from the usual one, as a share of its length."""
    v = np.asarray(usual.state)
    apart = np.linalg.norm(np.asarray(trace.state) - v, axis=1)
    return np.asarray(apart / np.linalg.norm(v, axis=1))


def turning(trace: Trace) -> Array:
    """Per split the mean angle between the changes of two rounds."""
    return np.asarray(second_half(trace.info["turn"]).mean(1))


def mixing(trace: Trace) -> Array:
    """Per split the mean of sigma (1 - sigma): how far a client mixes its two gradients."""
    sigma = second_half(trace.info["sigma"])
    return np.asarray((sigma * (1 - sigma)).mean(1))


def local_norms(trace: Trace, shifts: tuple[int, ...]) -> Array:
    """|K_loc| of every pairing at the final models of a run, `[pairings, S]`."""
    rows = []
    for shift in shifts:
        models = final_models(trace, partial(paired, shift=shift))
        rows.append([float(skewness(*client_gradients(task, w)).local) for task, w in models])
    return np.array(rows)
