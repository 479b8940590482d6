"""The prox problem by which stationarity is measured under weak convexity, and what is shown of it.

For a problem of `problems.weakly_convex`, with rho-weakly convex f and convex g on X, the point
y = argmin {f(y) + rho_hat / 2 |y - w|^2 : y in X, g(y) <= 0} is unique for rho_hat > rho, and
|w - y| = 0 exactly at the stationary points of the constrained problem: Theorem 10 of "FedSGM: A
Unified Framework for Constraint Aware, Bidirectionally Compressed, Multi-step Federated
Optimization" bounds the mean of these distances over the good rounds. Lemma 11 is its one-round
inequality.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
import scipy
import torch
from jaxtyping import Float

from fedlib.core import Problem
from fedlib.core.problem import Batch, pullback
from fedlib.core.trace import Array
from fedlib.shapes import Vector
from papers.fedsgm.problems.norms import sequential_quadratic, unit_rows


class Prox(NamedTuple):
    """The solution y of the prox problem at a point, and the certificate that it is one."""

    y: Array  # [d]
    multiplier: float  # of g(y) <= 0
    residual: float  # norm of the KKT residual; |y - exact| <= residual / (rho_hat - rho)
    value: float  # f(y) + rho_hat / 2 |y - w|^2
    distance: float  # |w - y|, the measure of stationarity


def prox_point(problem: Problem, w: Vector, rho_hat: float) -> Prox:
    """The minimizer of f(y) + rho_hat / 2 |y - w|^2 over X with g(y) <= 0, and its multiplier.

    The problem is strongly convex for rho_hat > rho. It is solved by sequential quadratic
    programming (scipy's SLSQP) from w and from the Slater point, and the kinks of f (the a_j) are
    tried as well; the result is certified by the KKT residual, computed with all subgradients.

    Raises:
        RuntimeError: no point satisfies the optimality conditions to 1e-4.
    """
    a, b, c, clip = (x.double().numpy() for x in problem.data)
    radius = float(problem.config["radius"])
    case = _Case(a, b, c, clip, w.double().numpy(), rho_hat, radius)
    best = _certified(case, _solve(case, case.w))
    if best.residual > 1e-6:  # a kink, or a bad start
        slater_point = b.mean(0)
        candidates = [*a, _solve(case, slater_point)]
        solutions = [best, *(_certified(case, y) for y in candidates)]
        best = min(solutions, key=lambda solution: solution.residual)
    if best.residual > 1e-4:
        raise RuntimeError(
            f"prox_point: the optimality conditions must hold to 0.0001, "
            f"got {best.residual:.1e} at w = {w.tolist()}."
        )
    return best


def stationarity(problem: Problem, points: Float[Array, "T d"], rho_hat: float) -> Array:
    """The distance of every row of `points` to its prox point; raises as `prox_point` does."""
    rows = torch.from_numpy(np.ascontiguousarray(points))
    return np.array([prox_point(problem, w, rho_hat).distance for w in rows])


def lemma_11(
    problem: Problem,
    w: Vector,
    y: Vector,
    local_steps: int,
    lr: float,
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


class _Case(NamedTuple):
    """A prox problem: the data of the clients, the point w, rho_hat, and the radius of X."""

    a: Array  # [N, d]
    b: Array  # [N, d]
    c: Array  # [N]
    clip: Array  # [N]
    w: Array  # [d]
    rho_hat: float
    radius: float


def _values(case: _Case, y: Array) -> tuple[float, float, Array, Array]:
    """Objective with prox term and g at y, and their gradients (zero for a distance of zero)."""
    from_w = y - case.w
    near = np.minimum(np.linalg.norm(y - case.a, axis=1), case.clip)
    clipped = near - near**2 / (2 * case.clip)
    slope = 1 - near / case.clip
    prox = 0.5 * case.rho_hat * float(from_w @ from_w)
    f = float(clipped.mean()) + prox
    g = float((np.linalg.norm(y - case.b, axis=1) - case.c).mean())
    df = (slope[:, None] * unit_rows(y - case.a)).mean(0) + case.rho_hat * from_w
    dg = unit_rows(y - case.b).mean(0)
    return f, g, df, dg


def _solve(case: _Case, start: Array) -> Array:
    ball = {
        "type": "ineq",
        "fun": lambda y: case.radius**2 - y @ y,
        "jac": lambda y: -2 * y,
    }
    return sequential_quadratic(
        partial(_values, case),
        start,
        ball,
        ftol=1e-13,
        maxiter=200,
    )


def _certified(case: _Case, y: Array) -> Prox:
    """The point with its best multipliers, and what is left of the KKT conditions."""
    f, g, df, dg = _values(case, y)
    outside = float(np.linalg.norm(y)) - case.radius
    inactive = np.zeros_like(y)
    of_constraint = dg if g > -1e-6 else inactive
    of_ball = y / case.radius if outside > -1e-6 else inactive
    columns = np.stack([of_constraint, of_ball], axis=1)
    (multiplier, _), remainder = scipy.optimize.nnls(columns, -df)
    at_kink = np.linalg.norm(y - case.a, axis=1) < 1e-9
    room = float(at_kink.mean())  # of the subgradients of f
    residual = max(0.0, float(remainder) - room) + max(0.0, g) + max(0.0, outside)
    return Prox(
        y=y,
        multiplier=float(multiplier),
        residual=residual,
        value=f,
        distance=float(np.linalg.norm(y - case.w)),
    )
