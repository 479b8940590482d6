"""What the derivation notes measure: regret, the averaged iterate, Lemma 1, a hunt for bad cases.

The theorems themselves are `papers.fedsgm.theory`; nothing here knows what a bound is, so that a
check in a note compares two things that were computed apart. W and F are the two FedSGM papers.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import pi

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import vmap

from fedlib.core import Problem, Trace
from fedlib.core.trace import Array
from papers.fedsgm.gamma import bound, gamma_local, step_size

# Ranges of the five numbers of `one_client`: two slopes, radius c, distance a to w*, angle of w0.
LOW = np.array([0.05, 0.05, 0.05, 0.05, 0.0])
HIGH = np.array([1.0, 1.0, 10.0, 10.0, pi])


def regret(trace: Trace) -> Array:
    """(1 - sigma_t)(f(w_t) - f*) + sigma_t (g(w_t) - g(w*)) of every round, `[S, T]`.

    Its mean over the rounds is what the theorems of FedSGM bound. The trace must be of a problem
    with the metrics `f_gap` and `g_gap`, evaluated every round.
    """
    sigma = trace.info["sigma"]
    gaps = (1 - sigma) * trace.of_rounds("f_gap") + sigma * trace.of_rounds("g_gap")
    return np.asarray(gaps)


def mean_gaps(trace: Trace, problems: Sequence[Problem]) -> tuple[Array, Array]:
    """f(mean iterate) - f* and g(mean iterate), `[S]` each; NaN where no round has weight.

    `trace` is of an algorithm with an averaged output, `problems` are those of its seeds.
    """
    outputs = torch.from_numpy(trace.output)
    metrics = [p.metrics(w.to(p.w0), p) for w, p in zip(outputs, problems, strict=True)]
    gap, g = (np.array([float(m[name]) for m in metrics]) for name in ("f_gap", "g"))
    return gap, g


def directions(
    problem: Problem, local_steps: int, lr: float, weight: float
) -> tuple[Float[Tensor, "E N d"], Float[Tensor, "E N d"]]:
    """Local iterates and directions of all clients in one round of FedSGM that starts at w0.

    `weight` is sigma_t, the share of the constraint; `problem` needs a closed-form gradient.
    """
    assert problem.gradient is not None
    clients = problem.all_clients()
    mix = problem.w0.new_tensor([1 - weight, weight])
    gradient = vmap(problem.gradient, in_dims=(0, 0, None))
    u = problem.w0.expand(problem.num_clients, -1)
    points = []
    steps = []
    for _ in range(local_steps):
        points.append(u)
        steps.append(gradient(u, clients, mix))
        u = u - lr * steps[-1]
    return torch.stack(points), torch.stack(steps)


def lemma_1_sides(
    problem: Problem, local_steps: int, lr: float, alpha: float, weight: float
) -> tuple[float, float]:
    """Both sides of F Lemma 1 (W Lemma 4) for one round from w0, with G = 1.

    Left -2 lr <w0 - w*, mean_j sum_tau nu>, right the mean over clients of the sum over local steps
    of lr / alpha |w0 - w_j|^2 + lr alpha + 2 lr (h_j(w*) - h_j(w_j)). w* is the problem's held-out
    solution.
    """
    points, steps = directions(problem, local_steps, lr, weight)
    solution = problem.heldout[0]
    mix = problem.w0.new_tensor([1 - weight, weight])
    values = vmap(vmap(problem.losses), in_dims=(0, None))(points, problem.all_clients()) @ mix
    best = vmap(problem.losses, in_dims=(None, 0))(solution, problem.all_clients()) @ mix
    left = -2 * lr * (problem.w0 - solution) @ steps.sum(0).mean(0)
    drift = (points - problem.w0).square().sum(-1)
    right = lr / alpha * drift + lr * alpha + 2 * lr * (best - values)  # [E, N]
    return float(left), float(right.sum(0).mean())


def one_client(
    cases: Array, sharpness: float, local_steps: int, rounds: int, tolerance: float, lr: float
) -> Array:
    """Objective gap of soft switching's mean iterate over `tolerance`, for many small problems.

    One client in the plane with f(w) = s |w - a| and g(w) = k (|w| - c), s, k <= 1 and a outside
    the disc: G = 1, and w* is where the disc is nearest to a. The start is at distance 1 from w*.
    A plain loop, independent of `fedlib.run`. A row of `cases` `[I, 5]` is (s, k, c, |a - w*|, the
    angle of w0 - w*), `sharpness` is beta times the tolerance. Returns `[I]`, infinite where all
    rounds went to the constraint.
    """
    s, k, c, r, angle = cases.T
    away = np.stack([c + r, np.zeros_like(c)], -1)
    w = np.stack([c + np.cos(angle), np.sin(angle)], -1)
    total = np.zeros_like(w)
    weight = np.zeros_like(c)
    for _ in range(rounds):
        z = k * (np.linalg.norm(w, axis=-1) - c) - tolerance
        sigma = np.clip(1 + sharpness / tolerance * z, 0, 1)
        total = total + (1 - sigma)[:, None] * w
        weight = weight + 1 - sigma
        pull = ((1 - sigma) * s)[:, None]
        push = (sigma * k)[:, None]
        for _ in range(local_steps):
            w = w - lr * (pull * _unit(w - away) + push * _unit(w))
    mean = total / np.maximum(weight, 1e-300)[:, None]
    gap = s * (np.linalg.norm(mean - away, axis=-1) - r)
    return np.asarray(np.where(weight > 0, gap / tolerance, np.inf))


def worst_case(
    sharpness: float, local_steps: int, rounds: int, *, seed: int = 0, tries: int = 200
) -> tuple[float, Array]:
    """The largest `one_client` found with F Theorem 5's printed threshold and step, and where.

    A random search that keeps what is better, 40 generations of `tries` cases.
    """
    case = (1.0, 1.0, local_steps, rounds, gamma_local(local_steps))
    fixed = (sharpness, local_steps, rounds, bound(*case), step_size(*case))
    rng = np.random.default_rng(seed)
    width = HIGH - LOW
    best = LOW + width * rng.random((tries, 5))
    value = one_client(best, *fixed)
    for generation in range(40):
        reach = max(0.01, 0.3 * 0.93**generation)
        change = reach * rng.standard_normal(best.shape) * (rng.random(best.shape) < 0.5)
        new = np.clip(best + width * change, LOW, HIGH)
        values_at_new = one_client(new, *fixed)
        better = values_at_new > value
        best[better] = new[better]
        value[better] = values_at_new[better]
        if generation % 5 == 4:  # the worse half starts again from the better one
            order = np.argsort(-value)
            keep = order[: tries // 2]
            drop = order[-(tries // 2) :]
            best[drop] = best[keep]
            value[drop] = value[keep]
    top = int(value.argmax())
    return float(value[top]), best[top]


def _unit(x: Array) -> Array:
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-300))
