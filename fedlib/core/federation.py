"""The line between server and clients: `ask`, `broadcast`, and the count of the bits sent.

An algorithm is a program at the server. It reaches its clients only through a `Federation`, which
maps a client's method over the round's participants. Three engines share this interface.
`Vectorized` maps with `torch.func.vmap`. `Sequential` takes one participant after another, which is
faster for convolutions on a CPU. `Loop` also takes one after another and passes every message
through the wire format's `encode` and `decode`, to show a format that cannot carry its message.
"""

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor
from torch.func import grad_and_value, vmap
from torch.utils import _pytree as pytree

from fedlib.compress.compressors import Compressor, Identity
from fedlib.compress.wire import FLOAT_BITS
from fedlib.core.client import Client, ClientState, Reply, WithCoins, present
from fedlib.core.problem import Batch, Draw, Info, OfMeans, Pooled, Problem
from fedlib.core.trees import index_tree, stack_trees

SERVER, PARTICIPANT, EVERYONE = "server", "participant", "every client"


class Sent(NamedTuple):
    """One message, with the number of copies that were sent.

    `sender` and `receiver` are `"server"`, `"participant"`, `"every client"` or `"client 3"`.
    `what` names an argument or a client's method, or is `broadcast`. `floats` and `indices` count
    the real and the whole numbers in the message; `bits` is the length of one copy on the wire.
    """

    sender: str
    receiver: str
    what: str
    floats: int
    indices: int
    bits: int
    copies: int = 1


class RowNumbers(NamedTuple):
    """A minibatch whose rows are gathered when its client computes."""

    rows: Int[Tensor, "*n E B"]
    weight: Float[Tensor, "*n E B"]


LARGE_ROUND = 20_000_000  # entries of all participants' models from which they are mapped in turns
CACHED = 250_000  # entries of models that are mapped together then


class Federation:
    """One round's access to the clients; engines differ in how they run a method at each client.

    `bits_up` and `bits_down` count the bits of this round so far, summed over all clients. Uploads
    and `broadcast` count in their wire format; messages of `ask` count 32 bits a number. If `log`
    is a list, every message is appended to it as a `Sent`.
    """

    gradient: Callable[..., Any] | None = None  # the captured gradient, if the problem has none
    sequential_clients = False  # whether a plain loop replaces every map over clients
    log: list[Sent] | None = None

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.coin: Tensor | None = None  # of the round, if the problem has dropout
        self.averaged = False  # whether the method has called `mean` in this round
        self.bits_up: int | Tensor = 0
        self.bits_down: int | Tensor = 0

    def clients(
        self,
        draw: Draw,
        model: Float[Tensor, "d"] | tuple[()] = (),
        memory: Float[Tensor, "N *memory"] | Sequence[Float[Tensor, "N _ d"]] = (),
    ) -> ClientState:
        """The participants' tensors with a leading axis n, except the common model.

        `model [d]` is the model that every client already holds. `memory [N, ...]` is restricted to
        the participants; of several memories `[N, k, d]` a client gets one `[k, d]` with the rows
        of all. Minibatches are gathered now, all rows of a client at their first use.
        """
        who = draw.participants
        if isinstance(draw.coin, Tensor):
            self.coin = draw.coin
        return ClientState(
            model=model,
            batches=self._minibatch(who, draw.batches),
            values=self._minibatch(who, draw.values),
            memory=self._restricted(memory, who),
            noise=draw.uplink,
            chance=draw.chance,
            who=who,
        )

    def _restricted(self, memory: Any, who: Tensor) -> Tensor | tuple[()]:
        """The memories of some clients."""
        if isinstance(memory, Tensor):
            return memory[who]
        return torch.cat([part[who] for part in memory], 1) if memory else ()

    def value_clients(
        self, draw: Draw, clients: ClientState, model: Float[Tensor, "d"]
    ) -> ClientState:
        """The clients that send loss values: the participants, or other clients of the draw."""
        if not isinstance(draw.value_clients, Tensor):
            return clients
        asked = Draw(participants=draw.value_clients, values=draw.values)
        return self.clients(asked, model=model)

    def constraint(
        self, answers: Float[Tensor, "n *s"], clients: ClientState | None = None
    ) -> tuple[Float[Tensor, ""], Float[Tensor, "*C"]]:
        """The constraint's value, and the factor of its gradients, from the clients' messages.

        Without statistics (`Pooled`, `OfMeans`), the value is the mean over clients, and the slope
        is 1. Several constraints count as one, their maximum: the value is the largest of them, and
        the slope `[C]` is 1 for this constraint and 0 for the others. With an `OfMeans`, the slope
        `[s]` holds the derivatives of the largest constraint by the means of the statistics.
        """
        pooled = self.problem.pooled
        if isinstance(pooled, Pooled):
            return pooled.combine(answers)
        weighted = clients is not None and self.problem.client_weights
        means = self.mean(answers, clients) if weighted and clients else answers.mean(0)
        if isinstance(pooled, OfMeans):
            slope, value = grad_and_value(lambda x: pooled.values(x).amax())(means)
            return value, slope
        if not means.dim():
            return means, means.new_ones(())
        place = torch.arange(len(means), device=means.device)
        return means.amax(), (place == means.argmax()).to(means.dtype)

    def steer(
        self, sigma: Float[Tensor, ""], slope: Float[Tensor, "*s"]
    ) -> Float[Tensor, "*message"]:
        """The message that tells clients sigma and the slope, which they read by `client.steered`.

        Where the slope is a sign or names one of several constraints, `slope * sigma` says both.
        Slopes of statistics may have any size, so sigma is sent before them.
        """
        if isinstance(self.problem.pooled, OfMeans):
            return torch.cat([sigma.reshape(1), slope * sigma])
        return slope * sigma

    def mean(self, answers: Float[Tensor, "n *x"], clients: ClientState) -> Float[Tensor, "*x"]:
        """The mean of the clients' messages, weighted by the problem's `client_weights`.

        If the problem has such weights, each client also sends its weight once in a round.
        """
        who = torch.as_tensor(clients.who)
        if self.problem.client_weights and not self.averaged:
            self.bits_up += FLOAT_BITS * len(who)
            weight = answers.new_ones(1)
            self._note(PARTICIPANT, SERVER, "weight", weight, FLOAT_BITS, len(who))
        self.averaged = True
        return self.problem.mean(answers, who)

    def _note(
        self, sender: str, receiver: str, what: str, part: Tensor, bits: int, copies: Any
    ) -> None:
        """Append a message of one tensor to the log, if there is a log."""
        if self.log is not None:
            sizes = count_numbers([part])
            self.log.append(Sent(sender, receiver, what, *sizes, bits, int(copies)))

    def _minibatch(self, who: Tensor, positions: Tensor | tuple[()]) -> Any:
        """The participants' minibatches; the rows' numbers alone if all rows would be too many."""
        if not isinstance(positions, Tensor):
            return ()
        problem = self.problem
        size = positions.shape[-1]
        rows = problem.row_numbers(who, positions.flatten(1)).view(positions.shape)
        weight = torch.ones_like(rows, dtype=problem.w0.dtype) / size
        if problem.whole_batches:
            count = torch.tensor(problem.sizes, device=who.device)[who].clamp(max=size)
            count = count.view(-1, *(1,) * (positions.dim() - 1))
            real = torch.arange(size, device=who.device) < count
            weight = (real.to(problem.w0.dtype) / count).expand(positions.shape)
        minibatch = RowNumbers(rows, weight)
        if clients_at_once(len(who), problem.dim):
            return minibatch
        return self._gathered(minibatch)

    def _gathered(self, part: Any) -> Any:
        """A minibatch of which the numbers of its rows are known; anything else as it is."""
        if isinstance(part, RowNumbers):
            return Batch(self.problem.data_at(part.rows), part.weight)
        return part

    def ask(
        self,
        method: Callable[..., Any],
        clients: ClientState,
        *broadcast: Float[Tensor, "..."],
        wire: Compressor | None = None,
        active: Bool[Tensor, "n"] | None = None,
    ) -> Any:
        """Send `broadcast` to the participants, run `method` at each, and collect their uploads.

        Returns the uploads `[n, ...]`; if the method returns a `Reply`, `(uploads, memories)`; if
        the reply has a report, `(uploads, memories, reports)`. Reports are not counted. Uploads are
        counted in the wire format `wire`, by default at 32 bits a number. If coins decide who takes
        part, `active [n]` marks the clients that do. All answers are computed, but only messages
        from and to active clients are counted. The caller must drop the other answers.
        """
        wire = Identity() if wire is None else wire
        answer = self._map(method, clients, broadcast, wire)
        upload = answer.upload if isinstance(answer, Reply) else answer
        n = upload.shape[0] if active is None else active.sum()
        self.bits_down += n * sum(FLOAT_BITS * x.numel() for x in broadcast)
        self.bits_up += n * wire.bits(upload[0].numel())
        if self.log is not None:
            while isinstance(method, partial):
                method = method.func
            names = list(inspect.signature(method).parameters)[1:]
            for name, x in zip(names, broadcast, strict=False):
                self._note(SERVER, PARTICIPANT, name, x, FLOAT_BITS * x.numel(), n)
            bits = wire.bits(upload[0].numel())
            self._note(PARTICIPANT, SERVER, method.__name__, upload[0], bits, n)
        if isinstance(answer, Reply):
            return tuple(answer) if isinstance(answer.report, Tensor) else answer[:2]
        return answer

    def broadcast(
        self,
        wire: Compressor,
        message: Float[Tensor, "d"],
        noise: Shaped[Tensor, "*noise"] | tuple[()] = (),
        receivers: int | None = None,
    ) -> Float[Tensor, "d"]:
        """Send one message from the server in the format `wire`, by default to all N clients.

        `receivers` is the number of clients that get it. Returns the message as they receive it.
        """
        everyone = (EVERYONE, self.problem.num_clients)
        whom, n = everyone if receivers is None else (PARTICIPANT, receivers)
        bits = wire.bits(message.numel())
        self.bits_down += n * bits
        self._note(SERVER, whom, "broadcast", message, bits, n)
        return self._carried(wire(message, noise), wire, noise)

    def store_memory(
        self, memory: Float[Tensor, "N *memory"], draw: Draw, new: Float[Tensor, "n *memory"]
    ) -> Float[Tensor, "N *memory"]:
        """The memories `[N, ...]` after `new [n, ...]` has replaced those of the participants."""
        index = draw.participants.view(-1, *(1,) * (new.dim() - 1)).expand_as(new)
        return memory.scatter(0, index, new)

    def project(self, x: Float[Tensor, "d"]) -> Float[Tensor, "d"]:
        """Project onto the problem's feasible set; without a set, return `x`."""
        return x if self.problem.set is None else self.problem.set.project(x)

    def info(self, **metrics: Shaped[Tensor, "..."]) -> Info:
        """The round's report: `metrics`, and the bits that were sent in the round."""
        if self.problem.client_weights and not self.averaged:
            raise ValueError(
                "run: the method must average by the problem's client_weights, but it weights "
                "clients in its own way; use the problem without weights."
            )
        like = torch.zeros((), dtype=torch.float64, device=self.problem.w0.device)
        bits = {"bits_up": like + self.bits_up, "bits_down": like + self.bits_down}
        return {**metrics, **bits}

    def client(self, state: ClientState, most: int | None = None) -> Client:
        """The object for one client: its tensors, at most `most` rows, and the losses."""
        p = self.problem
        losses = p.losses
        if self.coin is not None:
            losses = WithCoins(p.losses, self.coin + 104_723 * present(state.who, "number"))
        state = state._replace(
            batches=self._gathered(state.batches), values=self._gathered(state.values)
        )
        return Client(
            state,
            losses,
            p.gradient or self.gradient,
            p.num_objectives,
            p.num_constraints,
            p.num_statistics,
            p.pooled,
            p.simulator,
            self.sequential_clients,
            partial(p.rows_of_client, present(state.who, "number"), most),
        )

    def only_client(self, draw: Draw) -> Client:
        """The one client of a centralized problem, at the server; no message is sent or counted."""
        return self.client(index_tree(self.clients(draw), 0))

    def _carried(self, x: Tensor, wire: Compressor, noise: Any) -> Tensor:
        """A compressed message as the receiver gets it."""
        del wire, noise
        return x

    def _map(self, method: Any, clients: ClientState, broadcast: Any, wire: Compressor) -> Any:
        """The stacked answers of all participants; each engine defines this method."""
        del method, clients, broadcast, wire
        raise TypeError("Federation: this is the interface; use Vectorized, Sequential or Loop.")


def clients_at_once(clients: int, dim: int) -> int | None:
    """The number of clients that are mapped together, or None for all of them.

    Of many clients with large models, only so many are mapped together that what one operation
    leaves for the next stays in the processor's cache.

    >>> clients_at_once(100, 10_000), clients_at_once(100_000, 1000)
    (None, 250)
    """
    if clients * dim <= LARGE_ROUND:
        return None
    return max(1, CACHED // dim)


class Vectorized(Federation):
    """The engine that runs all participants at once, by `torch.func.vmap`."""

    def _map(self, method: Any, clients: ClientState, broadcast: Any, wire: Compressor) -> Any:
        del wire  # only `Loop` encodes messages
        # The common model has no mapped axis, so products with the data stay whole.
        axes = ClientState._make((None, *(0,) * (len(ClientState._fields) - 1)))

        def answers(clients: ClientState, most: int | None = None) -> Any:
            count = len(pytree.tree_leaves(clients._replace(model=()))[0])
            each = vmap(
                lambda state: method(self.client(state, most), *broadcast),
                in_dims=(axes,),
                chunk_size=clients_at_once(count, self.problem.dim),
            )
            return each(clients)

        if not self.problem.ragged:
            return answers(clients)
        numbers = torch.as_tensor(clients.who).tolist()
        groups = self.problem.size_groups(numbers)
        parts = [
            answers(
                index_tree(clients._replace(model=()), group)._replace(model=clients.model),
                max(self.problem.sizes[numbers[place]] for place in group),
            )
            for group in groups
        ]
        order = torch.tensor([place for group in groups for place in group]).argsort()
        return pytree.tree_map(lambda *x: torch.cat(x)[order], *parts)


class Sequential(Federation):
    """The engine that runs one participant after another.

    `run` captures the gradient of a problem that has no closed form, and replays it.
    """

    sequential_clients = True

    def _map(self, method: Any, clients: ClientState, broadcast: Any, wire: Compressor) -> Any:
        own = clients._replace(model=())
        answers = []
        for j in range(pytree.tree_leaves(own)[0].shape[0]):
            client = self.client(index_tree(own, j)._replace(model=clients.model))
            answer = method(client, *broadcast)
            upload = answer.upload if isinstance(answer, Reply) else answer
            upload = self._carried(upload, wire, client.noise)
            answers.append(answer._replace(upload=upload) if isinstance(answer, Reply) else upload)
        return stack_trees(answers)


class Loop(Sequential):
    """The sequential engine that passes each upload through the wire's `encode` and `decode`.

    >>> from fedlib import FedAvg, problems, run
    >>> end = run(FedAvg(0.1, 2, 4), problems.quadratics(), rounds=5, engine=Loop)
    >>> end.metrics["g"][0].round(2)
    array([-0.5 , -0.46, -0.38, -0.28, -0.18, -0.08])
    """

    def _carried(self, x: Tensor, wire: Compressor, noise: Any) -> Tensor:
        return wire.decode(wire.encode(x, noise), x, noise) if x.dim() == 1 else x


def count_numbers(parts: Sequence[Shaped[Tensor, "..."]]) -> tuple[int, int]:
    """Count the real numbers and the whole numbers in some tensors."""
    floats = sum(x.numel() for x in parts if x.is_floating_point())
    return floats, sum(x.numel() for x in parts) - floats
