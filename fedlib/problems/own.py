"""A problem of your own: clients' rows, any module, and plain functions of what it gives.

`from_frame` takes a pandas data frame with a column that names the client, `from_clients` one tuple
of tensors a client. Both try the module and the functions out before anything runs, so that a
mistake is one sentence and not a traceback from inside a `vmap`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.func import grad, vmap

from fedlib import checks, models
from fedlib.core.problem import Batch, Problem
from fedlib.core.trees import explain_map_error
from fedlib.data.split import padded

if TYPE_CHECKING:
    import pandas as pd


class ClientRows(NamedTuple):
    """What an objective, a constraint or a measure sees: B rows of one client.

    `output` is what the module makes of them `[B, ...]`, `target [B, ...]` what it should be,
    `columns` further columns by name, and `weight [B]` how much each row counts: clients with fewer
    rows than others are padded, and padding weighs nothing. `mean` respects that.

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
        """The mean of one number a row, over all rows or those `where` a condition holds.

        Where it holds for none the mean is 0. On a minibatch, a mean over some rows only estimates
        that over all such rows of the client.

        Raises
        ------
        ValueError
            unless `values` and `where` are `[B]`: one number a row.
        """
        weight = self.weight
        for name, value in (("values", values), ("where", where)):
            if value is not None:
                rule = f"hold one number a row, shape {list(weight.shape)}"
                fits, got = value.shape == weight.shape, list(value.shape)
                remedy = "drop or reduce the other axes, for instance with squeeze(-1)"
                checks.require(fits, "ClientRows.mean", name, rule, got, remedy)
        if where is not None:
            chosen = weight * where.to(weight.dtype)
            weight = chosen / chosen.sum().clamp(min=torch.finfo(weight.dtype).tiny)
        return weight @ values.to(weight.dtype)


#: An objective, a constraint or a measure: one number of some rows of one client.
Function = Callable[[ClientRows], Tensor]
Functions = Function | Sequence[Function]
Value = Callable[[Float[Tensor, "d"], Batch], Float[Tensor, ""]]
#: Inputs, target and further columns of some rows.
Rows = Sequence[Shaped[Tensor, "m ..."]]


def from_frame(
    frame: pd.DataFrame,
    *,
    client: Hashable,
    target: Hashable,
    module: nn.Module,
    objective: Functions,
    constraint: Functions = (),
    features: Iterable[Hashable] | None = None,
    columns: Sequence[Hashable] = (),
    measures: Mapping[str, Function] | None = None,
    heldout: pd.DataFrame | None = None,
    name: str = "own",
) -> Problem:
    """The problem of a data frame whose rows belong to clients.

    Parameters
    ----------
    frame : one row a sample; numbers without gaps, already scaled as the module likes them.
    client : the column that says whose row it is; clients are numbered in sorted order.
    target : the column to predict; whole numbers stay whole (classes), others become floats.
    module : a network without dropout and batch norm; its parameters are where methods start.
    objective : `ClientRows -> number`, minimized in the mean over clients; or several.
    constraint : `ClientRows -> number`, to be kept below a method's level; or several, or none.
    features : columns that the module sees, by default all that are not named elsewhere.
    columns : columns that only the functions see, as `rows.columns[name]`.
    measures : name -> `ClientRows -> number`, reported at every evaluation: of `heldout` if it is
        given, else of the clients in the mean.
    heldout : rows that no client trains on, with the same columns (that of the client may lack).
    name : what errors and stored runs call the problem.

    Metrics are `f`, the mean of the objectives, and `g`, the largest of the constraints, each in
    the mean over clients; `f_1`, `g_1`, ... where there are several; and the measures.

    Raises
    ------
    ValueError, TypeError
        one sentence, for a column that is not there, is no number, has gaps or is named for two
        things, a client without rows, a module that does not take the features, and a function
        that fails, returns no single finite number, or counts padding rows.
    """
    import pandas as pd

    who = "from_frame"
    checks.arguments(from_frame, locals())
    checks.value(who, "frame", frame, pd.DataFrame)
    if features is None:
        features = [c for c in frame.columns if c not in (client, target, *columns)]
    used = [target, *features, *columns]
    checks.require(len(used) > 1 + len(columns), who, "features", "hold a column at least", [])
    twice = [label for label, count in Counter([client, *used]).items() if count > 1]
    rule = "name a column once, for one purpose"
    checks.require(not twice, who, "client, target, features and columns", rule, twice)
    check_columns(who, "the frame", frame, [client], used)
    held: Rows = ()
    if heldout is not None:
        checks.value(who, "heldout", heldout, pd.DataFrame)
        check_columns(who, "heldout", heldout, [], used)
        held = tensors_of(heldout, target, columns, used)
    nameless = int(frame[client].isna().sum())
    checks.require(not nameless, who, "client", "leave no row without a name", nameless)
    groups = frame.groupby(client, sort=True, observed=False)
    clients = {label: tensors_of(own, target, columns, used) for label, own in groups}
    functions = objective, constraint, measures or {}
    return make_problem(who, name, clients, module, *functions, columns, held)


def from_clients(
    clients: Sequence[Rows],
    *,
    module: nn.Module,
    objective: Functions,
    constraint: Functions = (),
    columns: Sequence[str] = (),
    measures: Mapping[str, Function] | None = None,
    heldout: Rows = (),
    name: str = "own",
) -> Problem:
    """The problem of clients that hold tensors: pictures, sequences, whatever the module takes.

    Parameters
    ----------
    clients : per client `(inputs [m, ...], target [m, ...], further columns [m, ...])`; m may
        differ from client to client.
    columns : the names of the further columns, in their order.
    heldout : such a tuple of rows that no client trains on.
    module, objective, constraint, measures, name : as in `from_frame`.

    Raises
    ------
    ValueError, TypeError
        as `from_frame` does.
    """
    who = "from_clients"
    checks.arguments(from_clients, locals())
    parts = ("inputs", "target", *columns)
    several = {f"client {j}": own for j, own in enumerate(clients)}
    for label, own in (several | ({"heldout": heldout} if len(heldout) else {})).items():
        rule = f"be {len(parts)} tensors: {', '.join(parts)}"
        checks.require(len(own) == len(parts), who, label, rule, len(own))
        shapes = [list(x.shape) for x in own]
        equal = all(shapes) and len({shape[0] for shape in shapes}) == 1
        checks.require(equal, who, label, "hold equally many rows in all its tensors", shapes)
        first = [list(x.shape) for x in clients[0]]
        same = [shape[1:] for shape in shapes] == [shape[1:] for shape in first]
        checks.require(same, who, label, f"have rows shaped as client 0, {first}", shapes)
        for part, x in zip(parts, own, strict=True):
            checks.finite(who, f"{part} of {label}", x, "drop or impute these rows")
    checks.require(not len(heldout) or len(heldout[0]), who, "heldout", "have rows", 0)
    functions = objective, constraint, measures or {}
    numbered = dict(enumerate(clients))
    return make_problem(who, name, numbered, module, *functions, columns, heldout)


def check_columns(
    who: str, name: str, frame: pd.DataFrame, plain: Sequence[Hashable], numeric: Sequence[Hashable]
) -> None:
    """Raise unless all columns are there, once, and the numeric ones hold finite numbers."""
    checks.require(len(frame), who, name, "have rows", 0)
    labels = [*frame.columns]
    for column in (*plain, *numeric):
        near = ", ".join(map(repr, get_close_matches(str(column), map(str, labels), n=3)))
        remedy = f"nearest: {near}" if near else ""
        rule = f"hold {'one' if column in labels else 'the'} column {column!r}"
        checks.require(labels.count(column) == 1, who, name, rule, labels, remedy)
    for column in numeric:
        values, what = frame[column], f"column {column!r}"
        fits, remedy = values.dtype.kind in "biuf", "encode it or leave it out"
        checks.require(fits, who, what, "hold numbers", values.dtype, remedy)
        floats = torch.tensor(values.to_numpy(dtype="float64", na_value=float("nan")))
        checks.finite(who, what, floats, "drop or impute these rows")


def tensors_of(
    frame: pd.DataFrame, target: Hashable, columns: Sequence[Hashable], used: Sequence[Hashable]
) -> Rows:
    """Features `[m, p]`, target `[m]` and further columns `[m]` of some rows."""
    features = [label for label in used if label != target and label not in columns]
    inputs = torch.tensor(frame[features].to_numpy(dtype="float64"))
    more = (frame[label] for label in (target, *columns))
    # pandas' own dtypes, Int64 and the like, have a plain one of the same name
    plain = (x.to_numpy(dtype=getattr(x.dtype, "numpy_dtype", x.dtype)) for x in more)
    return inputs, *map(torch.tensor, plain)


def make_problem(
    who: str,
    name: str,
    clients: Mapping[Any, Rows],
    module: nn.Module,
    objective: Functions,
    constraint: Functions,
    measures: Mapping[str, Function],
    columns: Sequence[Hashable],
    heldout: Rows,
) -> Problem:
    """The problem of some clients' tensors, once everything in it has been tried."""
    objectives, constraints = (
        (given,) if callable(given) else tuple(given) for given in (objective, constraint)
    )
    checks.require(clients, who, "the problem", "have a client", 0)
    checks.require(objectives, who, "the problem", "have an objective", 0)
    for label, own in clients.items():
        remedy = "leave it out (of a category: frame[...].cat.remove_unused_categories())"
        checks.require(len(own[0]), who, f"client {label!r}", "have rows", 0, remedy)
    w0, apply = models.ravel(module)

    def forward(w: Float[Tensor, "d"], batch: Batch) -> ClientRows:
        inputs, goal, *more = batch.data
        extra = dict(zip(columns, more, strict=True))
        return ClientRows(apply(w, inputs), goal, extra, batch.weight)

    def losses(w: Float[Tensor, "d"], batch: Batch) -> Float[Tensor, "K"]:
        rows = forward(w, batch)
        return torch.stack([function(rows) for function in (*objectives, *constraints)])

    def metrics(w: Float[Tensor, "d"], problem: Problem) -> dict[str, Tensor]:
        batches, values = measured_rows(problem), means(problem, w)
        for label, measure in measures.items():
            values[label] = vmap(lambda b, m=measure: m(forward(w, b)))(batches).mean()
        return values

    ends = torch.tensor([len(own[0]) for own in clients.values()]).cumsum(0)
    rows, sizes = padded(list(torch.arange(int(ends[-1])).tensor_split(ends[:-1])))
    parts = [torch.cat(x) for x in zip(*clients.values(), strict=True)]
    problem = Problem(
        name=name,
        data=tuple(cast(x, w0.dtype) for x in parts),
        rows=rows,
        sizes=sizes,
        losses=losses,
        num_objectives=len(objectives),
        num_constraints=len(constraints),
        w0=w0,
        metrics=metrics,
        heldout=tuple(cast(x, w0.dtype) for x in heldout),
        config={
            "name": name,
            "clients": len(sizes),
            "rows": sum(sizes),
            "module": " ".join(str(module).split()),
            "objective": [title(f) for f in objectives],
            "constraint": [title(f) for f in constraints],
            "data": digest(parts),
        },
    )
    first = problem.data[0][problem.rows[0]]
    takes = f"module must take inputs of shape {list(first.shape)}, it failed with"
    attempt(f"{who}: {takes}", apply, w0, first)

    def on_rows(function: Function) -> Value:
        return lambda w, batch: function(forward(w, batch))

    for kind, functions in (("objective", objectives), ("constraint", constraints)):
        for function in functions:
            try_function(who, f"{kind} {title(function)!r}", on_rows(function), problem)
    taken = ("", "seed", "round", *means(problem, w0))
    for label, measure in measures.items():
        fits, rule = label not in taken, f"be none of {taken}"
        checks.require(fits, who, "the name of a measure", rule, label)
        batches = measured_rows(problem)
        try_function(who, f"measure {label!r}", on_rows(measure), problem, batches)
    return problem


def try_function(
    who: str, name: str, value: Value, problem: Problem, measured: Batch | None = None
) -> None:
    """Raise ValueError unless a function gives one finite number, by rows that count alone.

    A measure is tried on the rows that it is of, `measured`, and needs no gradient.
    """
    w, batches = problem.w0, problem.all_clients() if measured is None else measured
    first = Batch(tuple(x[0] for x in batches.data), batches.weight[0])
    works = f"{who}: {name} must work on a client's rows, it failed"
    alone = attempt(works, value, w, first)
    got = list(alone.shape) if isinstance(alone, Tensor) else alone
    remedy = "take the mean of values that are one a row: rows.mean(values)"
    checks.require(got == [], who, name, "return one number, a tensor of shape []", got, remedy)
    each = attempt(works, vmap(value, (None, 0)), w, batches)
    check_finite(who, name, each)
    if measured is not None:
        return
    slopes = attempt(works, vmap(grad(value), (None, 0)), w, batches)
    check_finite(who, f"the gradient of {name}", slopes)
    size, j = min((size, j) for j, size in enumerate(problem.sizes))
    own = problem.rows[j, :size]
    weight = torch.full_like(own, 1 / size, dtype=w.dtype)
    cut = value(w, Batch(tuple(x[own] for x in problem.data), weight))
    same = torch.allclose(cut, each[j], rtol=1e-3, atol=1e-5)
    got = f"{float(each[j]):.4g} with them and {float(cut):.4g} without on client {j}"
    remedy = "take rows.mean(values) in place of values.mean() or sum()"
    checks.require(same, who, name, "not count padding rows", got, remedy)


def attempt(sentence: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function, or ValueError: the sentence and the first line of what happened."""
    try:
        return function(*arguments)
    except Exception as error:
        if cause := explain_map_error(error):
            raise ValueError(f"{sentence.partition(' must ')[0]} must not {cause}.") from error
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise ValueError(f"{sentence}: {lines[0].rstrip('.')}.") from error


def check_finite(who: str, name: str, values: Shaped[Tensor, "N *d"]) -> None:
    """Raise ValueError unless every client's values are finite; names the first that are not."""
    bad = (~torch.isfinite(values)).flatten(1).any(1) if values.dim() > 1 else ~values.isfinite()
    rule, remedy = "be finite where methods start", "look for a logarithm, a root or a quotient"
    client = f"NaN or infinity on client {int(bad.int().argmax())}"
    checks.require(not bad.any(), who, name, rule, client, remedy)


def means(problem: Problem, w: Float[Tensor, "d"]) -> dict[str, Float[Tensor, ""]]:
    """The mean objective, the largest constraint, and each where there are several."""
    mean = problem.mean_losses(w)
    f, g = mean[: problem.num_objectives], mean[problem.num_objectives :]
    values = {"f": f.mean()} | ({"g": g.max()} if len(g) else {})
    for letter, each in (("f", f), ("g", g)):
        if len(each) > 1:
            values |= {f"{letter}_{k + 1}": value for k, value in enumerate(each)}
    return values


def measured_rows(problem: Problem) -> Batch:
    """The rows that measures are of: those held out as one batch, else every client's."""
    if not problem.heldout:
        return problem.all_clients()
    count = len(problem.heldout[0])
    weight = problem.w0.new_full((1, count), 1 / count)
    return Batch(tuple(x.unsqueeze(0) for x in problem.heldout), weight)


def cast(x: Shaped[Tensor, "*b"], dtype: torch.dtype) -> Shaped[Tensor, "*b"]:
    """Floats and truth values in the dtype of the parameters; whole numbers as they are."""
    if x.is_floating_point() or x.dtype == torch.bool:
        return x.to(dtype)
    return x.to(torch.int64) if x.dtype != torch.uint8 else x


def title(function: Function) -> str:
    """What a function is called."""
    return str(getattr(function, "__name__", type(function).__name__))


def digest(tensors: Sequence[Shaped[Tensor, "..."]]) -> str:
    """SHA-256 of the rows, so that a stored run knows other data from these."""
    sha = hashlib.sha256()
    for x in tensors:
        sha.update(f"{x.dtype} {list(x.shape)}".encode() + x.contiguous().numpy().tobytes())
    return sha.hexdigest()[:16]
