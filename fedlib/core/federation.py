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
from fedlib.core.trees import stack_trees
from fedlib.shapes import AnyTensor, Scalar, Vector

SERVER = "server"
PARTICIPANT = "participant"
EVERYONE = "every client"


class Sent(NamedTuple):
    """One message, with the number of copies that were sent.

    `sender` and `receiver` are `"server"`, `"participant"`, `"every client"` or `"client 3"`.
    `name` is that of an argument or of a client's method, or `broadcast`. `floats` and `indices`
    count the real and the whole numbers in the message; `bits` is the length of one copy on the
    wire.
    """

    sender: str
    receiver: str
    name: str
    floats: int
    indices: int
    bits: int
    copies: int = 1


class RowNumbers(NamedTuple):
    """A minibatch whose rows are gathered when its client computes."""

    rows: Int[Tensor, "*n E B"]
    weight: Float[Tensor, "*n E B"]


class PostponedRows:
    """A memory `[N, ...]` whose participants' rows are replaced after the round.

    It has no operations: a round only puts it in the state.
    """

    def __init__(
        self,
        memory: Float[Tensor, "N *memory"],
        numbers: Int[Tensor, "n"],
        rows: Float[Tensor, "n *memory"],
    ) -> None:
        self.memory = memory
        self.numbers = numbers
        self.rows = rows

    def copied(self) -> Float[Tensor, "N *memory"]:
        """A copy of the memory in which the rows are replaced."""
        numbers = _with_axes(self.numbers, self.rows.dim())
        index = numbers.expand_as(self.rows)
        return self.memory.scatter(0, index, self.rows)


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
    postpones_rows = False  # whether `run` writes the rows of memories after the round

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.coin: Tensor | None = None  # of the round, if the problem has dropout
        self.active: Bool[Tensor, "n"] | None = None  # of the clients asked last, those that answer
        self.averaged = False  # whether the method has called `mean` in this round
        self.bits_up: int | Tensor = 0
        self.bits_down: int | Tensor = 0

    def clients(
        self,
        draw: Draw,
        model: Vector | tuple[()] = (),
        memory: Float[Tensor, "N *memory"] | Sequence[Float[Tensor, "N _ d"]] = (),
    ) -> ClientState:
        """The participants' tensors with a leading axis n, except the common model.

        `model [d]` is the model that every client already holds. `memory [N, ...]` is restricted to
        the participants; of several memories `[N, k, d]` a client gets one `[k, d]` with the rows
        of all. Minibatches are gathered now, all rows of a client at their first use.
        """
        numbers = draw.participants
        if isinstance(draw.coin, Tensor):
            self.coin = draw.coin
        return ClientState(
            model=model,
            batches=self._minibatch(numbers, draw.batches),
            values=self._minibatch(numbers, draw.values),
            memory=self._restricted(memory, numbers),
            noise=draw.uplink,
            chance=draw.chance,
            number=numbers,
        )

    def _restricted(self, memory: Any, numbers: Tensor) -> Tensor | tuple[()]:
        """The memories of the clients with some numbers."""
        if isinstance(memory, Tensor):
            return memory[numbers]
        if not memory:
            return ()
        return torch.cat([rows[numbers] for rows in memory], 1)

    def value_clients(
        self,
        draw: Draw,
        clients: ClientState,
        model: Vector,
    ) -> ClientState:
        """The clients that send loss values: the participants, or other clients of the draw."""
        if not isinstance(draw.value_clients, Tensor):
            return clients
        value_draw = Draw(participants=draw.value_clients, values=draw.values)
        return self.clients(value_draw, model=model)

    def constraint(
        self,
        answers: Float[Tensor, "n *s"],
        clients: ClientState | None = None,
    ) -> tuple[Scalar, Float[Tensor, "*C"]]:
        """The constraint's value, and the factor of its gradients, from the clients' messages.

        Without statistics (`Pooled`, `OfMeans`), the value is the mean over clients, and the slope
        is 1. Several constraints count as one, their maximum: the value is the largest of them, and
        the slope `[C]` is 1 for this constraint and 0 for the others. With an `OfMeans`, the slope
        `[s]` holds the derivatives of the largest constraint by the means of the statistics.
        """
        pooled = self.problem.pooled
        if isinstance(pooled, Pooled):
            return pooled.combine(answers)
        if clients is not None and self.problem.client_weights:
            means = self.mean(answers, clients)
        else:
            means = answers.mean(0)
        if isinstance(pooled, OfMeans):
            slope, value = grad_and_value(lambda x: pooled.values(x).amax())(means)
            return value, slope
        if not means.dim():
            return means, means.new_ones(())
        index = torch.arange(len(means), device=means.device)
        is_largest = index == means.argmax()
        return means.amax(), is_largest.to(means.dtype)

    def steer(
        self,
        sigma: Scalar,
        slope: Float[Tensor, "*s"],
    ) -> Float[Tensor, "*message"]:
        """The message that tells clients sigma and the slope, which they read by `client.steered`.

        Where the slope is a sign or names one of several constraints, `slope * sigma` says both.
        Slopes of statistics may have any size, so sigma is sent before them.
        """
        if isinstance(self.problem.pooled, OfMeans):
            return torch.cat([sigma.reshape(1), slope * sigma])
        return slope * sigma

    def mean(
        self,
        answers: Float[Tensor, "n *x"],
        clients: ClientState,
    ) -> Float[Tensor, "*x"]:
        """The mean of the clients' messages, weighted by the problem's `client_weights`.

        If the problem has such weights, each client also sends its weight once in a round.
        """
        numbers = torch.as_tensor(clients.number)
        if self.problem.client_weights and not self.averaged:
            count = len(numbers)
            weight = answers.new_ones(1)
            self.bits_up += FLOAT_BITS * count
            self.note(PARTICIPANT, SERVER, "weight", [weight], FLOAT_BITS, count)
        self.averaged = True
        return self.problem.mean(answers, numbers)

    def note(
        self,
        sender: str,
        receiver: str,
        label: str,
        tensors: Sequence[AnyTensor],
        bits: int,
        copies: Any = 1,
    ) -> None:
        """Append a message to the log, if there is a log."""
        if self.log is not None:
            floats, indices = count_numbers(tensors)
            message = Sent(sender, receiver, label, floats, indices, bits, int(copies))
            self.log.append(message)

    def _minibatch(self, numbers: Tensor, positions: Tensor | tuple[()]) -> Any:
        """The participants' minibatches; the rows' numbers alone if all rows would be too many."""
        if not isinstance(positions, Tensor):
            return ()
        problem = self.problem
        size = positions.shape[-1]
        dtype = problem.w0.dtype
        flat = positions.flatten(1)
        rows = problem.row_numbers(numbers, flat).view(positions.shape)
        weight = torch.ones_like(rows, dtype=dtype) / size
        if problem.whole_batches:
            sizes = torch.tensor(problem.sizes, device=numbers.device)
            counts = sizes[numbers].clamp(max=size)
            count = _with_axes(counts, positions.dim())
            is_real = torch.arange(size, device=numbers.device) < count
            weight = (is_real.to(dtype) / count).expand(positions.shape)
        if clients_at_once(len(numbers), problem.dim):
            return RowNumbers(rows, weight)
        return Batch(problem.data_at(rows), weight)

    def _gathered(self, minibatch: Any) -> Any:
        """A minibatch of which the numbers of its rows are known; anything else as it is."""
        if not isinstance(minibatch, RowNumbers):
            return minibatch
        data = tuple(copy_mapped_rows(x, minibatch.rows) for x in self.problem.data)
        return Batch(data, minibatch.weight)

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
        if wire is None:
            wire = Identity()
        self.active = active
        answer = self._map(method, clients, broadcast, wire)
        upload = answer
        if isinstance(answer, Reply):
            upload = answer.upload
        n = upload.shape[0] if active is None else active.sum()
        bits = wire.bits(upload[0].numel())
        self.bits_down += n * sum(FLOAT_BITS * x.numel() for x in broadcast)
        self.bits_up += n * bits
        if self.log is not None:
            while isinstance(method, partial):
                method = method.func
            names = list(inspect.signature(method).parameters)[1:]
            for name, x in zip(names, broadcast, strict=False):
                self.note(SERVER, PARTICIPANT, name, [x], FLOAT_BITS * x.numel(), n)
            self.note(PARTICIPANT, SERVER, method.__name__, [upload[0]], bits, n)
        if not isinstance(answer, Reply):
            return answer
        if isinstance(answer.report, Tensor):
            return tuple(answer)
        return answer.upload, answer.memory

    def broadcast(
        self,
        wire: Compressor,
        message: Vector,
        noise: Shaped[Tensor, "*noise"] | tuple[()] = (),
        receivers: int | None = None,
    ) -> Vector:
        """Send one message from the server in the format `wire`, by default to all N clients.

        `receivers` is the number of clients that get it. Returns the message as they receive it.
        """
        receiver = PARTICIPANT
        if receivers is None:
            receiver = EVERYONE
            receivers = self.problem.num_clients
        bits = wire.bits(message.numel())
        self.bits_down += receivers * bits
        self.note(SERVER, receiver, "broadcast", [message], bits, receivers)
        return self._carried(wire(message, noise), wire, noise)

    def store_memory(
        self,
        memory: Float[Tensor, "N *memory"],
        draw: Draw,
        new: Float[Tensor, "n *memory"],
    ) -> Float[Tensor, "N *memory"]:
        """The memories `[N, ...]` after `new [n, ...]` has replaced those of the participants.

        If a round only returns them in the field of the state that held `memory`, `run` changes
        the participants' rows of large memories in place; else it copies all N rows.
        """
        changes = PostponedRows(memory, draw.participants, new)
        if self.postpones_rows:
            return changes  # type: ignore[return-value]
        return changes.copied()

    def project(self, x: Vector) -> Vector:
        """Project onto the problem's feasible set; without a set, return `x`."""
        if self.problem.set is None:
            return x
        return self.problem.set.project(x)

    def info(self, **metrics: AnyTensor) -> Info:
        """The round's report: `metrics`, and the bits that were sent in the round."""
        if self.problem.client_weights and not self.averaged:
            raise ValueError(
                "run: the method must average by the problem's client_weights, but it weights "
                "clients in its own way; use the problem without weights."
            )
        device = self.problem.w0.device
        zero = torch.zeros((), dtype=torch.float64, device=device)
        return {
            **metrics,
            "bits_up": zero + self.bits_up,
            "bits_down": zero + self.bits_down,
        }

    def client(self, state: ClientState, most: int | None = None) -> Client:
        """The object for one client: its tensors, at most `most` rows, and the losses."""
        problem = self.problem
        number = present(state.number, "number")
        losses = problem.losses
        if self.coin is not None:
            losses = WithCoins(losses, self.coin + 104_723 * number)
        state = state._replace(
            batches=self._gathered(state.batches),
            values=self._gathered(state.values),
        )
        return Client(
            state=state,
            loss_function=losses,
            gradient_function=problem.gradient or self.gradient,
            num_objectives=problem.num_objectives,
            num_constraints=problem.num_constraints,
            num_statistics=problem.num_statistics,
            pooled=problem.pooled,
            simulator=problem.simulator,
            sequential_clients=self.sequential_clients,
            gather_rows=partial(problem.rows_of_client, number, most),
        )

    def only_client(self, draw: Draw) -> Client:
        """The one client of a centralized problem, at the server; no message is sent or counted."""
        return self.client(self.clients(draw).at(0))

    def _carried(
        self,
        x: Tensor,
        wire: Compressor,
        noise: Any,
    ) -> Tensor:
        """A compressed message as the receiver gets it."""
        del wire, noise
        return x

    def _map(
        self,
        method: Any,
        clients: ClientState,
        broadcast: Any,
        wire: Compressor,
    ) -> Any:
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


def copy_mapped_rows(data: AnyTensor, rows: Int[Tensor, "*b"]) -> AnyTensor:
    """Copy rows of `data [R, ...]`; within `vmap`, `index_select` would copy entry by entry."""
    table = data.flatten(1) if data.dim() > 1 else data.unsqueeze(1)
    selected = torch.embedding(table, rows)
    return selected.view(rows.shape + data.shape[1:])


class Vectorized(Federation):
    """The engine that runs all participants at once, by `torch.func.vmap`."""

    def _map(
        self,
        method: Any,
        clients: ClientState,
        broadcast: Any,
        wire: Compressor,
    ) -> Any:
        del wire  # only `Loop` encodes messages
        # The common model has no mapped axis, so products with the data stay whole.
        axes: list[int | None] = [0] * len(ClientState._fields)
        axes[0] = None

        def answers(clients: ClientState, most: int | None = None) -> Any:
            mapped = vmap(
                lambda state: method(self.client(state, most), *broadcast),
                in_dims=(ClientState._make(axes),),
                chunk_size=clients_at_once(clients.num_clients, self.problem.dim),
            )
            return mapped(clients)

        if not self.problem.ragged:
            return answers(clients)
        numbers = torch.as_tensor(clients.number).tolist()
        positions: list[int] = []
        group_answers = []
        for group in self.problem.size_groups(numbers):
            most = max(self.problem.sizes[numbers[position]] for position in group)
            group_answers.append(answers(clients.at(group), most))
            positions += group
        order = torch.tensor(positions).argsort()
        return pytree.tree_map(lambda *x: torch.cat(x)[order], *group_answers)


class Sequential(Federation):
    """The engine that runs one participant after another.

    `run` captures the gradient of a problem that has no closed form, and replays it.
    """

    sequential_clients = True

    def _map(
        self,
        method: Any,
        clients: ClientState,
        broadcast: Any,
        wire: Compressor,
    ) -> Any:
        answers: list[Any] = []
        for index in range(clients.num_clients):
            client = self.client(clients.at(index))
            answer = method(client, *broadcast)
            if isinstance(answer, Reply):
                upload = self._carried(answer.upload, wire, client.noise)
                answers.append(answer._replace(upload=upload))
            else:
                answers.append(self._carried(answer, wire, client.noise))
        return stack_trees(answers)


class Loop(Sequential):
    """The sequential engine that passes each upload through the wire's `encode` and `decode`.

    >>> from fedlib import FedAvg, problems, run
    >>> end = run(FedAvg(0.1, 2, 4), problems.quadratics(), rounds=5, engine=Loop)
    >>> end.metrics["g"][0].round(2)
    array([-0.5 , -0.46, -0.38, -0.28, -0.18, -0.08])
    """

    def _carried(
        self,
        x: Tensor,
        wire: Compressor,
        noise: Any,
    ) -> Tensor:
        if x.dim() != 1:
            return x
        return wire.decode(wire.encode(x, noise), x, noise)


def default_engine(problem: Problem, device: torch.device) -> type[Federation]:
    """The engine for a problem: `Sequential` on a CPU if the problem asks for it."""
    if problem.sequential_clients and device.type == "cpu":
        return Sequential
    return Vectorized


def count_numbers(tensors: Sequence[AnyTensor]) -> tuple[int, int]:
    """Count the real numbers and the whole numbers in some tensors."""
    floats = 0
    indices = 0
    for tensor in tensors:
        if tensor.is_floating_point():
            floats += tensor.numel()
        else:
            indices += tensor.numel()
    return floats, indices


def _with_axes(x: Tensor, axes: int) -> Tensor:
    """A vector with axes of length one behind its axis, so that there are `axes` in all."""
    return x.view(-1, *[1] * (axes - 1))
