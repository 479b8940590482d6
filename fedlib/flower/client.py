"""A client of a federation, which answers requests from its own rows and its memory."""

from typing import Any

import torch
from torch.utils import _pytree as pytree

from fedlib.compress.compressors import Compressor, Identity
from fedlib.compress.wire import FLOAT_BITS
from fedlib.core.client import ClientState
from fedlib.flower.job import End, Job, Place, as_reply, disclose, enclose
from fedlib.flower.packing import Garbled, receive, send


class Answered(Exception):
    """A client's answer to the last message it has; raised to leave the round, not as an error."""

    def __init__(self, upload: bytes) -> None:
        super().__init__("answered")
        self.upload = upload


class Client:
    """Client number `me` of a job; after a restart, the server sends it the whole log again."""

    def __init__(self, job: Job, me: int) -> None:
        self.place, self.me = Place(job, me), me
        self.base = 0  # the place in the server's log where the next round begins
        self.begin(self.base)

    def begin(self, at: int) -> None:
        """Begin a round at a place of the server's log."""
        self.at = at
        self.frames: list[bytes | None] = []  # the round's messages so far; None: for others
        self.answers: dict[int, Any] = {}  # the answers given in this round

    def handle(self, data: bytes) -> bytes:
        """Answer a request; if it does not fit, begin the round again and say hello."""
        try:
            request, parts = disclose(data)
            if request["run"] != self.place.run:
                return self.envelope("failed", why=f"it is of run {self.place.run}, another one")
            if request["since"] != self.at:
                raise Garbled("the request goes on from elsewhere")
            for kind, part in zip(request["events"], parts, strict=True):
                self.follow(kind, part)
            if not self.frames:  # the request only brings the client up to date
                raise Answered(b"")
            ClientEnd(self, over=False).run()
            raise Garbled("the last message asks for nothing")
        except Answered as end:
            return self.envelope("answer", [end.upload], at=request["at"])
        except Garbled:
            self.begin(self.base)
            return self.hello()
        except Exception as error:  # a fault of this client's data or machine: the others go on
            why = str(error).strip().splitlines() or [type(error).__name__]
            return self.envelope("failed", why=why[0])

    def envelope(self, kind: str, parts: Any = (), **more: Any) -> bytes:
        """Make an envelope from this client."""
        return enclose({"run": self.place.run, "client": self.me, "kind": kind, **more}, parts)

    def hello(self) -> bytes:
        """A message that tells how much of the log this client has."""
        return self.envelope("hello", at=self.at)

    def follow(self, kind: str, data: bytes | None) -> None:
        """Process the next event of the server's log."""
        if kind == "message":
            self.at += 1
            self.frames.append(data)
        else:  # the round is over
            state, _ = ClientEnd(self, over=True).run()
            self.place.go_on(state)
            self.base = self.at + 1
            self.begin(self.base)


class ClientEnd(End):
    """A client's end of a round: its rows, its memory and the messages that it was sent.

    At the last message of an unfinished round, it raises the client's answer as `Answered`.
    """

    def __init__(self, client: Client, *, over: bool) -> None:
        super().__init__(client.place)
        self.own, self.over = client, over

    def frame(self) -> bytes:
        """The message of the current ask or broadcast."""
        data = self.own.frames[self.count] if self.count < len(self.own.frames) else None
        if data is None:
            raise Garbled(f"message {self.count} of the round is missing")
        return data

    def _map(self, method: Any, clients: ClientState, broadcast: Any, wire: Compressor) -> Any:
        """Repeat this client's answer for all participants."""
        who, answer = self.asked(clients), self.blank_answer(method, clients, broadcast)
        if self.own.me in who:
            answer = self.own_answer(method, clients, broadcast, wire, who.index(self.own.me))
        else:
            answer = pytree.tree_map(torch.zeros_like, answer)
        return pytree.tree_map(lambda x: x.expand(len(who), *x.shape), answer)

    def own_answer(
        self, method: Any, clients: ClientState, broadcast: Any, wire: Compressor, at: int
    ) -> Any:
        """The client's answer, computed from its own rows and the messages it was sent."""
        data, sent = self.frame(), []
        for x in broadcast:
            size = FLOAT_BITS // 8 * x.numel()
            sent.append(receive(Identity(), data[:size], x))
            data = data[size:]
        state = pytree.tree_map(lambda x: x[at], clients._replace(model=()))
        answers = self.own.answers
        if self.count not in answers:
            answers[self.count] = method(self.client(state._replace(model=clients.model)), *sent)
        answer = answers[self.count]
        if self.count == len(self.own.frames) - 1 and not self.over:
            upload = as_reply(answer).upload
            if not bool(upload.float().isfinite().all()):
                raise ValueError("its answer is not finite")
            raise Answered(send(wire, upload, state.noise))
        return answer

    def broadcast(
        self, wire: Compressor, message: Any, noise: Any = (), receivers: int | None = None
    ) -> Any:
        """The received message, or this end's own if the client is not addressed."""
        if self.own.me in self.addressed(receivers):
            message = receive(wire, self.frame(), message, noise)
        self.count += 1
        return message
