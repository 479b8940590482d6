"""The quantities of the study of leakage: where every attack ends, and differences by seed."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedfw.leakage.runs import DEFAULTS
from papers.kit import quantities as kit
from papers.kit.numbers import Number, mean, share
from papers.kit.quantities import Quantities, estimates
from papers.kit.study import Params, Traces

CLEAR = 60.0  # dB: an error below a thousandth of the range; eight bits a pixel have 59
LOST = 0.0  # dB: an error as large as the range; how far beyond a search diverges tells nothing
SEEN = 25.0  # dB: a picture that one recognizes
#: Signals that are compared.
PAIRS = (("gradient", "l2"), ("gradient", "tensors"), ("l2", "l1"), ("tensors", "l1"))


def derive(traces: Traces, _: Params) -> Quantities:
    """Where every attack ends, and `a_minus_b`, differences of two signals' PSNR by seed.

    Those of all data have the mean over data sets and networks.
    """
    ends = bounded(kit.measured(traces, lambda trace: {"psnr": last(trace)}))
    apart = differences(ends)
    mean_apart = apart.groupby(level=["draw", "seed"]).mean()
    units = dict.fromkeys(apart, "dB")
    tables = [
        kit.of_runs(traces, measures),
        estimates(apart, units),
        estimates(mean_apart, units, data="all"),
        estimates(nothing(ends), {"nothing": "dB"}),
    ]
    return Quantities.of(tables, DEFAULTS)


def last(trace: Trace) -> Array:
    """Per seed the PSNR at the end."""
    return np.asarray(trace.metrics["psnr"][:, -1])


def measures(trace: Trace) -> dict[str, Number]:
    """What an attack is measured by."""
    psnr = trace.metrics["psnr"]
    return {
        "psnr": mean(last(trace), "dB"),
        "best": mean(psnr.max(1), "dB"),
        "seen": share(last(trace) >= SEEN, "%"),
        "steps": mean(first_seen(psnr), "steps"),
    }


def first_seen(psnr: Array) -> Array:
    """Per seed, the first step with 25 dB or more; as many as there are if there is none."""
    clear = psnr >= SEEN
    last_step = psnr.shape[1] - 1
    steps = np.where(clear.any(1), clear.argmax(1), last_step)
    return np.asarray(steps, float)


def bounded(values: pd.DataFrame) -> pd.DataFrame:
    """The final PSNR by seed, a column a signal, each between 0 and 60 dB.

    Above 60 dB pictures are equal to the eye, below 0 none is there. For every seed the better of
    the two attacks on the l1 oracle counts.
    """
    by_attack = values.set_index(["draw", "data", "network", "seed", "signal"])
    within = by_attack["psnr"].clip(lower=LOST, upper=CLEAR)
    ends = within.unstack("signal")
    ends["l1"] = ends[["l1", "soft"]].max(axis=1)
    return ends


def differences(ends: pd.DataFrame) -> pd.DataFrame:
    """Differences of the bounded PSNR of two signals."""
    return pd.DataFrame({f"{a}_minus_{b}": ends[a] - ends[b] for a, b in PAIRS})


def nothing(ends: pd.DataFrame) -> pd.DataFrame:
    """The PSNR from gradients on half of the seeds minus that on the others: null data."""
    places = []
    for _, gradient in ends["gradient"].groupby(level=["draw", "data", "network"]):
        half = len(gradient) // 2
        first_half = gradient[:half]
        second_half = gradient[half : 2 * half]
        places.append(first_half - second_half.to_numpy())
    return pd.DataFrame({"nothing": pd.concat(places)})
