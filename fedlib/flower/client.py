"""A client of a federation, which answers requests from its own rows and its memory."""

from typing import Any

import torch
from torch.utils import _pytree as pytree

from fedlib.compress.compressors import Compressor, Identity
from fedlib.compress.wire import FLOAT_BITS
from fedlib.core.client import ClientState
from fedlib.flower.job import End, Job, Place, as_reply, disclose, enclose
from fedlib.flower.packing import Garbled, receive, send

FLOAT_BYTES = FLOAT_BITS // 8


class Answered(Exception):
    """A client's answer to the last message it has; raised to leave the round, not as an error."""

    def __init__(self, upload: bytes) -> None:
        super().__init__("answered")
        self.upload = upload


class Client:
    """Client number `me` of a job; after a restart, the server sends it the whole log again."""

    def __init__(self, job: Job, me: int) -> None:
        self.place = Place(job, me)
        self.me = me
        self.round_start = 0  # the place in the server's log where the next round begins
        self.begin(self.round_start)

    def begin(self, at: int) -> None:
        """Begin a round at a place of the server's log."""
        self.at = at
        self.frames: list[bytes | None] = []  # the round's messages so far; None: for others
        self.answers: dict[int, Any] = {}  # the answers given in this round

    def handle(self, data: bytes) -> bytes:
        """Answer a request; if it does not fit, begin the round again and say hello."""
        try:
            request, messages = disclose(data)
            if request["run"] != self.place.run:
                reason = f"it is of run {self.place.run}, another one"
                return self.envelope("failed", why=reason)
            upload = self.answer(request, messages)
            return self.envelope("answer", [upload], at=request["at"])
        except Garbled:
            self.begin(self.round_start)
            return self.hello()
        except Exception as error:  # a fault of this client's data or machine: the others go on
            lines = str(error).strip().splitlines()
            reason = lines[0] if lines else type(error).__name__
            return self.envelope("failed", why=reason)

    def answer(
        self,
        request: dict[str, Any],
        messages: list[bytes | None],
    ) -> bytes:
        """Follow the request's events; return the upload, empty if only events were asked."""
        if request["since"] != self.at:
            raise Garbled("the request goes on from elsewhere")
        for event, message in zip(request["events"], messages, strict=True):
            self.follow(event, message)
        if not self.frames:  # the request only brings the client up to date
            return b""
        try:
            ClientEnd(self, over=False).run()
        except Answered as end:
            return end.upload
        raise Garbled("the last message asks for nothing")

    def envelope(
        self,
        title: str,
        messages: Any = (),
        **entries: Any,
    ) -> bytes:
        """Make an envelope from this client."""
        head = {"run": self.place.run, "client": self.me, "kind": title, **entries}
        return enclose(head, messages)

    def hello(self) -> bytes:
        """A message that tells how much of the log this client has."""
        return self.envelope("hello", at=self.at)

    def follow(self, event: str, data: bytes | None) -> None:
        """Process the next event of the server's log."""
        if event == "message":
            self.at += 1
            self.frames.append(data)
        else:  # the round is over
            state, _ = ClientEnd(self, over=True).run()
            self.place.go_on(state)
            self.round_start = self.at + 1
            self.begin(self.round_start)


class ClientEnd(End):
    """A client's end of a round: its rows, its memory and the messages that it was sent.

    At the last message of an unfinished round, it raises the client's answer as `Answered`.
    """

    def __init__(self, client: Client, *, over: bool) -> None:
        super().__init__(client.place)
        self.process = client
        self.over = over

    def frame(self) -> bytes:
        """The message of the current ask or broadcast."""
        frames = self.process.frames
        data = frames[self.count] if self.count < len(frames) else None
        if data is None:
            raise Garbled(f"message {self.count} of the round is missing")
        return data

    def _map(
        self,
        method: Any,
        clients: ClientState,
        broadcast: Any,
        wire: Compressor,
    ) -> Any:
        """Repeat this client's answer for all participants."""
        numbers = self.asked(clients)
        answer = self.blank_answer(method, clients, broadcast)
        if self.process.me in numbers:
            index = numbers.index(self.process.me)
            answer = self.own_answer(method, clients, broadcast, wire, index)
        else:
            answer = pytree.tree_map(torch.zeros_like, answer)
        self.count += 1
        return pytree.tree_map(lambda x: x.expand(len(numbers), *x.shape), answer)

    def own_answer(
        self,
        method: Any,
        clients: ClientState,
        broadcast: Any,
        wire: Compressor,
        index: int,
    ) -> Any:
        """The client's answer, computed from its own rows and the messages it was sent."""
        received = self.received(broadcast)
        state = clients.at(index)
        answers = self.process.answers
        if self.count not in answers:
            answers[self.count] = method(self.client(state), *received)
        answer = answers[self.count]
        is_last_message = self.count == len(self.process.frames) - 1
        if is_last_message and not self.over:
            upload = as_reply(answer).upload
            if not bool(upload.float().isfinite().all()):
                raise ValueError("its answer is not finite")
            raise Answered(send(wire, upload, state.noise))
        return answer

    def received(self, broadcast: Any) -> list[Any]:
        """The arguments of an ask, as this client received them."""
        data = self.frame()
        arguments = []
        for argument in broadcast:
            size = FLOAT_BYTES * argument.numel()
            arguments.append(receive(Identity(), data[:size], argument))
            data = data[size:]
        return arguments

    def broadcast(
        self,
        wire: Compressor,
        message: Any,
        noise: Any = (),
        receivers: int | None = None,
    ) -> Any:
        """The received message, or this end's own if the client is not addressed."""
        if self.process.me in self.addressed(receivers):
            message = receive(wire, self.frame(), message, noise)
        self.count += 1
        return message
