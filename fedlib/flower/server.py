"""The server of a federation, which runs all rounds of a job over a link to the clients."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from fedlib import checks
from fedlib.compress.compressors import Compressor, Identity
from fedlib.core.client import ClientState, Reply
from fedlib.core.problem import Info
from fedlib.flower.job import End, Job, Place, as_reply, disclose, enclose
from fedlib.flower.packing import Garbled, receive, send


class Event(NamedTuple):
    """An entry of a run's log: a message, or the end of a round."""

    kind: Literal["message", "over"]
    clients: Sequence[int] = ()  # the receivers of the message
    data: bytes = b""


@runtime_checkable
class Link(Protocol):
    """The transport between a server and its clients; it does not interpret messages."""

    def send(self, client: int, data: bytes) -> None:
        """Send to a client; the link does not guarantee an answer."""

    def receive(self, seconds: float) -> tuple[int, bytes | None] | None:
        """A client and its answer, which is None if the client was not reached; None on timeout."""


class Server:
    """The server's side of a job over a link.

    The run stops unless every asked client answers within `deadline` seconds. A client that has
    restarted is sent everything that it has missed, and is asked again.
    """

    def __init__(self, job: Job, link: Link, deadline: float = 600.0) -> None:
        checks.positive("Server", "deadline", deadline)
        self.place, self.link, self.rounds = Place(job, None), link, job.rounds
        self.deadline = deadline
        self.log: list[Event] = []
        self.held = [0] * self.place.problem.num_clients  # the number of events each client has
        self.counted = {"up": 0, "down": 0}  # bits according to the wire formats
        self.sent = {"up": 0, "down": 0}  # bytes of the messages
        self.info: Info = {}  # the last round's report, NaN for what only clients know

    def run(self, watch: Callable[[int, Any], None] | None = None) -> Any:
        """Run all rounds; return the last state. `watch(round, state)` is called after each round.

        Raises RuntimeError if a client does not answer, or the model is no longer finite.
        """
        while self.place.round < self.rounds:
            state, self.info = ServerEnd(self).run()
            for way in self.counted:
                self.counted[way] += int(self.info[f"bits_{way}"])
            self.log.append(Event("over"))
            if not bool(torch.isfinite(state.w).all()):
                raise RuntimeError(
                    f"federation: the model must stay finite, but is not finite after round "
                    f"{self.place.round}; take a smaller lr."
                )
            self.place.go_on(state)
            if self.place.round == self.rounds:
                self.collect(list(range(len(self.held))))  # so that all clients get the final model
            if watch:
                watch(self.place.round, state)
        return self.place.state

    def collect(self, asked: list[int]) -> dict[int, bytes]:
        """Collect the answers of the asked clients; raises RuntimeError if one is missing."""
        until, got = time.monotonic() + self.deadline, dict[int, bytes]()
        for j in asked:
            self.request(j)
        while missing := set(asked) - set(got):
            came = self.link.receive(max(until - time.monotonic(), 0.0))
            if came is None:
                raise failed(min(missing), f"no answer within {self.deadline:g} s")
            j, data = came
            try:
                answer = self.answer(j, data, j in missing)
            except Garbled as error:
                raise failed(j, str(error)) from None
            if answer is not None:
                got[j] = answer
        return got

    def answer(self, j: int, data: bytes | None, wanted: bool) -> bytes | None:
        """The answer in data from client j, if it answers the last request; else None."""
        if data is not None:
            head, parts = disclose(data)
            if (head["run"], head["client"]) != (self.place.run, j):
                raise Garbled("an answer is of another run")
            if head["kind"] == "failed":
                raise Garbled(head["why"])
            if head["kind"] == "answer":
                if not wanted or head["at"] != len(self.log):
                    return None  # a repeated answer, or one to an older request
                self.held[j] = len(self.log)
                return parts[0]
            self.held[j] = head["at"]  # the client has restarted, or has less than assumed
        if wanted:
            self.request(j)
        return None

    def request(self, j: int) -> None:
        """Send client j the events that it lacks, together with the request."""
        since, new = self.held[j], self.log[self.held[j] :]
        parts = [e.data if e.kind == "message" and j in e.clients else None for e in new]
        self.sent["down"] += sum(len(part or b"") for part in parts)
        head = {"run": self.place.run, "since": since, "events": [e.kind for e in new]}
        self.link.send(j, enclose({**head, "at": len(self.log)}, parts))


def failed(client: int, why: str) -> RuntimeError:
    """The error of a run that stops because an answer is missing."""
    return RuntimeError(
        f"federation: client {client} must answer, got: {why}; start again when it is back."
    )


class ServerEnd(End):
    """The server's end of a round: it has no rows or memories, and sends requests to clients."""

    def __init__(self, server: Server) -> None:
        super().__init__(server.place)
        self.server = server

    def _map(self, method: Any, clients: ClientState, broadcast: Any, wire: Compressor) -> Any:
        """Send the request, and collect the answers."""
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
                    raise failed(j, str(error)) from None
                self.server.sent["up"] += len(got[j])
            replies.append(blank._replace(upload=upload))
        stacked: Reply = pytree.tree_map(lambda *xs: torch.stack(xs), *replies)
        return stacked if isinstance(answer, Reply) else stacked.upload

    def broadcast(
        self, wire: Compressor, message: Any, noise: Any = (), receivers: int | None = None
    ) -> Any:
        """Send the message, and decode it as the clients do."""
        data = send(wire, super().broadcast(wire, message, noise, receivers), noise)
        self.server.log.append(Event("message", self.addressed(receivers), data))
        self.count += 1
        return receive(wire, data, message, noise)
