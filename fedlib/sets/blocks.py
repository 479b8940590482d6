"""Products of sets, one for each part of a vector, and one set for each client."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count
from fedlib.core.problem import ConvexSet
from fedlib.sets.vertices import Several, gauge_of, wire_of
from fedlib.shapes import Flag, Scalar, Vector


@dataclass(frozen=True)
class Blocks:
    """The product of sets: the first `sizes[0]` entries lie in `sets[0]`, and so on.

    It constrains a network tensor by tensor; `of_shapes` makes it. All methods act part by part.
    Raises ValueError or TypeError for lists of different lengths, or a size that is not a positive
    whole number.

    >>> from fedlib import Ball, Box
    >>> Blocks((Ball(1.0), Box(1.0)), (2, 1)).project(torch.tensor([3.0, -4.0, 5.0]))
    tensor([ 0.6000, -0.8000,  1.0000])

    Parameters
    ----------
    sets : tuple of ConvexSet
        The set of each part.
    sizes : tuple of int
        The length of each part.
    """

    sets: tuple[ConvexSet, ...]
    sizes: tuple[Count, ...]

    def __post_init__(self) -> None:
        checks.fields(self)  # numpy's counts become Python's
        fits = len(self.sets) == len(self.sizes) > 0
        rule = f"have one set for each of {self.sizes}"
        checks.require(fits, "Blocks", "sets", rule, self.sets)

    @classmethod
    def of_shapes(
        cls,
        shapes: Sequence[Sequence[int]],
        sets: ConvexSet | Sequence[ConvexSet],
    ) -> "Blocks":
        """A set for every tensor of a network, or one common set for all of them.

        `shapes` is a list such as `[p.shape for p in module.parameters()]`.
        """
        sizes = tuple(map(math.prod, shapes))
        if not isinstance(sets, Sequence):
            sets = [sets] * len(shapes)
        return cls(tuple(sets), sizes)

    def project(self, x: Vector) -> Vector:
        """The nearest point of the set."""
        nearest = []
        for convex_set, piece in self._pieces(x):
            nearest.append(convex_set.project(piece))
        return torch.cat(nearest)

    def contains(self, x: Vector, tol: float = 1e-6) -> Flag:
        """Whether every part lies in its set up to `tol`, as a 0-d bool tensor."""
        inside = []
        for convex_set, piece in self._pieces(x):
            inside.append(convex_set.contains(piece, tol))
        return torch.stack(inside).all()

    def lmo(self, direction: Vector) -> Vector:
        """A minimizer of <direction, s> over the set."""
        vertices = []
        for convex_set, piece in self._pieces(direction):
            vertices.append(convex_set.lmo(piece))
        return torch.cat(vertices)

    def diameter(self, dim: int) -> float:
        """The largest distance between two points: the root of the parts' sum of squares."""
        diameters = []
        for convex_set, size in zip(self.sets, self.sizes, strict=True):
            # every set of this library has `diameter`, although the protocol does not require it
            diameters.append(convex_set.diameter(size))  # type: ignore[attr-defined]
        return math.hypot(*diameters)

    def gauge(self, x: Vector) -> Scalar:
        """The largest gauge among the parts."""
        gauges = []
        for convex_set, piece in self._pieces(x):
            gauges.append(gauge_of(convex_set, piece))
        return torch.stack(gauges).amax()

    def wire(self, dim: int) -> Several:
        """The message of an extreme point consists of its parts' messages."""
        wires = tuple(map(wire_of, self.sets, self.sizes))
        return Several(wires, self.sizes)

    def _pieces(self, x: Vector) -> list[tuple[ConvexSet, Tensor]]:
        """Each set with its part of x."""
        checks.vector("Blocks", "x", x, sum(self.sizes))
        pieces = torch.split(x, list(self.sizes))
        return list(zip(self.sets, pieces, strict=True))


@dataclass(frozen=True)
class PerClient:
    """Split constraints: each client has its own set, client j the set `sets[of[j]]`.

    The problem's feasible set is the intersection of these sets. Raises ValueError or TypeError
    unless `of` holds places in `sets`, and each set has a client.

    >>> from fedlib import Ball, Box
    >>> PerClient((Ball(1.0), Box(1.0)), of=(0, 1, 0)).groups()
    [(Ball(radius=1.0), [0, 2]), (Box(low=-1.0, high=1.0), [1])]

    Parameters
    ----------
    sets : tuple of ConvexSet
        The different sets.
    of : tuple of int
        For each client the place of its set in `sets`.
    """

    sets: tuple[ConvexSet, ...]
    of: tuple[int, ...]

    def __post_init__(self) -> None:
        checks.fields(self)
        count = len(self.sets)
        fits = set(self.of) == set(range(count))
        rule = f"hold all of 0..{count - 1} (the sets)"
        checks.require(fits, "PerClient", "of", rule, self.of)

    def groups(self) -> list[tuple[ConvexSet, list[int]]]:
        """Each set with its clients, in the order of `sets`."""
        clients: list[list[int]] = [[] for _ in self.sets]
        for client, number in enumerate(self.of):
            clients[number].append(client)
        return list(zip(self.sets, clients, strict=True))
