"""What is told to whom, and what a run becomes where every end has only its own."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils import _pytree as pytree

from fedlib.core.algorithm import Algorithm
from fedlib.core.client import ClientState, Reply
from fedlib.core.federation import Vectorized
from fedlib.core.problem import Draw, Problem
from fedlib.flower.ends import Answered, ClientEnd, Read, ServerEnd
from fedlib.flower.job import Job, Place
from fedlib.flower.parts import part


class Metered(Vectorized):
    """Notes whether clients hold a model, and whether anything was told to them."""

    held = told = False

    def clients(self, draw: Draw, model: Any = (), memory: Any = ()) -> ClientState:
        """As in `Federation`."""
        self.held |= isinstance(model, Tensor)
        return super().clients(draw, model, memory)

    def broadcast(self, *message: Any, **options: Any) -> Float[Tensor, "d"]:
        """As in `Federation`."""
        self.told = True
        return super().broadcast(*message, **options)


class Apart:
    """The ends of a federation in one process; every end has only its own.

    Rows, memories and reports are NaN at the server; a client has its rows, its memory, and what it
    is sent, in the bytes of the wire formats.
    """

    def __init__(self, algorithm: Algorithm, problem: Problem) -> None:
        job = Job(algorithm, partial(part, problem), 1)
        self.server = Place(job, None)
        self.clients = [Place(job, j) for j in range(problem.num_clients)]
        for place in self.clients:  # found once for all
            place.shapes = self.server.shapes

    def one_round(self) -> Float[Tensor, "d"]:
        """The server's model after another round, which all ends have done."""
        self.answers: list[dict[int, Any]] = [{} for _ in self.clients]
        self.end = ServerEnd(self.server, (), self.collect)
        state, _ = self.end.round()
        for j, place in enumerate(self.clients):
            place.go_on(self.at_client(j, over=True).round()[0])
        self.server.go_on(state)
        model: Tensor = state.w
        return model

    def at_client(self, j: int, over: bool) -> ClientEnd:
        """The round's end at client j, as far as it has been sent."""
        frames = [f.data if j in f.receivers else None for f in self.end.frames]
        return ClientEnd(self.clients[j], (), frames, self.answers[j], over)

    def collect(self, asked: list[int], read: Read) -> dict[int, Reply]:
        """The answers of those who are asked."""
        got = {}
        for j in asked:
            try:
                self.at_client(j, over=False).round()
            except Answered as answered:
                unseen = pytree.tree_map(lambda _: torch.nan, answered.report)
                got[j] = read(j, answered.data, unseen)
        return got


def doubled(draw: Draw, clients: int) -> Draw:
    """The same draw for every client and, right behind it, for its copy, `clients` further on."""

    def both(name: str, part: Any) -> Any:
        if name == "others":
            return tuple(doubled(other, clients) for other in part)
        if not isinstance(part, Tensor) or name == "downlink":
            return part
        more = clients if name in ("participants", "value_clients") else 0
        return torch.stack([part, part + more], 1).flatten(0, 1)

    return Draw(*(both(name, part) for name, part in zip(draw._fields, draw, strict=True)))
