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
    shifts = p["shifts"]
    for labels in settings(p):
        pairings = []
        for shift in shifts:
            trace = run_of(traces, DEFAULTS, **labels, shift=shift)
            pairings.append(trace)
        measured = measures(pairings, shifts)
        for name, number in measured.items():
            rows.append(row(name, number, **labels))
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
    order = norms.argsort(0)
    least, *_, most = np.take_along_axis(turns, order, 0)
    distances = [distance(trace, usual) for trace in exchanged]
    moved = np.max(distances, axis=0)
    moved_log = np.log10(np.maximum(moved, ZERO))
    largest = norms.max(0)
    smallest = norms.min(0)
    return {
        "moved": mean(moved),
        "moved_log": mean(moved_log),
        "skewness": mean(largest / smallest),
        "turn": mean(turns[0], TURN),
        "turn_more": mean(most - least, TURN),
        "turn_null": mean(turns[-1] - turns[0], TURN),
        "mixing": mean(mixing(usual)),
    }


def distance(trace: Trace, usual: Trace) -> Array:
    """Per split the distance of a final model from the usual one, as a share of its length."""
    model = np.asarray(trace.state)
    usual_model = np.asarray(usual.state)
    distances = np.linalg.norm(model - usual_model, axis=1)
    lengths = np.linalg.norm(usual_model, axis=1)
    return np.asarray(distances / lengths)


def turning(trace: Trace) -> Array:
    """Per split the mean angle between the changes of two rounds."""
    angles = second_half(trace.info["turn"])
    return np.asarray(angles.mean(1))


def mixing(trace: Trace) -> Array:
    """Per split the mean of sigma (1 - sigma): how far a client mixes its two gradients."""
    sigma = second_half(trace.info["sigma"])
    mixed = sigma * (1 - sigma)
    return np.asarray(mixed.mean(1))


def local_norms(trace: Trace, shifts: tuple[int, ...]) -> Array:
    """|K_loc| of every pairing at the final models of a run, `[pairings, S]`."""
    by_shift = []
    for shift in shifts:
        norms = []
        for problem, w in final_models(trace, partial(paired, shift=shift)):
            objectives, constraints = client_gradients(problem, w)
            skew = skewness(objectives, constraints)
            norms.append(float(skew.local))
        by_shift.append(norms)
    return np.array(by_shift)
