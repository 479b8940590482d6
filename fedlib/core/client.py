"""A client: its data, the operations that its code can use, and the form of its answers."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from jaxtyping import Float, Shaped
from torch import Tensor
from torch.func import vmap
from torch.utils import _pytree as pytree

from fedlib.core.problem import Batch, OfMeans, Pooled, objective_weights, pullback
from fedlib.core.trees import index_tree, loop_map
from fedlib.shapes import AnyTensor, PerLoss, Scalar, Vector, WholeNumber

Part = TypeVar("Part")


class ClientState(NamedTuple):
    """The tensors of a round's clients, as the server holds them to be mapped over.

    `fed.clients` makes it: all tensors except the common model have a leading axis n. `fed.ask`
    maps over this axis, and turns the slice of one client into the `Client` that its method
    receives. A `ClientState` is data alone, so `vmap` can map it; a `Client` also has the problem's
    losses. Absent parts are empty tuples.
    """

    model: Vector | tuple[()]  # the common model after the last downlink message
    batches: Batch | tuple[()]  # [E, B], one minibatch for each local step
    values: Batch | tuple[()]  # a separate batch for estimating loss values
    memory: Float[Tensor, "..."] | tuple[()]  # what the client keeps between its rounds
    noise: AnyTensor | tuple[()]  # the randomness of its compressor
    chance: AnyTensor | tuple[()] = ()  # the randomness of its simulator
    number: WholeNumber | tuple[()] = ()  # its number, 0 .. N - 1; [n] at the server

    @property
    def num_clients(self) -> int:
        """The number of clients, n."""
        leaves = pytree.tree_leaves(self._replace(model=()))
        return len(leaves[0])

    def at(self, index: Any) -> "ClientState":
        """The client at an index, or clients at several, with the common model."""
        selected: ClientState = index_tree(self._replace(model=()), index)
        return selected._replace(model=self.model)


class WithCoins:
    """The losses of one client in one round, with a coin of its own for every evaluation.

    The evaluations are counted as the client's method makes them, so every engine gives an
    evaluation the same coin.
    """

    def __init__(
        self,
        losses: Callable[..., Tensor],
        coin: WholeNumber,
    ) -> None:
        self.losses = losses
        self.coin = coin
        self.evaluations = 0

    def __call__(self, w: Vector, batch: Batch) -> PerLoss:
        """The losses `[K]`, with other masks than before."""
        self.evaluations += 1
        coin = self.coin + 15_485_863 * self.evaluations
        return self.losses(w, batch, coin=coin)


@dataclass(frozen=True)
class Client:
    """One client, as the code that runs there sees it: its tensors and its losses.

    `fed.ask` makes it inside the map, from one slice of the server's `ClientState` and the problem,
    so a client's method never sees another client.
    """

    state: ClientState
    loss_function: Callable[[Vector, Batch], PerLoss]
    gradient_function: Callable[[Vector, Batch, PerLoss], Vector] | None
    num_objectives: int
    num_constraints: int
    num_statistics: int
    pooled: Pooled | OfMeans | None
    simulator: Any
    sequential_clients: bool
    gather_rows: Callable[[], Batch]

    @property
    def model(self) -> Vector:
        """The common model that every client holds."""
        return present(self.state.model, "model")

    @cached_property
    def rows(self) -> Batch:
        """All rows of the client, which are gathered at the first access."""
        return self.gather_rows()

    @property
    def memory(self) -> Float[Tensor, "*memory"]:
        """The client's memory from its last round."""
        return present(self.state.memory, "memory")

    @property
    def noise(self) -> Shaped[Tensor, "*noise"] | tuple[()]:
        """The randomness of the client's compressor."""
        return self.state.noise

    @property
    def chance(self) -> Shaped[Tensor, "*chance"]:
        """The randomness of the client's simulator."""
        return present(self.state.chance, "chance")

    def objective_weights(self, w: Vector) -> PerLoss:
        """The weights of the mean objective's gradient: 1/M for objectives, 0 for constraints."""
        return objective_weights(self.num_objectives, self.num_statistics, w)

    def each(
        self,
        function: Callable[..., Any],
        in_dims: tuple[Any, ...],
    ) -> Callable[..., Any]:
        """Map `function` by `torch.func.vmap`, or by a plain loop in a sequential engine.

        `in_dims` has 0 or None for every argument.
        """
        if not self.sequential_clients:
            return vmap(function, in_dims)
        losses = self.loss_function
        if not isinstance(losses, WithCoins):
            return loop_map(function, in_dims)
        evaluations = losses.evaluations

        def with_equal_coins(*arguments: Any) -> Any:
            losses.evaluations = evaluations  # as in `vmap`, which calls the function once
            return function(*arguments)

        return loop_map(with_equal_coins, in_dims)

    def batch(self, step: int) -> Batch:
        """The rows of local step `step`: its minibatch, or all rows if the run is full-batch."""
        if isinstance(self.state.batches, Batch):
            data, weight = self.state.batches
            return Batch(tuple(tensor[step] for tensor in data), weight[step])
        return self.rows

    def value_batch(self) -> Batch:
        """The rows for estimates of loss values: a drawn batch, or all rows."""
        if isinstance(self.state.values, Batch):
            return self.state.values
        return self.rows

    def losses(self, w: Vector, batch: Batch) -> PerLoss:
        """The client's objectives and constraints at `w`, `[K]`."""
        return self.loss_function(w, batch)

    def constraint(self, w: Vector, batch: Batch) -> Float[Tensor, "*s"]:
        """The client's message about its constraints at `w`: values, or statistics for them.

        The value of one constraint is a number; the values of several are `[C]`. Statistics of
        `Pooled` or `OfMeans` are `[s]`.
        """
        if isinstance(self.pooled, Pooled):
            return self.pooled.statistics(w, batch)
        values = self.losses(w, batch)[self.num_objectives :]
        if isinstance(self.pooled, OfMeans) or self.num_constraints > 1:
            return values
        return values[0]

    def steered(self, message: Float[Tensor, "*s"]) -> tuple[Scalar, Tensor]:
        """Read a message of `fed.steer`: sigma, and the weights of the losses after the objectives.

        The weights already include the factor sigma.
        """
        if isinstance(self.pooled, OfMeans):
            return message[0], message[1:]
        return message.abs().sum(), message

    def gradient(
        self,
        w: Vector,
        batch: Batch,
        weights: PerLoss,
    ) -> Vector:
        """The gradient of `weights @ losses(w, batch)`, in closed form if the problem has one."""
        return pullback(self.loss_function, self.gradient_function, w, batch, weights)


class Reply(NamedTuple):
    """A client's answer: its upload, its new memory, and perhaps a report.

    A report is only for tables and figures; no state of the algorithm may depend on it.
    """

    upload: Float[Tensor, "..."]
    memory: Float[Tensor, "..."] | tuple[Float[Tensor, "..."], ...]  # a tuple: several tensors
    report: Float[Tensor, "..."] | tuple[()] = ()


def present(tensors: Part | tuple[()], name: str) -> Part:
    """Return the tensors; raise ValueError if they were not drawn or passed for this round."""
    if tensors == ():
        raise ValueError(f"Client: its {name} is missing in this round; see fed.clients().")
    return tensors  # type: ignore[return-value]
