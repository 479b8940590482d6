"""What is tried out before a problem of one's own runs, each mistake one sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.func import grad, vmap

from fedlib.core.problem import Batch, Problem
from fedlib.core.trees import explain_map_error
from fedlib.models.modules import Apply
from fedlib.problems.client_rows import Function, seen


def try_module(who: str, problem: Problem, apply: Apply) -> None:
    """Raise ValueError unless the module takes the inputs of the first client."""
    inputs = problem.data[0][problem.rows[0]]
    try:
        apply(problem.w0, inputs)
    except Exception as error:
        raise ValueError(
            f"{who}: module must take inputs of shape {list(inputs.shape)}, it failed with: "
            f"{first_line(error)}."
        ) from error


def try_functions(
    who: str,
    problem: Problem,
    apply: Apply,
    columns: Sequence[str],
    functions: Mapping[str, Function],
    batches: Batch | None = None,
) -> None:
    """Raise ValueError unless every function gives one finite number, by rows that count alone.

    Parameters
    ----------
    who, problem, apply, columns : what is being built.
    functions : `"constraint 'missed'"` and the like -> the function.
    batches : rows to try them on, `[N, m, ...]`; by default those of all clients. Functions of
        other rows than the clients' are measures, which need no gradient.
    """
    measured = batches is not None
    batches = problem.all_clients() if batches is None else batches
    first = Batch(tuple(x[0] for x in batches.data), batches.weight[0])
    for name, function in functions.items():

        def value(w: Tensor, batch: Batch, function: Function = function) -> Tensor:
            return function(seen(apply, columns, w, batch))

        alone = attempt(who, name, partial(value, problem.w0, first))
        if not isinstance(alone, Tensor) or alone.dim():
            got = list(alone.shape) if isinstance(alone, Tensor) else type(alone).__name__
            raise ValueError(
                f"{who}: {name} must return one number, a tensor of shape [], got {got}; take the "
                "mean of values that are one a row: rows.mean(values)."
            )
        each = attempt(who, name, partial(vmap(value, (None, 0)), problem.w0, batches))
        finite(who, name, each)
        if not measured:
            slopes = attempt(who, name, partial(vmap(grad(value), (None, 0)), problem.w0, batches))
            finite(who, f"the gradient of {name}", slopes)
            padding(who, name, value, problem, each)


def attempt(
    who: str, name: str, work: Callable[[], Shaped[Tensor, "..."]]
) -> Shaped[Tensor, "..."]:
    """The result, or ValueError with the first line of what went wrong."""
    try:
        return work()
    except Exception as error:
        if explain_map_error(error):
            raise ValueError(f"{who}: {name} must not {explain_map_error(error)}.") from error
        raise ValueError(
            f"{who}: {name} must work on a client's rows, it failed: {first_line(error)}."
        ) from error


def finite(who: str, name: str, values: Shaped[Tensor, "N *d"]) -> None:
    """Raise ValueError unless every client's values are finite; names the first that are not."""
    good = torch.isfinite(values).flatten(1).all(1) if values.dim() > 1 else torch.isfinite(values)
    if not good.all():
        j = int((~good).nonzero()[0])
        raise ValueError(
            f"{who}: {name} must be finite where methods start, it is not on the rows of client "
            f"{j}; look for a logarithm, a root or a quotient of 0 there."
        )


def padding(
    who: str,
    name: str,
    value: Callable[[Float[Tensor, "d"], Batch], Float[Tensor, ""]],
    problem: Problem,
    each: Float[Tensor, "N"],
) -> None:
    """Raise ValueError if the smallest client's value changes once its padding rows are cut off."""
    size, j = min((size, j) for j, size in enumerate(problem.sizes))
    own = problem.rows[j, :size]
    weight = torch.full_like(own, 1 / size, dtype=problem.w0.dtype)
    cut = value(problem.w0, Batch(tuple(x[own] for x in problem.data), weight))
    if not torch.allclose(cut, each[j], rtol=1e-3, atol=1e-5):
        raise ValueError(
            f"{who}: {name} must not count padding rows, on client {j} ({size} rows) it gives "
            f"{float(each[j]):.4g} with them and {float(cut):.4g} without; take rows.mean(values) "
            "in place of values.mean() or sum()."
        )


def first_line(error: Exception) -> str:
    """The first line of an error's text, without its full stop."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")
