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
from fedlib.core.trees import index_tree
from fedlib.shapes import AnyRows, AnyTensor, PerLoss, Scalar, Vector, WholeNumber

Info = dict[str, Tensor]
#: Names that a metric cannot have, because they are columns of `Trace.to_frame`.
TAKEN = ("seed", "round", "")
TRIED = 100  # rows of client 0 on which `run` calls the losses once, before the first round


class Batch(NamedTuple):
    """Some rows of one client, and the weight of each row.

    `data` holds these rows of the problem's tensors, each `[B, ...]`. The entries of `weight [B]`
    sum to one, and padding rows have weight 0, so a mean over the batch is `weight @ row_values`.
    """

    data: tuple[AnyTensor, ...]
    weight: Float[Tensor, "*E B"]


class Draw(NamedTuple):
    """All randomness of one round, drawn on the CPU before the round starts.

    Positions count the rows within a client, from 0. Parts that a round does not need are `()`.
    """

    participants: Int[Tensor, "n"]
    batches: Int[Tensor, "n E B"] | tuple[()] = ()
    values: Int[Tensor, "n B"] | tuple[()] = ()
    uplink: Shaped[Tensor, "n ..."] | tuple[()] = ()
    downlink: AnyTensor | tuple[()] = ()
    value_clients: Int[Tensor, "n"] | tuple[()] = ()  # clients that send values, if others
    chance: Shaped[Tensor, "n ..."] | tuple[()] = ()  # randomness of clients' simulators or coins
    others: "tuple[Draw, ...]" = ()  # draws for clients with other tasks
    coin: WholeNumber | tuple[()] = ()  # from which losses with dropout make their masks


class Pooled(NamedTuple):
    """The rule for a constraint whose value is not the mean of the clients' values.

    A client sends `statistics(w, Batch) -> [s]` in place of a value. The server computes
    `combine([n, s]) -> (value, slope)`, where `slope` multiplies every client's constraint
    gradient; for an absolute value it is the sign of the argument.
    """

    statistics: Callable[[Vector, Batch], Float[Tensor, "s"]]
    combine: Callable[[Float[Tensor, "n s"]], tuple[Scalar, Scalar]]


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

    def contains(
        self,
        x: Float[Tensor, "*b d"],
        tol: float = ...,
    ) -> Bool[Tensor, "*b"]:
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
    name : str
        The problem's name in error messages and stored runs.
    data : tuple of Tensor
        Tensors `[R, ...]`, of which all clients share one copy. Row r of all tensors together is
        one sample.
    rows : Tensor
        `[N, m]`, the row indices of every client, padded by repetition. For clients of very unequal
        size, `[sum(sizes)]`, one client after another; rows are then padded only among clients of
        similar size, and only while a method reads all of them.
    sizes : tuple of int
        The number of each client's rows without padding, N numbers.
    losses : callable
        `(w [d], Batch) -> [K]`, objectives first, then constraints (each required `<= level`), or
        the statistics from which an `OfMeans` computes the constraints.
    num_objectives : int
        M, the number of objectives.
    num_constraints : int
        C, the number of constraints; K = M + C, or M + s with an `OfMeans`.
    w0 : Tensor
        `[d]`, the start of all methods.
    metrics : callable
        `(w [d], problem) -> {name: scalar}`, exact values for curves and tables.
    gradient : callable or None
        `(w, Batch, weights [K]) -> [d]`, the gradient of `weights @ losses` in closed form; without
        it autograd is used.
    heldout : tuple of Tensor
        Tensors that only `metrics` uses.
    host_metrics : callable or None
        `(w [d], problem) -> {name: number}`, any Python code on CPU tensors.
    set : ConvexSet or None
        The feasible set of `w`, if any.
    simulator : object
        The environments, if the losses are simulated.
    pooled : Pooled or OfMeans or None
        The rule for the constraints' values, if they are not means over clients.
    lengths : Tensor
        `[N]`, one seed's `sizes` as a tensor; `run` sets it if seeds have different sizes.
    sequential_clients : bool
        Whether clients run one by one on a CPU, which is faster for convolutions.
    client_weights : tuple of float
        Each client's weight in averages, N positive numbers; if empty, all are equal.
    whole_batches : bool
        Whether a client with fewer rows than a minibatch uses each row once; otherwise it draws a
        full minibatch with replacement.
    dropout : bool
        Whether `losses` takes the keyword `coin`, a whole number as a tensor, of which its random
        masks are a function. A round's draw has one; clients and steps derive theirs.
    config : mapping
        The description of the problem in stored runs, in JSON values.

    The constructor raises TypeError or ValueError that names the wrong field. `run` checks the
    results of the functions before the first round.
    """

    name: Annotated[str, checks.SOME]
    data: tuple[AnyRows, ...]
    rows: Int[Tensor, "N m"] | Int[Tensor, "R"]
    sizes: tuple[int, ...]
    losses: Callable[[Vector, Batch], PerLoss]
    num_objectives: Count
    num_constraints: Whole
    w0: Annotated[Vector, checks.SOME]
    metrics: "Callable[[Vector, Problem], dict[str, Scalar]]"
    gradient: Callable[[Vector, Batch, PerLoss], Vector] | None = None
    heldout: tuple[AnyTensor, ...] = ()
    host_metrics: "Callable[[Vector, Problem], dict[str, float]] | None" = None
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
        tensors = pytree.tree_leaves(self.tensors())
        if all(map(_has_values, tensors)):
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
        if self.rows.dim() == 2:
            return False
        padded_rows = self.num_clients * max(self.sizes)
        return padded_rows > 4 * sum(self.sizes)

    def size_groups(self, clients: Sequence[int] | None = None) -> list[list[int]]:
        """Group some clients, or all, by size; they are one group unless `ragged`.

        The groups hold places in the list of clients. The largest client of a group has at most
        twice the rows of the smallest.
        """
        if clients is None:
            clients = range(self.num_clients)
        if not self.ragged:
            return [list(range(len(clients)))]
        groups = dict[int, list[int]]()
        for position, client in enumerate(clients):
            bits = self.sizes[client].bit_length()
            groups.setdefault(bits, []).append(position)
        return [groups[bits] for bits in sorted(groups)]

    def all_clients(self) -> Batch:
        """All rows of every client: data `[N, m, ...]`, weight `[N, m]`."""
        return self.rows_of(range(self.num_clients))

    def own_rows(self, client: int) -> Int[Tensor, "m"]:
        """The row indices of one client, without padding."""
        if self.rows.dim() == 2:
            return self.rows[client, : self.sizes[client]]
        start = sum(self.sizes[:client])
        end = start + self.sizes[client]
        return self.rows[start:end]

    def rows_of(
        self,
        clients: Int[Tensor, "n"] | Sequence[int],
        most: int | None = None,
    ) -> Batch:
        """All rows of some clients: data `[n, m, ...]`; weight `[n, m]`, zero on padding.

        `most` replaces m if it is smaller than the number of rows of the largest client.
        """
        clients = torch.as_tensor(clients, device=self.rows.device)
        is_table = self.rows.dim() == 2
        if is_table:
            most = self.rows.shape[-1]
        elif most is None:
            sizes = self.sizes
            if self.ragged and _has_values(clients):
                sizes = tuple(sizes[client] for client in clients.tolist())
            most = max(sizes)
        position = torch.arange(most, device=self.rows.device)
        lengths = self.lengths
        if not isinstance(lengths, Tensor):
            if min(self.sizes) == most:  # no padding anywhere
                rows = self.rows[clients] if is_table else self.row_numbers(clients, position)
                return self.batch_at(rows)
            lengths = torch.tensor(self.sizes, device=self.rows.device)
        size = lengths[clients].unsqueeze(-1)
        if is_table:
            rows = self.rows[clients]
        else:
            last_row = size - 1
            rows = self.row_numbers(clients, torch.minimum(position, last_row))
        is_real = (position < size).to(self.w0.dtype)  # whole numbers would divide in float32
        return Batch(self.data_at(rows), is_real / size)

    def row_numbers(
        self,
        clients: Int[Tensor, "n"],
        positions: Int[Tensor, "*n k"],
    ) -> Int[Tensor, "n k"]:
        """The row indices at some positions within some clients."""
        if self.rows.dim() == 2:
            return self.rows[clients].gather(1, positions)
        sizes = torch.tensor(self.sizes, device=clients.device)
        starts = sizes.cumsum(0) - sizes
        start = starts[clients].unsqueeze(-1)
        rows: Tensor = self.rows[start + positions]
        return rows

    def rows_of_client(
        self,
        client: WholeNumber,
        most: int | None = None,
    ) -> Batch:
        """All rows of one client: data `[m, ...]`, weight `[m]`."""
        batches = self.rows_of(client.view(1), most)
        batch: Batch = index_tree(batches, 0)
        return batch

    def batch_at(self, rows: Int[Tensor, "*b B"]) -> Batch:
        """The data at some rows, with equal weights."""
        share = 1 / rows.shape[-1]
        weight = torch.full_like(rows, share, dtype=self.w0.dtype)
        return Batch(self.data_at(rows), weight)

    def data_at(self, rows: Int[Tensor, "*b"]) -> tuple[AnyTensor, ...]:
        """The data tensors at some rows; whole rows are copied, which is fast."""
        numbers = rows.flatten()
        selected = []
        for tensor in self.data:
            copied = tensor.index_select(0, numbers)
            shape = rows.shape + tensor.shape[1:]
            selected.append(copied.view(shape))
        return tuple(selected)

    def mean_losses(self, w: Vector) -> PerLoss:
        """The exact mean over all clients of their losses on all their rows."""
        return self.mean_over_clients(lambda batch: self.losses(w, batch))

    def constraints(self, means: PerLoss) -> Float[Tensor, "C"]:
        """The constraints, from the means over clients that `mean_losses` returns."""
        statistics = means[self.num_objectives :]
        if isinstance(self.pooled, OfMeans):
            return self.pooled.values(statistics)
        return statistics

    def mean_over_clients(
        self,
        value: Callable[[Batch], AnyTensor],
    ) -> AnyTensor:
        """The mean over all clients of `value(rows of a client)`, weighted by `client_weights`."""
        clients: list[int] = []
        answers: list[Tensor] = []
        for group in self.size_groups():
            clients += group
            if not self.sequential_clients:
                mapped = torch.func.vmap(value)
                answers.append(mapped(self.rows_of(group)))
                continue
            most = max(self.sizes[client] for client in group)
            for client in group:  # only one client's rows are gathered at a time
                number = torch.tensor(client, device=self.rows.device)
                answer = value(self.rows_of_client(number, most))
                answers.append(answer.unsqueeze(0))
        return self.mean(torch.cat(answers), clients)

    def mean(
        self,
        answers: Float[Tensor, "n *x"],
        clients: Sequence[int] | Int[Tensor, "n"],
    ) -> Float[Tensor, "*x"]:
        """The mean of some clients' answers, weighted by their `client_weights`."""
        if not self.client_weights:
            return answers.mean(0)
        all_weights = torch.tensor(
            self.client_weights,
            dtype=answers.dtype,
            device=answers.device,
        )
        weights = all_weights[clients]
        shares = weights / weights.sum()
        axes = [1] * (answers.dim() - 1)
        weighted = shares.view(-1, *axes) * answers
        return weighted.sum(0)

    def weighted(self, weights: Literal["rows"] | Sequence[float]) -> "Problem":
        """The same problem with clients weighted by numbers of `"rows"`, or by N positive numbers.

        The weights enter the averages of models, steps and losses, as in McMahan's FedAvg. Raises
        ValueError if the constraints are an `OfMeans`, whose statistics depend on the weights.
        """
        checks.require(
            not isinstance(self.pooled, OfMeans),
            "weighted",
            "the problem",
            "have constraints that are means over clients",
            "a GroupGap",
            "pass the weights where the problem is made, as from_frame(..., weights=...)",
        )
        if isinstance(weights, str):
            checks.one_of("weighted", "weights", weights, ("rows",))
            weights = self.sizes
        numbers = tuple(map(float, weights))
        n = self.num_clients
        rule = f"hold {n} numbers, one a client"
        checks.require(len(numbers) == n, "weighted", "weights", rule, numbers)
        config = {**self.config, "weights": list(numbers)}
        return replace(self, client_weights=numbers, config=config)

    def scaled(self) -> "Problem":
        """The same problem with every objective divided by its mean at the start.

        Use it for objectives of very different scale: a method that weights gradients by their
        length trains the smallest objective first. Constraints are not scaled, nor are metrics that
        do not use the losses. Raises ValueError unless all objectives are positive at the start.
        """
        means = self.mean_losses(self.w0)
        scales = means[: self.num_objectives].tolist()
        checks.require(
            all(scale > 0 for scale in scales),
            "scaled",
            "the problem",
            "have objectives that are positive at the start",
            scales,
        )
        scales += [1.0] * self.num_statistics
        config = {**self.config, "scales": scales}
        losses = partial(_over, self, tuple(scales))
        return replace(self, losses=losses, gradient=None, config=config)

    def within(self, convex_set: ConvexSet) -> "Problem":
        """The same problem with a feasible set; the start is projected onto it."""
        checks.value("within", "convex_set", convex_set, ConvexSet)
        config = {**self.config, "set": describe(convex_set)}
        start = convex_set.project(self.w0)
        return replace(self, set=convex_set, w0=start, config=config)

    def tensors(self) -> dict[str, Any]:
        """The problem's tensors, which may differ between seeds, without its functions."""
        return {
            "data": self.data,
            "rows": self.rows,
            "w0": self.w0,
            "heldout": self.heldout,
            "lengths": self.lengths,
        }

    def with_tensors(self, tensors: Mapping[str, Any]) -> "Problem":
        """The same problem with other tensors (another seed's split, another device).

        The tensors are not checked, because every round calls this method inside maps.
        """
        problem = copy.copy(self)
        vars(problem).update(tensors)
        return problem

    def to(self, device: torch.device | str) -> "Problem":
        """The same problem with all its tensors on `device`."""
        moved = pytree.tree_map(lambda x: x.to(device), self.tensors())
        return self.with_tensors(moved)


def objective_weights(
    objectives: int,
    constraints: int,
    w: Vector,
) -> PerLoss:
    """The weights of the mean objective's gradient: 1/M for objectives, 0 for constraints."""
    weights = [1 / objectives] * objectives
    weights += [0.0] * constraints
    return torch.tensor(weights, dtype=w.dtype, device=w.device)


def _over(
    problem: Problem,
    scales: tuple[float, ...],
    w: Tensor,
    batch: Batch,
    **coin: Tensor,
) -> Tensor:
    """The losses of a problem, each divided by its scale."""
    return problem.losses(w, batch, **coin) / w.new_tensor(scales)


def pullback(
    losses: Callable[[Vector, Batch], PerLoss],
    gradient: Callable[[Vector, Batch, PerLoss], Vector] | None,
    w: Vector,
    batch: Batch,
    weights: PerLoss,
) -> Vector:
    """The gradient of `weights @ losses(w, batch)`, by `gradient` if it is given, else autograd."""
    if gradient is None:

        def weighted_loss(w: Tensor, batch: Batch, weights: Tensor) -> Tensor:
            return (weights * losses(w, batch)).sum()

        gradient = grad(weighted_loss)
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
    batch = problem.batch_at(problem.own_rows(0)[:TRIED])
    k = problem.num_objectives + problem.num_statistics
    subject = f"losses of {problem.name}, objectives and then constraints,"
    try:
        with torch.no_grad():
            losses: object = problem.losses(problem.w0, batch)
    except Exception as error:
        rule = "work on the rows of client 0"
        raise ValueError(checks.sentence("run", subject, rule, error)) from error
    checks.value("run", subject, losses, Float[Tensor, f"{k}"])


def check_metrics(problem: Problem, metrics: Any) -> None:
    """Raise ValueError or TypeError unless `metrics` is a dict of names to 0-d tensors."""
    subject = f"metrics of {problem.name}"
    annotation = Annotated[dict[str, Shaped[Tensor, ""]], checks.SOME]
    checks.value("run", subject, metrics, annotation)
    for name in metrics:
        checks.require(name not in TAKEN, "run", subject, f"have names other than {TAKEN}", name)


def _require(
    fits: object,
    name: str,
    rule: str,
    value: object,
) -> None:
    checks.require(fits, "Problem", name, rule, value)


def _check_shapes(problem: Problem) -> None:
    """Check what is known of tensors whose values cannot be read: inside a map or a recording."""
    lengths = {len(tensor) for tensor in problem.data}
    shapes = [list(tensor.shape) for tensor in problem.data]
    _require(len(lengths) == 1, "data", "have equally many rows", shapes)
    rows = problem.rows
    rule = "be int64 [N, m], N and m at least 1, or [sum(sizes)]"
    fits = rows.dim() in (1, 2) and 0 not in rows.shape
    _require(fits and rows.dtype == torch.int64, "rows", rule, rows)
    sizes = problem.sizes
    are_positive = all(size > 0 for size in sizes)
    n = len(sizes)
    if rows.dim() == 2:
        n, m = rows.shape
        rule = f"be {n} numbers in 1..{m}"
        fits = len(sizes) == n and max(sizes) <= m
    else:
        rule = f"be positive and add up to {len(rows)}"
        fits = sum(sizes) == len(rows)
    _require(fits and are_positive, "sizes", f"{rule} (the shape of rows)", sizes)
    weights = problem.client_weights
    fits = len(weights) in (0, n)
    _require(fits, "client_weights", f"be {n} numbers, one a client", weights)


def _check_values(problem: Problem) -> None:
    """Check what can only be known where tensors have values."""
    last_row = len(problem.data[0]) - 1
    low, high = map(int, problem.rows.aminmax())
    fits = low >= 0 and high <= last_row
    rule = f"lie in 0..{last_row} (the rows of data)"
    _require(fits, "rows", rule, [low, high])
    if isinstance(problem.lengths, Tensor):
        lengths = problem.lengths.tolist()
        _require(lengths == list(problem.sizes), "lengths", "agree with sizes", lengths)
    for name in ("w0", "data", "heldout"):
        for tensor in pytree.tree_leaves(getattr(problem, name)):
            if not tensor.is_floating_point() or not tensor.numel():
                continue
            low, high = tensor.aminmax()
            if not (low.isfinite() and high.isfinite()):  # one pass without a mask
                checks.finite("Problem", name, tensor)


def _has_values(x: AnyTensor) -> bool:
    """Whether a tensor is an ordinary one, whose values can be read."""
    if type(x) not in (Tensor, torch.nn.Parameter) or x.is_meta:
        return False
    return not torch._C._functorch.is_functorch_wrapped_tensor(x)
