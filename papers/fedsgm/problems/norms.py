"""Sums of distances: the toy problem on which the theorems of FedSGM are checked.

Client j has f_j(w) = |w - a_j| and g_j(w) = |w - b_j| - c, so every loss is convex and
1-Lipschitz (G = 1) and nothing else helps: the losses are neither smooth nor strongly convex, which
is the case that the theorems are about. The means over the clients are a geometric-median problem
and a constraint on the mean distance to the points b_j.
"""

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
from fedlib.shapes import Vector

#: Shapes of instances, taken in turn: how much clients' objectives disagree, how far they pull.
SPREADS = (1.0, 0.1, 0.001)
OFFSETS = (2.0, 1.0, 0.5, 0.1)


def one_row_each(
    name: str,
    data: tuple[Tensor, ...],
    *,
    w0: Vector,
    losses: Callable[..., Tensor],
    gradient: Callable[..., Tensor],
    metrics: Callable[..., dict[str, Tensor]],
    **fields: Any,
) -> Problem:
    """A problem of one objective and one constraint, with a row of the data a client."""
    clients = len(data[0])
    return Problem(
        name=name,
        data=data,
        rows=torch.arange(clients).unsqueeze(1),
        sizes=(1,) * clients,
        losses=losses,
        gradient=gradient,
        num_objectives=1,
        num_constraints=1,
        w0=w0,
        metrics=metrics,
        config={"name": name, "clients": clients, "dim": len(w0)},
        **fields,
    )


def norms(
    a: Float[Tensor, "N d"],
    b: Float[Tensor, "N d"],
    c: float,
    w0: Vector,
    solution: Vector | None = None,
) -> Problem:
    """The problem with one row (a_j, b_j) a client; see `gap_metrics`."""
    return one_row_each(
        "norms",
        (a, b, a.new_full((len(a),), c)),
        w0=w0,
        losses=_losses,
        gradient=_gradient,
        metrics=gap_metrics,
        heldout=() if solution is None else (solution,),
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

    Centres are normal, the a_j around a point at `offset` from the mean of the b_j, which is
    strictly feasible. All tensors are float64.

    Args:
        distance: |w0 - w*|, the D of the theorems.
        offset: how far the objective pulls away from the feasible set.
        spread: standard deviation of the clients' centres; near 0 all clients agree, and the means
            have kinks as sharp as the single losses, the hardest case for a subgradient method.
    """
    a, b, direction = random_centres(seed, clients, dim, spread, offset)
    b = spread * b
    c = active_level(b, offset)
    w = solution_of(a, b, c)
    return norms(a, b, c, w + distance * direction, w)


def random_centres(
    seed: int,
    count: int,
    dim: int,
    spread: float,
    offset: float,
) -> tuple[Float[Tensor, "R d"], Float[Tensor, "R d"], Vector]:
    """The a_j around a point at `offset` from 0, the b_j around 0, and the direction of a start."""
    rng = torch.Generator().manual_seed(seed)
    a, b = torch.randn(
        2,
        count,
        dim,
        generator=rng,
        dtype=torch.float64,
    )
    away, start = torch.randn(2, dim, generator=rng, dtype=torch.float64)
    a = spread * a + offset * away / away.norm()
    return a, b, start / start.norm()


def active_level(b: Float[Tensor, "R d"], offset: float) -> float:
    """Half of `offset`, or 1.1 times the mean distance of the b_j from their mean if that is more.

    With this c their mean is strictly feasible.
    """
    needed = (b - b.mean(0)).norm(dim=-1).mean()
    return max(0.5 * offset, 1.1 * float(needed))


def solution_of(a: Float[Tensor, "R d"], b: Float[Tensor, "R d"], c: float) -> Vector:
    """The `reference_solution` of the problem with these centres."""
    return reference_solution(norms(a, b, c, a.mean(0)))


def varied_norms(seed: int) -> Problem:
    """A random instance with D = 1, its shape cycling through twelve kinds with the seed.

    Clients that disagree, nearly agree or agree, objectives that pull away far or hardly: theorems
    are checked on all of them.
    """
    return random_norms(seed, offset=OFFSETS[seed % 4], spread=SPREADS[seed % 3])


def kink() -> Problem:
    """One client in the plane whose objective |w| has its kink within a step of 0.1 from w0.

    The second of two local steps goes back over the kink. The constraint is never active.
    """
    origin = torch.zeros(2, dtype=torch.float64)
    start = torch.tensor([0.03, 0.0], dtype=torch.float64)
    b = torch.ones(1, 2, dtype=torch.float64)
    return norms(origin.unsqueeze(0), b, 9.0, start, origin)


def reference_solution(problem: Problem) -> Vector:
    """A feasible minimizer of a problem built by `norms`, by sequential quadratic programming.

    Raises:
        RuntimeError: no point was found that satisfies the optimality conditions, for instance
            because the minimizer is one of the centres, where the objective has a kink.
    """
    data = [x.double().numpy() for x in problem.data]
    values = partial(_values, data)
    middle = data[0].mean(0)
    safe = data[1].mean(0)
    solutions = []
    for start in (safe, 0.5 * (safe + middle)):
        w = sequential_quadratic(values, start, ftol=1e-14, maxiter=500)
        solutions.append((_kkt(data, w), w))
    residual, best = min(solutions, key=lambda solution: solution[0])
    if residual > 1e-5:
        raise RuntimeError(
            f"reference_solution: the optimality conditions must hold to 1e-5, got {residual:.1e}; "
            "take another seed, the minimizer may be one of the centres."
        )
    return torch.from_numpy(_feasible(data, best, safe)).to(problem.w0)


def directions(
    problem: Problem,
    local_steps: int,
    lr: float,
    weight: float,
) -> tuple[Float[Tensor, "E N d"], Float[Tensor, "E N d"]]:
    """Local iterates and directions of all clients in one round of FedSGM that starts at w0.

    `weight` is sigma_t, the share of the constraint; `problem` needs a closed-form gradient.
    """
    assert problem.gradient is not None
    clients = problem.all_clients()
    mix = problem.w0.new_tensor([1 - weight, weight])
    gradient = torch.func.vmap(problem.gradient, in_dims=(0, 0, None))
    u = problem.w0.expand(problem.num_clients, -1)
    points = []
    steps = []
    for _ in range(local_steps):
        points.append(u)
        steps.append(gradient(u, clients, mix))
        u = u - lr * steps[-1]
    return torch.stack(points), torch.stack(steps)


def drift_sum(problem: Problem, local_steps: int, lr: float) -> float:
    """The largest sum over local steps of (|w0 - w_{j,tau}| / lr)^2 over the clients j.

    Every client takes its steps on its own objective, from `w0`; the sum is over tau < E. FedSGM's
    Lemma 2 bounds it by G^2 E^3 / 3.
    """
    points, _ = directions(problem, local_steps, lr, weight=0.0)
    distances = (points - problem.w0).norm(dim=-1) / lr  # [E, N]
    return float(distances.square().sum(0).max())


def unit_rows(x: Array) -> Array:
    """Rows x / |x| along the last axis, zero at zero."""
    length = np.linalg.norm(x, axis=-1, keepdims=True)
    return np.asarray(x / np.maximum(length, 1e-300))


def _values(data: list[Array], w: Array) -> tuple[float, float, Array, Array]:
    """f, g and their gradients (zero for a distance of zero)."""
    a, b, c = data
    f = np.linalg.norm(w - a, axis=1).mean()
    g = (np.linalg.norm(w - b, axis=1) - c).mean()
    return float(f), float(g), unit_rows(w - a).mean(0), unit_rows(w - b).mean(0)


def sequential_quadratic(
    values: Callable[[Array], Sequence[Any]],
    start: Array,
    *further: Any,
    ftol: float,
    maxiter: int,
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


def gap_metrics(w: Tensor, problem: Problem) -> dict[str, Tensor]:
    """`f` and `g`; with a held-out solution also `f_gap` and `g_gap`, less the values there."""
    f, g = problem.mean_losses(w)
    if not problem.heldout:
        return {"f": f, "g": g}
    best_f, best_g = problem.mean_losses(problem.heldout[0])
    return {"f": f, "g": g, "f_gap": f - best_f, "g_gap": g - best_g}
