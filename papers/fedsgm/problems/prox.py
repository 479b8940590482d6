"""The prox problem by which stationarity is measured under weak convexity, and what is shown of it.

For a problem of `problems.weakly_convex`, with rho-weakly convex f and convex g on X, the point
y = argmin {f(y) + rho_hat / 2 |y - w|^2 : y in X, g(y) <= 0} is unique for rho_hat > rho, and
|w - y| = 0 exactly at the stationary points of the constrained problem: Theorem 10 of "FedSGM: A
Unified Framework for Constraint Aware, Bidirectionally Compressed, Multi-step Federated
Optimization" bounds the mean of these distances over the good rounds. Lemma 11 is its one-round
inequality.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import scipy
import torch
from jaxtyping import Float
from torch import Tensor

from fedlib.core import Problem
from fedlib.core.problem import Batch, pullback
from fedlib.core.trace import Array
from papers.fedsgm.problems.norms import sequential_quadratic


class Prox(NamedTuple):
    """The solution y of the prox problem at a point, and the certificate that it is one."""

    y: Array  # [d]
    multiplier: float  # of g(y) <= 0
    residual: float  # norm of the KKT residual; |y - exact| <= residual / (rho_hat - rho)
    value: float  # f(y) + rho_hat / 2 |y - w|^2
    distance: float  # |w - y|, the measure of stationarity


def prox_point(
    problem: Problem, w: Float[Tensor, "d"], rho_hat: float, tolerance: float = 1e-4
) -> Prox:
    """The minimizer of f(y) + rho_hat / 2 |y - w|^2 over X with g(y) <= 0, and its multiplier.

    The problem is strongly convex for rho_hat > rho. It is solved by sequential quadratic
    programming (scipy's SLSQP) from w and from the Slater point, and the kinks of f (the a_j) are
    tried as well; the result is certified by the KKT residual, computed with all subgradients.

    Raises:
        RuntimeError: no point satisfies the optimality conditions to `tolerance`.
    """
    data = [x.double().numpy() for x in problem.data]
    radius = float(problem.config["radius"])
    centre = w.double().numpy()
    case = (data, centre, rho_hat, radius)
    best = _certified(case, _solve(case, centre))
    if best.residual > 1e-6:  # a kink, or a bad start
        starts = [*data[0], _solve(case, data[1].mean(0))]
        best = min((best, *(_certified(case, y) for y in starts)), key=lambda p: p.residual)
    if best.residual > tolerance:
        raise RuntimeError(
            f"prox_point: the optimality conditions must hold to {tolerance:g}, "
            f"got {best.residual:.1e} at w = {w.tolist()}."
        )
    return best


def stationarity(problem: Problem, points: Float[Array, "T d"], rho_hat: float) -> Array:
    """The distance of every row of `points` to its prox point; raises as `prox_point` does."""
    rows = torch.from_numpy(np.ascontiguousarray(points))
    return np.array([prox_point(problem, w, rho_hat).distance for w in rows])


def lemma_11(
    problem: Problem, w: Float[Tensor, "d"], y: Float[Tensor, "d"], local_steps: int, lr: float
) -> tuple[float, float, float]:
    """What F Lemma 11 is made of, for local steps on f (a good round) with alpha = lr.

    Returns:
        The left side -lr <zeta, w - y> with zeta the clients' mean sum of subgradients; the right
        side without its last term; and that term, lr rho E |y - w|^2.
    """
    weights = w.new_tensor([1.0, 0.0])
    rho = 1 / float(problem.data[3][0])
    zeta = torch.zeros_like(w)
    right = 0.0
    for j in range(problem.num_clients):
        batch = Batch(tuple(x[j : j + 1] for x in problem.data), w.new_ones(1))
        gap = float(problem.losses(y, batch)[0] - problem.losses(w, batch)[0])
        u = w
        for _ in range(local_steps):
            step = pullback(problem.losses, problem.gradient, u, batch, weights)
            zeta = zeta + step
            drift = float((w - u).square().sum())
            right += (1 + 1.5 * lr * rho) * drift + lr**2 + lr * gap
            u = u - lr * step
    count = problem.num_clients
    left = -lr * float(zeta @ (w - y)) / count
    return left, right / count, lr * rho * local_steps * float((y - w).square().sum())


Case = tuple[list[Array], Array, float, float]


def _values(case: Case, y: Array) -> tuple[float, float, Array, Array]:
    """Objective with prox term and g at y, and their gradients (zero for a distance of zero)."""
    (a, b, c, clip), w, rho_hat, _ = case
    u = y - a
    v = y - b
    r = np.linalg.norm(u, axis=1)
    s = np.linalg.norm(v, axis=1)
    near = np.minimum(r, clip)
    slope = (1 - near / clip) / np.maximum(r, 1e-300)
    prox = 0.5 * rho_hat * float((y - w) @ (y - w))
    f = float((near - near**2 / (2 * clip)).mean()) + prox
    df = (slope[:, None] * u).mean(0) + rho_hat * (y - w)
    dg = (v / np.maximum(s, 1e-300)[:, None]).mean(0)
    return f, float((s - c).mean()), df, dg


def _solve(case: Case, start: Array) -> Array:
    radius = case[3]
    ball = {"type": "ineq", "fun": lambda y: radius**2 - y @ y, "jac": lambda y: -2 * y}
    return sequential_quadratic(partial(_values, case), start, ball, ftol=1e-13, maxiter=200)


def _certified(case: Case, y: Array) -> Prox:
    """The point with its best multipliers, and what is left of the KKT conditions."""
    f, g, df, dg = _values(case, y)
    (a, *_), w, _, radius = case
    outside = float(np.linalg.norm(y)) - radius
    columns = np.stack([dg * (g > -1e-6), y / radius * (outside > -1e-6)], axis=1)
    (multiplier, _), left = scipy.optimize.nnls(columns, -df)
    kinks = float((np.linalg.norm(y - a, axis=1) < 1e-9).mean())  # subgradients of f have this room
    residual = max(0.0, float(left) - kinks) + max(0.0, g) + max(0.0, outside)
    return Prox(y, float(multiplier), residual, f, float(np.linalg.norm(y - w)))
