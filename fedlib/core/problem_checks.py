"""What a `Problem` must be, checked when it is made, and what its functions must give."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from fedlib import checks
from fedlib.checks.tensors import told
from fedlib.core.trees import fault

if TYPE_CHECKING:
    from fedlib.core.problem import Problem

WHO = "Problem"
#: Names that a metric cannot have: columns of `Trace.to_frame`.
TAKEN = ("seed", "round")


def check_problem(problem: Problem) -> None:
    """Check everything but what the functions give.

    Values of tensors are not looked at inside a map or a recording, where there are none.

    Raises
    ------
    TypeError, ValueError
        one sentence that names the field.
    """
    _check_plain(problem)
    _check_tensors(problem)
    _check_rows(problem)
    if all(map(has_values, _tensors(problem))):
        _check_values(problem)


def check_names(given: Mapping[str, Any], tensors: Mapping[str, Any]) -> None:
    """Check that `given` names tensors of a problem, and holds such."""
    for name, value in given.items():
        checks.one_of(WHO, "the name of a tensor", name, tuple(tensors))
        parts = value if isinstance(value, tuple) else (value,)
        if not all(isinstance(x, Tensor) for x in parts):
            raise TypeError(checks.sentence(WHO, name, "hold tensors", value))


def has_values(x: Shaped[Tensor, "..."]) -> bool:
    """Whether a tensor is an ordinary one, whose values can be looked at."""
    plain = type(x) in (Tensor, torch.nn.Parameter) and not x.is_meta
    return plain and not torch._C._functorch.is_functorch_wrapped_tensor(x)


def _check_plain(problem: Problem) -> None:
    checks.value(WHO, "name", problem.name, str)
    if not problem.name:
        raise ValueError(checks.sentence(WHO, "name", "be a text that is not empty", ""))
    checks.count(WHO, "num_objectives", problem.num_objectives)
    checks.count(WHO, "num_constraints", problem.num_constraints, 0)
    for name in ("losses", "metrics", "gradient"):
        function = getattr(problem, name)
        if name == "gradient" and function is None:
            continue
        if not callable(function) or isinstance(function, type):
            raise TypeError(checks.sentence(WHO, name, "be a function", function))
        _check_takes(name, function, 3 if name == "gradient" else 2)
    checks.flag(WHO, "sequential_clients", problem.sequential_clients)
    if isinstance(problem.simulator, (type, str, bool, int, float)):
        raise TypeError(checks.sentence(WHO, "simulator", "be a simulator", problem.simulator))
    _check_config(problem.config)


def _check_takes(name: str, function: Callable[..., Any], count: int) -> None:
    """Whether a function takes so many arguments, if it tells."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError as error:
        rule = f"be a function of {count} arguments ({error})"
        raise TypeError(checks.sentence(WHO, name, rule, function)) from None
    except ValueError:  # some that are not of Python do not tell
        return


def _check_config(config: object) -> None:
    from fedlib.core.describe import describe

    if not isinstance(config, Mapping):
        raise TypeError(checks.sentence(WHO, "config", "be a mapping", config))
    for key, value in config.items():
        if not isinstance(key, str):
            raise TypeError(checks.sentence(WHO, "config", "have texts as names", key))
        try:
            json.dumps(describe(value), allow_nan=False)
        except (TypeError, ValueError) as error:
            rule = "be a JSON value or a record of such"
            raise type(error)(checks.sentence(WHO, f"config[{key!r}]", rule, value)) from None


def _check_tensors(problem: Problem) -> None:
    """Types, dtypes and numbers of axes."""
    for name in ("data", "heldout"):
        parts = getattr(problem, name)
        if not isinstance(parts, tuple) or not all(isinstance(x, Tensor) for x in parts):
            raise TypeError(checks.sentence(WHO, name, "be a tuple of tensors", parts))
        for i, x in enumerate(parts):
            if x.is_complex() or (name == "data" and x.dim() == 0):
                rule = "hold one entry or more a row, real ones"
                raise ValueError(_said(f"{name}[{i}]", rule, x))
    if len({len(x) for x in problem.data}) != 1:
        rule = "hold tensors with equally many rows"
        got = [list(x.shape) for x in problem.data]
        raise ValueError(checks.sentence(WHO, "data", rule, got))
    w0, rows = problem.w0, problem.rows
    if not isinstance(w0, Tensor) or not w0.is_floating_point():
        raise TypeError(_said("w0", "be a tensor of floats [d]", w0))
    if w0.dim() != 1 or not len(w0):
        raise ValueError(_said("w0", "be a vector [d], d at least 1", w0))
    if not isinstance(rows, Tensor) or rows.dtype != torch.int64:
        raise TypeError(_said("rows", "be a tensor of int64 [N, m]", rows))
    if rows.dim() != 2 or 0 in rows.shape:
        raise ValueError(_said("rows", "be a table [N, m], N and m at least 1", rows))
    devices = sorted({str(x.device) for x in _tensors(problem)})
    if len(devices) > 1:
        rule = "lie on one device with the other tensors"
        raise ValueError(checks.sentence(WHO, "data", rule, ", ".join(devices)))


def _check_rows(problem: Problem) -> None:
    """Sizes and lengths against the table of rows."""
    sizes, (n, m) = problem.sizes, problem.rows.shape
    if not isinstance(sizes, tuple):
        raise TypeError(checks.sentence(WHO, "sizes", "be a tuple of whole numbers", sizes))
    if len(sizes) != n:
        rule = f"have {n} entries, one for each line of rows"
        raise ValueError(checks.sentence(WHO, "sizes", rule, sizes))
    for j, size in enumerate(sizes):
        if type(size) is not int or not 1 <= size <= m:  # the quick way for many clients
            checks.count(WHO, f"sizes[{j}]", size, 1, m, "the columns of rows")
    lengths: object = problem.lengths
    if isinstance(lengths, Tensor):
        whole = not (lengths.is_floating_point() or lengths.is_complex())
        if not whole or lengths.shape != (n,):
            raise ValueError(_said("lengths", f"be whole numbers [{n}]", lengths))
    elif lengths != ():
        raise TypeError(_said("lengths", "be a tensor, or () for none", lengths))
    from fedlib.core.problem import ConvexSet, Pooled

    for name, kind in (("set", ConvexSet), ("pooled", Pooled)):
        value = getattr(problem, name)
        if value is not None:
            checks.instance(WHO, name, value, kind)


def _check_values(problem: Problem) -> None:
    """What can only be told where tensors have values."""
    count = len(problem.data[0])
    least, most = problem.rows.aminmax()
    if least < 0 or most >= count:
        got = int(least) if least < 0 else int(most)
        note = "the rows of data"
        raise ValueError(checks.sentence(WHO, "rows", f"lie in 0..{count - 1} ({note})", got))
    if isinstance(problem.lengths, Tensor) and problem.lengths.tolist() != [*problem.sizes]:
        rule = "agree with sizes"
        raise ValueError(checks.sentence(WHO, "lengths", rule, problem.lengths.tolist()))
    for name, parts in (
        ("w0", (problem.w0,)),
        ("data", problem.data),
        ("heldout", problem.heldout),
    ):
        for i, x in enumerate(parts):
            ends = x.aminmax() if x.is_floating_point() and x.numel() else ()
            if not all(map(torch.isfinite, ends)):  # one pass without a mask; the sentence counts
                checks.finite(WHO, name if name == "w0" else f"{name}[{i}]", x)


def try_functions(problem: Problem) -> None:
    """Call the losses once, on the first client's rows.

    A simulated problem is not: its losses need episodes.

    Raises
    ------
    TypeError, ValueError
        unless they give K numbers.
    """
    if problem.simulator is not None:
        return
    from fedlib.core.problem import Batch

    whole = problem.rows_of(torch.zeros(1, dtype=torch.int64, device=problem.rows.device))
    batch = Batch(tuple(x[0] for x in whole.data), whole.weight[0])
    w, k = problem.w0, problem.num_objectives + problem.num_constraints
    found = _attempt(problem, "losses", lambda: problem.losses(w, batch))
    rule = f"give a tensor of floats [{k}], the objectives and then the constraints"
    if not (isinstance(found, Tensor) and found.is_floating_point() and found.shape == (k,)):
        raise ValueError(f"run: losses of {problem.name} must {rule}, got {told(found)}.")


def _attempt(problem: Problem, name: str, work: Callable[[], object]) -> object:
    try:
        with torch.no_grad():
            return work()
    except Exception as error:
        if isinstance(error, RuntimeError) and fault(error):
            raise
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise ValueError(
            f"run: {name} of {problem.name} must work on the rows of client 0, it failed with: "
            f"{lines[0].rstrip('.')[:200]}."
        ) from error


def check_gradient(found: object, w: Float[Tensor, "d"]) -> None:
    """Check what a problem's gradient gave: in every round, so of its shape alone."""
    if not isinstance(found, Tensor) or found.shape != w.shape:
        rule = f"give a tensor of floats {list(w.shape)}, as long as w0"
        raise ValueError(f"{WHO}: gradient must {rule}, got {told(found)}.")


def check_metrics(problem: Problem, found: object) -> None:
    """Check what `metrics` gave, values aside.

    Raises
    ------
    TypeError, ValueError
        unless it is a mapping of names, none of them taken, to tensors of no axes.
    """
    who = "run"
    if not isinstance(found, dict) or not found:
        rule = "give a dict of numbers, one at least"
        raise TypeError(checks.sentence(who, f"metrics of {problem.name}", rule, found))
    for name, value in found.items():
        if not isinstance(name, str) or not name or name in TAKEN:
            rule = f"have texts as names, none of them {' or '.join(TAKEN)}"
            raise ValueError(checks.sentence(who, f"metrics of {problem.name}", rule, name))
        if not isinstance(value, Tensor) or value.dim() or value.is_complex():
            rule = "be a tensor of one number, shape []"
            which = f"metric {name!r} of {problem.name}"
            raise TypeError(f"{who}: {which} must {rule}, got {told(value)}.")


def _tensors(problem: Problem) -> list[Tensor]:
    lengths = (problem.lengths,) if isinstance(problem.lengths, Tensor) else ()
    return [*problem.data, problem.rows, problem.w0, *problem.heldout, *lengths]


def _said(name: str, rule: str, value: object) -> str:
    return f"{WHO}: {name} must {rule}, got {told(value)}."
