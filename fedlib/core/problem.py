"""The nouns of the library: Problem, Batch, Draw, and the sets that problems may name.

Letters, once for the whole library: N clients, n participants, d parameters, K losses (M objectives
first, then C constraints), E local steps, B batch rows, m rows per client (padded), S seeds,
G grid points, T rounds.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor
from torch.func import grad

from fedlib import checks
from fedlib.core.describe import describe
from fedlib.core.problem_checks import check_gradient, check_names, check_problem

Info = dict[str, Tensor]


class Batch(NamedTuple):
    """Some rows of one client, and how much each counts.

    `data` holds the problem's tensors restricted to these rows, each `[B, ...]`; `weight [B]` sums
    to one (padding rows weigh nothing), so that a mean over the batch is `weight @ row_values`.
    """

    data: tuple[Shaped[Tensor, "..."], ...]
    weight: Float[Tensor, "*E B"]


class Draw(NamedTuple):
    """All randomness of one round, drawn on the CPU before it starts.

    Positions count within a client (0 .. its size - 1). Parts a round does not need are `()`.
    """

    participants: Int[Tensor, "n"]
    batches: Int[Tensor, "n E B"] | tuple[()] = ()
    values: Int[Tensor, "n B"] | tuple[()] = ()
    uplink: Shaped[Tensor, "n ..."] | tuple[()] = ()
    downlink: Shaped[Tensor, "..."] | tuple[()] = ()
    value_clients: Int[Tensor, "n"] | tuple[()] = ()  # asked for values, if others
    chance: Shaped[Tensor, "n ..."] | tuple[()] = ()  # what the clients' simulators or coins draw
    others: tuple[Draw, ...] = ()  # of clients that are asked for something else


class Pooled(NamedTuple):
    """A constraint whose value is not the mean of the clients' values.

    `statistics(w, Batch) -> [s]` is what a client sends in its place; the server forms
    `combine([n, s]) -> (value, slope)`, where `slope` multiplies every client's constraint gradient
    (the sign of what is inside an absolute value, say).
    """

    statistics: Callable[[Float[Tensor, "d"], Batch], Float[Tensor, "s"]]
    combine: Callable[[Float[Tensor, "n s"]], tuple[Float[Tensor, ""], Float[Tensor, ""]]]


@runtime_checkable
class ConvexSet(Protocol):
    """A closed convex set with the three oracles that methods ask for."""

    def project(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        """The nearest point of the set."""
        ...

    def lmo(self, direction: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        """A point of the set that minimizes the inner product with `direction`."""
        ...

    def contains(self, x: Float[Tensor, "*b d"], tol: float = ...) -> Bool[Tensor, "*b"]:
        """Whether each point lies in the set, up to `tol`."""
        ...


@dataclass(frozen=True)
class Problem:
    """What is minimized, over which clients.

    >>> from fedlib import problems
    >>> problem = problems.quadratics(torch.ones(4, 2), torch.zeros(4, 2), level=0.5)
    >>> problem.num_clients, problem.dim, problem.num_objectives, problem.num_constraints
    (4, 2, 1, 1)
    >>> problem.mean_losses(torch.zeros(2))  # the objective's mean, then the constraint's
    tensor([ 1.0000, -0.5000])

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
    simulator : environments, for problems whose losses are simulated (`policies.Simulator`).
    pooled : how the constraint's value is formed, where it is not the mean over clients.
    lengths : `[N]`, `sizes` as a tensor, where it differs from seed to seed (`run` sees to it).
    sequential_clients : whether clients go one after another on a CPU, as convolutions do better.
    config : what a stored run records about it, JSON values only.

    Raises
    ------
    TypeError, ValueError
        at construction, one sentence that names the field. What the functions give is checked
        by `run`, before the first round.
    """

    name: str
    data: tuple[Shaped[Tensor, "R ..."], ...]
    rows: Int[Tensor, "N m"]
    sizes: tuple[int, ...]
    losses: Callable[[Float[Tensor, "d"], Batch], Float[Tensor, "K"]]
    num_objectives: int
    num_constraints: int
    w0: Float[Tensor, "d"]
    metrics: Callable[[Float[Tensor, "d"], Problem], dict[str, Float[Tensor, ""]]]
    gradient: (
        Callable[[Float[Tensor, "d"], Batch, Float[Tensor, "K"]], Float[Tensor, "d"]] | None
    ) = None
    heldout: tuple[Shaped[Tensor, "..."], ...] = ()
    set: ConvexSet | None = None
    simulator: Any = None
    pooled: Pooled | None = None
    lengths: Int[Tensor, "N"] | tuple[()] = ()
    sequential_clients: bool = False
    config: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_problem(self)

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
        lengths = self.lengths
        if not isinstance(lengths, Tensor):
            if min(self.sizes) == rows.shape[-1]:  # no padding anywhere
                weight = torch.full_like(rows, 1 / rows.shape[-1], dtype=self.w0.dtype)
                return Batch(self.data_at(rows), weight)
            lengths = torch.tensor(self.sizes, device=rows.device)
        size = lengths[clients].unsqueeze(-1)
        real = torch.arange(self.rows.shape[-1], device=rows.device) < size
        weight = real.to(self.w0.dtype) / size  # whole numbers alone would meet in float32
        return Batch(self.data_at(rows), weight)

    def rows_of_client(self, client: Int[Tensor, ""]) -> Batch:
        """All rows of one client: data `[m, ...]`, weight `[m]`."""
        data, weight = self.rows_of(client.view(1))
        return Batch(tuple(x[0] for x in data), weight[0])

    def data_at(self, rows: Int[Tensor, "*b"]) -> tuple[Shaped[Tensor, "*b ..."], ...]:
        """The tensors of the data at some rows; whole rows are copied, which is fast."""
        flat = rows.flatten()
        return tuple(x.index_select(0, flat).unflatten(0, rows.shape) for x in self.data)

    def mean_losses(self, w: Float[Tensor, "d"]) -> Float[Tensor, "K"]:
        """The exact mean over all clients of their losses on all their rows."""
        each: Tensor = torch.func.vmap(self.losses, in_dims=(None, 0))(w, self.all_clients())
        return each.mean(0)

    def within(self, convex_set: ConvexSet) -> Problem:
        """The same problem with a feasible set; the start is projected onto it."""
        checks.instance("within", "convex_set", convex_set, ConvexSet)
        config = {**self.config, "set": describe(convex_set)}
        start = convex_set.project(self.w0)
        return replace(self, set=convex_set, w0=start, config=config)

    def tensors(self) -> dict[str, Any]:
        """What differs from seed to seed: the tensors, without the functions."""
        return {
            "data": self.data,
            "rows": self.rows,
            "w0": self.w0,
            "heldout": self.heldout,
            "lengths": self.lengths,
        }

    def with_tensors(self, tensors: Mapping[str, Any]) -> Problem:
        """The same problem over other tensors (another seed's split, another device).

        Of these only the names are checked: it is called in every round, inside of maps.
        """
        check_names(tensors, self.tensors())
        other = copy.copy(self)
        vars(other).update(tensors)
        return other

    def to(self, device: torch.device | str) -> Problem:
        """The same problem with all its tensors on `device`."""
        moved = {
            k: tuple(x.to(device) for x in v) if isinstance(v, tuple) else v.to(device)
            for k, v in self.tensors().items()
        }
        return self.with_tensors(moved)


def pullback(
    losses: Callable[[Float[Tensor, "d"], Batch], Float[Tensor, "K"]],
    gradient: Callable[[Float[Tensor, "d"], Batch, Float[Tensor, "K"]], Float[Tensor, "d"]] | None,
    w: Float[Tensor, "d"],
    batch: Batch,
    weights: Float[Tensor, "K"],
) -> Float[Tensor, "d"]:
    """Gradient of `weights @ losses(w, batch)`, by `gradient` if there is one, else autograd."""
    if gradient is not None:
        found = gradient(w, batch, weights)
        check_gradient(found, w)
        return found
    derivative: Tensor = grad(lambda u: (weights * losses(u, batch)).sum())(w)
    return derivative
