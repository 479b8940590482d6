"""The two ends of a federation: engines in which the server, and each client, run the same round.

A round draws nothing and never branches on a tensor, so every end can run `algorithm.round` itself:
asks and tells come in the same order everywhere. What an end cannot know is a placeholder there:
rows and memories at the server, the others' answers at a client. What it must not use therefore
shows, as NaN at the server and as a wrong model at a client.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

from fedlib.compress.compressors import Compressor, Identity
from fedlib.core.client import ClientState, Reply
from fedlib.core.federation import FLOAT_BITS, Federation
from fedlib.core.protocols import AT_CLIENTS
from fedlib.core.types import Draw, Problem
from fedlib.flower.draws import answering, named, without
from fedlib.flower.packing import Garbled, receive, send

IDENTITY = Identity()
Read = Callable[[int, bytes], Float[Tensor, "*s"]]  # of a client its answer; raises Garbled
Collect = Callable[[list[int], Read], dict[int, Float[Tensor, "*s"]]]


class Frame(NamedTuple):
    """What one ask or tell brings, and to whom."""

    receivers: frozenset[int]
    data: bytes


class Answered(Exception):
    """What a client answers to the last frame that it has: no error, but the end of its half."""

    def __init__(self, data: bytes) -> None:
        super().__init__("answered")
        self.data = data


class End(Federation):
    """What both ends share: who is meant, and what an answer looks like.

    The round is one without the clients `lost`. `shapes` is filled with the answers' shapes; an end
    passes it on from round to round.
    """

    def __init__(
        self, problem: Problem, draw: Draw, lost: Collection[int], shapes: dict[int, Any]
    ) -> None:
        self.draw, self.whole, self.shapes = without(draw, lost), problem, shapes
        super().__init__(answering(problem, self.draw, lost))
        self.count = 0  # asks and tells so far

    def clients(self, draw: Draw, model: Any = (), memory: Any = ()) -> ClientState:
        """As in `Federation`, of a problem whose rows are blank but for this end's own."""
        return Federation(self.whole).clients(draw, model, memory)

    def only_client(self, draw: Draw) -> Any:  # noqa: ARG002 - whatever is drawn
        """Refused: nothing would cross a line."""
        raise TypeError(
            "federation: algorithm must ask clients, a centralized one has its rows at the server; "
            "use run()."
        )

    def told(self, receivers: int | None) -> frozenset[int]:
        """Who hears a `tell`: all N clients, or everybody whom the draw names."""
        return frozenset(range(self.whole.num_clients)) if receivers is None else named(self.draw)

    def blank(self, method: Any, clients: ClientState, broadcast: Any) -> Any:
        """One client's answer as NaN in its shape, which is found without computing it."""
        if self.count not in self.shapes:
            with FakeTensorMode(allow_non_fake_inputs=True) as mode:
                one = pytree.tree_map(lambda x: mode.from_tensor(x[0]), clients._replace(model=()))
                model = pytree.tree_map(mode.from_tensor, clients.model)
                sent = [mode.from_tensor(x) for x in broadcast]
                answer = method(self.client(one._replace(model=model)), *sent)
            like = self.whole.w0
            self.shapes[self.count] = pytree.tree_map(
                lambda x: torch.full(x.shape, torch.nan, dtype=x.dtype, device=like.device), answer
            )
        return self.shapes[self.count]

    def among(self, clients: ClientState, active: Bool[Tensor, "n"] | None) -> list[int]:
        """The numbers of those who are asked, -1 for who was not lucky with its coin."""
        assert isinstance(clients.who, Tensor)
        on = torch.ones_like(clients.who, dtype=torch.bool) if active is None else active
        return torch.where(on, clients.who, -1).tolist()


class ServerEnd(End):
    """The server's end: no rows, no memories, and `collect` to reach the clients."""

    def __init__(
        self,
        problem: Problem,
        draw: Draw,
        lost: Collection[int],
        shapes: dict[int, Any],
        collect: Collect,
    ) -> None:
        super().__init__(problem, draw, lost, shapes)
        self.collect = collect
        self.frames: list[Frame] = []

    def ask(
        self,
        method: Callable[..., Any],
        clients: ClientState,
        *broadcast: Float[Tensor, "..."],
        wire: Compressor | None = None,
        active: Bool[Tensor, "n"] | None = None,
    ) -> Any:
        """As in `Federation`; zeros stand for who is not asked, NaN for all memories."""
        wire = wire or IDENTITY
        who, blank = self.among(clients, active), self.blank(method, clients, broadcast)
        asked = [j for j in who if j >= 0]
        one = blank.upload if isinstance(blank, Reply) else blank
        noise = clients.noise
        own = {j: noise[i] if isinstance(noise, Tensor) else () for i, j in enumerate(who)}
        data = b"".join(send(IDENTITY, x) for x in broadcast)
        self.frames.append(Frame(frozenset(asked), data))
        self.count += 1
        got = self.collect(asked, lambda j, sent: receive(wire, sent, one, own[j])) if asked else {}
        uploads = torch.stack([got.get(j, torch.zeros_like(one)) for j in who])
        self.bits_down += len(asked) * sum(FLOAT_BITS * x.numel() for x in broadcast)
        self.bits_up += len(asked) * wire.bits(one.numel())
        if not isinstance(blank, Reply):
            return uploads
        return uploads, pytree.tree_map(lambda x: x.expand(len(who), *x.shape), blank.memory)

    def tell(
        self,
        wire: Compressor,
        message: Float[Tensor, "d"],
        noise: Shaped[Tensor, "*noise"] | tuple[()] = (),
        receivers: int | None = None,
    ) -> Float[Tensor, "d"]:
        """As in `Federation`; the server goes on with what the clients receive."""
        data = send(wire, wire(message, noise), noise)
        self.frames.append(Frame(self.told(receivers), data))
        count = self.whole.num_clients if receivers is None else receivers
        self.bits_down += count * wire.bits(message.numel())
        self.count += 1
        return receive(wire, data, message, noise)


class ClientEnd(End):
    """The end of client `me`: its rows, its memory, the frames that it was sent (None: not it).

    At the last frame of a round that is not `over` the client's answer is raised, as `Answered`.
    `answers` holds those that it has given in this round.
    """

    def __init__(
        self,
        problem: Problem,
        draw: Draw,
        lost: Collection[int],
        shapes: dict[int, Any],
        me: int,
        frames: Sequence[bytes | None],
        answers: dict[int, Any],
        over: bool,
    ) -> None:
        super().__init__(problem, draw, lost, shapes)
        self.me, self.frames, self.answers, self.over = me, frames, answers, over

    def frame(self) -> bytes:
        """What this ask or tell has brought."""
        sent = self.frames[self.count] if self.count < len(self.frames) else None
        if sent is None:
            raise Garbled(f"message {self.count} of the round is missing")
        return sent

    def ask(
        self,
        method: Callable[..., Any],
        clients: ClientState,
        *broadcast: Float[Tensor, "..."],
        wire: Compressor | None = None,
        active: Bool[Tensor, "n"] | None = None,
    ) -> Any:
        """As in `Federation`; the client's own answer stands for the others' too."""
        who, blank = self.among(clients, active), self.blank(method, clients, broadcast)
        if self.me in who:
            place = who.index(self.me)
            answer = self.answer(method, clients, place, broadcast, wire or IDENTITY)
        else:
            place, answer = 0, pytree.tree_map(torch.zeros_like, blank)
        self.count += 1
        if not isinstance(answer, Reply):
            return answer.expand(len(who), *answer.shape)
        return answer.upload.expand(len(who), *answer.upload.shape), pytree.tree_map(
            lambda x, nan: nan.repeat(len(who), *(1,) * x.dim()).index_copy(
                0, torch.tensor([place], device=x.device), x.unsqueeze(0)
            ),
            answer.memory,
            blank.memory,
        )

    def answer(
        self, method: Any, clients: ClientState, place: int, broadcast: Any, wire: Compressor
    ) -> Any:
        """The client's answer, by its own rows and what it was sent."""
        data, sent = self.frame(), []
        for x in broadcast:
            size = FLOAT_BITS // 8 * x.numel()
            sent.append(receive(IDENTITY, data[:size], x))
            data = data[size:]
        state = pytree.tree_map(lambda x: x[place], clients._replace(model=()))
        if self.count not in self.answers:
            client = self.client(state._replace(model=clients.model))
            self.answers[self.count] = method(client, *sent)
        answer = self.answers[self.count]
        if self.count == len(self.frames) - 1 and not self.over:
            upload = answer.upload if isinstance(answer, Reply) else answer
            raise Answered(send(wire, upload, state.noise))
        return answer

    def tell(
        self,
        wire: Compressor,
        message: Float[Tensor, "d"],
        noise: Shaped[Tensor, "*noise"] | tuple[()] = (),
        receivers: int | None = None,
    ) -> Float[Tensor, "d"]:
        """What was sent; who is not told goes on with a placeholder."""
        heard = self.me in self.told(receivers)
        got = receive(wire, self.frame(), message, noise) if heard else message
        self.count += 1
        return got


def own_part(state: Any, me: int | None) -> Any:
    """What an end keeps of a state: of the clients' memories its own row, at the server none."""
    rows = slice(0, 0) if me is None else slice(me, me + 1)
    return state._replace(**{name: getattr(state, name)[rows] for name in at_clients(state)})


def whole_state(own: Any, me: int | None, clients: int) -> Any:
    """A state of all clients in which the memories that an end does not have are NaN."""
    found = {}
    for name in at_clients(own):
        x = getattr(own, name)
        found[name] = x.new_full((clients, *x.shape[1:]), torch.nan)
        if me is not None:
            found[name][me] = x[0]
    return own._replace(**found)


def at_clients(state: Any) -> Iterable[str]:
    """The fields of a state that live at the clients."""
    return [name for name in state._fields if name in AT_CLIENTS]
