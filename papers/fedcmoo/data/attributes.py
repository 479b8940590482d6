"""Forty binary attributes of a digit and an item.

CelebA, forty attributes of a face, may not be passed on. The forty attributes here belong to the
pictures of MNIST with Fashion-MNIST (`pairs.mnist_fashion`): twenty are facts about the digit,
twenty about the item, and each is a set of classes, `DIGITS` or `ITEMS`. As with faces, one picture
answers all forty, some are rare, some go together and some against each other.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from papers.fedcmoo.data.pairs import Pairs, Scale

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
    table = [[int(str(c) in has) for c in range(10)] for has in (*DIGITS.values(), *ITEMS.values())]
    member = torch.tensor(table, dtype=torch.uint8)  # [A, class]
    digit, item = pairs.y.unbind(1)
    own = member[: len(DIGITS)].T[digit], member[len(DIGITS) :].T[item]
    return Labelled(pairs.X, torch.cat(own, 1), pairs.cells(), pairs.scale)
