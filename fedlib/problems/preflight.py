"""Tests of people's functions before a run: a mistake raises one sentence that names it."""

import numbers
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import grad_and_value, vmap

from fedlib import checks
from fedlib.core.problem import Batch, Problem
from fedlib.core.trees import explain_map_error, loop_map
from fedlib.problems.client_rows import SHARES, ClientRows, Function, heldout_rows, plain_client
from fedlib.problems.own_functions import OwnFunctions

SPREAD = 0.1  # distance scale of the random point at which functions are tested, beside the start


def try_function(
    who: str, name: str, functions: OwnFunctions, function: Function, problem: Problem
) -> None:
    """Raise ValueError unless a loss returns one finite number that does not depend on padding.

    Warn if its gradient is zero on the rows of every client. Both are tested at the start and at a
    random point, since all rows may have the same loss at a symmetric start.
    """
    over_clients = loop_map if problem.sequential_clients else vmap

    def value(w: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        SHARES.clear()
        loss = function(functions.rows(w, batch))
        return loss, torch.stack([*SHARES, loss.new_ones(())]).min()

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
    SHARES.clear()
    number = plain_number(who, name, measure, functions.rows(w, first), host=True)
    rule = f"have rows on {'heldout' if held else 'client 0'} for which its condition holds"
    checks.require(all(x > 0 for x in SHARES), who, name, rule, "none")
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
