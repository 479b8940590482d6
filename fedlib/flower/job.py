"""What all ends of a federation must agree on, and the envelope of what passes between them."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from fedlib import checks
from fedlib.checks import Count, Seed
from fedlib.core.algorithm import Algorithm
from fedlib.core.describe import describe
from fedlib.core.problem import Draw, Problem
from fedlib.core.sampling import seeded
from fedlib.flower.packing import Garbled
from fedlib.flower.parts import own_part, whole_state
from fedlib.vertical.line import VerticalProblem

MAGIC = b"fedlib 1"
HEAD = struct.Struct(">II")  # the check sum of what follows, the length of its head


@dataclass(frozen=True)
class Job:
    """A run in a federation: the same object at the server and at every client.

    Parameters
    ----------
    algorithm : any of the library's for samples at clients.
    problem : `problem(client)`, with the rows of client `client` alone (`placed`); `problem(None)`
        is the server's, with nobody's.
    rounds : T.
    seed : of the rounds' randomness, which every end draws for itself.
    """

    algorithm: Algorithm
    problem: Callable[[int | None], Problem]
    rounds: Count
    seed: Seed = 0

    def __post_init__(self) -> None:
        checks.fields(self)


#: Where an end stands: the round under way, who is left out of it, how many of its frames it has.
Stand = tuple[int, list[int], int]


class Link(Protocol):
    """How a server reaches its clients; nothing of a federation is known to it."""

    def send(self, client: int, data: bytes) -> None:
        """Send to a client, as far as it can be told; an answer need not come."""
        ...

    def receive(self, seconds: float) -> tuple[int, bytes | None] | None:
        """What came next, and from whom; None for what could not be delivered, or if nothing came.

        A client and None: what was sent to it did not arrive.
        """
        ...


class Place:
    """Where an end of a run stands: the round, the state before it, the randomness from it on."""

    def __init__(self, job: Job, me: int | None) -> None:
        self.problem, self.algorithm, self.me = job.problem(me), job.algorithm, me
        if isinstance(self.problem, VerticalProblem):
            raise TypeError(
                "federation: problem must have its samples split among clients, "
                f"{self.problem.name} has its features; use run()."
            )
        self.clients = self.problem.num_clients
        self.names: tuple[str, ...] = getattr(job.algorithm, "client_state", ())
        known = [describe(job.algorithm), job.seed, list(self.problem.sizes), self.problem.dim]
        self.run = hashlib.sha256(json.dumps(known).encode()).hexdigest()[:16]
        self.rng, self.shapes = seeded(job.seed, "rounds"), dict[int, Any]()
        self.round = 0
        self.state = self.hidden(job.algorithm.init(self.problem))
        self.draw: Draw = job.algorithm.draw(self.problem, self.rng)

    def hidden(self, state: Any) -> Any:
        """The state without what this end cannot know."""
        return whole_state(own_part(state, self.me, self.names), self.me, self.clients, self.names)

    def go_on(self, state: Any) -> None:
        """To the next round, from its state."""
        self.state, self.round = self.hidden(state), self.round + 1
        self.draw = self.algorithm.draw(self.problem, self.rng)

    def saved(self) -> dict[str, Any]:
        """What a file holds to go on from here."""
        own = list(own_part(self.state, self.me, self.names))
        # draws are made again from the start: a generator's state is of one version of torch
        return {"run": self.run, "round": self.round, "state": own}

    def restore(self, held: dict[str, Any]) -> None:
        """Go on from what `saved` gave."""
        if held["run"] != self.run:
            raise ValueError(
                "federation: folder must hold the files of this run, got those of another; name "
                "an empty folder."
            )
        for _ in range(held["round"] - self.round):
            self.go_on(self.state)
        kept = type(self.state)(*held["state"])
        self.state = whole_state(kept, self.me, self.clients, self.names)


def enclosed(head: dict[str, Any], parts: Sequence[bytes | None] = ()) -> bytes:
    """A head and some messages in one envelope."""
    sizes = [-1 if part is None else len(part) for part in parts]
    text = json.dumps({**head, "sizes": sizes}).encode()
    body = text + b"".join(part or b"" for part in parts)
    return MAGIC + HEAD.pack(zlib.crc32(body), len(text)) + body


def opened(data: bytes) -> tuple[dict[str, Any], list[bytes | None]]:
    """What `enclosed` was given; raises Garbled for anything else."""
    start = len(MAGIC) + HEAD.size
    if data[: len(MAGIC)] != MAGIC or len(data) < start:
        raise Garbled("an envelope begins otherwise")
    check, length = HEAD.unpack(data[len(MAGIC) : start])
    if zlib.crc32(data[start:]) != check:
        raise Garbled("an envelope is damaged")
    head, at = json.loads(data[start : start + length]), start + length
    parts: list[bytes | None] = []
    for size in head.pop("sizes"):
        parts.append(None if size < 0 else data[at : at + size])
        at += max(size, 0)
    return head, parts
