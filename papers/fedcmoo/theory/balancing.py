"""What the note on balancing measures: the imbalance mu, the direction a, the linear program.

Plain NumPy and SciPy, apart from the library's own FedCMOO-Pref. As in the paper, r are the
preferences, F the losses, G the Gram matrix with columns g_1, ..., g_M; nothing here assumes that G
is symmetric.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog, nnls

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Program(NamedTuple):
    """The linear program (19), its sets and its solution; NaN where it is infeasible."""

    weights: Array  # [M]
    value: float  # w^T G a above the tolerance, w^T G 1 below
    falling: Flags  # J: the objectives with a^T g_k > 0
    worst: Flags  # J*: the largest r_k F_k
    low: Array  # right sides of the constraints w^T g_k >= low_k, -inf where there is none


def balance(r: Array, losses: Array) -> tuple[Array, Array]:
    """The imbalance mu = KL(u | 1/M), `[...]`, and the direction a, `[..., M]`.

    Args:
        r: preferences, positive, `[M]`.
        losses: F, positive, `[..., M]`.
    """
    weighted = r * losses
    u = weighted / weighted.sum(-1, keepdims=True)
    log = np.log(u.shape[-1] * u)
    mu = (u * log).sum(-1)
    return mu, r * (log - mu[..., None])


def preference_program(
    r: Array,
    losses: Array,
    G: Array,
    tolerance: float = 0.01,
) -> Program:
    """Eq. (19) as printed, with SciPy's HiGHS.

    Args:
        r: preferences, `[M]`.
        losses: F, `[M]`.
        G: `[M, M]`, any square matrix.
        tolerance: epsilon, above which mu is to be lowered.
    """
    mu, a = balance(r, losses)
    rate = a @ G  # rate_k = a^T g_k
    weighted = r * losses
    largest = weighted.max()
    falling = rate > 0
    worst = weighted >= largest * (1 - 1e-12)
    low = rate if falling.any() else np.zeros_like(rate)
    low = np.where(worst, 0.0, low)
    low = np.where(falling & ~worst, -np.inf, low)
    direction = a if mu > tolerance else np.ones_like(a)
    goal = G @ direction
    constrained = low > -np.inf
    scale = _size(G)
    solution = linprog(
        -goal / scale,
        A_ub=-G.T[constrained] / scale,
        b_ub=-low[constrained] / scale,
        A_eq=np.ones((1, len(a))),
        b_eq=[1.0],
        method="highs",
    )
    if solution.status != 0:
        infeasible = np.full_like(a, np.nan)
        return Program(infeasible, np.nan, falling, worst, low)
    value = -float(solution.fun) * scale
    return Program(solution.x, value, falling, worst, low)


def game_value(G: Array) -> float:
    """The largest min_k w^T g_k that a w in the simplex reaches, by linear programming."""
    M = len(G)
    scale = _size(G)
    value_below_rates = np.hstack([-G.T / scale, np.ones((M, 1))])  # of (w, value)
    sum_of_weights = np.r_[np.ones(M), 0.0]
    solution = linprog(
        np.r_[np.zeros(M), -1.0],
        A_ub=value_below_rates,
        b_ub=np.zeros(M),
        A_eq=sum_of_weights[None],
        b_eq=[1.0],
        bounds=[(0, None)] * M + [(None, None)],
        method="highs",
    )
    return -float(solution.fun) * scale


def min_norm(jac: Array) -> Array:
    """Weights of the shortest vector J w, w in the simplex, for J `[d, M]`.

    Exact: the nonnegative least squares problem |J v|^2 + (1^T v - 1)^2, normalised.
    """
    scale = max(float(np.linalg.norm(jac)), 1e-300)
    stacked = np.vstack([jac / scale, np.ones((1, jac.shape[1]))])
    v, _ = nnls(stacked, np.r_[np.zeros(len(jac)), 1.0])
    return np.asarray(v / v.sum())


def _size(G: Array) -> float:
    return max(float(np.abs(G).max()), 1e-300)
