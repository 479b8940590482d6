"""Engines that watch a round: what is told to whom, and what a server can see of its clients."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.utils import _pytree as pytree

from fedlib.core.client import ClientState
from fedlib.core.federation import Vectorized
from fedlib.core.types import Batch, Draw, Problem

__all__ = ["Metered", "Sealed", "doubled"]


class Metered(Vectorized):
    """Notes whether clients hold a model, and whether anything was told to them."""

    held = told = False

    def clients(self, draw: Draw, model: Any = (), memory: Any = ()) -> ClientState:
        """As in `Federation`."""
        self.held |= isinstance(model, Tensor)
        return super().clients(draw, model, memory)

    def tell(self, *message: Any, **options: Any) -> Float[Tensor, "d"]:
        """As in `Federation`."""
        self.told = True
        return super().tell(*message, **options)


class Sealed(Vectorized):
    """Rows and memories exist at the clients only: what the server sees of them is blank."""

    def __init__(self, problem: Problem) -> None:
        blank = {"data": blanked(problem.data), "heldout": blanked(problem.heldout)}
        super().__init__(problem.with_tensors(blank))
        self.open = Vectorized(problem)
        self.sealed: list[tuple[Any, Any]] = []  # what clients have, what the server sees of it

    def clients(self, draw: Draw, model: Any = (), memory: Any = ()) -> ClientState:
        """As in `Federation`, with blank rows."""
        whole = self.open.clients(draw, model, memory)
        blank = {part: self.seal(getattr(whole, part)) for part in ("rows", "batches", "values")}
        return whole._replace(**blank)

    def seal(self, part: Any) -> Any:
        """Something blank in place of rows or a memory, which is remembered."""
        if isinstance(part, Batch):
            blank: Any = Batch(blanked(part.data), part.weight)
        else:
            blank = pytree.tree_map(lambda x: blanked((x,))[0], part)
        self.sealed.append((part, blank))
        return blank

    def unseal(self, part: Any) -> Any:
        """What belongs into something blank."""
        return next((whole for whole, blank in self.sealed if blank is part), part)

    def only_client(self, draw: Draw) -> Any:
        """As in `Federation`: there the data are at the server."""
        return self.open.only_client(draw)

    def ask(self, *arguments: Any, **options: Any) -> Any:
        """As in `Federation`; new memories are blank until they are back at the clients."""
        answer = super().ask(*arguments, **options)
        return (answer[0], self.seal(answer[1])) if isinstance(answer, tuple) else answer

    def _map(self, method: Any, clients: ClientState, broadcast: Any, wire: Any) -> Any:
        whole = ClientState(*(self.unseal(part) for part in clients))
        return super()._map(method, whole, broadcast, wire)


def blanked(tensors: tuple[Shaped[Tensor, "..."], ...]) -> tuple[Shaped[Tensor, "..."], ...]:
    """NaN in place of floats, 0 in place of whole numbers."""
    return tuple(
        torch.full_like(x, torch.nan) if x.is_floating_point() else torch.zeros_like(x)
        for x in tensors
    )


def doubled(draw: Draw, clients: int) -> Draw:
    """The same draw for every client and, right behind it, for its copy, `clients` further on."""

    def both(name: str, part: Any) -> Any:
        if name == "others":
            return tuple(doubled(other, clients) for other in part)
        if not isinstance(part, Tensor) or name == "downlink":
            return part
        more = clients if name in ("participants", "voters") else 0
        return torch.stack([part, part + more], 1).flatten(0, 1)

    return Draw(*(both(name, part) for name, part in zip(draw._fields, draw, strict=True)))
