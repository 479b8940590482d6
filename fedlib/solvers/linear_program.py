"""The linear program of FedCMOO-Pref: the best weights in the simplex under linear constraints."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fedlib.solvers.min_norm import minimum_norm
from fedlib.solvers.operators import Array, batched_operator, on_cpu


def result_shape(arguments: Any) -> torch.Size:
    """The shape `[b, M + 1]` of the programs' results."""
    _, gain, _ = arguments
    count, objectives = gain.shape
    return torch.Size((count, objectives + 1))


@batched_operator("(Tensor gram, Tensor gain, Tensor bound) -> Tensor", result_shape)
def program(
    gram: Float[Tensor, "b M M"],
    gain: Float[Tensor, "b M"],
    bound: Float[Tensor, "b M"],
) -> Float[Tensor, "b M+1"]:
    """Maximize `gain' w` over the simplex subject to `gram w >= bound`, for b programs.

    HiGHS solves them one by one on the CPU. `bound` is `-inf` where there is no constraint. Returns
    the weights and a last entry: 0, or 1 for minimum-norm weights if there is no solution. A
    program with a NaN has only NaN in its result.
    """
    programs = zip(on_cpu(gram), on_cpu(gain), on_cpu(bound), strict=True)
    results = [solve(*arguments) for arguments in programs]
    return torch.as_tensor(np.stack(results)).to(gain)


def solve(
    gram: Array,
    gain: Array,
    bound: Array,
) -> Array:
    """Solve one program; the result `[M + 1]` has the form of `program`'s."""
    from scipy.optimize import linprog

    count = len(gain)
    is_finite = np.isfinite(gram).all() and np.isfinite(gain).all()
    if not is_finite or np.isnan(bound).any():
        return np.full(count + 1, np.nan)
    gram_scale = np.abs(gram).max() or 1.0
    gain_scale = np.abs(gain).max() or 1.0
    inequalities: dict[str, Any] = {}
    bounded = np.isfinite(bound)
    if bounded.any():
        inequalities["A_ub"] = -gram[bounded] / gram_scale
        inequalities["b_ub"] = -bound[bounded] / gram_scale
    solution = linprog(
        -gain / gain_scale,
        **inequalities,
        A_eq=np.ones((1, count)),
        b_eq=[1.0],
        bounds=(0, None),
        method="highs",
    )
    if solution.x is None:
        return np.append(minimum_norm(gram), 1.0)
    w = solution.x.clip(0)
    weights = w / w.sum()
    return np.append(weights, 0.0)
