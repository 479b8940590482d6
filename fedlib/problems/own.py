"""A problem of your own: clients' rows, any module, and plain functions of the module's output.

`from_frame` takes a pandas data frame with a column that names the client. `from_clients` takes
tensors, arrays, Datasets or DataLoaders, one for each client. Both test the module and the
functions before a run, so a mistake raises one sentence and not a traceback from inside a `vmap`.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from fedlib import checks, models
from fedlib.core.describe import describe
from fedlib.core.problem import OfMeans, Problem
from fedlib.core.trees import same_numbers
from fedlib.problems.chunks import rows_at_a_time
from fedlib.problems.client_rows import Function, Functions, title
from fedlib.problems.explain import attempt
from fedlib.problems.fairness_gap import (
    Constraints,
    GroupSums,
    check_groups,
    check_logits,
    with_gap_columns,
    with_groups,
)
from fedlib.problems.frames import check_frame, client_of_rows, tensors_of
from fedlib.problems.own_functions import OwnFunctions
from fedlib.problems.preflight import Preflight, needs_loop
from fedlib.problems.readers import Rows, as_rows, cast_as, cast_rows, check_range, digest, is_exact
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
    frame : DataFrame
        A data frame of pandas with one row for each sample: numbers without gaps, scaled as the
        module needs them (for text see `pandas.get_dummies`). Whole numbers among the features
        must be exact in the dtype of the module.
    client : hashable
        The column that names the row's client; clients are numbered in sorted order.
    target : hashable
        The column to predict; whole numbers stay whole (classes), others become floats.
    module : Module
        A network; any batch norm must be in eval mode. Methods start at the trainable
        parameters; frozen ones do not change. Dropout is active in training, not in metrics.
    objective : callable or sequence of callable
        A function `ClientRows -> number`, whose mean over clients is minimized; or a list.
    constraint : callable, GroupGap or sequence of both
        Such a function, to be kept below a method's level; or a `GroupGap`, for equal
        treatment of groups; or a list of both.
    weights : "rows", sequence of float or None
        The clients' weights: None for equal weights, `"rows"` for their numbers of rows, or
        one number for each client.
    features : sequence of hashable or None
        The module's input columns, by default all that are not named elsewhere.
    columns : sequence of hashable
        Columns that only the functions see, as `rows.columns[name]`.
    measures : mapping of str to callable or None
        Name -> `ClientRows -> number`, reported at every evaluation: on `heldout` if it is
        given, else as a mean over clients. The number may be a tensor, or one of Python or numpy
        (from scikit-learn, say).
    heldout : DataFrame or None
        Rows that no client trains on, with the same columns; column `client` may be missing.
    name : str
        The name in error messages and stored runs.

    The metrics are `f`, the mean of the objectives, and `g`, the largest of the constraints, each
    averaged over clients; `f_1`, `g_1`, ... if there are several; and the measures. Raises
    ValueError or TypeError for a column that is missing, not numeric, has gaps or is named for two
    purposes; a client without rows; a module that does not accept the features; and a function that
    fails, does not return a single finite number, or counts padding rows.
    """
    caller = "from_frame"
    check_frame(caller, "frame", frame)
    if heldout is not None:
        check_frame(caller, "heldout", heldout)
    checks.arguments(from_frame, locals())
    columns = with_gap_columns(columns, constraint)
    further = [target, *columns]
    labels = client_of_rows(caller, frame, client)
    if features is None:
        features = [column for column in frame.columns if column not in (client, *further)]
    in_order = not isinstance(features, (str, Set))
    rule = "be a list of columns in a fixed order"
    remedy = "write them in brackets [...]"
    checks.require(in_order, caller, "features", rule, features, remedy)
    features = list(features)
    checks.require(features, caller, "features", "hold at least one column", [])
    uses = [client, *features, *further]
    names = "client, target, features and columns"
    check_once(caller, names, uses, "name each column once, for one purpose")
    dtype = models.float_type(module)
    tensors = tensors_of(caller, frame, features, further, labels, dtype)
    heldout_rows: Rows = ()
    if heldout is not None:
        heldout_rows = tensors_of(caller, heldout, features, further, None, dtype)
    owners = frame[client].reset_index(drop=True)
    groups = owners.groupby(owners, sort=True, observed=False)
    clients = {}
    for label, _ in groups:
        positions = groups.indices.get(label, [])  # none for a category without rows
        clients[label] = [x[positions] for x in tensors]
    functions = (objective, constraint, measures or {}, columns)
    return make_problem(caller, name, clients, heldout_rows, module, weights, *functions)


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
    clients : sequence
        For each client `(inputs [m, ...], target [m, ...], further columns [m, ...])` as a
        tuple of tensors, arrays or frames; or a dict of tensors; or a torch Dataset or DataLoader.
        A module of several inputs takes a tuple of them, or a dict by the names of its arguments:
        `((ids, mask), target)` or `{"ids": ids, "mask": mask, "labels": target}`.
        A Dataset is read once, a stream to its end. A DataLoader gives the samples of its sampler,
        in the order of its Dataset. m may differ between clients.
    columns : sequence of hashable
        The names of the further columns, in their order.
    heldout : object or None
        Rows that no client trains on, in a form that `clients` may have.
    module : Module
        A network; any batch norm must be in eval mode. Methods start at the trainable
        parameters; frozen ones do not change. Dropout is active in training, not in metrics.
    objective : callable or sequence of callable
        A function `ClientRows -> number`, whose mean over clients is minimized; or a list.
    constraint : callable, GroupGap or sequence of both
        Such a function, to be kept below a method's level; or a `GroupGap`, for equal
        treatment of groups; or a list of both.
    measures : mapping of str to callable or None
        Name -> `ClientRows -> number`, reported at every evaluation: on `heldout` if it is
        given, else as a mean over clients.
    weights : "rows", sequence of float or None
        The clients' weights: None for equal weights, `"rows"` for their numbers of rows, or
        one number for each client.
    name : str
        The name in error messages and stored runs.

    Raises ValueError or TypeError for a client without rows, or with rows that are not dense finite
    tensors of one shape; a module that does not accept the inputs; and a function that fails, does
    not return a single finite number, or counts padding rows.
    """
    caller = "from_clients"
    checks.arguments(from_clients, locals())
    check_once(caller, "columns", columns, "name each column once")
    columns = with_gap_columns(columns, constraint)
    sources = {f"client {number}": source for number, source in enumerate(clients)}
    is_empty = isinstance(heldout, tuple) and not heldout
    if heldout is not None and not is_empty:
        sources["heldout"] = heldout
    packing: Packing | None = None
    keys: list[Any] = []  # of the first dict, whose order counts
    tensors: dict[str, Rows] = {}
    for label, source in sources.items():
        packed, packing = pack_client(caller, label, source, columns, module, packing)
        if isinstance(packed, Mapping):
            keys = keys or list(packed)
            fits = packed.keys() == set(keys)
            rule = f"have the entries {keys}, as the clients before"
            checks.require(fits, caller, label, rule, list(packed))
            packed = {key: packed[key] for key in keys}
        tensors[label] = as_rows(caller, label, packed, columns)
    tensors = checked_rows(caller, tensors, columns, models.float_type(module))
    heldout_rows = tensors.pop("heldout", ())
    if "heldout" in sources:
        checks.require(len(heldout_rows[0]), caller, "heldout", "have rows", 0)
    numbered = dict(enumerate(tensors.values()))
    functions = (objective, constraint, measures or {}, columns)
    return make_problem(caller, name, numbered, heldout_rows, module, weights, *functions, packing)


def check_once(caller: str, name: str, columns: Iterable[Hashable], rule: str) -> None:
    """Raise ValueError if a column is named twice."""
    uses = Counter(columns)
    repeated = [column for column, count in uses.items() if count > 1]
    checks.require(not repeated, caller, name, rule, repeated)


def checked_rows(
    caller: str, clients: Mapping[str, Rows], columns: Sequence[Hashable], dtype: torch.dtype
) -> dict[str, Rows]:
    """The rows of all clients; whole numbers are in `dtype` where other clients have floats.

    Raises ValueError unless all rows have one shape, are finite in `dtype` and keep their values.
    """
    expected: list[list[int]] = []
    by_column = zip(*clients.values(), strict=True)
    with_floats = [any(map(torch.is_floating_point, tensors)) for tensors in by_column]
    names = ("inputs", "target", *columns)
    exact_rule = f"hold whole numbers that {dtype} can hold beside other clients' floats"
    checked: dict[str, Rows] = {}
    rule = "hold equally many rows in all its tensors, shaped as those of client 0"
    for label, rows in clients.items():
        shapes = [list(x.shape) for x in rows]
        expected = expected or shapes
        row_shapes = [shape[1:] for shape in shapes]
        expected_shapes = [shape[1:] for shape in expected]
        counts = set(map(len, rows))
        fits = row_shapes == expected_shapes and len(counts) == 1
        checks.require(fits, caller, label, rule, shapes, f"client 0 has {expected}")
        converted = []
        for column, x, beside_floats in zip(names, rows, with_floats, strict=True):
            name = f"{column} of {label}"
            checks.finite(caller, name, x, "drop or impute these rows")
            check_range(caller, name, x, dtype)
            if beside_floats and not x.is_floating_point():
                exact = is_exact(x, dtype)
                remedy = "convert the module with .double()"
                checks.require(exact, caller, name, exact_rule, x, remedy)
                x = x.to(dtype)
            converted.append(x)
        checked[label] = tuple(converted)
    return checked


def make_problem(
    caller: str,
    name: str,
    clients: Mapping[Any, Rows],
    heldout: Rows,
    module: nn.Module,
    weights: Literal["rows"] | Sequence[float] | None,
    objective: Functions,
    constraint: Constraints,
    measures: Mapping[str, Function],
    columns: Sequence[Hashable],
    packing: Packing | None = None,
) -> Problem:
    """Build the problem from clients' tensors, and test everything in it."""
    objectives = (objective,) if callable(objective) else tuple(objective)
    checks.require(clients, caller, "the problem", "have a client", 0)
    checks.require(objectives, caller, "the problem", "have an objective", 0)
    remedy = "leave it out (of a category: frame[...].cat.remove_unused_categories())"
    for label, rows in clients.items():
        checks.require(len(rows[0]), caller, f"client {label!r}", "have rows", 0, remedy)
    by_column = zip(*clients.values(), strict=True)
    rows = list(map(torch.cat, by_column))
    initialize(caller, module, rows[0][:2], packing)
    w0, function = models.ravel(module)
    apply: models.ModuleFunction | OfPacked = function
    if packing is not None:
        apply = OfPacked(function, packing)
    data = cast_rows(rows, w0.dtype)
    sizes = tuple(len(client_rows[0]) for client_rows in clients.values())
    further = dict(zip(columns, data[2:], strict=True))
    unrounded = dict(zip(columns, rows[2:], strict=True))
    check_groups(caller, constraint, unrounded, further)
    constraints = with_groups(caller, constraint, further, data[1])
    names = tuple(columns)
    functions = OwnFunctions(apply, objectives, constraints, {}, {}, names)
    problem = Problem(
        name=name,
        data=data,
        rows=torch.arange(sum(sizes)),
        sizes=sizes,
        losses=functions.losses,
        num_objectives=len(objectives),
        num_constraints=len(constraints),
        w0=w0,
        metrics=functions.metrics,
        heldout=cast_as(data, cast_rows(heldout, w0.dtype)),
        sequential_clients=models.is_recurrent(module),
        dropout=bool(apply.dropout),
        config={
            "name": name,
            "clients": len(sizes),
            "rows": sum(sizes),
            "module": " ".join(str(module).split()),
            "objective": [title(f) for f in objectives],
            "constraint": constraint_names(constraints),
            "data": digest(rows),
        },
    )
    try_module(caller, apply, problem)
    if weights is not None:
        if not isinstance(weights, str):
            for client, weight in enumerate(weights):
                checks.positive(caller, f"weights[{client}]", weight)
        problem = problem.weighted(weights)
    if functions.gaps:
        output = apply(w0, first_inputs(problem)[:FEW])
        check_logits(caller, output)
        problem = with_statistics(problem, functions)
    if needs_loop(functions, problem):
        problem = replace(problem, sequential_clients=True)
    functions = tested(caller, functions, problem, measures)
    host_metrics = functions.on_host if functions.host_measures else None
    return replace(problem, metrics=functions.metrics, host_metrics=host_metrics)


def initialize(caller: str, module: nn.Module, inputs: Tensor, packing: Packing | None) -> None:
    """Initialize the lazy layers of a module on some inputs, if it has any."""
    if not any(map(nn.parameter.is_lazy, module.parameters())):
        return
    (inputs,) = cast_rows([inputs], torch.get_default_dtype())
    arguments = [inputs] if packing is None else packing.unpack(inputs)
    with torch.no_grad():
        attempt(caller, "module", module, *arguments)


def first_inputs(problem: Problem) -> Tensor:
    """The inputs of client 0."""
    inputs = problem.data[0]
    return inputs[problem.own_rows(0)]


def with_statistics(problem: Problem, functions: OwnFunctions) -> Problem:
    """The problem whose constraints follow from sums and counts over the rows of all clients.

    A further data tensor says how many rows a client's mean stands for. It is divided by the
    client's weight, since averages over clients multiply by this weight.
    """
    sizes = torch.tensor(problem.sizes)
    scale = sizes.to(problem.w0)
    if problem.client_weights:
        weights = torch.tensor(problem.client_weights)
        scale = scale / weights.to(scale)
    by_row = scale.repeat_interleave(sizes)
    pooled = OfMeans(functions.num_statistics, functions.constraint_values)
    return replace(problem, data=(*problem.data, by_row), pooled=pooled)


def constraint_names(constraints: Sequence[Function | GroupSums]) -> Any:
    """The constraints in a stored run's configuration; a single gap is not in a list."""
    names = []
    for constraint in constraints:
        if isinstance(constraint, GroupSums):
            names.append(describe(constraint.gap))
        else:
            names.append(title(constraint))
    if len(names) == 1 and not isinstance(names[0], str):
        return names[0]
    return names


def try_module(caller: str, apply: models.ModuleFunction | OfPacked, problem: Problem) -> None:
    """Raise ValueError unless the module is a function of its parameters and its inputs alone.

    It must work on some rows, twice with the same output, and must change no tensor.
    """
    rows = first_inputs(problem)
    name = f"module, of inputs of shape {list(rows.shape)},"
    inputs = rows[:FEW]
    w0 = problem.w0.clone()
    few_rows = inputs.clone()
    constants = {key: x.clone() for key, x in apply.constants.items()}
    output = attempt(caller, name, apply, w0, few_rows)
    changed = []
    for key, x in apply.constants.items():
        if not same_numbers(x, constants[key]):
            changed.append(key)
    if not changed:
        changed = attempt(caller, name, apply.changed_buffers, few_rows.clone())
    rule = "leave its buffers and frozen parameters as they are"
    remedy = "call module.eval(), or take out the layer that counts or averages"
    checks.require(not changed, caller, "module", rule, changed, remedy)
    if not same_numbers(w0, problem.w0):
        changed.append("parameters")
    if not same_numbers(few_rows, inputs):
        changed.append("inputs")
    rule = "change no tensor in place"
    remedy = "write x = x * 2 in place of x.mul_(2)"
    checks.require(not changed, caller, "module", rule, changed, remedy)
    tensors = tensors_in(output)
    unregistered = any(x.requires_grad for x in tensors)
    rule = "register all its layers and parameters"
    remedy = "hold them in nn.ModuleList or nn.ParameterList, and compute from them in forward"
    fault = "others that are not in w"
    checks.require(not unregistered, caller, "module", rule, fault, remedy)
    with torch.no_grad():
        repeated = attempt(caller, name, apply, w0, few_rows)
    pairs = zip(tensors, tensors_in(repeated), strict=True)
    fits = all(same_numbers(x, y) for x, y in pairs)
    rule = "give the same output for the same inputs"
    remedy = "take out what draws, counts or remembers; nn.Dropout may stay"
    fault = "another in a second call"
    checks.require(fits, caller, "module", rule, fault, remedy)


def tensors_in(output: Any) -> list[Tensor]:
    """The tensors of a module's output."""
    return [x for x in tree_leaves(output) if isinstance(x, Tensor)]


def tested(
    caller: str, functions: OwnFunctions, problem: Problem, measures: Mapping[str, Function]
) -> OwnFunctions:
    """The functions with their measures and their memory limit, after all tests before a run."""
    inputs = problem.data[0]
    apply = partial(functions.apply, train=False)
    chunk = rows_at_a_time(apply, problem.w0, inputs)
    if chunk < len(inputs):
        functions = replace(functions, chunk=chunk)
    preflight = Preflight(caller, functions, problem)
    for function in functions.objectives:
        preflight.try_function(f"objective {title(function)!r}", function)
    for function in functions.plain_constraints:
        preflight.try_function(f"constraint {title(function)!r}", function)
    start = preflight.points[0]
    means = start.functions.means(start.w, start.problem)
    taken = ("", "seed", "round", *means)
    on_tensors: dict[str, Function] = {}
    on_host: dict[str, Function] = {}
    for label, measure in measures.items():
        rule = f"be none of {taken}"
        checks.require(label not in taken, caller, "the name of a measure", rule, label)
        if preflight.try_measure(f"measure {label!r}", measure):
            on_tensors[label] = measure
        else:
            on_host[label] = measure
    return replace(functions, measures=on_tensors, host_measures=on_host)
