"""What a set's numbers lose by rounding, and bounds beyond the range of a dtype."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.shapes import Vector

UNITS = 4  # units of rounding for each entry, of which the errors add up as random signs do


def widened(x: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
    """The same numbers, in float32 if their dtype is shorter: torch has no solvers for those."""
    if x.dtype.itemsize < 4:
        return x.float()
    return x


def relative_slack(x: Vector, tol: float, rank: int = 1) -> float:
    """The relative error by which a point of a set may miss it: `tol`, or rounding if larger.

    Results are rounded once to the dtype of x. For a norm of matrices of some `rank`, such an error
    counts up to sqrt(rank) times. The computation itself takes at least float32.
    """
    eps = torch.finfo(x.dtype).eps
    wide_eps = torch.finfo(widened(x[:1]).dtype).eps
    once = 2 * eps * math.sqrt(rank)
    computed = UNITS * wide_eps * math.sqrt(len(x))
    return max(tol, once, computed)


def absolute_slack(x: Vector) -> float:
    """The rounding of all entries in the range below the smallest normal number."""
    numbers = torch.finfo(x.dtype)
    return UNITS * numbers.tiny * numbers.eps * len(x)


def check_bound(
    caller: str,
    name: str,
    bound: float | Tensor,
    x: Vector,
    remedy: str = "",
) -> None:
    """Raise ValueError unless a bound is a finite number in the dtype of a point.

    The value of a tensor is not read.
    """
    if isinstance(bound, Tensor):
        return
    largest = torch.finfo(x.dtype).max
    rule = f"be finite in {x.dtype}, at most {largest:.3g}"
    checks.require(abs(bound) <= largest, caller, name, rule, bound, remedy)
