"""A client: what it has, what it can reach, and what it answers with."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from jaxtyping import Float, Int, Shaped
from torch import Tensor
from torch.func import vmap

from fedlib.core.problem import Batch, Pooled, objective_weights, pullback
from fedlib.core.trees import loop_map

Vector = Float[Tensor, "d"]

Part = TypeVar("Part")


class ClientState(NamedTuple):
    """The tensors a client has: what the server has sent, its own rows, its memory, its randomness.

    Absent parts are empty tuples. At the server all parts but the model have a leading axis n.
    """

    model: Vector | tuple[()]  # the common model, as the last downlink left it
    batches: Batch | tuple[()]  # [E, B] one minibatch a local step
    values: Batch | tuple[()]  # a separate batch for estimating loss values
    memory: Float[Tensor, "..."] | tuple[()]  # what the client remembers between its rounds
    noise: Shaped[Tensor, "..."] | tuple[()]  # what its compressor draws
    chance: Shaped[Tensor, "..."] | tuple[()] = ()  # what its simulator draws
    who: Int[Tensor, ""] | tuple[()] = ()  # its number, 0 .. N - 1; at the server [n]


@dataclass(frozen=True)
class Client:
    """Everything that a client's half of an algorithm can reach: its tensors and the losses' form.

    It is made inside the map over clients, so a method of a client never sees another client.
    """

    state: ClientState
    loss_function: Callable[[Vector, Batch], Float[Tensor, "K"]]
    gradient_function: Callable[[Vector, Batch, Float[Tensor, "K"]], Vector] | None
    num_objectives: int
    num_constraints: int
    pooled: Pooled | None
    simulator: Any
    sequential_clients: bool
    gather_rows: Callable[[], Batch]

    @property
    def model(self) -> Vector:
        """The common model that every client holds."""
        return present(self.state.model, "model")

    @cached_property
    def rows(self) -> Batch:
        """All rows of the client, gathered when they are first read."""
        return self.gather_rows()

    @property
    def memory(self) -> Float[Tensor, "*memory"]:
        """The client's memory of its last round."""
        return present(self.state.memory, "memory")

    @property
    def noise(self) -> Shaped[Tensor, "*noise"] | tuple[()]:
        """The randomness of its compressor."""
        return self.state.noise

    @property
    def chance(self) -> Shaped[Tensor, "*chance"]:
        """The randomness of its simulator."""
        return present(self.state.chance, "chance")

    def objective_weights(self, w: Vector) -> Float[Tensor, "K"]:
        """The weights whose gradient is that of the mean objective: 1/M on them, 0 elsewhere."""
        return objective_weights(self.num_objectives, self.num_constraints, w)

    def each(self, function: Callable[..., Any], in_dims: tuple[Any, ...]) -> Callable[..., Any]:
        """`torch.func.vmap`, or a plain loop where the engine takes one thing after another.

        `in_dims` has 0 or None for every argument.
        """
        return (loop_map if self.sequential_clients else vmap)(function, in_dims)

    def batch(self, step: int) -> Batch:
        """The rows of local step `step`: its minibatch, or all rows if the run is full-batch."""
        if isinstance(self.state.batches, Batch):
            data, weight = self.state.batches
            return Batch(tuple(x[step] for x in data), weight[step])
        return self.rows

    def value_batch(self) -> Batch:
        """The rows on which the client estimates its loss values: a drawn batch, or all."""
        return self.state.values if isinstance(self.state.values, Batch) else self.rows

    def losses(self, w: Vector, batch: Batch) -> Float[Tensor, "K"]:
        """The client's objectives and constraints at `w`."""
        return self.loss_function(w, batch)

    def constraint(self, w: Vector, batch: Batch) -> Float[Tensor, "*s"]:
        """The client's message about its constraints at `w`: their values, or statistics.

        One constraint is a number, several are `[C]`.
        """
        if self.pooled is not None:
            return self.pooled.statistics(w, batch)
        values = self.losses(w, batch)[self.num_objectives :]
        return values[0] if self.num_constraints == 1 else values

    def gradient(self, w: Vector, batch: Batch, weights: Float[Tensor, "K"]) -> Vector:
        """Gradient of `weights @ losses(w, batch)`: closed form if the problem states one."""
        return pullback(self.loss_function, self.gradient_function, w, batch, weights)


class Reply(NamedTuple):
    """The result of a client's method with more than an upload: a memory, a report.

    A report is for tables and figures alone: nothing that a round hands on may depend on it.
    """

    upload: Float[Tensor, "..."]
    memory: Float[Tensor, "..."] | tuple[Float[Tensor, "..."], ...]  # a tuple for several things
    report: Float[Tensor, "..."] | tuple[()] = ()


def present(part: Part | tuple[()], name: str) -> Part:
    """The part itself, or a ValueError if it did not come with this round."""
    if part == ():
        raise ValueError(f"Client: its {name} did not come with this round; see fed.clients().")
    return part  # type: ignore[return-value]
