"""Sums of distances: the toy problem on which the theorems of FedSGM are checked.

Client j has f_j(w) = |w - a_j| and g_j(w) = |w - b_j| - c, so every loss is convex and
1-Lipschitz (G = 1) and nothing else helps: the losses are neither smooth nor strongly convex, which
is the case that the theorems are about. The means over the clients are a geometric-median problem
and a constraint on the mean distance to the points b_j.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy
import torch
from jaxtyping import Float
from torch import Tensor

from fedlib.core import Problem
from fedlib.core.problem import Batch
from fedlib.core.trace import Array


def norms(
    a: Float[Tensor, "N d"],
    b: Float[Tensor, "N d"],
    c: float,
    w0: Float[Tensor, "d"],
    solution: Float[Tensor, "d"] | None = None,
) -> Problem:
    """The problem with one row (a_j, b_j) a client.

    Metrics are `f` and `g`, and with a `solution` also `f_gap = f(w) - f(solution)` and
    `g_gap = g(w) - g(solution)`.
    """
    count = a.shape[0]
    return Problem(
        name="norms",
        data=(a, b, a.new_full((count,), c)),
        rows=torch.arange(count).unsqueeze(1),
        sizes=(1,) * count,
        losses=_losses,
        num_objectives=1,
        num_constraints=1,
        w0=w0,
        metrics=_metrics,
        gradient=_gradient,
        heldout=() if solution is None else (solution,),
        config={"name": "norms", "clients": count, "dim": a.shape[1]},
    )


def random_norms(
    seed: int,
    clients: int = 8,
    dim: int = 3,
    distance: float = 1.0,
    offset: float = 2.0,
    spread: float = 1.0,
) -> Problem:
    """A random instance with an active constraint, started at a given distance from its solution.

    Centres are normal, the a_j around a point at `offset` from the mean of the b_j; c is half of
    `offset`, or 1.1 times the mean distance of the b_j from their mean if that is more, so that
    this mean is strictly feasible. All tensors are float64.

    Args:
        distance: |w0 - w*|, the D of the theorems.
        offset: how far the objective pulls away from the feasible set.
        spread: standard deviation of the clients' centres; near 0 all clients agree, and the means
            have kinks as sharp as the single losses, the hardest case for a subgradient method.
    """
    rng = torch.Generator().manual_seed(seed)
    a, b = spread * torch.randn(2, clients, dim, generator=rng, dtype=torch.float64)
    away, start = torch.randn(2, dim, generator=rng, dtype=torch.float64)
    a = a + offset * away / away.norm()
    c = max(0.5 * offset, 1.1 * (b - b.mean(0)).norm(dim=-1).mean().item())
    w = reference_solution(norms(a, b, c, a.mean(0)))
    return norms(a, b, c, w + distance * start / start.norm(), w)


def varied_norms(seed: int) -> Problem:
    """A random instance with D = 1, its shape cycling through twelve kinds with the seed.

    Clients that disagree, nearly agree or agree (spread 1, 0.1, 0.001), objectives that pull away
    far or hardly (offset 2, 1, 0.5, 0.1): theorems are checked on all of them.
    """
    return random_norms(
        seed, offset=(2.0, 1.0, 0.5, 0.1)[seed % 4], spread=(1.0, 0.1, 0.001)[seed % 3]
    )


def kink() -> Problem:
    """One client in the plane whose objective |w| has its kink within a step of 0.1 from w0.

    The second of two local steps goes back over the kink. The constraint is never active.
    """
    origin = torch.zeros(2, dtype=torch.float64)
    start = torch.tensor([0.03, 0.0], dtype=torch.float64)
    b = torch.ones(1, 2, dtype=torch.float64)
    return norms(origin.unsqueeze(0), b, 9.0, start, origin)


def reference_solution(problem: Problem) -> Float[Tensor, "d"]:
    """A feasible minimizer of a problem built by `norms`, by sequential quadratic programming.

    Raises:
        RuntimeError: no point was found that satisfies the optimality conditions, for instance
            because the minimizer is one of the centres, where the objective has a kink.
    """
    data = [x.double().numpy() for x in problem.data]
    safe = data[1].mean(0)
    solve = partial(sequential_quadratic, partial(_values, data), ftol=1e-14, maxiter=500)
    tries = [solve(start) for start in (safe, 0.5 * (safe + data[0].mean(0)))]
    w, residual = min(
        ((_feasible(data, w, safe), _kkt(data, w)) for w in tries), key=lambda p: p[1]
    )
    if residual > 1e-5:
        raise RuntimeError(
            f"reference_solution: the optimality conditions must hold to 1e-5, got {residual:.1e}; "
            "take another seed, the minimizer may be one of the centres."
        )
    return torch.from_numpy(w).to(problem.w0)


def drift_sum(problem: Problem, local_steps: int, lr: float) -> float:
    """The largest sum over local steps of (|w0 - w_{j,tau}| / lr)^2 over the clients j.

    Every client takes its steps on its own objective, from `w0`; the sum is over tau < E. FedSGM's
    Lemma 2 bounds it by G^2 E^3 / 3.
    """
    clients = problem.all_clients()
    objective = problem.w0.new_tensor([1.0, 0.0])
    gradient = torch.func.vmap(_gradient, in_dims=(0, 0, None))
    u = problem.w0.expand(problem.num_clients, -1)
    total = torch.zeros(())
    for _ in range(local_steps):
        total = total + (u - problem.w0).square().sum(-1)
        u = u - lr * gradient(u, clients, objective)
    return float((total / lr**2).max())


def _values(data: list[Array], w: Array) -> tuple[float, float, Array, Array]:
    """f, g and their gradients (zero for a distance of zero)."""
    a, b, c = data
    u = w - a
    v = w - b
    r = np.linalg.norm(u, axis=1)
    s = np.linalg.norm(v, axis=1)
    df = (u / np.maximum(r, 1e-300)[:, None]).mean(0)
    dg = (v / np.maximum(s, 1e-300)[:, None]).mean(0)
    return float(r.mean()), float((s - c).mean()), df, dg


def sequential_quadratic(
    values: Callable[[Array], Sequence[Any]], start: Array, *further: Any, ftol: float, maxiter: int
) -> Array:
    """The least f with g <= 0, by scipy's SLSQP; `values(w)` are f, g and their gradients."""
    constraint = {"type": "ineq", "fun": lambda w: -values(w)[1], "jac": lambda w: -values(w)[3]}
    answer = scipy.optimize.minimize(
        lambda w: values(w)[0],
        start,
        jac=lambda w: values(w)[2],
        constraints=[constraint, *further],
        method="SLSQP",
        options={"ftol": ftol, "maxiter": maxiter},
    )
    return np.asarray(answer.x, dtype=np.float64)


def _feasible(data: list[Array], w: Array, safe: Array) -> Array:
    """The point, moved towards the Slater point as far as convexity needs to make g <= 0."""
    excess = _values(data, w)[1]
    slack = -_values(data, safe)[1]
    if excess <= 0:
        return w
    share = min(1.0, (excess + 1e-15) / (excess + slack))
    return (1 - share) * w + share * safe


def _kkt(data: list[Array], w: Array) -> float:
    """|grad f + lam grad g| with the best lam >= 0 (0 inside), plus the infeasibility."""
    _, g, df, dg = _values(data, w)
    lam = max(0.0, -float(df @ dg) / max(float(dg @ dg), 1e-300)) if g > -1e-7 else 0.0
    return float(np.linalg.norm(df + lam * dg)) + max(0.0, g)


def _losses(w: Tensor, batch: Batch) -> Tensor:
    a, b, c = batch.data
    values = torch.stack([(w - a).norm(dim=-1), (w - b).norm(dim=-1) - c])  # [K, B]
    return values @ batch.weight


def _gradient(w: Tensor, batch: Batch, weights: Tensor) -> Tensor:
    a, b, _ = batch.data
    slopes = torch.stack([units(w - a), units(w - b)])  # [K, B, d]
    return weights @ (batch.weight @ slopes)


def units(x: Tensor) -> Tensor:
    """Rows x / |x| along the last axis, zero at zero: a subgradient of the norm everywhere."""
    length: Tensor = x.norm(dim=-1, keepdim=True)
    return x / length.clamp_min(torch.finfo(x.dtype).tiny)


def _metrics(w: Tensor, problem: Problem) -> dict[str, Tensor]:
    f, g = problem.mean_losses(w)
    if not problem.heldout:
        return {"f": f, "g": g}
    best = problem.mean_losses(problem.heldout[0])
    return {"f": f, "g": g, "f_gap": f - best[0], "g_gap": g - best[1]}
