"""A problem of one's own: clients' rows, any module, and plain functions of what it gives.

`from_frame` takes a pandas data frame with a column that names the client, `from_clients` one tuple
of tensors a client. Both try the module and the functions out before anything runs, so that a
mistake is one sentence and not a traceback from inside a `vmap`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.func import vmap

from fedlib import checks, models
from fedlib.core.problem import Batch, Problem
from fedlib.data.split_labels import padded
from fedlib.models.modules import Apply
from fedlib.problems.client_rows import Function, seen
from fedlib.problems.own_arguments import (
    Functions,
    check_apart,
    check_columns,
    check_frame,
    check_functions,
    check_held,
    check_labels,
    check_named,
    check_parts,
)
from fedlib.problems.own_checks import try_functions, try_module

if TYPE_CHECKING:
    import pandas as pd


def from_frame(
    frame: pd.DataFrame,
    *,
    client: str,
    target: str,
    module: nn.Module,
    objective: Functions,
    constraint: Functions = (),
    features: Sequence[str] | None = None,
    columns: Sequence[str] = (),
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
        things, a target that is the same in all rows, a client without rows, a module that does not
        take the features, and a function that fails, returns no single finite number, or counts
        padding rows.
    """
    who = "from_frame"
    check_frame(who, "frame", frame)
    objectives, constraints = check_functions(who, objective, constraint, measures)
    check_labels(who, columns=columns, features=() if features is None else features)
    if features is None:
        features = [c for c in frame.columns if c not in (client, target, *columns)]
    check_apart(who, client, target, features, columns)
    needed = [target, *features, *columns]
    check_columns(who, frame, [client, *needed], needed)
    if heldout is not None:
        check_frame(who, "heldout", heldout)
        check_columns(who, heldout, needed, needed, "heldout")
    if not len(features):
        raise ValueError(checks.sentence(who, "features", "hold a column at least", []))
    check_named(who, frame[client])
    groups = frame.groupby(client, sort=True, observed=False)
    rows = {label: tensors_of(own, features, target, columns) for label, own in groups}
    held = () if heldout is None else tensors_of(heldout, features, target, columns)
    return assemble(who, rows, module, objectives, constraints, columns, measures or {}, held, name)


def from_clients(
    clients: Sequence[tuple[Shaped[Tensor, "..."], ...]],
    *,
    module: nn.Module,
    objective: Functions,
    constraint: Functions = (),
    columns: Sequence[str] = (),
    measures: Mapping[str, Function] | None = None,
    heldout: tuple[Shaped[Tensor, "..."], ...] = (),
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
    objectives, constraints = check_functions(who, objective, constraint, measures)
    check_labels(who, columns=columns)
    check_held(who, clients, heldout, ("inputs", "target", *columns))
    rows = dict(enumerate(clients))
    return assemble(
        who, rows, module, objectives, constraints, columns, measures or {}, heldout, name
    )


def tensors_of(
    frame: Any, features: Sequence[str], target: str, columns: Sequence[str]
) -> tuple[Shaped[Tensor, "m ..."], ...]:
    """Features `[m, p]`, target `[m]` and further columns `[m]` of some rows."""
    inputs = torch.from_numpy(frame[list(features)].to_numpy(dtype="float64").copy())
    more = (frame[c] for c in (target, *columns))
    # pandas' own dtypes, Int64 and the like, have a plain one of the same name
    plain = (x.to_numpy(dtype=getattr(x.dtype, "numpy_dtype", x.dtype)) for x in more)
    return inputs, *(torch.from_numpy(x.copy()) for x in plain)


def assemble(
    who: str,
    clients: Mapping[Any, tuple[Shaped[Tensor, "..."], ...]],
    module: nn.Module,
    objectives: tuple[Function, ...],
    constraints: tuple[Function, ...],
    columns: Sequence[str],
    measures: Mapping[str, Function],
    heldout: tuple[Shaped[Tensor, "..."], ...],
    name: str,
) -> Problem:
    """The problem, once everything in it has been tried."""
    check_parts(who, name, clients, objectives, constraints, measures)
    w0, apply = models.ravel(module)

    def losses(w: Float[Tensor, "d"], batch: Batch) -> Float[Tensor, "K"]:
        rows = seen(apply, columns, w, batch)
        return torch.stack([function(rows) for function in (*objectives, *constraints)])

    def metrics(w: Float[Tensor, "d"], problem: Problem) -> dict[str, Tensor]:
        batches, found = measured(problem), means(problem, w)
        for label, measure in measures.items():
            found[label] = vmap(lambda b, m=measure: m(seen(apply, columns, w, b)))(batches).mean()
        return found

    rows, sizes, parts = together(list(clients.values()))
    said = described(module, objectives, constraints) | {"data": data_digest(parts)}
    problem = Problem(
        name=name,
        data=tuple(fitting(x, w0.dtype) for x in parts),
        rows=rows,
        sizes=sizes,
        losses=losses,
        num_objectives=len(objectives),
        num_constraints=len(constraints),
        w0=w0,
        metrics=metrics,
        heldout=tuple(fitting(x, w0.dtype) for x in heldout),
        config={"name": name, "clients": len(sizes), "rows": sum(sizes), **said},
    )
    return tried(who, problem, apply, columns, objectives, constraints, measures)


def described(
    module: nn.Module, objectives: tuple[Function, ...], constraints: tuple[Function, ...]
) -> dict[str, Any]:
    """What a stored run records of a module and of functions."""
    return {
        "module": " ".join(str(module).split()),
        "objective": [title(f) for f in objectives],
        "constraint": [title(f) for f in constraints],
    }


def together(
    clients: Sequence[tuple[Shaped[Tensor, "..."], ...]],
) -> tuple[Int[Tensor, "N m"], tuple[int, ...], list[Shaped[Tensor, "..."]]]:
    """Every client's rows, padded, how many are real, and the clients' tensors in one."""
    ends = torch.tensor([len(own[0]) for own in clients]).cumsum(0)
    rows, sizes = padded(list(torch.arange(int(ends[-1])).tensor_split(ends[:-1])))
    return rows, sizes, [torch.cat(x) for x in zip(*clients, strict=True)]


def tried(
    who: str,
    problem: Problem,
    apply: Apply,
    columns: Sequence[str],
    objectives: tuple[Function, ...],
    constraints: tuple[Function, ...],
    measures: Mapping[str, Function],
) -> Problem:
    """The problem itself, if the module and all functions can be computed, else ValueError."""
    try_module(who, problem, apply)
    each = {f"objective {title(f)!r}": f for f in objectives}
    each |= {f"constraint {title(f)!r}": f for f in constraints}
    try_functions(who, problem, apply, columns, each)
    each = {f"measure {label!r}": measure for label, measure in measures.items()}
    try_functions(who, problem, apply, columns, each, measured(problem))
    return problem


def means(problem: Problem, w: Float[Tensor, "d"]) -> dict[str, Float[Tensor, ""]]:
    """The mean objective, the largest constraint, and each where there are several."""
    mean = problem.mean_losses(w)
    f, g = mean[: problem.num_objectives], mean[problem.num_objectives :]
    found = {"f": f.mean()} | ({"g": g.max()} if len(g) else {})
    for letter, values in (("f", f), ("g", g)):
        if len(values) > 1:
            found |= {f"{letter}_{k + 1}": value for k, value in enumerate(values)}
    return found


def measured(problem: Problem) -> Batch:
    """The rows that measures are of: those held out as one batch, else every client's."""
    if not problem.heldout:
        return problem.all_clients()
    count = len(problem.heldout[0])
    weight = torch.full((1, count), 1 / count, dtype=problem.w0.dtype, device=problem.w0.device)
    return Batch(tuple(x.unsqueeze(0) for x in problem.heldout), weight)


def fitting(x: Shaped[Tensor, "*b"], dtype: torch.dtype) -> Shaped[Tensor, "*b"]:
    """Floats and truth values in the dtype of the parameters; whole numbers as they are."""
    if x.is_floating_point() or x.dtype == torch.bool:
        return x.to(dtype)
    return x.to(torch.int64) if x.dtype != torch.uint8 else x


def title(function: Function) -> str:
    """What a function is called."""
    return str(getattr(function, "__name__", type(function).__name__))


def data_digest(tensors: Sequence[Shaped[Tensor, "..."]]) -> str:
    """SHA-256 of the rows, so that a stored run knows other data from these."""
    whole = hashlib.sha256()
    for x in tensors:
        whole.update(f"{x.dtype} {list(x.shape)}".encode() + x.contiguous().numpy().tobytes())
    return whole.hexdigest()[:16]
