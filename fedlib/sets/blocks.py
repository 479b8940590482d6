"""Products of sets, one for each part of the vector, and one set for each client."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count
from fedlib.core.problem import ConvexSet
from fedlib.sets.vertices import Several, gauge_of, wire_of


@dataclass(frozen=True)
class Blocks:
    """The product of sets: the first `sizes[0]` entries lie in `sets[0]`, and so on.

    A network's constraint tensor by tensor; `of_shapes` makes it. All oracles act part by part.

    Raises ValueError or TypeError for lists of different lengths, or a size that is no whole
    number from 1 on.

    >>> from fedlib import Ball, Box
    >>> Blocks((Ball(1.0), Box(1.0)), (2, 1)).project(torch.tensor([3.0, -4.0, 5.0]))
    tensor([ 0.6000, -0.8000,  1.0000])
    """

    sets: tuple[ConvexSet, ...]
    sizes: tuple[Count, ...]

    def __post_init__(self) -> None:
        checks.value("Blocks", "sets", self.sets, Sequence[ConvexSet])
        checks.value("Blocks", "sizes", self.sizes, Sequence)
        object.__setattr__(self, "sets", tuple(self.sets))
        object.__setattr__(self, "sizes", tuple(self.sizes))
        for size in self.sizes:
            checks.count("Blocks", "sizes", size)
        checks.fields(self)  # numpy's counts become Python's
        if not self.sizes or len(self.sets) != len(self.sizes):
            rule = f"hold a set for each of the {len(self.sizes)} sizes"
            raise ValueError(checks.sentence("Blocks", "sets", rule, len(self.sets)))

    @classmethod
    def of_shapes(
        cls, shapes: Sequence[Sequence[int]], sets: ConvexSet | Sequence[ConvexSet]
    ) -> Blocks:
        """A set for every tensor of a network, or one and the same set for all of them.

        `shapes` as in `[p.shape for p in module.parameters()]`.
        """
        each = tuple(sets) if isinstance(sets, Sequence) else (sets,) * len(shapes)
        return cls(each, tuple(math.prod(shape) for shape in shapes))

    def project(self, x: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
        """The nearest point of the set."""
        return torch.cat([s.project(part) for s, part in self._parts(x)])

    def contains(self, x: Float[Tensor, " d"], tol: float = 1e-6) -> Bool[Tensor, ""]:
        """Whether every part lies in its set up to `tol`; a 0-d bool tensor."""
        checks.nonnegative("Blocks", "tol", tol)
        return torch.stack([s.contains(part, tol) for s, part in self._parts(x)]).all()

    def lmo(self, direction: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
        """A minimizer of <direction, s> over the set."""
        return torch.cat([s.lmo(part) for s, part in self._parts(direction)])

    def diameter(self, dim: int) -> float:
        """The largest distance of two points: the root of the sum of squares over the parts."""
        self._check(dim)
        # every set of this library says its diameter; the protocol does not ask for it
        each = [s.diameter(k) for s, k in zip(self.sets, self.sizes, strict=True)]  # type: ignore[attr-defined]
        return math.hypot(*each)

    def gauge(self, x: Float[Tensor, " d"]) -> Float[Tensor, ""]:
        """The largest gauge of a part."""
        return torch.stack([gauge_of(s, part) for s, part in self._parts(x)]).amax()

    def wire(self, dim: int) -> Several:
        """An extreme point travels part by part."""
        self._check(dim)
        return Several(
            tuple(wire_of(s, k) for s, k in zip(self.sets, self.sizes, strict=True)), self.sizes
        )

    def _parts(self, x: Tensor) -> list[tuple[ConvexSet, Tensor]]:
        checks.vector("Blocks", "x", x, sum(self.sizes))
        self._check(len(x))
        return list(zip(self.sets, torch.split(x, list(self.sizes)), strict=True))

    def _check(self, dim: int) -> None:
        checks.count("Blocks", "dim", dim)
        if dim != sum(self.sizes):
            rule = f"be the sum of sizes, {sum(self.sizes)}"
            raise ValueError(checks.sentence("Blocks", "dim", rule, dim))


@dataclass(frozen=True)
class PerClient:
    """A set for every client (split constraints): client j's is `sets[of[j]]`.

    The intersection of the sets is the problem's feasible set. A client with slow arithmetic gets a
    set with a cheap oracle, one with a slow link a set with short extreme points.

    Raises ValueError or TypeError unless `of` holds whole numbers that count the sets, and each
    set has a client.

    >>> from fedlib import Ball, Box
    >>> PerClient((Ball(1.0), Box(1.0)), of=(0, 1, 0)).groups()
    [(Ball(radius=1.0), [0, 2]), (Box(low=-1.0, high=1.0), [1])]
    """

    sets: tuple[ConvexSet, ...]
    of: tuple[int, ...]

    def __post_init__(self) -> None:
        checks.value("PerClient", "sets", self.sets, Sequence[ConvexSet])
        checks.value("PerClient", "of", self.of, Sequence)
        object.__setattr__(self, "sets", tuple(self.sets))
        object.__setattr__(self, "of", tuple(self.of))
        checks.fields(self)
        for index in self.of:
            checks.count("PerClient", "of", index, 0, len(self.sets) - 1, "the sets")
        idle = sorted(set(range(len(self.sets))) - set(self.of))
        if idle:
            rule = "give every set a client"
            raise ValueError(checks.sentence("PerClient", "of", rule, f"none for set {idle[0]}"))

    def groups(self) -> list[tuple[ConvexSet, list[int]]]:
        """Every set and its clients, in the order of `sets`."""
        return [
            (each, [j for j, k in enumerate(self.of) if k == index])
            for index, each in enumerate(self.sets)
        ]
