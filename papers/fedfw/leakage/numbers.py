"""The derived numbers of the study of leakage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedlib.core.trace import Array
from papers.kit.numbers import Number, mean, measured
from papers.kit.study import Params, Traces

SIGNALS = ("gradient", "l2", "tensors", "l1", "soft")
CLEAR = 60.0  # dB: an error below a thousandth of the range; eight bits a pixel have 59
SEEN = 25.0  # dB: a picture that one recognizes


def places(traces: Mapping[str, Any]) -> list[str]:
    """Data set and network of all attacks, such as `"mnist_lenet"`."""
    return [name.removesuffix("_gradient") for name in traces if name.endswith("_gradient")]


def capped(x: Array) -> Array:
    """PSNR in dB, where everything above 60 counts as 60: such pictures are equal to the eye."""
    return np.minimum(x, CLEAR)


def derive(traces: Traces, _: Params) -> dict[str, Number]:
    """Where every attack ends, and differences by seed.

    Keys are `run.measure`; `place.a_minus_b` is the difference of two signals' PSNR, each capped at
    60 dB, by seed, where `l1` is for every seed the better of the exact and the softened attack;
    `places.a_minus_b` is its mean over data sets and networks.
    """
    numbers = measured(traces, MEASURES)
    each = {place: differences(traces, place) for place in places(traces)}
    for place, pairs in each.items():
        numbers |= {f"{place}.{k}": mean(x, "dB") for k, x in pairs.items()}
    for k in next(iter(each.values()), {}):
        numbers[f"places.{k}"] = mean(np.mean([pairs[k] for pairs in each.values()], 0), "dB")
    return numbers


def last(x: Array) -> Array:
    return np.asarray(x[:, -1])


def first_seen(path: Array) -> Array:
    """Per seed, the first step with 25 dB or more; as many as there are if there is none."""
    good = path >= SEEN
    return np.asarray(np.where(good.any(1), good.argmax(1), path.shape[1] - 1), float)


MEASURES = {
    "psnr": (lambda t: last(t.metrics["psnr"]), "dB"),
    "best": (lambda t: t.metrics["psnr"].max(1), "dB"),
    "seen": (lambda t: last(t.metrics["psnr"]) >= SEEN, "%"),
    "steps": (lambda t: first_seen(t.metrics["psnr"]), "steps"),
}


def differences(traces: Traces, place: str) -> dict[str, Array]:
    end = {s: capped(last(traces[f"{place}_{s}"].metrics["psnr"])) for s in SIGNALS}
    end["l1"] = np.maximum(end["l1"], end["soft"])
    pairs = (("gradient", "l2"), ("gradient", "tensors"), ("l2", "l1"), ("tensors", "l1"))
    return {f"{a}_minus_{b}": end[a] - end[b] for a, b in pairs}
