"""Many binary attributes of one picture: a task for each attribute, or for each group of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int, Shaped, UInt8
from torch import Tensor
from torch.nn.functional import softplus

from fedlib import models
from fedlib.core import Problem
from fedlib.core.sampling import seeded
from fedlib.data import split
from fedlib.problems.classification import row_losses
from papers.fedcmoo import networks
from papers.fedcmoo.data.pairs import Pairs, Scale
from papers.fedcmoo.problems.tasks import task_problem

#: Attribute of a digit -> the digits that have it. Segments are those of a seven-segment display.
DIGITS = {
    "even": "02468",
    "below five": "01234",
    "prime": "2357",
    "multiple of three": "0369",
    "square": "0149",
    "power of two": "1248",
    "Fibonacci number": "012358",
    "triangular number": "0136",
    "composite": "4689",
    "binary place of two": "2367",
    "binary place of four": "4567",
    "binary place of eight": "89",
    "divisor of twelve": "12346",
    "a digit upside down": "01689",
    "top segment": "02356789",
    "middle segment": "2345689",
    "bottom segment": "0235689",
    "upper left segment": "045689",
    "upper right segment": "01234789",
    "lower left segment": "0268",
}

#: Attribute of an item -> the Fashion-MNIST classes that have it.
ITEMS = {
    "footwear": "579",
    "for the upper body": "0246",
    "garment": "012346",
    "long sleeves": "246",
    "front opening": "46",
    "closed shoe": "79",
    "reaches below the knee": "134",
    "covers the ankle": "19",
    "bag": "8",
    "one piece for the whole body": "34",
    "for summer": "035",
    "for winter": "249",
    "worn over a shirt": "24",
    "shirt": "06",
    "for sport": "07",
    "even class number": "02468",
    "class number below five": "01234",
    "letter a in its name": "45789",
    "letter o in its name": "01249",
    "letter r in its name": "012367",
}

NAMES = (*DIGITS, *ITEMS)

#: Five tasks of eight attributes each, four of the digit and four of the item.
GROUPS = tuple(tuple(range(first, len(NAMES), 5)) for first in range(5))


class Labelled(NamedTuple):
    """Pictures, their binary attributes, and the label by which they are split over clients."""

    X: UInt8[Tensor, "R c h w"]
    a: UInt8[Tensor, "R A"]
    cells: Int[Tensor, "R"]
    scale: Scale


def labelled(pairs: Pairs) -> Labelled:
    """The forty attributes of the pictures of `pairs.mnist_fashion`; split by composite label."""
    digit, item = pairs.y.unbind(1)
    of_digits = members(DIGITS)[digit]
    of_items = members(ITEMS)[item]
    attributes = torch.cat([of_digits, of_items], 1)
    return Labelled(pairs.X, attributes, pairs.cells(), pairs.scale)


def members(classes: Mapping[str, str]) -> UInt8[Tensor, "10 A"]:
    """Which attributes each of ten classes has, from the classes of each attribute."""
    table = torch.zeros(10, len(classes), dtype=torch.uint8)
    for column, digits in enumerate(classes.values()):
        table[[*map(int, digits)], column] = 1
    return table


CHUNK = 500  # test pictures at a time


def attributes(
    train: Labelled,
    test: Labelled,
    *,
    groups: tuple[tuple[int, ...], ...] | None = None,
    clients: int = 100,
    seed: int = 0,
    alpha: float = 0.3,
    config: Mapping[str, Any] | None = None,
) -> Problem:
    r"""Objectives $f_{jk}$ = mean loss of task k on the pictures of client j, k = 1, ..., M.

    Without groups a task is one attribute, with a decoder of two outputs and their negative
    log-likelihood. With groups a task is all attributes of a group: a decoder of one output for
    each, the mean of their binary cross-entropies. Decoders are single linear maps on the encoder
    of `networks.pair_lenet`.

    `metrics`, on test pictures alone: `loss_k` and `accuracy_k` (with groups the share of right
    attributes), `loss` and `accuracy`, their means over tasks.

    Parameters
    ----------
    train, test : pictures with attributes.
    groups : numbers of the attributes of every task, equally many each.
    clients : N.
    seed : fixes the start and the split.
    alpha : concentration of the split by the pictures' cells.
    config : entries to add to the stored configuration, such as the data set's name.

    Reference: sections 7.1 and D of the paper (CelebA and CelebA-5).
    """
    grouped = groups is not None
    taken = train.a
    of_test = test.a
    if groups is not None:
        index = torch.tensor(groups)
        taken = taken[:, index]
        of_test = of_test[:, index]  # [R, M, members]
    tasks = taken.shape[1]
    outputs = taken.shape[2] if grouped else 2
    rng = seeded(seed, "split")
    module = networks.pair_lenet(rng, decoders=tasks, out=outputs, hidden=0)
    w0, apply = models.ravel(module)
    settings = {
        "clients": clients,
        "alpha": alpha,
        "attributes": train.a.shape[1],
        "objectives": tasks,
        "pictures": len(taken),
        "evaluate": len(of_test),
        "shared": networks.encoder_size(module),
    }

    def values(w: Tensor, data: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        pictures, target = data
        return attribute_values(apply(w, train.scale(pictures)), target, grouped)

    return task_problem(
        "attributes",
        values,
        CHUNK,
        data=(train.X, taken),
        rows=split.dirichlet(train.cells, clients, alpha, rng),
        heldout=(test.X, of_test),
        w0=w0,
        tasks=tasks,
        config={**settings, "split_by": "seed", **(config or {})},
    )


def attribute_values(
    outputs: Float[Tensor, "B M out"], target: Shaped[Tensor, "B M *members"], grouped: bool
) -> tuple[Float[Tensor, "B M"], Float[Tensor, "B M"]]:
    """What every row adds to the loss and to the accuracy of every task."""
    if not grouped:
        hits = outputs.argmax(-1) == target
        return row_losses(outputs, target.long()), hits.to(outputs.dtype)
    # cross-entropy of the sigmoid
    entropies = softplus(outputs) - target.to(outputs.dtype) * outputs
    hits = (outputs > 0) == (target > 0)
    return entropies.mean(-1), hits.to(outputs.dtype).mean(-1)
