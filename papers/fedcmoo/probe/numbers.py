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
    """Per estimate the mean nRMSE over the rounds in percent, and in how many an order holds.

    `two_way_order`: largest < low rank < random, the paper's for two tasks; `two_way_best`: low
    rank below both, the paper's for forty. The same with `one_way_`; `two_way_gain`: in how many
    rounds the second exchange lowers the error of the low-rank sketch.
    """
    each = {k.removeprefix("nrmse_"): v for k, v in trace.info.items()}
    found = {k: mean(100 * v.mean(1), "%") for k, v in each.items()}
    for way in WAYS:
        largest, low, masked = (each[f"{way}_{k}"] for k in ("largest16", "block", "unscaled"))
        ordered, best = (largest < low) & (low < masked), low < np.minimum(largest, masked)
        found[f"{way}_order"] = mean(ordered.mean(1), "of rounds")
        found[f"{way}_best"] = mean(best.mean(1), "of rounds")
    helps = each["two_way_block"] < each["one_way_block"]
    found["two_way_gain"] = mean(helps.mean(1), "of rounds")
    return found


def gains(trace: Trace) -> dict[str, Number]:
    """Mean gains in loss, and in accuracy in percentage points, and the method's lead.

    `loss_alone` is the gain of FedCMOO minus that of FSMGDA's models of one objective each,
    `loss_alone_ahead` the share of running means over `WINDOW` rounds in which it is positive; the
    same against `share`, a client's share of FSMGDA's step, and for `accuracy`.
    """
    found = {k: in_points(k, v) for k, v in trace.info.items()}
    for what in ("loss", "accuracy"):
        for other in ("alone", "share"):
            lead = trace.info[f"method_{what}"] - trace.info[f"{other}_{what}"]
            found[f"{what}_{other}"] = in_points(what, lead)
            ahead = (running(lead) > 0).mean(1)
            found[f"{what}_{other}_ahead"] = mean(ahead, "of running means")
    return found


def in_points(name: str, each: Array) -> Number:
    if "accuracy" in name:
        return mean(100 * each.mean(1), "points")
    return mean(each.mean(1))


def running(each: Array, window: int = WINDOW) -> Array:
    """Means over `window` successive rounds, `[S, T - window + 1]`; over all of fewer rounds."""
    width = min(window, each.shape[1])
    return np.asarray(np.lib.stride_tricks.sliding_window_view(each, width, axis=1).mean(-1))
