"""The derived numbers of the study of Gram estimates and of local progress."""

from __future__ import annotations

import numpy as np

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.kit.numbers import Number, mean
from papers.kit.study import Params, Traces

WINDOW = 10  # rounds of a running mean
WAYS = {"two_way": "two-way", "one_way": "one-way"}


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    del p
    numbers: dict[str, Number] = {}
    for name, trace in traces.items():
        found = errors(trace) if name.startswith("gram_") else gains(trace)
        numbers |= {f"{name}.{k}": v for k, v in found.items()}
    return numbers


def errors(trace: Trace) -> dict[str, Number]:
    """Per estimate the mean nRMSE over the rounds in percent."""
    each = {k.removeprefix("nrmse_"): v for k, v in trace.info.items()}
    return {k: mean(100 * v.mean(1), "%") for k, v in each.items()}


def gains(trace: Trace) -> dict[str, Number]:
    """Mean gains in loss, and in accuracy in percentage points.

    `loss_share` is the gain of FedCMOO minus that of a client's share of FSMGDA's step; the same
    for `accuracy`.
    """
    found = {k: in_points(k, v) for k, v in trace.info.items()}
    for what in ("loss", "accuracy"):
        lead = trace.info[f"method_{what}"] - trace.info[f"share_{what}"]
        found[f"{what}_share"] = in_points(what, lead)
    return found


def in_points(name: str, each: Array) -> Number:
    if "accuracy" in name:
        return mean(100 * each.mean(1), "points")
    return mean(each.mean(1))


def running(each: Array, window: int = WINDOW) -> Array:
    """Means over `window` successive rounds, `[S, T - window + 1]`; over all of fewer rounds."""
    width = min(window, each.shape[1])
    return np.asarray(np.lib.stride_tricks.sliding_window_view(each, width, axis=1).mean(-1))
