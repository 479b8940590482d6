"""What the derivation notes measure: regret, the averaged iterate, Lemma 1, a hunt for bad cases.

The theorems themselves are `papers.fedsgm.theory`; nothing here knows what a bound is, so that a
check in a note compares two things that were computed apart. W and F are the two FedSGM papers.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from math import pi, sqrt
from typing import Any, NamedTuple

import numpy as np
import scipy
import torch
from torch import Tensor
from torch.func import vmap

from fedlib import run
from fedlib.algorithms import FedSGM
from fedlib.core import Problem, Trace, Vectorized
from fedlib.core.algorithm import Algorithm
from fedlib.core.sampling import seeded
from fedlib.core.trace import Array
from papers.fedsgm.gamma import bound, gamma_local, step_size
from papers.fedsgm.problems.norms import directions, unit_rows
from papers.fedsgm.theory import Rate

#: Step size, alpha over the step size and sigma_t, on which the notes try Lemma 1.
LEMMA_1_CASES = tuple(product((0.05, 0.3), (0.3, 1.0, 3.0), (0.0, 0.5, 1.0)))

# Ranges of the five numbers of `one_client`: two slopes, radius c, distance a to w*, angle of w0.
RANGES = ((0.05, 1.0), (0.05, 1.0), (0.05, 10.0), (0.05, 10.0), (0.0, pi))


def regret(trace: Trace) -> Array:
    """(1 - sigma_t)(f(w_t) - f*) + sigma_t (g(w_t) - g(w*)) of every round, `[S, T]`.

    Its mean over the rounds is what the theorems of FedSGM bound. The trace must be of a problem
    with the metrics `f_gap` and `g_gap`, evaluated every round.
    """
    sigma = trace.info["sigma"]
    of_objective = (1 - sigma) * trace.of_rounds("f_gap")
    of_constraint = sigma * trace.of_rounds("g_gap")
    return np.asarray(of_objective + of_constraint)


class Gaps(NamedTuple):
    """What the theorems promise of the mean iterate, one number a run; NaN without a mean."""

    f_gap: Array  # f(mean iterate) - f*, `[S]`
    g: Array  # g(mean iterate), `[S]`

    def within(self, accuracy: float) -> Array:
        """Whether both are at most `accuracy`, `[S]`."""
        return np.asarray((self.f_gap <= accuracy) & (self.g <= accuracy))


def mean_gaps(trace: Trace, problems: Sequence[Problem]) -> Gaps:
    """f(mean iterate) - f* and g(mean iterate); NaN where no round has weight.

    `trace` is of an algorithm with an averaged output, `problems` are those of its seeds.
    """
    outputs = torch.from_numpy(trace.output)
    rows = []
    for output, problem in zip(outputs, problems, strict=True):
        metrics = problem.metrics(output.to(problem.w0), problem)
        rows.append((float(metrics["f_gap"]), float(metrics["g"])))
    return Gaps(*np.array(rows).T)


def gaps_of_rates(
    rates: Mapping[str, Rate],
    problem: Callable[[int], Problem],
    *,
    rounds: int,
    seeds: Iterable[int],
    **options: Any,
) -> dict[str, Gaps]:
    """The gaps of FedSGM with the step size and the threshold of every rate, by their names.

    `problem` makes the problem of a seed, `options` are further arguments of `FedSGM`.
    """
    seeds = list(seeds)
    grid = [FedSGM(lr=rate.lr, tolerance=rate.tolerance, **options) for rate in rates.values()]
    traces = run(
        grid,
        problem,
        rounds=rounds,
        seeds=seeds,
        evaluate_every=rounds,
        progress=False,
    )
    problems = [problem(seed) for seed in seeds]
    gaps = {}
    for name, trace in zip(rates, traces, strict=True):
        gaps[name] = mean_gaps(trace, problems)
    return gaps


def play(
    algorithm: Algorithm,
    problem: Problem,
    rounds: int,
    seed: int,
) -> tuple[list[Any], list[Any]]:
    """The states of an algorithm before and after each of `rounds` rounds, and their draws.

    A plain loop, for what no trace holds; round t draws with the seed `seed + t`.
    """
    federation = Vectorized(problem)
    states = [algorithm.init(problem)]
    draws = []
    for t in range(rounds):
        draw = algorithm.draw(problem, seeded(seed + t, "rounds"))
        state, *_ = algorithm.round(federation, states[-1], draw)
        draws.append(draw)
        states.append(state)
    return states, draws


def share(holds: Tensor | Array) -> float:
    """The share of the trials in which a condition holds."""
    return float(np.mean(np.asarray(holds)))


class Estimate(NamedTuple):
    """A mean over independent trials."""

    mean: float
    error: float  # its standard error


def estimate(values: Tensor) -> Estimate:
    """The mean of independent trials `[count]` with its standard error."""
    return Estimate(float(values.mean()), float(values.std()) / sqrt(len(values)))


def lemma_1_sides(
    problem: Problem,
    local_steps: int,
    lr: float,
    alpha: float,
    weight: float,
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


def lemma_1_holds(problem: Problem) -> bool:
    """Whether Lemma 1 holds for five local steps from w0, in all `LEMMA_1_CASES`."""
    for lr, alpha_over_lr, weight in LEMMA_1_CASES:
        left, right = lemma_1_sides(problem, 5, lr, lr * alpha_over_lr, weight)
        if left > right:
            return False
    return True


def one_client(
    cases: Array,
    sharpness: float,
    local_steps: int,
    rounds: int,
    tolerance: float,
    lr: float,
) -> Array:
    """Objective gap of soft switching's mean iterate over `tolerance`, for many small problems.

    One client in the plane with f(w) = s |w - a| and g(w) = k (|w| - c), s, k <= 1 and a outside
    the disc: G = 1, and w* is where the disc is nearest to a. The start is at distance 1 from w*.
    A plain loop, independent of `fedlib.run`. A row of `cases` `[I, 5]` is (s, k, c, |a - w*|, the
    angle of w0 - w*), `sharpness` is beta times the tolerance. Returns `[I]`, infinite where all
    rounds went to the constraint.
    """
    slope_f, slope_g, radius, distance, angle = cases.T
    beta = sharpness / tolerance
    a = np.stack([radius + distance, np.zeros_like(radius)], -1)
    w = np.stack([radius + np.cos(angle), np.sin(angle)], -1)
    weighted = np.zeros_like(w)
    weight = np.zeros_like(radius)
    for _ in range(rounds):
        g = slope_g * (np.linalg.norm(w, axis=-1) - radius)
        sigma = np.clip(1 + beta * (g - tolerance), 0, 1)
        weighted = weighted + (1 - sigma)[:, None] * w
        weight = weight + 1 - sigma
        pull = ((1 - sigma) * slope_f)[:, None]
        push = (sigma * slope_g)[:, None]
        for _ in range(local_steps):
            w = w - lr * (pull * unit_rows(w - a) + push * unit_rows(w))
    mean = weighted / np.maximum(weight, 1e-300)[:, None]
    gap = slope_f * (np.linalg.norm(mean - a, axis=-1) - distance)
    return np.asarray(np.where(weight > 0, gap / tolerance, np.inf))


def worst_case(
    sharpness: float,
    local_steps: int,
    rounds: int,
    *,
    seed: int = 0,
    tries: int = 200,
) -> tuple[float, Array]:
    """The largest `one_client` found with F Theorem 5's printed threshold and step, and where.

    By differential evolution, 40 generations of about `tries` cases.
    """
    gamma = gamma_local(local_steps)
    tolerance = bound(1.0, 1.0, local_steps, rounds, gamma)
    lr = step_size(1.0, 1.0, local_steps, rounds, gamma)

    def shortfall(cases: Array) -> Array:
        return -one_client(
            cases.T,
            sharpness,
            local_steps,
            rounds,
            tolerance,
            lr,
        )

    search = scipy.optimize.differential_evolution(
        shortfall,
        RANGES,
        maxiter=39,
        popsize=max(1, tries // len(RANGES)),
        tol=0,
        polish=False,
        vectorized=True,
        updating="deferred",
        seed=seed,
    )
    return -float(search.fun), np.asarray(search.x)
