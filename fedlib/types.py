"""The nouns of the library: Problem, Batch, Client, Draw, Reply, and the Algorithm protocol.

Letters, once for the whole library: N clients, n participants, d parameters, K losses (M objectives
first, then C constraints), E local steps, B batch rows, m rows per client (padded), S seeds,
G grid points, T rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.func import grad

if TYPE_CHECKING:
    from fedlib.federation import Federation

__all__ = [
    "Algorithm",
    "Batch",
    "Client",
    "ClientState",
    "ConvexSet",
    "Draw",
    "Info",
    "Problem",
    "Reply",
    "describe",
    "pullback",
]

Info = dict[str, Tensor]
Part = TypeVar("Part")


class Batch(NamedTuple):
    """Some rows of one client, and how much each counts.

    `data` holds the problem's tensors restricted to these rows, each `[B, ...]`; `weight [B]` sums
    to one (padding rows weigh nothing), so that a mean over the batch is `weight @ row_values`.
    """

    data: tuple[Tensor, ...]
    weight: Float[Tensor, "*E B"]


class ClientState(NamedTuple):
    """The tensors a client has: what it was told, its own rows, its memory, its randomness.

    Absent parts are empty tuples. At the server the parts have a leading axis n.
    """

    model: Tensor | tuple[()]  # [d] the common model, as the last downlink left it
    rows: Batch | tuple[()]  # all rows of the client
    batches: Batch | tuple[()]  # [E, B] one minibatch a local step
    values: Batch | tuple[()]  # a separate batch for estimating loss values
    memory: Tensor | tuple[()]  # what the client remembers between its rounds
    noise: Tensor | tuple[()]  # what its compressor draws


@dataclass(frozen=True)
class Client:
    """Everything that a client's half of an algorithm can reach: its tensors and the losses' form.

    It is made inside the map over clients, so a method of a client never sees another client.
    """

    state: ClientState
    loss_function: Callable[[Tensor, Batch], Tensor]
    gradient_function: Callable[[Tensor, Batch, Tensor], Tensor] | None
    num_objectives: int
    num_constraints: int

    @property
    def model(self) -> Float[Tensor, "d"]:
        """The common model that every client holds."""
        return present(self.state.model, "model")

    @property
    def memory(self) -> Tensor:
        """What the client kept from its last round."""
        return present(self.state.memory, "memory")

    @property
    def noise(self) -> Tensor | tuple[()]:
        """The randomness of its compressor."""
        return self.state.noise

    def objective_weights(self, w: Float[Tensor, "d"]) -> Float[Tensor, "K"]:
        """The weights whose gradient is that of the mean objective: 1/M on them, 0 elsewhere."""
        shares = [1 / self.num_objectives] * self.num_objectives + [0.0] * self.num_constraints
        return torch.tensor(shares, dtype=w.dtype, device=w.device)

    def batch(self, step: int) -> Batch:
        """The rows of local step `step`: its minibatch, or all rows if the run is full-batch."""
        if isinstance(self.state.batches, Batch):
            data, weight = self.state.batches
            return Batch(tuple(x[step] for x in data), weight[step])
        return present(self.state.rows, "rows")

    def value_batch(self) -> Batch:
        """The rows on which the client estimates its loss values: a drawn batch, or all."""
        if isinstance(self.state.values, Batch):
            return self.state.values
        return present(self.state.rows, "rows")

    def losses(self, w: Float[Tensor, "d"], batch: Batch) -> Float[Tensor, "K"]:
        """The client's objectives and constraints at `w`."""
        return self.loss_function(w, batch)

    def gradient(
        self, w: Float[Tensor, "d"], batch: Batch, weights: Float[Tensor, "K"]
    ) -> Float[Tensor, "d"]:
        """Gradient of `weights @ losses(w, batch)`: closed form if the problem states one."""
        return pullback(self.loss_function, self.gradient_function, w, batch, weights)


class Draw(NamedTuple):
    """All randomness of one round, drawn on the CPU before it starts.

    Positions count within a client (0 .. its size - 1). Parts a round does not need are `()`.
    """

    participants: Int[Tensor, "n"]
    batches: Int[Tensor, "n E B"] | tuple[()] = ()
    values: Int[Tensor, "n B"] | tuple[()] = ()
    uplink: Tensor | tuple[()] = ()
    downlink: Tensor | tuple[()] = ()


class Reply(NamedTuple):
    """What a client's method returns if it also keeps something: the upload, the new memory."""

    upload: Tensor
    memory: Tensor


@runtime_checkable
class ConvexSet(Protocol):
    """A closed convex set with the three oracles that methods ask for."""

    def project(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        """The nearest point of the set."""
        ...

    def lmo(self, direction: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        """A point of the set that minimizes the inner product with `direction`."""
        ...

    def contains(self, x: Float[Tensor, "*b d"], tol: float = ...) -> Tensor:
        """Whether each point lies in the set, up to `tol`."""
        ...


@dataclass(frozen=True)
class Problem:
    """What is minimized, over which clients.

    Parameters
    ----------
    name : what errors and stored runs call it.
    data : tensors `[R, ...]`; row r of all of them is one sample. One copy, on one device.
    rows : `[N, m]`, the row indices of every client, padded by repetition.
    sizes : how many of a client's rows are real, N numbers.
    losses : `(w [d], Batch) -> [K]`, objectives first, then constraints (each required `<= level`).
    num_objectives : M, at least 1.
    num_constraints : C; K = M + C.
    w0 : `[d]`, where methods start.
    metrics : `(w [d], problem) -> {name: scalar}`, exact values for curves and tables.
    gradient : `(w, Batch, weights [K]) -> [d]`, the gradient of `weights @ losses` in closed form;
        without it autograd is used. Algorithms do not notice.
    heldout : tensors that only `metrics` uses.
    set : the feasible set of `w`, if any.
    config : what a stored run records about it, JSON values only.
    """

    name: str
    data: tuple[Tensor, ...]
    rows: Int[Tensor, "N m"]
    sizes: tuple[int, ...]
    losses: Callable[[Tensor, Batch], Tensor]
    num_objectives: int
    num_constraints: int
    w0: Float[Tensor, "d"]
    metrics: Callable[[Tensor, Problem], dict[str, Tensor]]
    gradient: Callable[[Tensor, Batch, Tensor], Tensor] | None = None
    heldout: tuple[Tensor, ...] = ()
    set: ConvexSet | None = None
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def num_clients(self) -> int:
        """N."""
        return len(self.sizes)

    @property
    def dim(self) -> int:
        """The number of parameters, d."""
        return self.w0.shape[-1]

    def all_clients(self) -> Batch:
        """Every client's rows at once: data `[N, m, ...]`, weight `[N, m]`."""
        return self.rows_of(torch.arange(self.num_clients, device=self.rows.device))

    def rows_of(self, clients: Int[Tensor, "n"]) -> Batch:
        """All rows of some clients: data `[n, m, ...]`, weight `[n, m]`, zero on padding."""
        rows = self.rows[clients]
        if min(self.sizes) == rows.shape[-1]:  # no padding anywhere
            weight = torch.full_like(rows, 1 / rows.shape[-1], dtype=self.w0.dtype)
            return Batch(tuple(x[rows] for x in self.data), weight)
        size = torch.tensor(self.sizes, device=rows.device)[clients].unsqueeze(-1)
        real = torch.arange(self.rows.shape[-1], device=rows.device) < size
        return Batch(tuple(x[rows] for x in self.data), (real / size).to(self.w0.dtype))

    def mean_losses(self, w: Float[Tensor, "d"]) -> Float[Tensor, "K"]:
        """The exact mean over all clients of their losses on all their rows."""
        each: Tensor = torch.func.vmap(self.losses, in_dims=(None, 0))(w, self.all_clients())
        return each.mean(0)

    def tensors(self) -> dict[str, Any]:
        """What differs from seed to seed: the tensors, without the functions."""
        return {"data": self.data, "rows": self.rows, "w0": self.w0, "heldout": self.heldout}

    def with_tensors(self, tensors: Mapping[str, Any]) -> Problem:
        """The same problem over other tensors (another seed's split, another device)."""
        return replace(self, **tensors)

    def to(self, device: torch.device | str) -> Problem:
        """The same problem with all its tensors on `device`."""
        moved = {
            k: tuple(x.to(device) for x in v) if isinstance(v, tuple) else v.to(device)
            for k, v in self.tensors().items()
        }
        return self.with_tensors(moved)


def pullback(
    losses: Callable[[Tensor, Batch], Tensor],
    gradient: Callable[[Tensor, Batch, Tensor], Tensor] | None,
    w: Float[Tensor, "d"],
    batch: Batch,
    weights: Float[Tensor, "K"],
) -> Float[Tensor, "d"]:
    """Gradient of `weights @ losses(w, batch)`, by `gradient` if there is one, else autograd."""
    if gradient is not None:
        return gradient(w, batch, weights)
    derivative: Tensor = grad(lambda u: (weights * losses(u, batch)).sum())(w)
    return derivative


def present(part: Part | tuple[()], name: str) -> Part:
    """The part itself, or a ValueError if it did not come with this round."""
    if part == ():
        raise ValueError(f"Client: its {name} did not come with this round; see fed.clients().")
    return part  # type: ignore[return-value]


@runtime_checkable
class Algorithm(Protocol):
    """A frozen dataclass of hyperparameters with three methods; a round is pure given its draw."""

    def init(self, problem: Problem) -> Any:
        """Check the parameters against the problem; the state before round 0 (first field `w`)."""
        ...

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """All randomness of one round."""
        ...

    def round(self, fed: Federation, state: Any, draw: Draw) -> tuple[Any, Info]:
        """One communication round at the server."""
        ...


def describe(value: Any) -> Any:
    """A JSON value that names a dataclass and all its fields, recursively."""
    if is_dataclass(value) and not isinstance(value, type):
        inner = {f.name: describe(getattr(value, f.name)) for f in fields(value)}
        return {"type": type(value).__name__, **inner}
    if isinstance(value, Mapping):
        return {str(k): describe(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [describe(v) for v in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"describe: a configuration holds plain values and dataclasses, got {value!r}.")
