"""The derived numbers of the sweeps over local steps and over preferences."""

from __future__ import annotations

import numpy as np
import torch

from fedlib.core import Trace
from fedlib.core.trace import Array
from fedlib.weights.rules import balancing
from papers.fedcmoo.common import GREY
from papers.kit.numbers import Number, mean
from papers.kit.study import Params, Traces

LATE = 0.9  # final: the mean over the evaluations from this share of the rounds on
CURVES = ("accuracy", "accuracy_1", "accuracy_2")


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    numbers: dict[str, Number] = {}
    for name, trace in traces.items():
        numbers |= {f"{name}.{k}": mean(final(trace, k)) for k in CURVES}
        if "_ratio" in name:
            numbers |= {f"{name}.{k}": v for k, v in balance(trace).items()}
    for data in GREY:
        leads = {}
        for steps in p["steps"]:
            ours, other = (traces[f"{data}_{m}_steps{steps}"] for m in ("fedcmoo", "fsmgda"))
            leads[steps] = 100 * (final(ours, "accuracy") - final(other, "accuracy"))
            numbers[f"{data}.lead{steps}"] = mean(leads[steps], "points")
        fewest, most = min(leads), max(leads)
        numbers[f"{data}.growth"] = mean(leads[most] - leads[fewest], "points")
    return numbers


def final(trace: Trace, name: str) -> Array:
    late = trace.rounds >= LATE * trace.rounds[-1]
    return np.asarray(trace.metrics[name][:, late].mean(1))


def ratios_of(trace: Trace) -> tuple[float, float]:
    first, second = trace.config["algorithm"]["preference"]["ratios"]
    return float(first), float(second)


def balance(trace: Trace) -> dict[str, Number]:
    """How near the final test losses are to the preference.

    `quotient` is F_1 / F_2, `mu` the divergence of (r_1 F_1, r_2 F_2) from equal shares.
    """
    r = torch.tensor(ratios_of(trace)).double()
    losses = np.stack([final(trace, "loss_1"), final(trace, "loss_2")], 1)  # [S, 2]
    pairs = [balancing(torch.tensor(row), r)[1] for row in losses]
    return {
        "quotient": mean(losses[:, 0] / losses[:, 1]),
        "mu": mean([float(mu) for mu in pairs]),
    }
