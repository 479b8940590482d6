"""Products of sets, one for each part of a vector, and one set for each client."""

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

    It constrains a network tensor by tensor; `of_shapes` makes it. All methods act part by part.
    Raises ValueError or TypeError for lists of different lengths, or a size that is not a positive
    whole number.

    >>> from fedlib import Ball, Box
    >>> Blocks((Ball(1.0), Box(1.0)), (2, 1)).project(torch.tensor([3.0, -4.0, 5.0]))
    tensor([ 0.6000, -0.8000,  1.0000])
    """

    sets: tuple[ConvexSet, ...]
    sizes: tuple[Count, ...]

    def __post_init__(self) -> None:
        checks.fields(self)  # numpy's counts become Python's
        fits, rule = len(self.sets) == len(self.sizes) > 0, f"have one set for each of {self.sizes}"
        checks.require(fits, "Blocks", "sets", rule, self.sets)

    @classmethod
    def of_shapes(
        cls, shapes: Sequence[Sequence[int]], sets: ConvexSet | Sequence[ConvexSet]
    ) -> "Blocks":
        """A set for every tensor of a network, or one common set for all of them.

        `shapes` is a list such as `[p.shape for p in module.parameters()]`.
        """
        each = tuple(sets) if isinstance(sets, Sequence) else (sets,) * len(shapes)
        return cls(each, tuple(math.prod(shape) for shape in shapes))

    def project(self, x: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
        """The nearest point of the set."""
        return torch.cat([s.project(part) for s, part in self._parts(x)])

    def contains(self, x: Float[Tensor, " d"], tol: float = 1e-6) -> Bool[Tensor, ""]:
        """Whether every part lies in its set up to `tol`, as a 0-d bool tensor."""
        return torch.stack([s.contains(part, tol) for s, part in self._parts(x)]).all()

    def lmo(self, direction: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
        """A minimizer of <direction, s> over the set."""
        return torch.cat([s.lmo(part) for s, part in self._parts(direction)])

    def diameter(self, dim: int) -> float:
        """The largest distance between two points: the root of the parts' sum of squares."""
        # every set of this library has `diameter`, although the protocol does not require it
        each = [s.diameter(k) for s, k in zip(self.sets, self.sizes, strict=True)]  # type: ignore[attr-defined]
        return math.hypot(*each)

    def gauge(self, x: Float[Tensor, " d"]) -> Float[Tensor, ""]:
        """The largest gauge among the parts."""
        return torch.stack([gauge_of(s, part) for s, part in self._parts(x)]).amax()

    def wire(self, dim: int) -> Several:
        """The message of an extreme point consists of its parts' messages."""
        return Several(tuple(map(wire_of, self.sets, self.sizes)), self.sizes)

    def _parts(self, x: Tensor) -> list[tuple[ConvexSet, Tensor]]:
        checks.vector("Blocks", "x", x, sum(self.sizes))
        return list(zip(self.sets, torch.split(x, list(self.sizes)), strict=True))


@dataclass(frozen=True)
class PerClient:
    """Split constraints: each client has its own set, client j the set `sets[of[j]]`.

    The problem's feasible set is the intersection of these sets. Raises ValueError or TypeError
    unless `of` holds places in `sets`, and each set has a client.

    >>> from fedlib import Ball, Box
    >>> PerClient((Ball(1.0), Box(1.0)), of=(0, 1, 0)).groups()
    [(Ball(radius=1.0), [0, 2]), (Box(low=-1.0, high=1.0), [1])]
    """

    sets: tuple[ConvexSet, ...]
    of: tuple[int, ...]

    def __post_init__(self) -> None:
        checks.fields(self)
        fits, n = {*self.of} == {*range(len(self.sets))}, len(self.sets)
        checks.require(fits, "PerClient", "of", f"hold all of 0..{n - 1} (the sets)", self.of)

    def groups(self) -> list[tuple[ConvexSet, list[int]]]:
        """Each set with its clients, in the order of `sets`."""
        return [
            (each, [j for j, k in enumerate(self.of) if k == index])
            for index, each in enumerate(self.sets)
        ]
