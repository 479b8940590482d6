"""A problem of your own: clients' rows, any module, and plain functions of the module's output.

`from_frame` takes a pandas data frame with a column that names the client. `from_clients` takes
tensors, arrays, Datasets or DataLoaders, one for each client. Both test the module and the
functions before a run, so a mistake raises one sentence and not a traceback from inside a `vmap`.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from fedlib import checks, models
from fedlib.core.describe import describe
from fedlib.core.problem import OfMeans, Problem
from fedlib.problems.chunks import rows_at_a_time
from fedlib.problems.client_rows import Function, Functions, title
from fedlib.problems.explain import attempt
from fedlib.problems.fairness_gap import (
    Constraints,
    GroupGap,
    GroupSums,
    check_logits,
    group_sums,
    listed,
    with_gap_columns,
)
from fedlib.problems.frames import check_frame, tensors_of
from fedlib.problems.own_functions import OwnFunctions
from fedlib.problems.preflight import Preflight, needs_loop
from fedlib.problems.readers import Rows, as_rows, cast, check_range, digest
from fedlib.problems.several_inputs import OfPacked, Packing, pack_client

if TYPE_CHECKING:
    from pandas import DataFrame

FEW = 8  # rows on which a module is tried first


def from_frame(
    frame: "DataFrame",
    *,
    client: Hashable,
    target: Hashable,
    module: nn.Module,
    objective: Functions,
    constraint: Constraints = (),
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
    frame : a data frame of pandas with one row for each sample: numbers without gaps, scaled as the
        module needs them (for text see `pandas.get_dummies`). Whole numbers among the features
        must be exact in the dtype of the module.
    client : the column that names the row's client; clients are numbered in sorted order.
    target : the column to predict; whole numbers stay whole (classes), others become floats.
    module : a network; any batch norm must be in eval mode. Methods start at the trainable
        parameters; frozen ones do not change. Dropout is active in training, not in metrics.
    objective : a function `ClientRows -> number`, whose mean over clients is minimized; or a list.
    constraint : such a function, to be kept below a method's level; or a `GroupGap`, for equal
        treatment of groups; or a list of both.
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
    who = "from_frame"
    check_frame(who, "frame", frame)
    if heldout is not None:
        check_frame(who, "heldout", heldout)
    checks.arguments(from_frame, locals())
    columns = with_gap_columns(columns, constraint)
    if features is None:
        features = [c for c in frame.columns if c not in (client, target, *columns)]
    features, others = [*features], (target, *columns)
    checks.require(features, who, "features", "hold at least one column", [])
    twice = [k for k, count in Counter([client, *features, *others]).items() if count > 1]
    names = "client, target, features and columns"
    checks.require(not twice, who, names, "name each column once, for one purpose", twice)
    dtype = models.float_type(module)
    whole = tensors_of(who, frame, features, others, client, dtype)
    nameless = int(frame[client].isna().sum())
    checks.require(not nameless, who, "client", "leave no row without a name", nameless)
    outside: Rows = ()
    if heldout is not None:
        outside = tensors_of(who, heldout, features, others, None, dtype)
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
    constraint: Constraints = (),
    columns: Sequence[Hashable] = (),
    measures: Mapping[str, Function] | None = None,
    heldout: Any = (),
    weights: Literal["rows"] | Sequence[float] | None = None,
    name: str = "own",
) -> Problem:
    """A problem from clients that hold pictures, sequences, or other inputs of a module.

    Parameters
    ----------
    clients : for each client `(inputs [m, ...], target [m, ...], further columns [m, ...])` as a
        tuple of tensors, arrays or frames; or a dict of tensors; or a torch Dataset or DataLoader.
        A module of several inputs takes a tuple of them, or a dict by the names of its arguments:
        `((ids, mask), target)` or `{"ids": ids, "mask": mask, "labels": target}`.
        A Dataset is read once, a stream to its end. A DataLoader gives the samples of its sampler,
        in the order of its Dataset. m may differ between clients.
    columns : the names of the further columns, in their order.
    heldout : rows that no client trains on, in a form that `clients` may have.
    module, objective, constraint, measures, weights, name : as in `from_frame`.

    Raises the errors of `from_frame`.
    """
    who = "from_clients"
    checks.arguments(from_clients, locals())
    columns = with_gap_columns(columns, constraint)
    packing: Packing | None = None
    read = []
    for j, own in enumerate(clients):
        own, packing = pack_client(who, f"client {j}", own, columns, module, packing)
        read.append(as_rows(who, f"client {j}", own, columns))
    clients = read
    absent = heldout is None or (isinstance(heldout, tuple) and not heldout)
    held: Rows = ()
    if not absent:
        heldout, packing = pack_client(who, "heldout", heldout, columns, module, packing)
        held = as_rows(who, "heldout", heldout, columns)
    everybody = {f"client {j}": own for j, own in enumerate(clients)}
    if not absent:
        everybody["heldout"] = held
    first = [list(x.shape) for x in (clients or [held])[0]]
    rule = "hold equally many rows in all its tensors, shaped as those of client 0"
    dtype = models.float_type(module)
    for label, own in everybody.items():
        got = [list(x.shape) for x in own]
        fits = len({m for m, *_ in got}) == 1 and [x[1:] for x in got] == [x[1:] for x in first]
        checks.require(fits, who, label, rule, got, f"client 0 has {first}")
        for part, x in zip(("inputs", "target", *columns), own, strict=True):
            checks.finite(who, f"{part} of {label}", x, "drop or impute these rows")
            check_range(who, f"{part} of {label}", x, dtype)
    checks.require(absent or len(held[0]), who, "heldout", "have rows", 0)
    rest = constraint, measures or {}, columns, weights
    return make_problem(
        who, name, dict(enumerate(clients)), held, module, objective, *rest, packing
    )


def make_problem(
    who: str,
    name: str,
    clients: Mapping[Any, Rows],
    heldout: Rows,
    module: nn.Module,
    objective: Functions,
    constraint: Constraints,
    measures: Mapping[str, Function],
    columns: Sequence[Hashable],
    weights: Literal["rows"] | Sequence[float] | None,
    packing: Packing | None = None,
) -> Problem:
    """Build the problem from clients' tensors, and test everything in it."""
    objectives = (objective,) if callable(objective) else tuple(objective)
    checks.require(clients, who, "the problem", "have a client", 0)
    checks.require(objectives, who, "the problem", "have an objective", 0)
    for label, own in clients.items():
        remedy = "leave it out (of a category: frame[...].cat.remove_unused_categories())"
        checks.require(len(own[0]), who, f"client {label!r}", "have rows", 0, remedy)
    if any(map(nn.parameter.is_lazy, module.parameters())):
        dtype = torch.get_default_dtype()
        with torch.no_grad():
            inputs = cast(next(iter(clients.values()))[0][:2], dtype, whole=False)
            attempt(who, "module", module, *(packing.unpack(inputs) if packing else [inputs]))
    w0, function = models.ravel(module)
    apply = function if packing is None else OfPacked(function, packing)
    sizes = tuple(len(own[0]) for own in clients.values())
    parts = [torch.cat(x) for x in zip(*clients.values(), strict=True)]
    data = [cast(x, w0.dtype, whole=k > 0) for k, x in enumerate(parts)]
    held = tuple(cast(x, w0.dtype, whole=k > 0) for k, x in enumerate(heldout))
    further = dict(zip(columns, data[2:], strict=True))
    constraints: list[Function | GroupSums] = []
    for each in listed(constraint):
        if isinstance(each, GroupGap):
            constraints.append(group_sums(who, each, further, data[1]))
        else:
            constraints.append(each)
    functions = OwnFunctions(apply, objectives, tuple(constraints), {}, {}, tuple(columns))
    problem = Problem(
        name=name,
        data=tuple(data),
        rows=torch.arange(sum(sizes)),
        sizes=sizes,
        losses=functions.losses,
        num_objectives=len(objectives),
        num_constraints=len(constraints),
        w0=w0,
        metrics=functions.metrics,
        heldout=held,
        sequential_clients=models.is_recurrent(module),
        dropout=bool(apply.dropout),
        config={
            "name": name,
            "clients": len(sizes),
            "rows": sum(sizes),
            "module": " ".join(str(module).split()),
            "objective": [title(f) for f in objectives],
            "constraint": constraint_names(constraints),
            "data": digest(parts),
        },
    )
    try_module(who, apply, problem)
    if weights is not None:
        problem = problem.weighted(weights)
    if functions.gaps:
        rows = problem.data[0][problem.own_rows(0)][:FEW]
        check_logits(who, apply(w0, rows))
        problem = with_statistics(problem, functions)
    if needs_loop(functions, problem):
        problem = replace(problem, sequential_clients=True)
    functions = tested(who, functions, problem, measures)
    host = functions.on_host if functions.host_measures else None
    return replace(problem, metrics=functions.metrics, host_metrics=host)


def with_statistics(problem: Problem, functions: OwnFunctions) -> Problem:
    """The problem whose constraints follow from sums and counts over the rows of all clients.

    A further data tensor says how many rows a client's mean stands for. It is divided by the
    client's weight, since averages over clients multiply by this weight.
    """
    sizes = torch.tensor(problem.sizes)
    scale = sizes.to(problem.w0)
    if problem.client_weights:
        scale = scale / torch.tensor(problem.client_weights).to(scale)
    return replace(
        problem,
        data=(*problem.data, scale.repeat_interleave(sizes)),
        pooled=OfMeans(functions.num_statistics, functions.constraint_values),
    )


def constraint_names(constraints: Sequence[Function | GroupSums]) -> Any:
    """The constraints in a stored run's configuration."""
    if len(constraints) == 1 and isinstance(constraints[0], GroupSums):
        return describe(constraints[0].gap)
    return [describe(f.gap) if isinstance(f, GroupSums) else title(f) for f in constraints]


def try_module(who: str, apply: models.ModuleFunction | OfPacked, problem: Problem) -> None:
    """Raise ValueError unless the module works on some rows and leaves its buffers as they are."""
    rows = problem.data[0][problem.own_rows(0)]
    name = f"module, of inputs of shape {list(rows.shape)},"
    before = {key: x.clone() for key, x in apply.constants.items()}
    attempt(who, name, apply, problem.w0, rows[:FEW])
    changed = [key for key, x in apply.constants.items() if not same(x, before[key])]
    rule = "leave its buffers and frozen parameters as they are"
    remedy = "call module.eval(), or take out the layer that counts or averages"
    checks.require(not changed, who, "module", rule, changed, remedy)


def same(x: Tensor, y: Tensor) -> bool:
    """Whether two tensors hold the same numbers; NaN counts as equal to NaN."""
    return x.shape == y.shape and bool(((x == y) | ((x != x) & (y != y))).all())


def tested(
    who: str, functions: OwnFunctions, problem: Problem, measures: Mapping[str, Function]
) -> OwnFunctions:
    """The functions with their measures and their memory limit, after all tests before a run."""
    inputs = problem.data[0]
    chunk = rows_at_a_time(partial(functions.apply, train=False), problem.w0, inputs)
    if chunk < len(inputs):
        functions = replace(functions, chunk=chunk)
    preflight = Preflight(who, functions, problem)
    for function in functions.objectives:
        preflight.try_function(f"objective {title(function)!r}", function)
    for function in functions.plain_constraints:
        preflight.try_function(f"constraint {title(function)!r}", function)
    start = preflight.points[0]
    taken = ("", "seed", "round", *start.functions.means(start.w, start.problem))
    on_tensors: dict[str, Function] = {}
    on_host: dict[str, Function] = {}
    for label, measure in measures.items():
        free = label not in taken
        checks.require(free, who, "the name of a measure", f"be none of {taken}", label)
        if preflight.try_measure(f"measure {label!r}", measure):
            on_tensors[label] = measure
        else:
            on_host[label] = measure
    return replace(functions, measures=on_tensors, host_measures=on_host)
