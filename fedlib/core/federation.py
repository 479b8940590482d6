"""The line between server and clients: `ask`, `tell`, and the bits that cross it.

An algorithm is a program at the server. It reaches its clients through a Federation only, which
maps a client's method over the round's participants. Three engines share one interface:
`Vectorized` maps with `torch.func.vmap`; `Sequential` takes one participant after another, which is
faster for convolutions on a CPU; `Loop` is the plain twin of both, which moreover sends every
message through the wire format's `encode` and `decode`, so that a format which cannot carry its
message shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor
from torch.func import vmap
from torch.utils import _pytree as pytree

from fedlib.compress.compressors import FLOAT_BITS, Compressor, Identity
from fedlib.core.client import Client, ClientState, Reply
from fedlib.core.messages import Sent, asked, told
from fedlib.core.problem import Batch, Draw, Info, Problem
from fedlib.engine.gradient import Gradient
from fedlib.engine.portions import portions

MOST_PORTIONS = 16  # of the clients: each is recorded anew
WORTH = 5  # times the models that clients send they must read: what portions give is joined again


class Federation:
    """One round's access to the clients of `problem`; engines say how a method is mapped.

    `bits_up` and `bits_down` are what has crossed the line so far in this round, all clients
    together: uploads by the wire format named at `ask`, broadcasts at 32 bits a number to every
    participant, `tell` by its wire format to every one of the N clients. A list in `log` receives
    every message, see `fedlib.core.messages`.
    """

    runs = 1  # how many are mapped over together
    gradient: Gradient | None = None  # of the losses, where it is recorded
    sequential_clients = False  # whether clients, and what a client maps over, are taken in a loop
    log: list[Sent] | None = None

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.bits_up: int | Tensor = 0
        self.bits_down: int | Tensor = 0

    def clients(
        self,
        draw: Draw,
        model: Float[Tensor, "d"] | tuple[()] = (),
        memory: Float[Tensor, "N *memory"] | tuple[()] = (),
    ) -> ClientState:
        """The participants of this round; every part but the common model has a leading axis n.

        `model [d]` is what every client already holds; `memory [N, ...]` is cut to participants.
        Rows are gathered only where the draw does not replace them by minibatches.
        """
        who = draw.participants
        full = self.problem.rows_of(who) if draw.batches == () or draw.values == () else ()
        return ClientState(
            model=model,
            rows=full,
            batches=self._minibatch(who, draw.batches),
            values=self._minibatch(who, draw.values),
            memory=memory[who] if isinstance(memory, Tensor) else (),
            noise=draw.uplink,
            chance=draw.chance,
            who=who,
        )

    def value_clients(
        self, draw: Draw, clients: ClientState, model: Float[Tensor, "d"]
    ) -> ClientState:
        """Who is asked for loss values: the participants, unless the draw names others."""
        if not isinstance(draw.value_clients, Tensor):
            return clients
        asked = Draw(participants=draw.value_clients, values=draw.values)
        return self.clients(asked, model=model)

    def constraint(
        self, answers: Float[Tensor, "n *s"]
    ) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        """The constraint's value from what the clients sent about it, and its slope.

        The mean over clients and 1, unless the problem pools statistics (`Pooled`).
        """
        if self.problem.pooled is not None:
            return self.problem.pooled.combine(answers)
        return answers.mean(), answers.new_ones(())

    def _minibatch(self, who: Tensor, positions: Tensor | tuple[()]) -> Batch | tuple[()]:
        if not isinstance(positions, Tensor):
            return ()
        flat = positions.flatten(1)  # [n, E B]
        rows = self.problem.rows[who].gather(1, flat).view(positions.shape)
        weight = torch.ones_like(rows, dtype=self.problem.w0.dtype) / positions.shape[-1]
        return Batch(tuple(x[rows] for x in self.problem.data), weight)

    def ask(
        self,
        method: Callable[..., Any],
        clients: ClientState,
        *broadcast: Float[Tensor, "..."],
        wire: Compressor | None = None,
        active: Bool[Tensor, "n"] | None = None,
    ) -> Any:
        """Send `broadcast` to the participants, run `method` at each, gather what they upload.

        Returns the uploads `[n, ...]`, or `(uploads, memories)` if the method returns a `Reply`,
        and `(uploads, memories, reports)` if that has a report, which is not counted.
        The uploads are counted in the wire format `wire` (32 bits a number if none is named).
        Where coins decide who takes part, `active [n]` says who does: all are computed, but only
        the messages from and to these are counted, and the caller drops the others' answers.
        """
        wire = Identity() if wire is None else wire
        answer = self._map(method, clients, broadcast, wire)
        upload = answer.upload if isinstance(answer, Reply) else answer
        n = upload.shape[0] if active is None else active.sum()
        self.bits_down += n * sum(FLOAT_BITS * x.numel() for x in broadcast)
        self.bits_up += n * wire.bits(upload[0].numel())
        if self.log is not None:
            self.log += asked(method, broadcast, upload[0], wire, int(n))
        return answer.parts() if isinstance(answer, Reply) else answer

    def broadcast(
        self,
        wire: Compressor,
        message: Float[Tensor, "d"],
        noise: Shaped[Tensor, "*noise"] | tuple[()] = (),
        receivers: int | None = None,
    ) -> Float[Tensor, "d"]:
        """Send one message through `wire` to some `receivers`, by default all N clients.

        Returns what they receive.
        """
        sent = told(message, wire, receivers, self.problem.num_clients)
        self.bits_down += sent.copies * sent.bits
        if self.log is not None:
            self.log.append(sent)
        return wire(message, noise)

    def store_memory(
        self, memory: Float[Tensor, "N *memory"], draw: Draw, new: Float[Tensor, "n *memory"]
    ) -> Float[Tensor, "N *memory"]:
        """The memories `[N, ...]` after the participants have replaced theirs by `new [n, ...]`."""
        index = draw.participants.view(-1, *(1,) * (new.dim() - 1)).expand_as(new)
        return memory.scatter(0, index, new)

    def project(self, x: Float[Tensor, "d"]) -> Float[Tensor, "d"]:
        """The projection onto the problem's feasible set, or `x` itself if it has none."""
        return x if self.problem.set is None else self.problem.set.project(x)

    def info(self, **metrics: Shaped[Tensor, "..."]) -> Info:
        """What the round reports: `metrics`, and the bits that crossed the line in it."""
        like = torch.zeros((), dtype=torch.float64, device=self.problem.w0.device)
        bits = {"bits_up": like + self.bits_up, "bits_down": like + self.bits_down}
        return {**metrics, **bits}

    def client(self, state: ClientState) -> Client:
        """One client: its own tensors, and the form of the problem's losses."""
        p = self.problem
        return Client(
            state,
            p.losses,
            p.gradient or self.gradient,
            p.num_objectives,
            p.num_constraints,
            p.pooled,
            p.simulator,
            self.sequential_clients,
        )

    def only_client(self, draw: Draw) -> Client:
        """The one client of a centralized problem, at the server: nothing is sent or counted."""
        return self.client(pytree.tree_map(itemgetter(0), self.clients(draw)))

    def _map(
        self, method: Callable[..., Any], clients: ClientState, broadcast: Any, wire: Compressor
    ) -> Any:
        del method, clients, broadcast, wire
        raise TypeError("Federation: this is the interface; use Vectorized or Loop.")


class Vectorized(Federation):
    """All participants at once, by `torch.func.vmap`.

    >>> from fedlib import FedAvg, problems, run
    >>> problem = problems.quadratics(torch.ones(4, 2), torch.zeros(4, 2), level=0.5)
    >>> end = run(FedAvg(0.1, 2, 4), problem, rounds=5, progress=False, engine=Vectorized)
    >>> end.metrics["g"][0].round(2)
    array([-0.5 , -0.46, -0.38, -0.28, -0.18, -0.08])
    """

    def _map(
        self,
        method: Callable[..., Any],
        clients: ClientState,
        broadcast: Any,
        wire: Compressor,  # noqa: ARG002 - only the plain twin sends real messages
    ) -> Any:
        # One model for all keeps its products with the data whole: no axis for it, 0 for the rest.
        axes = ClientState._make((None, *(0,) * (len(ClientState._fields) - 1)))
        each = vmap(lambda state: method(self.client(state), *broadcast), in_dims=(axes,))
        answers = [each(some) for some in self._in_portions(clients)]
        if len(answers) == 1:
            return answers[0]
        return pytree.tree_map(lambda *xs: torch.cat(xs), *answers)

    def _in_portions(self, clients: ClientState) -> Iterator[ClientState]:
        """All clients, or so many at a time that what they read of the data stays in the cache."""
        own = clients._replace(model=())
        n = pytree.tree_leaves(own)[0].shape[0]
        read, w0 = self._bytes_read(clients), self.problem.w0
        count = portions(self.runs * read, most=min(n, MOST_PORTIONS))
        if count == 1 or read < WORTH * n * w0.nbytes or w0.device.type != "cpu":
            yield clients
            return
        size = -(-n // count)
        for a in range(0, n, size):
            some = pytree.tree_map(lambda x, a=a: x[a : a + size], own)
            yield some._replace(model=clients.model)

    def _bytes_read(self, clients: ClientState) -> int:
        """Of all clients' rows at a time: those of a step, or of the values, whichever are more."""
        drawn = [part for part in (clients.batches, clients.values) if isinstance(part, Batch)]
        if isinstance(clients.rows, Batch) and not drawn:
            drawn = [clients.rows]
        sizes = [sum(x.nbytes for x in part.data) for part in drawn]
        if isinstance(clients.batches, Batch):
            sizes[0] //= clients.batches.weight.shape[1]
        return max(sizes, default=0)


class Sequential(Federation):
    """One participant after another, each message arriving as it was sent.

    `run` records the gradient of losses that state none, and does its operations again.

    >>> from fedlib import FedAvg, problems, run
    >>> problem = problems.quadratics(torch.ones(4, 2), torch.zeros(4, 2), level=0.5)
    >>> end = run(FedAvg(0.1, 2, 4), problem, rounds=5, progress=False, engine=Sequential)
    >>> end.metrics["g"][0].round(2)
    array([-0.5 , -0.46, -0.38, -0.28, -0.18, -0.08])
    """

    sequential_clients = True

    def _map(
        self, method: Callable[..., Any], clients: ClientState, broadcast: Any, wire: Compressor
    ) -> Any:
        own = clients._replace(model=())
        answers = []
        for j in range(pytree.tree_leaves(own)[0].shape[0]):
            state = pytree.tree_map(itemgetter(j), own)._replace(model=clients.model)
            client = self.client(state)
            answers.append(self._received(method(client, *broadcast), client, wire))
        return pytree.tree_map(lambda *xs: torch.stack(xs), *answers)

    def _received(self, answer: Any, client: Client, wire: Compressor) -> Any:
        del client, wire
        return answer


class Loop(Sequential):
    """The plain twin: one after another, each upload sent through the wire's encode and decode.

    >>> from fedlib import FedAvg, problems, run
    >>> problem = problems.quadratics(torch.ones(4, 2), torch.zeros(4, 2), level=0.5)
    >>> end = run(FedAvg(0.1, 2, 4), problem, rounds=5, progress=False, engine=Loop)
    >>> end.metrics["g"][0].round(2)
    array([-0.5 , -0.46, -0.38, -0.28, -0.18, -0.08])
    """

    def _received(self, answer: Any, client: Client, wire: Compressor) -> Any:
        upload = answer.upload if isinstance(answer, Reply) else answer
        if upload.dim() != 1:
            return answer
        arrived = wire.decode(wire.encode(upload, client.noise), upload, client.noise)
        return answer._replace(upload=arrived) if isinstance(answer, Reply) else arrived

    def broadcast(
        self,
        wire: Compressor,
        message: Float[Tensor, "d"],
        noise: Shaped[Tensor, "*noise"] | tuple[()] = (),
        receivers: int | None = None,
    ) -> Float[Tensor, "d"]:
        """As in `Federation`, through encode and decode."""
        received = super().broadcast(wire, message, noise, receivers)
        return wire.decode(wire.encode(received, noise), received, noise)
