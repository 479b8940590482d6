r"""The shortest convex combination of gradients, from their Gram matrix.

The minimizer of $w^\top G w$ over the simplex solves the nonnegative least squares $\min_{v \ge 0}
\|A v\|^2 + (\mathbf 1^\top v - 1)^2$ with $A^\top A = G$, up to scale: for $v = s w$ with $s \ge 0$
the least value is $1 - 1 / (1 + w^\top G w)$, which increases in $w^\top G w$. The weights are
therefore $w = v / \mathbf 1^\top v$.
"""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fedlib.solvers.operators import Array, batched_operator, on_cpu

PIVOTS = 100  # steps of the active-set method for each objective; it needs about one


@batched_operator("(Tensor gram) -> Tensor", lambda arguments: arguments[0].shape[:-1])
def min_norm(gram: Float[Tensor, "b M M"]) -> Float[Tensor, "b M"]:
    """Minimum-norm weights `[b, M]` of b Gram matrices `[b, M, M]`."""
    weights = [minimum_norm(matrix) for matrix in on_cpu(gram)]
    return torch.as_tensor(np.stack(weights)).to(gram)


def minimum_norm(gram: Array) -> Array:
    """Minimum-norm weights `[M]` of the positive part of one symmetric matrix `[M, M]`.

    If there are several minimizers, it returns any of them. The weights are NaN for a matrix that
    is not finite.
    """
    from scipy.optimize import nnls

    count = len(gram)
    if not np.isfinite(gram).all():
        return np.full(count, np.nan)
    scale = np.abs(gram).max() or 1.0
    symmetric = (gram + gram.T) / (2 * scale)
    eigenvalues, eigenvectors = np.linalg.eigh(symmetric)
    positive = eigenvalues.clip(0)
    scaled = eigenvectors * np.sqrt(positive)
    ones = np.ones(count)
    matrix = np.vstack([scaled.T, ones])
    target = np.zeros(count + 1)
    target[-1] = 1.0
    pivots = PIVOTS * count
    v, _ = nnls(matrix, target, maxiter=pivots)
    return np.asarray(v / v.sum())
