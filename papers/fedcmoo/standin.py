"""Stand-ins for the data of the FedCMOO studies, which need no download.

The pictures are made of scikit-learn's digits in the way in which the paper's are made of MNIST,
Fashion-MNIST and CIFAR-10: of the same size, with the same encoder and two labels of ten classes.
They show that everything runs. No claim is judged by them: their configuration names them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import UInt8
from torch import Tensor

from fedlib import checks, data
from fedlib.checks import Count, Positive, Seed, Whole
from fedlib.core import Problem
from papers.fedcmoo.common import slice_pairs
from papers.fedcmoo.data.pairs import CIFAR10_SCALE, MNIST_SCALE, NAMES, Pairs, beside, blended
from papers.fedcmoo.guarded import with_plain_values
from papers.fedcmoo.problems.paired_digits import paired_digits
from papers.fedcmoo.problems.paired_dropout import dropped
from papers.kit.study import Params, Traces

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from papers.kit.plot import Drawing

#: The values of the parameter `source`.
PAPER, STAND_IN = 0, 2
DIGITS = "pairs of scikit-learn's digits"
MANY = "stand-in"  # the data of the study of many objectives, where they are such pairs

HELD = 597  # of scikit-learn's 1797 digits, for the test
DIM = 0.4  # how bright every second row of a striped digit is


def stands_in(who: str, p: Params) -> bool:
    """Whether the parameters ask for stand-ins; ValueError for another `source`."""
    checks.one_of(who, "source", p["source"], (PAPER, STAND_IN))
    return bool(p["source"] == STAND_IN)


@lru_cache(maxsize=3)
def standin_problem(
    seed: Seed,
    *,
    data: str,
    clients: Count,
    alpha: Positive,
    copies: Whole,
    pictures: Whole,
    test_pictures: Whole,
    kinds: tuple[str, str] = ("nll", "nll"),
) -> Problem:
    """`cmoo_common.pair_problem` on stand-ins, with the same arguments."""
    checks.arguments(standin_problem, locals())
    train, held = standin_pairs(data, "train", pictures), None
    if data == "cifar10_mnist":
        kept = len(train.y) - len(train.y) // 5
        train, held = slice_pairs(train, slice(kept)), slice_pairs(train, slice(kept, None))
    return paired_digits(
        train,
        standin_pairs(data, "test"),
        clients=clients,
        seed=seed,
        alpha=alpha,
        copies=copies,
        kinds=kinds,
        evaluate=test_pictures or None,
        held=held,
        config={"data": data, "stand_in": DIGITS},
    )


def dropped_standin(seed: int, **task: Any) -> Problem:
    return dropped(standin_problem(seed, **task), MNIST_SCALE)


def valued_standin(seed: int, **task: Any) -> Problem:
    """Trained with dropout; clients evaluate losses without."""
    plain = standin_problem(seed, **task)
    return with_plain_values(dropped(plain, MNIST_SCALE), plain)


@lru_cache(maxsize=6)
def standin_pairs(name: str, split: str, limit: Whole = 0) -> Pairs:
    """Pictures in the form of a set of `pairs.NAMES`; of the 1797 digits, 597 are for the test.

    In place of MultiMNIST two digits; of MNIST + Fashion-MNIST a digit and one with striped rows;
    of CIFAR-10 + MNIST a large coloured digit below a pale one. Partners are a permutation.
    A `limit` of 0 gives all pictures.
    """
    checks.arguments(standin_pairs, locals())
    checks.one_of("standin_pairs", "name", name, NAMES)
    checks.one_of("standin_pairs", "split", split, ("train", "test"))
    table = data.digits()
    rows = slice(-HELD, None) if split == "test" else slice(-HELD)
    small, y = table.X[rows], table.y[rows]
    checks.count("standin_pairs", "limit", limit, 0, len(y), "the digits of the split")
    rng = torch.Generator().manual_seed(int(split == "test"))
    other = torch.randperm(len(y), generator=rng)
    many = limit or len(y)
    small, partner = small[:many], small[other[:many]]
    labels = torch.stack([y[:many], y[other[:many]]], 1)
    if name == "multi_mnist":
        X = beside(on_28(small), on_28(partner), side=36, offset=6).unsqueeze(1)
        return Pairs(X, labels, ("left digit", "right digit"), MNIST_SCALE)
    if name == "mnist_fashion":
        X = beside(on_28(small), on_28(striped(partner)), side=42, offset=14).unsqueeze(1)
        return Pairs(X, labels, ("digit", "striped digit"), MNIST_SCALE)
    X = blended(coloured(small, rng), on_28(partner))
    names = ("coloured digit", "pale digit")
    return Pairs(X, labels, names, CIFAR10_SCALE, angle=30, nearest=True, mirror=0.4)


def enlarged(X: UInt8[Tensor, "R 8 8"], times: int) -> UInt8[Tensor, "R h h"]:
    """Every pixel a square of `times` pixels a side, and 0-16 as 0-240."""
    return (X * 15).repeat_interleave(times, 1).repeat_interleave(times, 2)


def on_28(X: UInt8[Tensor, "R 8 8"]) -> UInt8[Tensor, "R 28 28"]:
    whole = X.new_zeros(len(X), 28, 28)
    whole[:, 2:26, 2:26] = enlarged(X, 3)
    return whole


def striped(X: UInt8[Tensor, "R 8 8"]) -> UInt8[Tensor, "R 8 8"]:
    light = torch.ones(8)
    light[1::2] = DIM
    return (X * light.unsqueeze(-1)).to(torch.uint8)


def coloured(X: UInt8[Tensor, "R 8 8"], rng: torch.Generator) -> UInt8[Tensor, "R 3 32 32"]:
    """A digit on all of 32 x 32 pixels, ground and ink of random colours, the ink lighter."""
    share = (enlarged(X, 4).float() / 240).unsqueeze(1)
    ground = 110 * torch.rand(len(X), 3, 1, 1, generator=rng)
    ink = 255 - 110 * torch.rand(len(X), 3, 1, 1, generator=rng)
    return (ground + share * (ink - ground)).to(torch.uint8)


def what(traces: Traces) -> str | None:
    """What stands in for the paper's data, in words; None for the paper's data."""
    problems = [trace.config.get("problem", {}) for trace in traces.values()]
    found = [p.get("stand_in") or (DIGITS if p.get("data") == MANY else "") for p in problems]
    return next((str(words) for words in found if words), None)


def source_text(traces: Traces, paper: str) -> str:
    """Where the data come from: `paper` names those that a stand-in would replace."""
    made = what(traces)
    return f"data: {paper}" if made is None else f"data: {made}, a stand-in for {paper}"


def noted(
    figures: Mapping[str, Callable[[Traces], Drawing]],
) -> dict[str, Callable[[Traces], Drawing]]:
    """The figures, with a line on the picture itself where it shows stand-ins."""
    return {name: partial(with_note, figure) for name, figure in figures.items()}


def with_note(figure: Callable[[Traces], Drawing], traces: Traces) -> Drawing:
    drawn, made = figure(traces), what(traces)

    def draw(fig: Figure) -> None:
        drawn(fig)
        if made is not None:
            fig.suptitle(f"stand-in: {made}", fontsize=9, style="italic")

    return draw
