"""Stand-ins for the data of the FedCMOO studies, which need no download.

The pictures are made of scikit-learn's digits in the way in which the paper's are made of MNIST,
Fashion-MNIST and CIFAR-10: of the same size, with the same encoder and two labels of ten classes.
They show that everything runs. No claim is judged by them: their configuration names them.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from jaxtyping import UInt8
from torch import Tensor

from fedlib import checks, data
from fedlib.checks import Whole
from papers.fedcmoo.data.pairs import CIFAR10_SCALE, MNIST_SCALE, Pairs, beside, blended
from papers.kit import plot
from papers.kit.study import Params, Traces

#: The values of the parameter `source`.
PAPER = 0
STAND_IN = 2
DIGITS = "pairs of scikit-learn's digits"

HELD = 597  # of scikit-learn's 1797 digits, for the test


def stands_in(study: str, p: Params) -> bool:
    """Whether the parameters ask for stand-ins; ValueError for another `source`."""
    checks.one_of(study, "source", p["source"], (PAPER, STAND_IN))
    return bool(p["source"] == STAND_IN)


@lru_cache(maxsize=6)
def standin_pairs(name: str, split: str, limit: Whole = 0) -> Pairs:
    """Two digits in the form of a set of `pairs.NAMES`; of the 1797 digits, 597 are for the test.

    For CIFAR-10 + MNIST the first is as large as the picture, grey in all channels. Partners are a
    permutation. A `limit` of 0 gives all pictures.
    """
    table = data.digits()
    rows = slice(-HELD, None) if split == "test" else slice(-HELD)
    small = table.X[rows]
    y = table.y[rows]
    rng = torch.Generator().manual_seed(int(split == "test"))
    partners = torch.randperm(len(y), generator=rng)
    count = limit or len(y)
    left = small[:count]
    chosen = partners[:count]
    right = on_28(small[chosen])
    labels = torch.stack([y[:count], y[chosen]], 1)
    names = ("first digit", "second digit")
    if name == "cifar10_mnist":
        large = enlarged(left, 4).unsqueeze(1)
        return Pairs(
            X=blended(large.repeat(1, 3, 1, 1), right),
            y=labels,
            names=names,
            scale=CIFAR10_SCALE,
            angle=30,
            nearest=True,
            mirror=0.4,
        )
    side, offset = (36, 6) if name == "multi_mnist" else (42, 14)
    X = beside(on_28(left), right, side, offset)
    return Pairs(X.unsqueeze(1), labels, names, MNIST_SCALE)


def enlarged(X: UInt8[Tensor, "R 8 8"], times: int) -> UInt8[Tensor, "R h h"]:
    """Every pixel a square of `times` pixels a side, and 0-16 as 0-240."""
    taller = (X * 15).repeat_interleave(times, 1)
    return taller.repeat_interleave(times, 2)


def on_28(X: UInt8[Tensor, "R 8 8"]) -> UInt8[Tensor, "R 28 28"]:
    canvas = X.new_zeros(len(X), 28, 28)
    canvas[:, 2:26, 2:26] = enlarged(X, 3)
    return canvas


def what(traces: Traces) -> str | None:
    """What stands in for the paper's data, in words; None for the paper's data."""
    for trace in traces.values():
        problem = trace.config.get("problem", {})
        if problem.get("stand_in"):
            return str(problem["stand_in"])
    return None


def source_text(traces: Traces, paper: str) -> str:
    """Where the data come from: `paper` names those that a stand-in would replace."""
    stand_in = what(traces)
    if stand_in is None:
        return f"data: {paper}"
    return f"data: {stand_in}, a stand-in for {paper}"


def note(figure: plot.Figure, traces: Traces) -> None:
    """Say on the picture itself where it shows stand-ins."""
    stand_in = what(traces)
    if stand_in is not None:
        figure.suptitle(f"stand-in: {stand_in}", fontsize=9, style="italic")
