"""The draw of a round that goes on without some of its clients."""

from __future__ import annotations

import copy
from collections.abc import Collection
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from fedlib.core.problem import Draw, Problem


def named(draw: Draw) -> frozenset[int]:
    """Everybody who takes part in a round in some way."""
    own = [draw.participants] + (
        [draw.value_clients] if isinstance(draw.value_clients, Tensor) else []
    )
    return frozenset(torch.cat(own).tolist()).union(*map(named, draw.others))


def fewest(draw: Draw) -> int:
    """The number of clients in the smallest sample of a round."""
    own = [draw.participants.shape[0], *map(fewest, draw.others)]
    if isinstance(draw.value_clients, Tensor):
        own.append(draw.value_clients.shape[0])
    return min(own) if not coins(draw) else int(torch.as_tensor(draw.chance).isfinite().sum())


def coins(draw: Draw) -> bool:
    """Whether all clients are in the draw, each with a coin that says if it takes part."""
    return isinstance(draw.chance, Tensor) and draw.chance.dim() == 1


def without(draw: Draw, lost: Collection[int]) -> Draw:
    """The draw of a round that goes on without some clients.

    Means are then over those who answer; where coins decide, those of the lost fall against them.
    """

    def stays(who: Int[Tensor, "n"]) -> Bool[Tensor, "n"]:
        return torch.tensor([j not in lost for j in who.tolist()], dtype=torch.bool)

    def cut(part: Any, where: Bool[Tensor, "n"]) -> Any:
        return part[where] if isinstance(part, Tensor) else part

    here = stays(draw.participants)
    if coins(draw):
        return draw._replace(chance=torch.as_tensor(draw.chance).where(here, torch.inf))
    asked = stays(draw.value_clients) if isinstance(draw.value_clients, Tensor) else here
    return draw._replace(
        participants=draw.participants[here],
        batches=cut(draw.batches, here),
        uplink=cut(draw.uplink, here),
        chance=cut(draw.chance, here),
        value_clients=cut(draw.value_clients, asked),
        values=cut(draw.values, asked),
        others=tuple(without(other, lost) for other in draw.others),
    )


def answering(problem: Problem, draw: Draw, lost: Collection[int]) -> Problem:
    """The problem whose sizes are those of all who are left, where everybody else takes part.

    A method that weighs all clients by their sizes then weighs those who answer.
    """
    who = draw.participants.tolist()
    if not lost or coins(draw) or set(who) != set(range(problem.num_clients)) - set(lost):
        return problem
    other = copy.copy(problem)
    lengths = problem.lengths[draw.participants] if isinstance(problem.lengths, Tensor) else ()
    vars(other).update(sizes=tuple(problem.sizes[j] for j in who), lengths=lengths)
    return other
