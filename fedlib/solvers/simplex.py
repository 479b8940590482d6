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
    is the last rank (in descending order) at which an entry exceeds its theta.

    >>> project_simplex(torch.tensor([0.9, 0.5, -1.0]))
    tensor([0.7000, 0.3000, 0.0000])
    """
    ordered = v.sort(-1, descending=True).values
    count = v.shape[-1]
    rank = torch.arange(1, count + 1, dtype=v.dtype, device=v.device)
    theta = (ordered.cumsum(-1) - 1) / rank
    exceeding = (ordered > theta).sum(-1, keepdim=True)
    rho = exceeding.clamp_min(1)
    shift = theta.gather(-1, rho - 1)
    difference = v - shift
    return difference.clamp_min(0)


@batched_operator(
    "(Tensor gram, Tensor start, Tensor step, int steps) -> Tensor",
    lambda arguments: arguments[1].shape,
)
def descend(
    gram: Float[Tensor, "b M M"],
    start: Float[Tensor, "b M"],
    step: Float[Tensor, "b"],
    steps: int,
) -> Float[Tensor, "b M"]:
    """Make projected gradient steps `w <- project(w - step G w)` for b Gram matrices at once.

    It stops early if a step changes none of the weights, since the result is then final. A problem
    with a NaN or an infinity has NaN in its result, and does not disturb the others.
    """
    matrices = on_cpu(gram)
    w = on_cpu(start)
    sizes = on_cpu(step)
    gram_sums = matrices.sum((1, 2))
    total = gram_sums + w.sum(1)
    is_finite = np.isfinite(total)
    matrices = np.where(is_finite[:, None, None], matrices, 0.0)
    if w.size * w.shape[1] <= FEW:
        problems = zip(matrices.tolist(), w.tolist(), sizes.tolist(), strict=True)
        rows = [_descend_alone(*problem, steps) for problem in problems]
        w = np.array(rows).reshape(w.shape)
    else:
        w = _descend_together(matrices, w, sizes[:, None], steps)
    result = np.where(is_finite[:, None], w, np.nan)
    return torch.as_tensor(result).to(start)


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
            pairs = zip(row, w, strict=True)
            slope = sum(entry * factor for entry, factor in pairs)
            moved.append(weight - size * slope)
        total = 0.0
        shift = 0.0
        for rank, entry in enumerate(sorted(moved, reverse=True), 1):
            total += entry
            excess = (total - 1.0) / rank
            if entry <= excess:
                break
            shift = excess
        projected = [max(entry - shift, 0.0) for entry in moved]
        if projected == w:
            break
        w = projected
    return w


def _descend_together(
    matrices: Array,
    w: Array,
    sizes: Array,
    steps: int,
) -> Array:
    """The steps of `descend` for many or large matrices."""
    for _ in range(steps):
        columns = w[..., None]
        products = matrices @ columns
        gradient = products[..., 0]
        projected = _project_rows(w - sizes * gradient)
        if np.array_equal(projected, w):
            break
        w = projected
    return w


def _project_rows(v: Array) -> Array:
    """`project_simplex` for the rows of a numpy array; a thousand calls of torch's are slow."""
    ordered = -np.sort(-v, 1)
    rank = np.arange(1, v.shape[1] + 1)
    theta = (ordered.cumsum(1) - 1) / rank
    exceeding = (ordered > theta).sum(1, keepdims=True)
    rho = np.maximum(exceeding, 1)
    shift = np.take_along_axis(theta, rho - 1, 1)
    projected = np.maximum(v - shift, 0)
    return np.asarray(projected)
