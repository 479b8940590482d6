"""The server of a federation: rounds with a quorum and a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from fedlib import checks
from fedlib.compress.compressors import Compressor, Identity
from fedlib.core.client import ClientState, Reply
from fedlib.core.problem import Info
from fedlib.flower.job import End, Job, Place, as_reply, disclose, enclose, fewest, without
from fedlib.flower.packing import Garbled, receive, send


class Event(NamedTuple):
    """What happens in a run, as its log holds it."""

    kind: Literal["begin", "message", "over"]  # of a round
    clients: list[int]  # who is left out of the round, or who gets the message
    data: bytes = b""


@runtime_checkable
class Link(Protocol):
    """How a server reaches its clients; nothing of a federation is known to it."""

    def send(self, client: int, data: bytes) -> None:
        """Send to a client; an answer need not come."""

    def receive(self, seconds: float) -> tuple[int, bytes | None] | None:
        """A client and what it answers, None for what did not reach it; None if nothing comes."""


class Lost(Exception):
    """Clients whose answer does not come; no error, the round is done again without them."""

    def __init__(self, clients: set[int], why: str = "no answer") -> None:
        super().__init__(why)
        self.clients = clients


class Server:
    """Runs a job over a link.

    `quorum`: with fewer clients in a sample than this a round is not done. `deadline`: seconds from
    the start of a round until who has not answered is left out of it; the round is then done again
    without. A client that was silent is asked again after a sign of life, one whose answer was none
    in the next round.
    """

    def __init__(self, job: Job, link: Link, quorum: int = 1, deadline: float = 600.0) -> None:
        checks.count("Server", "quorum", quorum)
        checks.positive("Server", "deadline", deadline)
        self.place, self.link, self.rounds = Place(job, None), link, job.rounds
        self.quorum, self.deadline = quorum, deadline
        self.log: list[Event] = []
        self.held = [0] * self.place.problem.num_clients  # events that each client has got
        self.lost: list[list[int]] = []  # of every round, who was left out of it
        self.absent: set[int] = set()  # who is not asked until it says something
        self.counted = {"up": 0, "down": 0}  # bits, as the wire formats say
        self.sent = {"up": 0, "down": 0}  # bytes of the messages
        self.info: Info = {}  # what the last round reported, NaN for what clients alone know
        self.why = dict[int, str]()  # a client was lost last
        self.until = 0.0  # when a round must be done

    def run(self, watch: Callable[[int, Any], None] | None = None) -> Any:
        """All rounds; the last state. `watch(round, state)` is called after each.

        Raises
        ------
        RuntimeError
            one sentence, if a round has fewer clients than the quorum, or diverges.
        """
        while self.place.round < self.rounds:
            state = self.one_round()
            if not bool(torch.isfinite(state.w).all()):
                raise RuntimeError(
                    f"federation: the model must stay finite, it is not after round "
                    f"{self.place.round}; take a smaller lr."
                )
            self.place.go_on(state)
            if self.place.round == self.rounds:
                self.finish()
            if watch:
                watch(self.place.round, state)
        return self.place.state

    def one_round(self) -> Any:
        """The state after the next round, with those who answer."""
        lost = set(self.absent)
        while True:
            self.until = time.monotonic() + self.deadline
            self.check_enough(lost)
            self.log.append(Event("begin", sorted(lost)))
            try:
                state, self.info = ServerEnd(self, lost).run()
            except Lost as error:
                lost |= error.clients
                self.why |= dict.fromkeys(error.clients, str(error))
                continue
            for way in self.counted:
                self.counted[way] += int(self.info[f"bits_{way}"])
            self.log.append(Event("over", []))
            self.lost.append(sorted(lost))
            return state

    def check_enough(self, lost: set[int]) -> None:
        """Raises RuntimeError, one sentence, where the next round has too few clients."""
        needs_all = getattr(self.place.algorithm, "needs_all_clients", False)
        has = fewest(without(self.place.draw, lost))
        if has >= self.quorum and not (lost and needs_all):
            return
        why = "; ".join(f"{j}: {self.why.get(j, 'no answer')}" for j in sorted(lost))
        least = "all clients" if needs_all else f"{self.quorum} clients or more"
        raise RuntimeError(
            f"federation: a round must have {least}, round {self.place.round} has {has} ({why}); "
            "start again when they are back."
        )

    def collect(self, asked: list[int]) -> dict[int, bytes]:
        """The answers of those who are asked; raises Lost for who has none."""
        got = dict[int, bytes]()
        for j in asked:
            self.request(j)
        while missing := set(asked) - set(got):
            came = self.link.receive(max(self.until - time.monotonic(), 0.0))
            if came is None:
                self.absent |= missing
                raise Lost(missing)
            j, data = came
            try:
                answer = self.answer(j, data, j in missing)
            except Garbled as error:
                if j in missing:
                    raise Lost({j}, str(error)) from None
                continue
            if answer is not None:
                got[j] = answer
        return got

    def answer(self, j: int, data: bytes | None, wanted: bool) -> bytes | None:
        """The answer in what came from client j, if it is that to what was asked last."""
        if data is not None:
            head, parts = disclose(data)
            if (head["run"], head["client"]) != (self.place.run, j):
                raise Garbled("an answer is of another run")
            self.absent.discard(j)
            if head["kind"] == "failed":
                raise Garbled(head["why"])
            if head["kind"] == "answer":
                if not wanted or head["at"] != len(self.log):
                    return None  # a second answer, or one to a round that was done again
                self.held[j] = len(self.log)
                return parts[0]
            self.held[j] = head["at"]  # it has restarted, or stands elsewhere than was thought
        if wanted:
            self.request(j)
        return None

    def request(self, j: int) -> None:
        """Send client j all that it has not yet, and with it what it is asked."""
        since, new = self.held[j], self.log[self.held[j] :]
        parts = [e.data if e.kind == "message" and j in e.clients else None for e in new]
        self.sent["down"] += sum(len(part or b"") for part in parts)
        events = [(e.kind, e.clients if e.kind == "begin" else []) for e in new]
        head = {"run": self.place.run, "since": since, "events": events}
        self.link.send(j, enclose({**head, "at": len(self.log)}, parts))

    def finish(self) -> None:
        """Bring every client that answers up to date, so that all end with the same model."""
        self.until, left = time.monotonic() + self.deadline, {*range(len(self.held))} - self.absent
        while left:
            try:
                self.collect(sorted(left))
                return
            except Lost as error:
                left -= error.clients


class ServerEnd(End):
    """The server's end of a round: no rows, no memories, clients reached by their requests."""

    def __init__(self, server: Server, lost: set[int]) -> None:
        super().__init__(server.place, lost)
        self.server = server

    def _map(self, method: Any, clients: ClientState, broadcast: Any, wire: Compressor) -> Any:
        """Send, and gather what comes."""
        who, answer = self.asked(clients), self.blank_answer(method, clients, broadcast)
        blank, asked = as_reply(answer), [j for j in who if j >= 0]
        data = b"".join(send(Identity(), x) for x in broadcast)
        self.server.log.append(Event("message", asked, data))
        got, replies = self.server.collect(asked), []
        for i, j in enumerate(who):
            upload = torch.zeros_like(blank.upload)
            if j >= 0:
                noise = clients.noise[i] if isinstance(clients.noise, Tensor) else ()
                try:
                    upload = receive(wire, got[j], upload, noise)
                except Garbled as error:
                    raise Lost({j}, str(error)) from None
                self.server.sent["up"] += len(got[j])
            replies.append(blank._replace(upload=upload))
        stacked: Reply = pytree.tree_map(lambda *xs: torch.stack(xs), *replies)
        return stacked if isinstance(answer, Reply) else stacked.upload

    def broadcast(
        self, wire: Compressor, message: Any, noise: Any = (), receivers: int | None = None
    ) -> Any:
        """Send, and receive it as the clients do."""
        data = send(wire, super().broadcast(wire, message, noise, receivers), noise)
        self.server.log.append(Event("message", self.addressed(receivers), data))
        self.count += 1
        return receive(wire, data, message, noise)
