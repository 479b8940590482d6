"""The types Problem, Batch and Draw, and the interface of convex sets.

The whole library uses these letters: N clients, n participants, d parameters, K losses (M
objectives, then C constraints), E local steps, B batch rows, m rows of a client (padded), S seeds,
G grid points, T rounds.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor
from torch.func import grad
from torch.utils import _pytree as pytree

from fedlib import checks
from fedlib.checks import Count, Positive, Whole
from fedlib.core.describe import describe

Info = dict[str, Tensor]
#: Names that a metric cannot have, because they are columns of `Trace.to_frame`.
TAKEN = ("seed", "round", "")
TRIED = 100  # rows of client 0 on which `run` calls the losses once, before the first round


class Batch(NamedTuple):
    """Some rows of one client, and the weight of each row.

    `data` holds these rows of the problem's tensors, each `[B, ...]`. The entries of `weight [B]`
    sum to one, and padding rows have weight 0, so a mean over the batch is `weight @ row_values`.
    """

    data: tuple[Shaped[Tensor, "..."], ...]
    weight: Float[Tensor, "*E B"]


class Draw(NamedTuple):
    """All randomness of one round, drawn on the CPU before the round starts.

    Positions count the rows within a client, from 0. Parts that a round does not need are `()`.
    """

    participants: Int[Tensor, "n"]
    batches: Int[Tensor, "n E B"] | tuple[()] = ()
    values: Int[Tensor, "n B"] | tuple[()] = ()
    uplink: Shaped[Tensor, "n ..."] | tuple[()] = ()
    downlink: Shaped[Tensor, "..."] | tuple[()] = ()
    value_clients: Int[Tensor, "n"] | tuple[()] = ()  # clients that send values, if others
    chance: Shaped[Tensor, "n ..."] | tuple[()] = ()  # randomness of clients' simulators or coins
    others: "tuple[Draw, ...]" = ()  # draws for clients with other tasks
    coin: Int[Tensor, ""] | tuple[()] = ()  # from which losses with dropout make their masks


class Pooled(NamedTuple):
    """The rule for a constraint whose value is not the mean of the clients' values.

    A client sends `statistics(w, Batch) -> [s]` in place of a value. The server computes
    `combine([n, s]) -> (value, slope)`, where `slope` multiplies every client's constraint
    gradient; for an absolute value it is the sign of the argument.
    """

    statistics: Callable[[Float[Tensor, "d"], Batch], Float[Tensor, "s"]]
    combine: Callable[[Float[Tensor, "n s"]], tuple[Float[Tensor, ""], Float[Tensor, ""]]]


class OfMeans(NamedTuple):
    """Constraints that are functions of means over the clients, such as a gap between groups.

    In place of constraints, the losses return `size` statistics after the objectives, s numbers.
    `values([s]) -> [C]` computes the constraints from the means of the statistics over clients.

    A client sends its statistics. The server answers with slopes `[s]`, the derivatives of the
    largest constraint by these means, and clients make their steps on `slopes @ statistics`. By
    the chain rule, the mean of the clients' gradients is then the gradient of the constraint at
    the common model, even if the constraint is constant on the rows of each client.
    """

    size: int
    values: Callable[[Float[Tensor, "s"]], Float[Tensor, "C"]]


@runtime_checkable
class ConvexSet(Protocol):
    """A closed convex set with the three operations that methods need."""

    def project(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        """The nearest point of the set."""

    def lmo(self, direction: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        """A point of the set that minimizes the inner product with `direction`."""

    def contains(self, x: Float[Tensor, "*b d"], tol: float = ...) -> Bool[Tensor, "*b"]:
        """Whether each point lies in the set, up to `tol`."""


@dataclass(frozen=True)
class Problem:
    """The objectives, the constraints and the clients' data.

    >>> from fedlib import problems
    >>> problem = problems.quadratics()
    >>> problem.num_clients, problem.dim, problem.num_objectives, problem.num_constraints
    (4, 2, 1, 1)
    >>> problem.mean_losses(torch.zeros(2))  # the objective's mean, then the constraint's
    tensor([ 1.0000, -0.5000])

    Parameters
    ----------
    name : the problem's name in error messages and stored runs.
    data : tensors `[R, ...]`, of which all clients share one copy. Row r of all tensors together
        is one sample.
    rows : `[N, m]`, the row indices of every client, padded by repetition. For clients of very
        unequal size, `[sum(sizes)]`, one client after another; rows are then padded only among
        clients of similar size, and only while a method reads all of them.
    sizes : the number of each client's rows without padding, N numbers.
    losses : `(w [d], Batch) -> [K]`, objectives first, then constraints (each required `<= level`),
        or the statistics from which an `OfMeans` computes the constraints.
    num_objectives : M, the number of objectives.
    num_constraints : C, the number of constraints; K = M + C, or M + s with an `OfMeans`.
    w0 : `[d]`, the start of all methods.
    metrics : `(w [d], problem) -> {name: scalar}`, exact values for curves and tables.
    gradient : `(w, Batch, weights [K]) -> [d]`, the gradient of `weights @ losses` in closed form;
        without it autograd is used.
    heldout : tensors that only `metrics` uses.
    host_metrics : `(w [d], problem) -> {name: number}`, any Python code on CPU tensors.
    set : the feasible set of `w`, if any.
    simulator : the environments, if the losses are simulated.
    pooled : the rule for the constraints' values, if they are not means over clients.
    lengths : `[N]`, one seed's `sizes` as a tensor; `run` sets it if seeds have different sizes.
    sequential_clients : whether clients run one by one on a CPU, which is faster for convolutions.
    client_weights : each client's weight in averages, N positive numbers; if empty, all are equal.
    whole_batches : whether a client with fewer rows than a minibatch uses each row once; otherwise
        it draws a full minibatch with replacement.
    dropout : whether `losses` takes the keyword `coin`, a whole number as a tensor, of which its
        random masks are a function. A round's draw has one; clients and steps derive theirs.
    config : the description of the problem in stored runs, in JSON values.

    The constructor raises TypeError or ValueError that names the wrong field. `run` checks the
    results of the functions before the first round.
    """

    name: Annotated[str, checks.SOME]
    data: tuple[Shaped[Tensor, "R ..."], ...]
    rows: Int[Tensor, "N m"] | Int[Tensor, "R"]
    sizes: tuple[int, ...]
    losses: Callable[[Float[Tensor, "d"], Batch], Float[Tensor, "K"]]
    num_objectives: Count
    num_constraints: Whole
    w0: Annotated[Float[Tensor, "d"], checks.SOME]
    metrics: 'Callable[[Float[Tensor, "d"], Problem], dict[str, Float[Tensor, ""]]]'
    gradient: (
        Callable[[Float[Tensor, "d"], Batch, Float[Tensor, "K"]], Float[Tensor, "d"]] | None
    ) = None
    heldout: tuple[Shaped[Tensor, "..."], ...] = ()
    host_metrics: 'Callable[[Float[Tensor, "d"], Problem], dict[str, float]] | None' = None
    set: ConvexSet | None = None
    simulator: Any = None
    pooled: Pooled | OfMeans | None = None
    lengths: Int[Tensor, "N"] | tuple[()] = ()
    sequential_clients: bool = False
    client_weights: tuple[Positive, ...] = ()
    whole_batches: bool = False
    dropout: bool = False
    config: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checks.fields(self)
        describe(self.config)  # raises TypeError for values that are not JSON
        _check_shapes(self)
        if all(map(_has_values, pytree.tree_leaves(self.tensors()))):
            _check_values(self)

    @property
    def num_clients(self) -> int:
        """The number of clients, N."""
        return len(self.sizes)

    @property
    def num_statistics(self) -> int:
        """The number of losses after the objectives: C, or the s statistics of an `OfMeans`."""
        if isinstance(self.pooled, OfMeans):
            return self.pooled.size
        return self.num_constraints

    @property
    def dim(self) -> int:
        """The number of parameters, d."""
        return self.w0.shape[-1]

    @property
    def ragged(self) -> bool:
        """Whether padding every client to the largest would more than quadruple the rows."""
        return self.rows.dim() == 1 and self.num_clients * max(self.sizes) > 4 * sum(self.sizes)

    def size_groups(self, clients: Sequence[int] | None = None) -> list[list[int]]:
        """Group some clients, or all, by size; they are one group unless `ragged`.

        The groups hold places in the list of clients. The largest client of a group has at most
        twice the rows of the smallest.
        """
        chosen = range(self.num_clients) if clients is None else clients
        if not self.ragged:
            return [[*range(len(chosen))]]
        groups = dict[int, list[int]]()
        for place, j in enumerate(chosen):
            groups.setdefault(self.sizes[j].bit_length(), []).append(place)
        return [groups[bits] for bits in sorted(groups)]

    def all_clients(self) -> Batch:
        """All rows of every client: data `[N, m, ...]`, weight `[N, m]`."""
        return self.rows_of(range(self.num_clients))

    def own_rows(self, client: int) -> Int[Tensor, "m"]:
        """The row indices of one client, without padding."""
        if self.rows.dim() == 2:
            return self.rows[client, : self.sizes[client]]
        first = sum(self.sizes[:client])
        return self.rows[first : first + self.sizes[client]]

    def rows_of(self, clients: Int[Tensor, "n"] | Sequence[int], most: int | None = None) -> Batch:
        """All rows of some clients: data `[n, m, ...]`; weight `[n, m]`, zero on padding.

        `most` replaces m if it is smaller than the number of rows of the largest client.
        """
        clients = torch.as_tensor(clients, device=self.rows.device)
        if self.rows.dim() == 2:
            most = self.rows.shape[-1]
        elif most is None:
            many = self.ragged and _has_values(clients)
            most = max(self.sizes[j] for j in clients.tolist()) if many else max(self.sizes)
        table, place = self.rows.dim() == 2, torch.arange(most, device=self.rows.device)
        if not isinstance(self.lengths, Tensor) and min(self.sizes) == most:  # no padding anywhere
            rows = self.rows[clients] if table else self.row_numbers(clients, place)
            weight = torch.full_like(rows, 1 / most, dtype=self.w0.dtype)
            return Batch(self.data_at(rows), weight)
        lengths = self.lengths
        if not isinstance(lengths, Tensor):
            lengths = torch.tensor(self.sizes, device=self.rows.device)
        size = lengths[clients].unsqueeze(-1)
        places = torch.minimum(place, size - 1)
        rows = self.rows[clients] if table else self.row_numbers(clients, places)
        weight = (place < size).to(self.w0.dtype) / size  # whole numbers would divide in float32
        return Batch(self.data_at(rows), weight)

    def row_numbers(
        self, clients: Int[Tensor, "n"], positions: Int[Tensor, "*n k"]
    ) -> Int[Tensor, "n k"]:
        """The row indices at some positions within some clients."""
        if self.rows.dim() == 2:
            return self.rows[clients].gather(1, positions)
        sizes = torch.tensor(self.sizes, device=clients.device)
        first = (sizes.cumsum(0) - sizes)[clients].unsqueeze(-1)
        rows: Tensor = self.rows[first + positions]
        return rows

    def rows_of_client(self, client: Int[Tensor, ""], most: int | None = None) -> Batch:
        """All rows of one client: data `[m, ...]`, weight `[m]`."""
        data, weight = self.rows_of(client.view(1), most)
        return Batch(tuple(x[0] for x in data), weight[0])

    def data_at(self, rows: Int[Tensor, "*b"]) -> tuple[Shaped[Tensor, "..."], ...]:
        """The data tensors at some rows; whole rows are copied, which is fast."""
        flat = rows.flatten()
        return tuple(x.index_select(0, flat).view(*rows.shape, *x.shape[1:]) for x in self.data)

    def mean_losses(self, w: Float[Tensor, "d"]) -> Float[Tensor, "K"]:
        """The exact mean over all clients of their losses on all their rows."""
        return self.mean_over_clients(lambda batch: self.losses(w, batch))

    def constraints(self, means: Float[Tensor, "K"]) -> Float[Tensor, "C"]:
        """The constraints, from the means over clients that `mean_losses` returns."""
        rest = means[self.num_objectives :]
        return self.pooled.values(rest) if isinstance(self.pooled, OfMeans) else rest

    def mean_over_clients(
        self, value: Callable[[Batch], Shaped[Tensor, "..."]]
    ) -> Shaped[Tensor, "..."]:
        """The mean over all clients of `value(rows of a client)`, weighted by `client_weights`."""
        groups = self.size_groups()
        clients = [j for group in groups for j in group]
        if self.sequential_clients:  # only one client's rows are gathered at a time
            answers = []
            for group in groups:
                most = max(self.sizes[j] for j in group)
                for client in group:
                    place = torch.tensor(client, device=self.rows.device)
                    answers.append(value(self.rows_of_client(place, most)))
            return self.mean(torch.stack(answers), clients)
        each = [torch.func.vmap(value)(self.rows_of(group)) for group in groups]
        return self.mean(torch.cat(each), clients)

    def mean(
        self, answers: Float[Tensor, "n *x"], clients: Sequence[int] | Int[Tensor, "n"]
    ) -> Float[Tensor, "*x"]:
        """The mean of some clients' answers, weighted by their `client_weights`."""
        if not self.client_weights:
            return answers.mean(0)
        every = torch.tensor(self.client_weights, dtype=answers.dtype, device=answers.device)
        weights = every[clients]
        weights = weights / weights.sum()
        return (weights.view(-1, *(1,) * (answers.dim() - 1)) * answers).sum(0)

    def weighted(self, weights: Literal["rows"] | Sequence[float]) -> "Problem":
        """The same problem with clients weighted by numbers of `"rows"`, or by N positive numbers.

        The weights enter the averages of models, steps and losses, as in McMahan's FedAvg. Raises
        ValueError if the constraints are an `OfMeans`, whose statistics depend on the weights.
        """
        own_means = isinstance(self.pooled, OfMeans)
        remedy = "pass the weights where the problem is made, as from_frame(..., weights=...)"
        rule = "have constraints that are means over clients"
        checks.require(not own_means, "weighted", "the problem", rule, "a GroupGap", remedy)
        if isinstance(weights, str):
            checks.one_of("weighted", "weights", weights, ("rows",))
        chosen = self.sizes if isinstance(weights, str) else weights
        own, n = tuple(map(float, chosen)), self.num_clients
        checks.require(len(own) == n, "weighted", "weights", f"hold {n} numbers, one a client", own)
        return replace(self, client_weights=own, config={**self.config, "weights": [*own]})

    def scaled(self) -> "Problem":
        """The same problem with every objective divided by its mean at the start.

        Use it for objectives of very different scale: a method that weights gradients by their
        length trains the smallest objective first. Constraints are not scaled, nor are metrics that
        do not use the losses. Raises ValueError unless all objectives are positive at the start.
        """
        start = self.mean_losses(self.w0)[: self.num_objectives]
        rule = "have objectives that are positive at the start"
        checks.require(bool((start > 0).all()), "scaled", "the problem", rule, start.tolist())
        scales = (*map(float, start), *[1.0] * self.num_statistics)
        config = {**self.config, "scales": [*scales]}
        return replace(self, losses=partial(_over, self, scales), gradient=None, config=config)

    def within(self, convex_set: ConvexSet) -> "Problem":
        """The same problem with a feasible set; the start is projected onto it."""
        checks.value("within", "convex_set", convex_set, ConvexSet)
        config = {**self.config, "set": describe(convex_set)}
        start = convex_set.project(self.w0)
        return replace(self, set=convex_set, w0=start, config=config)

    def tensors(self) -> dict[str, Any]:
        """The problem's tensors, which may differ between seeds, without its functions."""
        return {name: getattr(self, name) for name in ("data", "rows", "w0", "heldout", "lengths")}

    def with_tensors(self, tensors: Mapping[str, Any]) -> "Problem":
        """The same problem with other tensors (another seed's split, another device).

        The tensors are not checked, because every round calls this method inside maps.
        """
        other = copy.copy(self)
        vars(other).update(tensors)
        return other

    def to(self, device: torch.device | str) -> "Problem":
        """The same problem with all its tensors on `device`."""
        return self.with_tensors(pytree.tree_map(lambda x: x.to(device), self.tensors()))


def objective_weights(
    objectives: int, constraints: int, like: Shaped[Tensor, "..."]
) -> Float[Tensor, "K"]:
    """The weights of the mean objective's gradient: 1/M for objectives, 0 for constraints."""
    weights = [1 / objectives] * objectives + [0.0] * constraints
    return torch.tensor(weights, dtype=like.dtype, device=like.device)


def _over(
    problem: Problem, scales: tuple[float, ...], w: Tensor, batch: Batch, **coin: Tensor
) -> Tensor:
    """The losses of a problem, each divided by its scale."""
    return problem.losses(w, batch, **coin) / w.new_tensor(scales)


def pullback(
    losses: Callable[[Float[Tensor, "d"], Batch], Float[Tensor, "K"]],
    gradient: Callable[[Float[Tensor, "d"], Batch, Float[Tensor, "K"]], Float[Tensor, "d"]] | None,
    w: Float[Tensor, "d"],
    batch: Batch,
    weights: Float[Tensor, "K"],
) -> Float[Tensor, "d"]:
    """The gradient of `weights @ losses(w, batch)`, by `gradient` if it is given, else autograd."""
    if gradient is None:
        gradient = grad(lambda u, batch, weights: (weights * losses(u, batch)).sum())
    result = gradient(w, batch, weights)
    fits = getattr(result, "shape", None) == w.shape
    checks.require(fits, "Problem", "gradient", f"return floats {[*w.shape]}, as w0", result)
    return result


def try_losses(problem: Problem) -> None:
    """Call the losses once on some rows of client 0, unless they need a simulator's episodes.

    Raises ValueError unless they return K numbers.
    """
    if problem.simulator is not None:
        return
    rows = problem.own_rows(0)[:TRIED]
    weight = torch.full_like(rows, 1 / len(rows), dtype=problem.w0.dtype)
    batch = Batch(problem.data_at(rows), weight)
    k = problem.num_objectives + problem.num_statistics
    who = f"losses of {problem.name}, objectives and then constraints,"
    try:
        with torch.no_grad():
            losses: object = problem.losses(problem.w0, batch)
    except Exception as error:
        rule = "work on the rows of client 0"
        raise ValueError(checks.sentence("run", who, rule, error)) from error
    checks.value("run", who, losses, Float[Tensor, f"{k}"])


def check_metrics(problem: Problem, metrics: Any) -> None:
    """Raise ValueError or TypeError unless `metrics` is a dict of names to 0-d tensors."""
    who = f"metrics of {problem.name}"
    checks.value("run", who, metrics, Annotated[dict[str, Shaped[Tensor, ""]], checks.SOME])
    for name in metrics:
        checks.require(name not in TAKEN, "run", who, f"have names other than {TAKEN}", name)


def _require(fits: object, name: str, rule: str, value: object) -> None:
    checks.require(fits, "Problem", name, rule, value)


def _check_shapes(problem: Problem) -> None:
    """Check what is known of tensors whose values cannot be read: inside a map or a recording."""
    rows, sizes, weights = problem.rows, problem.sizes, problem.client_weights
    got = [list(x.shape) for x in problem.data]
    _require(len({len(x) for x in problem.data}) == 1, "data", "have equally many rows", got)
    fits = rows.dtype == torch.int64 and 0 not in rows.shape and rows.dim() in (1, 2)
    _require(fits, "rows", "be int64 [N, m], N and m at least 1, or [sum(sizes)]", rows)
    n, m = rows.shape if rows.dim() == 2 else (len(sizes), len(rows))
    rule = f"be {n} numbers in 1..{m}" if rows.dim() == 2 else f"be positive and add up to {m}"
    fits = max(sizes) <= m if rows.dim() == 2 and sizes else sum(sizes) == m
    fits = fits and len(sizes) == n and min(sizes) > 0
    _require(fits, "sizes", f"{rule} (the shape of rows)", sizes)
    _require(len(weights) in (0, n), "client_weights", f"be {n} numbers, one a client", weights)


def _check_values(problem: Problem) -> None:
    """Check what can only be known where tensors have values."""
    count, ends = len(problem.data[0]), [int(x) for x in problem.rows.aminmax()]
    fits = min(ends) >= 0 and max(ends) < count
    _require(fits, "rows", f"lie in 0..{count - 1} (the rows of data)", ends)
    if isinstance(problem.lengths, Tensor):
        got = problem.lengths.tolist()
        _require(got == [*problem.sizes], "lengths", "agree with sizes", got)
    for name in ("w0", "data", "heldout"):
        for x in pytree.tree_leaves(getattr(problem, name)):
            limits = x.aminmax() if x.is_floating_point() and x.numel() else ()
            if not all(map(torch.isfinite, limits)):  # one pass without a mask; `finite` counts
                checks.finite("Problem", name, x)


def _has_values(x: Shaped[Tensor, "..."]) -> bool:
    """Whether a tensor is an ordinary one, whose values can be read."""
    plain = type(x) in (Tensor, torch.nn.Parameter) and not x.is_meta
    return plain and not torch._C._functorch.is_functorch_wrapped_tensor(x)
