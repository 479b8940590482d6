"""Partitions of features or parameters among clients."""

from collections import Counter
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field

import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count, Whole


@dataclass(frozen=True, eq=False)
class Partition:
    """A partition of the numbers 0 .. size - 1 into disjoint parts.

    >>> halves = Partition("features", (torch.tensor([0, 2]), torch.tensor([1, 3])), 4)
    >>> halves.split(torch.tensor([5, 6, 7, 8]))
    (tensor([5, 7]), tensor([6, 8]))

    Parameters
    ----------
    name : str
        Names the parts in error messages, such as "features".
    parts : tuple of Tensor
        The numbers of each part.
    size : int
        How many numbers are divided.

    Raises ValueError for a number that is in no part, in two of them, or outside 0 .. size - 1.
    """

    name: str
    parts: tuple[Int[Tensor, "_"], ...]
    size: Whole
    order: Int[Tensor, "size"] = field(init=False, repr=False)  # places in the joined parts
    ranges: tuple[slice | None, ...] = field(init=False, repr=False)  # parts that are consecutive

    def __post_init__(self) -> None:
        checks.fields(self)
        numbers = torch.cat(self.parts) if self.parts else torch.zeros(0, dtype=torch.int64)
        count = Counter(numbers.tolist())
        wrong = {}
        for number in {*count, *range(self.size)}:
            required = 0
            if 0 <= number < self.size:
                required = 1
            if count[number] != required:
                wrong[number] = count[number]
        checks.require(
            not wrong,
            "vertical",
            self.name,
            f"have each of 0..{self.size - 1} in one block",
            wrong,
            "shown: number of blocks",
        )
        ranges = tuple(map(consecutive, self.parts))
        object.__setattr__(self, "order", numbers.argsort())
        object.__setattr__(self, "ranges", ranges)

    def cut(
        self,
        x: Shaped[Tensor, "*b size"],
        part: int,
    ) -> Shaped[Tensor, "*b k"]:
        """Select the entries of one part."""
        return x[..., self.ranges[part] or self.parts[part]]

    def split(
        self,
        x: Shaped[Tensor, "*b size"],
    ) -> tuple[Shaped[Tensor, "*b _"], ...]:
        """Split a vector into all parts."""
        return tuple(self.cut(x, index) for index in range(len(self.parts)))

    def join(
        self,
        pieces: Sequence[Shaped[Tensor, "*b _"]],
    ) -> Shaped[Tensor, "*b size"]:
        """Join the parts to a vector."""
        joined = torch.cat(list(pieces), -1)
        return joined.index_select(-1, self.order)

    def to(self, device: torch.device | str) -> "Partition":
        """The same partition with its tensors on `device`."""
        moved = copy(self)  # a copy needs no new check
        blocks = tuple(block.to(device) for block in self.parts)
        object.__setattr__(moved, "parts", blocks)
        object.__setattr__(moved, "order", self.order.to(device))
        return moved


def consecutive(block: Int[Tensor, "k"]) -> slice | None:
    """The numbers a, a + 1, ..., b - 1 as `slice(a, b)`; None if they are not consecutive."""
    start = 0
    if len(block):
        start = int(block[0])
    stop = start + len(block)
    if torch.equal(block, torch.arange(start, stop)):
        return slice(start, stop)
    return None


def contiguous(size: Count, clients: Count) -> tuple[Int[Tensor, "_"], ...]:
    """Divide 0 .. size - 1 into consecutive blocks; the first ones may be longer by one.

    >>> [len(block) for block in contiguous(10, 4)]
    [3, 3, 2, 2]

    Raises ValueError if there are more clients than numbers.
    """
    checks.arguments(contiguous, locals())
    checks.count("contiguous", "clients", clients, 1, size, "the number of features")
    return torch.tensor_split(torch.arange(size), clients)
