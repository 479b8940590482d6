"""A problem of your own: clients' rows, any module, and plain functions of the module's output.

`from_frame` takes a pandas data frame with a column that names the client. `from_clients` takes
tensors, arrays, Datasets or DataLoaders, one for each client. Both test the module and the
functions before a run, so a mistake raises one sentence and not a traceback from inside a `vmap`.
"""

import hashlib
import numbers
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.func import grad_and_value, vmap
from torch.utils.data import DataLoader, Dataset, default_collate

from fedlib import checks, models
from fedlib.core.describe import describe
from fedlib.core.problem import Batch, Pooled, Problem
from fedlib.core.trees import explain_map_error, loop_map
from fedlib.problems.fairness import combine_gaps, group_gap, sums

if TYPE_CHECKING:
    from pandas import DataFrame

Vector = Float[Tensor, "d"]


#: The inputs, the target and the further columns of some rows.
Rows = Sequence[Shaped[Tensor, "m ..."]]


class ClientRows(NamedTuple):
    """B rows of one client, the argument of an objective, a constraint or a measure.

    Attributes
    ----------
    output : `[B, ...]`, the module's output.
    target : `[B, ...]`, the values to predict.
    columns : name -> `[B, ...]`, further columns.
    weight : `[B]`, each row's weight in the method `mean`, 0 for the padding of a short client.

    >>> rows = ClientRows(torch.zeros(3), torch.ones(3), {}, torch.tensor([0.5, 0.5, 0.0]))
    >>> rows.mean(torch.tensor([1.0, 3.0, 100.0]))  # the last row is padding
    tensor(2.)
    """

    output: Float[Tensor, "B ..."]
    target: Shaped[Tensor, "B ..."]
    columns: Mapping[Hashable, Shaped[Tensor, "B ..."]]
    weight: Float[Tensor, "B"]

    def mean(
        self, values: Shaped[Tensor, "m"], where: Shaped[Tensor, "m"] | None = None
    ) -> Float[Tensor, ""]:
        """The mean of one number per row, over all rows or over those `where` a condition holds.

        The condition must hold for some row of every client, else the problem raises ValueError. A
        minibatch may have no such row and then counts 0, so its mean is only an estimate. Raises
        ValueError unless `values` and `where` are `[B]`: one number per row.
        """
        weight = self.weight
        rule = f"hold one number a row, shape {list(weight.shape)}"
        remedy = "drop or reduce the other axes, for instance with squeeze(-1)"
        for name, value in (("values", values), ("where", where)):
            fits, got = value is None or value.shape == weight.shape, value
            checks.require(fits, "ClientRows.mean", name, rule, got, remedy)
        if where is not None:
            chosen = weight * where.to(weight.dtype)
            _SHARES.append(chosen.sum())
            weight = chosen / chosen.sum().clamp(min=torch.finfo(weight.dtype).tiny)
        return weight @ values.to(weight.dtype)


#: While a function is tested: the shares of rows for which conditions held.
_SHARES = deque[Tensor](maxlen=100)

#: An objective, a constraint or a measure: a function of a client's rows that returns one number.
Function = Callable[[ClientRows], Any]
Functions = Function | Sequence[Function]
SPREAD = 0.1  # distance scale of the random point at which functions are tested, beside the start


@dataclass(frozen=True)
class GroupGap(checks.Checked):
    """A constraint: the absolute gap between two groups' mean outputs, pooled over the clients.

    A client sends sums and counts of both groups. It may therefore lack a group, and gaps of
    opposite sign do not distort the result. The output is a logit, and its sigmoid is compared.

    Parameters
    ----------
    column : the name of the column that is 1 in the first group and 0 in the second.
    given : only rows with this target are compared; 1 means equal opportunity. None compares all
        rows, which means demographic parity.
    """

    column: Hashable
    given: float | None = None

    def four(self, rows: ClientRows, scale: Float[Tensor, "*B"]) -> Float[Tensor, "4"]:
        """Sum of outputs and number of rows, for the first group, then for the second."""
        weight, group = rows.weight * scale, rows.columns[self.column].to(rows.weight.dtype)
        if self.given is not None:
            weight = weight * (rows.target == self.given)
        return sums(torch.sigmoid(rows.output.reshape(weight.shape)), weight, group)


def from_frame(
    frame: "DataFrame",
    *,
    client: Hashable,
    target: Hashable,
    module: nn.Module,
    objective: Functions,
    constraint: Functions | GroupGap = (),
    features: Iterable[Hashable] | None = None,
    columns: Sequence[Hashable] = (),
    measures: Mapping[str, Function] | None = None,
    heldout: "DataFrame | None" = None,
    weights: Literal["rows"] | Sequence[float] | None = None,
    name: str = "own",
) -> Problem:
    """A problem from a data frame whose rows belong to clients.

    Parameters
    ----------
    frame : a data frame with one row for each sample: numbers without gaps, scaled as the module
        needs them (for text see `pandas.get_dummies`).
    client : the column that names the row's client; clients are numbered in sorted order.
    target : the column to predict; whole numbers stay whole (classes), others become floats.
    module : a network; any batch norm must be in eval mode. Methods start at the trainable
        parameters; frozen ones do not change. Dropout is active in training, not in metrics.
    objective : a function `ClientRows -> number`, whose mean over clients is minimized; or a list.
    constraint : such a function or list, to be kept below a method's level; or a `GroupGap`, for
        equal treatment of two groups.
    weights : the clients' weights: None for equal weights, `"rows"` for their numbers of rows, or
        one number for each client.
    features : the module's input columns, by default all that are not named elsewhere.
    columns : columns that only the functions see, as `rows.columns[name]`.
    measures : name -> `ClientRows -> number`, reported at every evaluation: on `heldout` if it is
        given, else as a mean over clients. The number may be a tensor, or one of Python or numpy
        (from scikit-learn, say).
    heldout : rows that no client trains on, with the same columns; column `client` may be missing.
    name : the name in error messages and stored runs.

    The metrics are `f`, the mean of the objectives, and `g`, the largest of the constraints, each
    averaged over clients; `f_1`, `g_1`, ... if there are several; and the measures. Raises
    ValueError or TypeError for a column that is missing, not numeric, has gaps or is named for two
    purposes; a client without rows; a module that does not accept the features; and a function that
    fails, does not return a single finite number, or counts padding rows.
    """
    import pandas as pd

    who = "from_frame"
    checks.arguments(from_frame, locals())
    checks.value(who, "frame", frame, pd.DataFrame)
    checks.value(who, "heldout", heldout, pd.DataFrame | None)
    if isinstance(constraint, GroupGap):
        columns = [*dict.fromkeys([*columns, constraint.column])]
    if features is None:
        features = [c for c in frame.columns if c not in (client, target, *columns)]
    features, others = [*features], (target, *columns)
    checks.require(features, who, "features", "hold at least one column", [])
    twice = [k for k, count in Counter([client, *features, *others]).items() if count > 1]
    names = "client, target, features and columns"
    checks.require(not twice, who, names, "name each column once, for one purpose", twice)
    whole = tensors_of(who, frame, features, others, client)
    nameless = int(frame[client].isna().sum())
    checks.require(not nameless, who, "client", "leave no row without a name", nameless)
    outside = () if heldout is None else tensors_of(who, heldout, features, others)
    groups = frame.groupby(client, sort=True, observed=False)
    places = {label: groups.indices.get(label, []) for label, _ in groups}
    clients = {label: tuple(x[own] for x in whole) for label, own in places.items()}
    rest = constraint, measures or {}, columns, weights
    return make_problem(who, name, clients, outside, module, objective, *rest)


def from_clients(
    clients: Sequence[Any],
    *,
    module: nn.Module,
    objective: Functions,
    constraint: Functions | GroupGap = (),
    columns: Sequence[str] = (),
    measures: Mapping[str, Function] | None = None,
    heldout: Any = (),
    weights: Literal["rows"] | Sequence[float] | None = None,
    name: str = "own",
) -> Problem:
    """A problem from clients that hold pictures, sequences, or other inputs of a module.

    Parameters
    ----------
    clients : for each client `(inputs [m, ...], target [m, ...], further columns [m, ...])` as a
        tuple of tensors or arrays, a torch Dataset or DataLoader, which is read once, or a dict of
        tensors. m may differ between clients.
    columns : the names of the further columns, in their order.
    heldout : rows that no client trains on, in a form that `clients` may have.
    module, objective, constraint, measures, weights, name : as in `from_frame`.

    Raises the errors of `from_frame`.
    """
    who = "from_clients"
    checks.arguments(from_clients, locals())
    if isinstance(constraint, GroupGap):
        columns = [*dict.fromkeys([*columns, str(constraint.column)])]
    clients = [as_rows(who, f"client {j}", own, columns) for j, own in enumerate(clients)]
    held = as_rows(who, "heldout", heldout, columns) if heldout else ()
    everybody = {f"client {j}": own for j, own in enumerate(clients)}
    everybody |= {"heldout": held} if heldout else {}
    first = [list(x.shape) for x in (clients or [held])[0]]
    rule = "hold equally many rows in all its tensors, shaped as those of client 0"
    for label, own in everybody.items():
        got = [list(x.shape) for x in own]
        fits = len({m for m, *_ in got}) == 1 and [x[1:] for x in got] == [x[1:] for x in first]
        checks.require(fits, who, label, rule, got, f"client 0 has {first}")
        for part, x in zip(("inputs", "target", *columns), own, strict=True):
            checks.finite(who, f"{part} of {label}", x, "drop or impute these rows")
    checks.require(not heldout or len(held[0]), who, "heldout", "have rows", 0)
    rest = constraint, measures or {}, columns, weights
    return make_problem(who, name, dict(enumerate(clients)), held, module, objective, *rest)


def as_rows(who: str, label: str, given: Any, columns: Sequence[Hashable]) -> Rows:
    """One client's `(inputs, target, further columns)` as tensors.

    `given` is a tuple or list of tensors, arrays or lists; a torch Dataset or DataLoader, which is
    read once from its first sample to its last; or a dict, whose entries other than `columns` are
    the inputs and the target, in this order. Raises ValueError or TypeError that names the client
    and the part that is not a dense tensor of numbers.
    """
    names = ("inputs", "target", *columns)
    if isinstance(given, (Dataset, DataLoader)):
        given = _collated(given)
    if isinstance(given, Mapping):
        first = [key for key in given if key not in columns]
        rule = f"have two entries beside {list(columns)}: inputs and target"
        checks.require(len(first) == 2, who, label, rule, list(given))
        given = [given[key] for key in (*first, *columns)]
    checks.value(who, label, given, tuple | list)
    rule = f"be {len(names)} tensors: {', '.join(map(str, names))}"
    checks.require(len(given) == len(names), who, label, rule, len(given))
    return tuple(as_tensor(who, f"{n} of {label}", x) for n, x in zip(names, given, strict=True))


def as_tensor(who: str, name: str, given: Any) -> Shaped[Tensor, "m ..."]:
    """Convert a tensor, an array or a list of numbers to a dense tensor on the CPU."""
    if isinstance(given, np.ndarray) and not given.dtype.isnative:
        given = given.astype(given.dtype.newbyteorder("="))
    if isinstance(given, np.ndarray) and not given.flags.writeable:
        given = given.copy()  # torch warns of read-only arrays
    try:
        x = torch.as_tensor(given)
    except (TypeError, ValueError, RuntimeError) as error:
        why = str(error).partition("\n")[0]
        raise TypeError(checks.sentence(who, name, f"hold numbers ({why})", given)) from None
    fits = x.layout is torch.strided and not x.is_nested and x.dim()
    rule, remedy = "be dense, with a row a sample", "call .to_dense(), or pad nested rows"
    got = "nested" if x.is_nested else (x.layout, *x.shape)
    checks.require(fits, who, name, rule, got, remedy)
    return x.detach().cpu()


def _collated(given: Any) -> Any:
    """All samples of a Dataset or a DataLoader as one batch."""
    if isinstance(given, DataLoader):
        collate, dataset = given.collate_fn, given.dataset
    else:
        collate, dataset = default_collate, given
    if hasattr(dataset, "__len__"):
        return collate([dataset[i] for i in range(len(dataset))])
    batches = list(given)
    if isinstance(batches[0], Mapping):
        return {key: torch.cat([b[key] for b in batches]) for key in batches[0]}
    return [torch.cat([torch.as_tensor(x) for x in part]) for part in zip(*batches, strict=True)]


def cast(x: Shaped[Tensor, "*b"], dtype: torch.dtype, *, whole: bool = True) -> Any:
    """Convert floats and truth values to the parameters' dtype, whole numbers to int64.

    Inputs of bytes are pictures and stay bytes, unless `whole`.
    """
    if x.is_floating_point() or x.dtype == torch.bool:
        return x.to(dtype)
    return x if x.dtype == torch.uint8 and not whole else x.to(torch.int64)


def tensors_of(
    who: str,
    frame: "DataFrame",
    features: list[Hashable],
    others: Sequence[Hashable],
    *also: Hashable,
) -> Rows:
    """Features `[R, p]` and other columns `[R]` of a frame; raises unless all are finite.

    The frame must have each column exactly once, those in `also` too, and at least one row.
    """
    checks.require(len(frame), who, "a frame", "have rows", 0)
    labels = [*frame.columns]
    for column in (*also, *features, *others):
        rule = f"hold {'one' if column in labels else 'the'} column {column!r}"
        near = ", ".join(map(repr, get_close_matches(str(column), map(str, labels), n=3)))
        remedy = f"nearest: {near}" if near else ""
        checks.require(labels.count(column) == 1, who, "the frame", rule, labels, remedy)
    for column in (*features, *others):
        values, what = frame[column], f"column {column!r}"
        fits, remedy = values.dtype.kind in "biuf", "pass it through pandas.get_dummies"
        checks.require(fits, who, what, "hold numbers", values.dtype, remedy)
        floats = torch.tensor(values.to_numpy(dtype="float64", na_value=float("nan")))
        checks.finite(who, what, floats, "drop or impute these rows")
    # pandas' own dtypes, such as Int64, have a plain dtype of the same name
    plain = (
        x.to_numpy(dtype=getattr(x.dtype, "numpy_dtype", x.dtype))
        for x in (frame[column] for column in others)
    )
    inputs = torch.tensor(frame[features].to_numpy(dtype="float64"))
    return inputs, *(as_tensor(who, "a column", x) for x in plain)


@dataclass(frozen=True)
class OwnFunctions:
    """The losses and metrics of a `from_frame` problem, as methods that pickle can store."""

    apply: models.ModuleFunction
    objectives: tuple[Function, ...]
    constraints: tuple[Function, ...]
    measures: Mapping[str, Function]  # these return tensors
    host_measures: Mapping[str, Function]  # these return Python's numbers
    columns: tuple[Hashable, ...]
    group_gap: GroupGap | None = None

    def rows(self, w: Vector, batch: Batch, *, train: bool = False) -> ClientRows:
        """A batch as the functions' argument; a module's dropout is active only with `train`."""
        inputs, goal, *more = batch.data
        extra = dict(zip(self.columns, more, strict=False))  # `more` may end with the client's size
        return ClientRows(self.apply(w, inputs, train=train), goal, extra, batch.weight)

    def losses(self, w: Vector, batch: Batch, *, train: bool = True) -> Float[Tensor, "K"]:
        """The objectives, then the constraints."""
        rows = self.rows(w, batch, train=train)
        values = [function(rows) for function in (*self.objectives, *self.constraints)]
        if self.group_gap is not None:
            values.append(group_gap(self.group_gap.four(rows, rows.weight.new_ones(()))))
        return torch.stack(values)

    def statistics(self, w: Vector, batch: Batch) -> Float[Tensor, "4"]:
        """A client's statistics for a `GroupGap`; a minibatch estimates those of all its rows."""
        assert self.group_gap is not None
        return self.group_gap.four(self.rows(w, batch), batch.data[-1])

    def means(self, w: Vector, problem: Problem) -> dict[str, Float[Tensor, ""]]:
        """The mean objective, the largest constraint, and each of them if there are several."""
        exact = partial(self.losses, w, train=False)
        mean, m = problem.mean_over_clients(exact), problem.num_objectives
        f, g = mean[:m], mean[m:]
        if self.group_gap is not None:
            groups = problem.size_groups()
            own = vmap(partial(self.statistics, w))
            sent = torch.cat([own(problem.rows_of(group)) for group in groups])
            g = combine_gaps(sent)[0].unsqueeze(0)
        values = {"f": f.mean()} | ({"g": g.max()} if len(g) else {})
        for letter, each in (("f", f), ("g", g)):
            if len(each) > 1:
                values |= {f"{letter}_{k + 1}": value for k, value in enumerate(each)}
        return values

    def metrics(self, w: Vector, problem: Problem) -> dict[str, Float[Tensor, ""]]:
        """The means and the measures."""
        values = self.means(w, problem)
        return values | {k: self.measured(m, w, problem) for k, m in self.measures.items()}

    def measured(self, measure: Function, w: Vector, problem: Problem) -> Float[Tensor, ""]:
        """A measure of the held-out rows, or its mean over clients."""
        if problem.heldout:
            return measure(self.rows(w, heldout_rows(problem)))  # type: ignore[no-any-return]
        return problem.mean_over_clients(lambda batch: measure(self.rows(w, batch)))

    def on_host(self, w: Vector, problem: Problem) -> dict[str, float]:
        """The measures that are not tensor operations, computed from plain tensors on the CPU."""
        batches = [plain_client(problem, j) for j in range(problem.num_clients)]
        batches = [heldout_rows(problem)] if problem.heldout else batches
        with torch.no_grad():
            own = [self.rows(w, batch) for batch in batches]
            each = {k: [float(m(rows)) for rows in own] for k, m in self.host_measures.items()}
        return {k: sum(values) / len(values) for k, values in each.items()}


def make_problem(
    who: str,
    name: str,
    clients: Mapping[Any, Rows],
    heldout: Rows,
    module: nn.Module,
    objective: Functions,
    constraint: Functions | GroupGap,
    measures: Mapping[str, Function],
    columns: Sequence[Hashable],
    weights: Literal["rows"] | Sequence[float] | None,
) -> Problem:
    """Build the problem from clients' tensors, and test everything in it."""
    gap = constraint if isinstance(constraint, GroupGap) else None
    objectives, constraints = (
        (given,) if callable(given) else tuple(given)
        for given in (objective, () if isinstance(constraint, GroupGap) else constraint)
    )
    checks.require(clients, who, "the problem", "have a client", 0)
    checks.require(objectives, who, "the problem", "have an objective", 0)
    for label, own in clients.items():
        remedy = "leave it out (of a category: frame[...].cat.remove_unused_categories())"
        checks.require(len(own[0]), who, f"client {label!r}", "have rows", 0, remedy)
    if any(map(nn.parameter.is_lazy, module.parameters())):
        dtype = torch.get_default_dtype()
        with torch.no_grad():
            inputs = cast(next(iter(clients.values()))[0][:2], dtype, whole=False)
            attempt(who, "module", module, inputs)
    w0, apply = models.ravel(module)
    sizes = tuple(len(own[0]) for own in clients.values())
    parts = [torch.cat(x) for x in zip(*clients.values(), strict=True)]
    data = [cast(x, w0.dtype, whole=k > 0) for k, x in enumerate(parts)]
    held = tuple(cast(x, w0.dtype, whole=k > 0) for k, x in enumerate(heldout))
    if gap is not None:
        values = sorted(set(data[2 + [*columns].index(gap.column)].tolist()))
        rule = "be 1 for one group and 0 for the other"
        checks.require({*values} == {0, 1}, who, f"column {gap.column!r}", rule, values[:6])
        data.append(torch.tensor(sizes, dtype=w0.dtype).repeat_interleave(torch.tensor(sizes)))
    functions = OwnFunctions(apply, objectives, constraints, {}, {}, tuple(columns), gap)
    problem = Problem(
        name=name,
        data=tuple(data),
        rows=torch.arange(sum(sizes)),
        sizes=sizes,
        losses=functions.losses,
        num_objectives=len(objectives),
        num_constraints=len(constraints) + (gap is not None),
        w0=w0,
        metrics=functions.metrics,
        heldout=held,
        pooled=Pooled(functions.statistics, combine_gaps) if gap is not None else None,
        sequential_clients=models.is_recurrent(module),
        config={
            "name": name,
            "clients": len(sizes),
            "rows": sum(sizes),
            "module": " ".join(str(module).split()),
            "objective": [title(f) for f in objectives],
            "constraint": [title(f) for f in constraints] if gap is None else describe(gap),
            "data": digest(parts),
        },
    )
    first = problem.data[0][problem.own_rows(0)]
    attempt(who, f"module, of inputs of shape {list(first.shape)},", apply, w0, first)
    for kind, several in (("objective", objectives), ("constraint", constraints)):
        for function in several:
            try_function(who, f"{kind} {title(function)!r}", functions, function, problem)
    taken = ("", "seed", "round", *functions.means(w0, problem))
    kinds: tuple[dict[str, Function], dict[str, Function]] = {}, {}
    for label, measure in measures.items():
        named = who, "the name of a measure", f"be none of {taken}", label
        checks.require(label not in taken, *named)
        tensor = try_measure(who, f"measure {label!r}", functions, measure, problem)
        kinds[not tensor][label] = measure
    functions = replace(functions, measures=kinds[0], host_measures=kinds[1])
    host = functions.on_host if kinds[1] else None
    problem = replace(problem, metrics=functions.metrics, host_metrics=host)
    return problem if weights is None else problem.weighted(weights)


def try_function(
    who: str, name: str, functions: OwnFunctions, function: Function, problem: Problem
) -> None:
    """Raise ValueError unless a loss returns one finite number that does not depend on padding.

    Warn if its gradient is zero on the rows of every client. Both are tested at the start and at a
    random point, since all rows may have the same loss at a symmetric start.
    """
    over_clients = loop_map if problem.sequential_clients else vmap

    def value(w: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        _SHARES.clear()
        loss = function(functions.rows(w, batch))
        return loss, torch.stack([*_SHARES, loss.new_ones(())]).min()

    plain_number(who, name, function, functions.rows(problem.w0, plain_client(problem, 0)))
    rng = torch.Generator().manual_seed(0)
    other = problem.w0 + SPREAD * torch.randn(problem.dim, generator=rng).to(problem.w0)
    slope, flat = grad_and_value(value, has_aux=True), True
    for w in (problem.w0, other):
        for group in problem.size_groups():
            batch = problem.rows_of(group)
            each = attempt(who, name, over_clients(partial(slope, w), (0,)), batch)
            slopes, (values, shares) = each
            rule = "have rows on every client for which its condition holds"
            got, remedy = f"none on client {group[int(shares.argmin())]}", "or take a GroupGap"
            checks.require(bool((shares > 0).all()), who, name, rule, got, remedy)
            bad = ~(values.isfinite() & slopes.isfinite().all(1)) & (w is problem.w0)
            rule, remedy = "be finite where methods start", "look for a logarithm or a quotient"
            got = f"NaN or infinity on client {group[int(bad.int().argmax())]}"
            checks.require(not bad.any(), who, f"{name} and its gradient", rule, got, remedy)
            flat = flat and not bool(slopes.nan_to_num().any())
            size, place = min((problem.sizes[j], k) for k, j in enumerate(group))
            if size < batch.weight.shape[1]:
                with_it = slopes[place], values[place]
                without, (alone, _) = slope(w, plain_client(problem, group[place]))
                close = partial(torch.allclose, rtol=1e-3, atol=1e-5, equal_nan=True)
                fits = all(map(close, with_it, (without, alone)))
                got = f"{with_it[1]:.4g} with them and {alone:.4g} without"
                remedy = "take rows.mean(values) in place of values.mean() or sum()"
                checks.require(fits, who, name, "not count padding rows", got, remedy)
    if flat:
        warnings.warn(
            f"{who}: the gradient of {name} is zero on the rows of every client, so no method "
            "can lower it; pass a loss in its place, and this function as a measure.",
            stacklevel=4,
        )


def try_measure(
    who: str, name: str, functions: OwnFunctions, measure: Function, problem: Problem
) -> bool:
    """Whether a measure returns a tensor; ValueError unless it returns one number."""
    w, held = problem.w0, bool(problem.heldout)
    first = heldout_rows(problem) if held else plain_client(problem, 0)
    _SHARES.clear()
    number = plain_number(who, name, measure, functions.rows(w, first), host=True)
    rule = f"have rows on {'heldout' if held else 'client 0'} for which its condition holds"
    checks.require(all(x > 0 for x in _SHARES), who, name, rule, "none")
    if isinstance(number, Tensor):
        value = attempt(who, name, functions.measured, measure, w, problem)
        checks.require(bool(value.isfinite()), who, name, "be finite where methods start", value)
    return isinstance(number, Tensor)


def plain_number(
    who: str, name: str, function: Function, rows: ClientRows, *, host: bool = False
) -> Any:
    """The single number that a function returns: a tensor or, on the `host`, one of Python's."""
    with torch.no_grad():
        found = attempt(who, name, function, rows)
    plain = isinstance(found, numbers.Real) or (isinstance(found, np.ndarray) and not found.ndim)
    got = list(found.shape) if isinstance(found, Tensor) else found
    rule, remedy = "return one number, a tensor of shape []", "rows.mean(values) is a mean of rows"
    checks.require(got == [] or (host and plain), who, name, rule, got, remedy)
    return found


def attempt(who: str, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function; a failure raises ValueError with its first line and the user's code line."""
    try:
        return function(*arguments)
    except Exception as error:
        text, line = str(error).strip() or type(error).__name__, user_line(error)
        recorded = any(words in text for words in ("dynamic shape", "nonzero", "masked_select"))
        if recorded or explain_map_error(error):
            cause = "draw random numbers" if "random operation" in text else "read values"
            raise ValueError(
                f"{who}: {name} must not {cause}{line}: one recording serves all clients; write "
                "rows.mean(values, where=condition), torch.where(condition, a, b), or for "
                "F.one_hot(target, k): torch.eye(k)[target]."
            ) from error
        casts = any(words in text for words in ("Long", "scalar type", "dtype", "Byte", "type"))
        remedy = "; if it wants floats, write rows.target.float()" if casts else ""
        why = text.splitlines()[0].rstrip(".")
        works = f"work on rows, but failed{line}: {why}{remedy}"
        raise ValueError(f"{who}: {name} must {works}.") from error


def user_line(error: Exception) -> str:
    """The last line of a traceback that is neither in torch nor in this library."""
    own = str(Path(__file__).parents[1]), str(Path(torch.__file__).parent)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.endswith(".py")]
    theirs = [f for f in frames if not f.filename.startswith(own) and f.line]
    return f" at `{str(theirs[-1].line)[:80]}`" if theirs else ""


def plain_client(problem: Problem, client: int) -> Batch:
    """One client's rows without padding."""
    rows = problem.own_rows(client)
    weight = problem.w0.new_full((len(rows),), 1 / len(rows))
    return Batch(problem.data_at(rows), weight)


def heldout_rows(problem: Problem) -> Batch:
    """The rows that no client trains on."""
    count = len(problem.heldout[0])
    return Batch(problem.heldout, problem.w0.new_full((count,), 1 / count))


def title(function: Function) -> str:
    """The name of a function."""
    return str(getattr(function, "__name__", type(function).__name__))


def digest(tensors: Sequence[Shaped[Tensor, "..."]]) -> str:
    """The SHA-256 digest of the rows, by which a stored run recognizes its data."""
    sha = hashlib.sha256()
    for x in tensors:
        x = x.float() if x.dtype == torch.bfloat16 else x  # numpy has no bfloat16
        sha.update(f"{x.dtype} {list(x.shape)}".encode() + x.contiguous().numpy().tobytes())
    return sha.hexdigest()[:16]
