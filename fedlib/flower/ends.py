"""The two ends of a federation: engines in which the server, and each client, run the same round.

A round draws nothing and never branches on a tensor, so every end can run `algorithm.round` itself:
asks and tells come in the same order everywhere. What an end cannot know has a stand-in there: NaN
for rows and memories at the server, its own answer for the others' at a client. What it must not
use therefore shows, as NaN or as a wrong model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

from fedlib.compress.compressors import FLOAT_BITS, Compressor, Identity
from fedlib.core.client import ClientState, Reply
from fedlib.core.federation import Federation, asked, told
from fedlib.core.problem import Draw
from fedlib.flower.draws import answering, named, without
from fedlib.flower.job import Place
from fedlib.flower.packing import Garbled, receive, send

IDENTITY = Identity()
Read = Callable[[int, bytes, Any], Reply]  # of a client its answer and report; raises Garbled
Collect = Callable[[list[int], Read], dict[int, Reply]]


class Frame(NamedTuple):
    """What one ask or tell brings, and to whom."""

    receivers: frozenset[int]
    data: bytes


class Question(NamedTuple):
    """An ask: its arguments, the clients' numbers (-1: not asked), and an answer of NaN."""

    method: Callable[..., Any]
    clients: ClientState
    broadcast: tuple[Float[Tensor, "..."], ...]
    wire: Compressor
    who: list[int]
    blank: Reply


def for_all(one: Reply, question: Question) -> Reply:
    """One client's answer in the place of everybody's."""
    many = len(question.who)
    found: Reply = pytree.tree_map(lambda x: x.expand(many, *x.shape), one)
    return found


class Answered(Exception):
    """What a client answers to the last frame that it has: no error, but the end of its half."""

    def __init__(self, data: bytes, report: Any) -> None:
        super().__init__("answered")
        self.data, self.report = data, report  # a list of the report's numbers, or of nothing


class End(Federation, ABC):
    """What both ends share: who is meant, and what an answer looks like.

    The round is that at which `place` stands, without the clients `lost`.
    """

    def __init__(self, place: Place, lost: Collection[int]) -> None:
        self.place, self.draw = place, without(place.draw, lost)
        super().__init__(answering(place.problem, self.draw, lost))
        self.count = 0  # asks and tells so far

    def round(self) -> Any:
        """The round at this end, as far as its messages go: the next state, and what it reports."""
        return self.place.algorithm.round(self, self.place.state, self.draw)

    def clients(self, draw: Draw, model: Any = (), memory: Any = ()) -> ClientState:
        """As in `Federation`, of a problem whose rows are blank but for this end's own."""
        return Federation(self.place.problem).clients(draw, model, memory)

    def only_client(self, draw: Draw) -> Any:  # noqa: ARG002 - whatever is drawn
        """Refused: nothing would cross a line."""
        raise TypeError(
            "federation: algorithm must ask clients, a centralized one has its rows at the server; "
            "use run()."
        )

    def ask(
        self,
        method: Callable[..., Any],
        clients: ClientState,
        *broadcast: Float[Tensor, "..."],
        wire: Compressor | None = None,
        active: Bool[Tensor, "n"] | None = None,
    ) -> Any:
        """As in `Federation`, with stand-ins for what this end does not know.

        At the server these are zeros for who is not asked and NaN for memories; at a client its own
        answer stands for the others' too.
        """
        assert isinstance(clients.who, Tensor)
        on = torch.ones_like(clients.who, dtype=torch.bool) if active is None else active
        who = torch.where(on, clients.who, -1).tolist()
        blank = self.blank(method, clients, broadcast)
        keeps = isinstance(blank, Reply)
        reply = blank if keeps else Reply(blank, ())
        wire = wire or IDENTITY
        answers = self.asked(Question(method, clients, broadcast, wire, who, reply))
        if self.log is not None:
            self.log += asked(method, broadcast, reply.upload, wire, sum(j >= 0 for j in who))
        self.count += 1
        return answers.parts() if keeps else answers.upload

    def broadcast(
        self,
        wire: Compressor,
        message: Float[Tensor, "d"],
        noise: Shaped[Tensor, "*noise"] | tuple[()] = (),
        receivers: int | None = None,
    ) -> Float[Tensor, "d"]:
        """As in `Federation`; who is told goes on with what it receives, the server too.

        All N clients hear it, or everybody whom the draw names.
        """
        everybody = frozenset(range(self.place.clients))
        heard = everybody if receivers is None else named(self.draw)
        sent = told(message, wire, receivers, len(everybody))
        self.bits_down += sent.copies * sent.bits
        if self.log is not None:
            self.log.append(sent)
        got = self.told(wire, message, noise, heard)
        self.count += 1
        return got

    @abstractmethod
    def asked(self, question: Question) -> Reply:
        """The answers `[n, ...]`, as far as this end knows them."""

    @abstractmethod
    def told(
        self, wire: Compressor, message: Float[Tensor, "d"], noise: Any, heard: frozenset[int]
    ) -> Float[Tensor, "d"]:
        """What is received."""

    def blank(self, method: Any, clients: ClientState, broadcast: Any) -> Any:
        """One client's answer as NaN in its shape, which is found without computing it."""
        shapes = self.place.shapes
        if self.count not in shapes:
            with FakeTensorMode(allow_non_fake_inputs=True) as mode:
                one = pytree.tree_map(lambda x: mode.from_tensor(x[0]), clients._replace(model=()))
                model = pytree.tree_map(mode.from_tensor, clients.model)
                sent = [mode.from_tensor(x) for x in broadcast]
                answer = method(self.client(one._replace(model=model)), *sent)
            like = self.problem.w0
            shapes[self.count] = pytree.tree_map(
                lambda x: torch.full(x.shape, torch.nan, dtype=x.dtype, device=like.device), answer
            )
        return shapes[self.count]


class ServerEnd(End):
    """The server's end: no rows, no memories, and `collect` to reach the clients."""

    def __init__(self, place: Place, lost: Collection[int], collect: Collect) -> None:
        super().__init__(place, lost)
        self.collect = collect
        self.frames: list[Frame] = []

    def asked(self, question: Question) -> Reply:
        """Send, and gather what comes."""
        who, noise, blank = question.who, question.clients.noise, question.blank
        asked = [j for j in who if j >= 0]
        own = {j: noise[i] if isinstance(noise, Tensor) else () for i, j in enumerate(who)}
        data = b"".join(send(IDENTITY, x) for x in question.broadcast)
        self.frames.append(Frame(frozenset(asked), data))

        def read(j: int, sent: bytes, told: Any) -> Reply:
            report = blank.report.new_tensor(told) if isinstance(blank.report, Tensor) else ()
            return Reply(receive(question.wire, sent, blank.upload, own[j]), (), report)

        got = self.collect(asked, read) if asked else {}
        self.bits_down += len(asked) * sum(FLOAT_BITS * x.numel() for x in question.broadcast)
        self.bits_up += len(asked) * question.wire.bits(blank.upload.numel())
        none = Reply(torch.zeros_like(blank.upload), (), blank.report)
        found = (got.get(j, none) for j in who)
        together: Reply = pytree.tree_map(lambda *xs: torch.stack(xs), *found)
        return together._replace(memory=for_all(blank, question).memory)

    def told(
        self, wire: Compressor, message: Float[Tensor, "d"], noise: Any, heard: frozenset[int]
    ) -> Float[Tensor, "d"]:
        """Send."""
        data = send(wire, wire(message, noise), noise)
        self.frames.append(Frame(heard, data))
        return receive(wire, data, message, noise)


class ClientEnd(End):
    """A client's end: its rows, its memory, the frames that it was sent (None: not it).

    At the last frame of a round that is not `over` the client's answer is raised, as `Answered`.
    `answers` holds those that it has given in this round.
    """

    def __init__(
        self,
        place: Place,
        lost: Collection[int],
        frames: Sequence[bytes | None],
        answers: dict[int, Any],
        over: bool,
    ) -> None:
        super().__init__(place, lost)
        self.frames, self.answers, self.over = frames, answers, over

    def frame(self) -> bytes:
        """What this ask or tell has brought."""
        sent = self.frames[self.count] if self.count < len(self.frames) else None
        if sent is None:
            raise Garbled(f"message {self.count} of the round is missing")
        return sent

    def asked(self, question: Question) -> Reply:
        """Its own answer, for all."""
        if self.place.me in question.who:
            own = self.own_answer(question, question.who.index(self.place.me))
        else:
            own = pytree.tree_map(torch.zeros_like, question.blank)
        return for_all(own, question)

    def own_answer(self, question: Question, at: int) -> Reply:
        """The client's answer, by its own rows and what it was sent."""
        data, sent = self.frame(), []
        for x in question.broadcast:
            size = FLOAT_BITS // 8 * x.numel()
            sent.append(receive(IDENTITY, data[:size], x))
            data = data[size:]
        model = question.clients.model
        state = pytree.tree_map(lambda x: x[at], question.clients._replace(model=()))
        if self.count not in self.answers:
            answer = question.method(self.client(state._replace(model=model)), *sent)
            self.answers[self.count] = answer if isinstance(answer, Reply) else Reply(answer, ())
        own: Reply = self.answers[self.count]
        if self.count == len(self.frames) - 1 and not self.over:
            report = own.report.tolist() if isinstance(own.report, Tensor) else ()
            raise Answered(send(question.wire, own.upload, state.noise), report)
        return own

    def told(
        self, wire: Compressor, message: Float[Tensor, "d"], noise: Any, heard: frozenset[int]
    ) -> Float[Tensor, "d"]:
        """What was sent; who is not told goes on with the message as this end has it."""
        return receive(wire, self.frame(), message, noise) if self.place.me in heard else message
