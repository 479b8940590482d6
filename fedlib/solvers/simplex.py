"""The simplex of weights: projection onto it, and projected gradient steps on it."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fedlib.solvers.operators import Array, batched_operator, on_cpu

#: Multiplications in a step, over all problems, up to which plain numbers are faster than numpy.
FEW = 40


def project_simplex(v: Float[Tensor, "*b M"]) -> Float[Tensor, "*b M"]:
    r"""The nearest point of the simplex $\{w \ge 0, \sum_k w_k = 1\}$.

    `w = max(v - theta, 0)`, where theta is the mean excess of the largest `rho` entries, and `rho`
    is the last place (in descending order) at which an entry exceeds its theta.

    >>> project_simplex(torch.tensor([0.9, 0.5, -1.0]))
    tensor([0.7000, 0.3000, 0.0000])
    """
    ordered = v.sort(-1, descending=True).values
    place = torch.arange(1, v.shape[-1] + 1, dtype=v.dtype, device=v.device)
    theta = (ordered.cumsum(-1) - 1) / place
    rho = (ordered > theta).sum(-1, keepdim=True).clamp_min(1)
    return (v - theta.gather(-1, rho - 1)).clamp_min(0)


@batched_operator(
    "(Tensor gram, Tensor before, Tensor step, int steps) -> Tensor",
    lambda arguments: arguments[1].shape,
)
def descend(
    gram: Float[Tensor, "b M M"],
    before: Float[Tensor, "b M"],
    step: Float[Tensor, "b"],
    steps: int,
) -> Float[Tensor, "b M"]:
    """Make projected gradient steps `w <- project(w - step G w)` for b Gram matrices at once.

    It stops early if a step changes none of the weights, since the result is then final. A problem
    with a NaN or an infinity has NaN in its result, and does not disturb the others.
    """
    matrices = on_cpu(gram)
    w = on_cpu(before)
    size = on_cpu(step)[:, None]
    broken = np.logical_not(np.isfinite(matrices.sum((1, 2)) + w.sum(1)))
    matrices = np.where(broken.reshape(-1, 1, 1), 0.0, matrices)
    if w.size * w.shape[1] <= FEW:
        problems = zip(matrices.tolist(), w.tolist(), size[:, 0].tolist(), strict=True)
        rows = [_descend_alone(*problem, steps) for problem in problems]
        w = np.array(rows).reshape(w.shape)
    else:
        w = _descend_together(matrices, w, size, steps)
    result = np.where(broken.reshape(-1, 1), np.nan, w)
    return torch.as_tensor(result).to(before)


def _descend_alone(
    matrix: list[list[float]],
    w: list[float],
    size: float,
    steps: int,
) -> list[float]:
    """The steps of `descend` for one small matrix, in plain numbers.

    A step costs some multiplications, and a call of numpy as much as a hundred of them.
    """
    for _ in range(steps):
        moved = []
        for row, weight in zip(matrix, w, strict=True):
            slope = sum(entry * other for entry, other in zip(row, w, strict=True))
            moved.append(weight - size * slope)
        total = 0.0
        shift = 0.0
        for place, entry in enumerate(sorted(moved, reverse=True), 1):
            total += entry
            excess = (total - 1.0) / place
            if entry <= excess:
                break
            shift = excess
        after = [max(entry - shift, 0.0) for entry in moved]
        if after == w:
            break
        w = after
    return w


def _descend_together(
    matrices: Array,
    w: Array,
    size: Array,
    steps: int,
) -> Array:
    """The steps of `descend` for many or large matrices."""
    for _ in range(steps):
        gradient = (matrices @ w[..., None])[..., 0]
        after = _project_rows(w - size * gradient)
        if np.array_equal(after, w):
            break
        w = after
    return w


def _project_rows(v: Array) -> Array:
    """`project_simplex` for the rows of a numpy array; a thousand calls of torch's are slow."""
    ordered = -np.sort(-v, 1)
    theta = (ordered.cumsum(1) - 1) / np.arange(1, v.shape[1] + 1)
    rho = np.maximum((ordered > theta).sum(1, keepdims=True), 1)
    shift = np.take_along_axis(theta, rho - 1, 1)
    return np.asarray(np.maximum(v - shift, 0))
