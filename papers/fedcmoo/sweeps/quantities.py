"""The quantities of the study of local steps and preferences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from fedlib.core import Trace
from fedlib.core.trace import Array
from fedlib.weights.preference import balancing
from papers.fedcmoo.common import GREY
from papers.fedcmoo.sweeps.runs import DEFAULTS
from papers.kit import quantities as kit
from papers.kit.numbers import Number, mean
from papers.kit.quantities import Quantities, Row, row, run_of, sweep
from papers.kit.study import Params, Traces

LATE = 0.9  # final: the mean over the evaluations from this share of the rounds on


def derive(traces: Traces, p: Params) -> Quantities:
    """The table of quantities: of every run, and FedCMOO's lead by the number of local steps."""
    rows = [lead for data in GREY for lead in leads_on(data, traces, p)]
    rows += [slope for data in GREY for slope in slopes_on(data, traces)]
    return Quantities.of([kit.of_runs(traces, measures), rows], DEFAULTS)


def measures(trace: Trace) -> dict[str, Number]:
    """Final accuracies, and how near the final test losses are to the preference.

    `quotient` is F_1 / F_2, `mu` the divergence of (r_1 F_1, r_2 F_2) from equal shares.
    """
    numbers = {
        curve: mean(final(trace, curve)) for curve in ("accuracy", "accuracy_1", "accuracy_2")
    }
    if "ratio" in kit.labels_of(trace):
        losses = np.stack([final(trace, "loss_1"), final(trace, "loss_2")], axis=1)
        numbers["quotient"] = mean(losses[:, 0] / losses[:, 1])
        numbers["mu"] = mean(imbalance(losses, ratios_of(trace)))
    return numbers


def final(trace: Trace, curve: str) -> Array:
    """The final value of a curve, by seed."""
    late = trace.rounds >= LATE * trace.rounds[-1]
    return np.asarray(trace.metrics[curve][:, late].mean(1))


def ratios_of(trace: Trace) -> tuple[float, float]:
    """The preference of a run, (r_1, r_2)."""
    r_1, r_2 = trace.config["algorithm"]["preference"]["ratios"]
    return float(r_1), float(r_2)


def imbalance(losses: Array, ratios: tuple[float, float]) -> list[float]:
    """The divergence mu for some losses, a row a seed, and a preference."""
    preference = torch.tensor(ratios).double()
    return [float(balancing(torch.tensor(of_seed), preference)[1]) for of_seed in losses]


def slopes_on(data: str, traces: Traces) -> Iterator[Row]:
    """The slope of log F_1 / F_2 over log r_2 / r_1 by seed; 1 where the preference is met.

    That of the order `permuted` gives the seeds' quotients other preferences, in turn: null data.
    """
    runs = sweep(traces, DEFAULTS, "ratio", data=data)
    if len(runs) < 2:
        return
    preferences = np.log([*runs])
    quotients = np.log([final(run, "loss_1") / final(run, "loss_2") for run in runs.values()])
    yield row("slope", mean(slopes(preferences, quotients)), data=data)
    null = mean(slopes(preferences, kit.permuted(quotients)))
    yield row("slope", null, data=data, order="permuted")


def slopes(x: Array, y: Array) -> Array:
    """The least squares slope of every column of y over x."""
    centred = x - x.mean()
    return np.asarray(centred @ y / (centred @ centred))


def leads_on(data: str, traces: Traces, p: Params) -> Iterator[Row]:
    """FedCMOO minus FSMGDA in points, with each number of local steps; most minus fewest steps.

    Also that on the first seeds minus that on the last: null data.
    """
    leads = {}
    for steps in p["steps"]:
        ours = run_of(traces, DEFAULTS, data=data, method="fedcmoo", steps=steps)
        theirs = run_of(traces, DEFAULTS, data=data, method="fsmgda", steps=steps)
        leads[steps] = 100 * (final(ours, "accuracy") - final(theirs, "accuracy"))
        yield row("lead", mean(leads[steps], "points"), data=data, steps=steps)
    most = max(leads)
    growth = mean(leads[most] - leads[min(leads)], "points")
    yield row("lead", growth, data=data, steps=most, minus="fewest")
    pairs = max(2, len(leads[most]) // 2)
    if len(leads[most]) > 2:
        null = mean(leads[most][:pairs] - leads[most][-pairs:], "points")
        yield row("lead", null, data=data, steps=most, minus="nothing")
