"""What is told to whom, and what a run becomes where every end has only its own."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib.core.client import ClientState
from fedlib.core.federation import Vectorized
from fedlib.core.protocols import Algorithm
from fedlib.core.types import Draw, Problem
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

    def tell(self, *message: Any, **options: Any) -> Float[Tensor, "d"]:
        """As in `Federation`."""
        self.told = True
        return super().tell(*message, **options)


def federated(algorithm: Algorithm, problem: Problem, rounds: int) -> Float[Tensor, "T d"]:
    """The server's model after each round of a federation in which every end has only its own.

    Rows and memories are NaN at the server; a client has its rows, its memory, and what it is sent,
    in the bytes of the wire formats.
    """
    job = Job(algorithm, partial(part, problem), rounds)
    server, clients = Place(job, None), [Place(job, j) for j in range(problem.num_clients)]
    for place in clients:
        place.shapes = server.shapes
    models = []
    for _ in range(rounds):
        answers: list[dict[int, Any]] = [{} for _ in clients]

        def at_client(j: int, over: bool, answers: list[dict[int, Any]] = answers) -> Any:
            here = clients[j]
            frames = [f.data if j in f.receivers else None for f in end.frames]
            held = (here.draw, (), here.shapes, j, frames, answers[j], over)
            return algorithm.round(ClientEnd(here.problem, *held), here.state, here.draw)

        def collect(asked: list[int], read: Read, each: Any = at_client) -> dict[int, Tensor]:
            got = {}
            for j in asked:
                try:
                    each(j, over=False)
                except Answered as answered:
                    got[j] = read(j, answered.data)
            return got

        end = ServerEnd(server.problem, server.draw, (), server.shapes, collect)
        state, _ = algorithm.round(end, server.state, server.draw)
        for j, place in enumerate(clients):
            place.go_on(at_client(j, over=True)[0])
        server.go_on(state)
        models.append(state.w)
    return torch.stack(models)


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
