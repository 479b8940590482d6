"""The server of a federation, which runs all rounds of a job over a link to the clients."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from fedlib import checks
from fedlib.compress.compressors import Compressor, Identity
from fedlib.core.client import ClientState, Reply
from fedlib.core.problem import Info
from fedlib.core.trees import stack_trees
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

    def __init__(
        self,
        job: Job,
        link: Link,
        deadline: float = 600.0,
    ) -> None:
        checks.positive("Server", "deadline", deadline)
        self.place = Place(job, None)
        self.link = link
        self.rounds = job.rounds
        self.deadline = deadline
        self.log: list[Event] = []
        self.clients = list(range(self.place.problem.num_clients))
        self.known_events = [0 for _ in self.clients]  # the number of events each client has
        self.counted = {"up": 0, "down": 0}  # bits according to the wire formats
        self.sent = {"up": 0, "down": 0}  # bytes of the messages
        self.info: Info = {}  # the last round's report, NaN for what only clients know

    def run(self, watch: Callable[[int, Any], None] | None = None) -> Any:
        """Run all rounds; return the last state. `watch(round, state)` is called after each round.

        Raises RuntimeError if a client does not answer, or the model is no longer finite.
        """
        while self.place.round < self.rounds:
            state, self.info = ServerEnd(self).run()
            for direction in self.counted:
                self.counted[direction] += int(self.info[f"bits_{direction}"])
            self.log.append(Event("over"))
            if not bool(torch.isfinite(state.w).all()):
                raise RuntimeError(
                    f"federation: the model must stay finite, but is not finite after round "
                    f"{self.place.round}; take smaller steps."
                )
            self.place.go_on(state)
            if self.place.round == self.rounds:
                self.collect(self.clients)  # so that all clients get the final model
            if watch is not None:
                watch(self.place.round, state)
        return self.place.state

    def collect(self, numbers: list[int]) -> dict[int, bytes]:
        """Collect the answers of the asked clients; raises RuntimeError if one is missing."""
        deadline = time.monotonic() + self.deadline
        answers: dict[int, bytes] = {}
        for client in numbers:
            self.request(client)
        while missing := set(numbers) - set(answers):
            seconds = max(deadline - time.monotonic(), 0.0)
            arrival = self.link.receive(seconds)
            if arrival is None:
                raise failed(min(missing), f"no answer within {self.deadline:g} s")
            client, data = arrival
            try:
                answer = self.answer(client, data, client in missing)
            except Garbled as error:
                raise failed(client, str(error)) from None
            if answer is not None:
                answers[client] = answer
        return answers

    def answer(
        self,
        client: int,
        data: bytes | None,
        awaited: bool,
    ) -> bytes | None:
        """The answer in data from a client, if it answers the last request; else None."""
        if data is not None:
            head, messages = disclose(data)
            if (head["run"], head["client"]) != (self.place.run, client):
                raise Garbled("an answer is of another run")
            if head["kind"] == "failed":
                raise Garbled(head["why"])
            if head["kind"] == "answer":
                if not awaited or head["at"] != len(self.log):
                    return None  # a repeated answer, or one to an older request
                self.known_events[client] = len(self.log)
                return messages[0]
            # the client has restarted, or has less than assumed
            self.known_events[client] = head["at"]
        if awaited:
            self.request(client)
        return None

    def request(self, client: int) -> None:
        """Send a client the events that it lacks, together with the request."""
        since = self.known_events[client]
        messages: list[bytes | None] = []
        for event in self.log[since:]:
            addressed = event.kind == "message" and client in event.clients
            messages.append(event.data if addressed else None)
        self.sent["down"] += sum(len(data) for data in messages if data is not None)
        head = {
            "run": self.place.run,
            "since": since,
            "events": [event.kind for event in self.log[since:]],
            "at": len(self.log),
        }
        self.link.send(client, enclose(head, messages))


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

    def _map(
        self,
        method: Any,
        clients: ClientState,
        broadcast: Any,
        wire: Compressor,
    ) -> Any:
        """Send the request, and collect the answers."""
        numbers = self.asked(clients)
        answer = self.blank_answer(method, clients, broadcast)
        active = [number for number in numbers if number >= 0]
        data = b"".join(send(Identity(), argument) for argument in broadcast)
        self.server.log.append(Event("message", active, data))
        uploads = self.server.collect(active)
        blank = as_reply(answer)
        replies = []
        for index, number in enumerate(numbers):
            upload = torch.zeros_like(blank.upload)
            if number >= 0:
                noise = clients.noise[index] if isinstance(clients.noise, Tensor) else ()
                try:
                    upload = receive(wire, uploads[number], upload, noise)
                except Garbled as error:
                    raise failed(number, str(error)) from None
                self.server.sent["up"] += len(uploads[number])
            replies.append(blank._replace(upload=upload))
        self.count += 1
        stacked: Reply = stack_trees(replies)
        if isinstance(answer, Reply):
            return stacked
        return stacked.upload

    def broadcast(
        self,
        wire: Compressor,
        message: Any,
        noise: Any = (),
        receivers: int | None = None,
    ) -> Any:
        """Send the message, and decode it as the clients do."""
        compressed = super().broadcast(wire, message, noise, receivers)
        data = send(wire, compressed, noise)
        self.server.log.append(Event("message", self.addressed(receivers), data))
        self.count += 1
        return receive(wire, data, message, noise)
