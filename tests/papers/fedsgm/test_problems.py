"""What the problems of the theory notes have in common: gradients, the constant G, solutions."""

import pytest
import torch

from papers.fedsgm.bounds.methods import instance
from papers.fedsgm.problems.norms import random_norms, varied_norms
from papers.fedsgm.problems.sampled import boxed_norms, skewed_levels, split_objectives
from papers.fedsgm.problems.staircase import staircase
from papers.fedsgm.problems.weakly_convex import random_clipped
from tests.helpers.expect import close
from tests.helpers.problems import batches, double, slope_of

PROBLEMS = {
    "norms": random_norms(3),
    "boxed norms": boxed_norms(1, rows=2),
    "split objectives": split_objectives(),
    "skewed levels": skewed_levels(),
    "staircase": staircase(4),
    "clipped": random_clipped(
        3,
        dim=3,
        spread=0.1,
        clip=0.8,
    ),  # some clients are beyond the clip
}
SOLVED = {
    **{f"norms {seed}": varied_norms(seed) for seed in range(12)},
    **{f"boxed norms {seed}": boxed_norms(seed, clients=5, rows=1 + seed % 2) for seed in range(5)},
    **{f"bounds {seed} {r}": instance(seed, r) for seed in range(12) for r in ("", "ball", "box")},
    **{"split objectives": split_objectives(), "skewed levels": skewed_levels()},
}


def points(problem, count, scale=1.0):
    rng = torch.Generator().manual_seed(0)
    return scale * torch.randn(count, problem.dim, generator=rng, dtype=torch.float64)


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_the_gradient_is_that_of_autograd(problem):
    batch = batches(problem)[0]
    weights = double(0.3, 0.7)
    for w in points(problem, 20):
        gradient = problem.gradient(w, batch, weights)
        close(gradient, slope_of(problem, w, batch, weights), 1e-13)


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_every_loss_is_one_lipschitz_even_outside_of_its_set(problem):
    losses = torch.func.vmap(problem.losses, in_dims=(None, 0))
    clients = problem.all_clients()
    for u, w in points(problem, 60, 2.0).view(30, 2, -1):
        change = (losses(u, clients) - losses(w, clients)).abs().max()
        assert change <= (u - w).norm() * (1 + 1e-12)


@pytest.mark.parametrize("problem", SOLVED.values(), ids=SOLVED)
def test_no_feasible_point_is_better_than_the_solution(problem):
    solution = problem.heldout[0]
    best, excess = problem.mean_losses(solution).tolist()
    assert -1e-6 < excess <= 1e-9  # feasible, and the constraint is active
    for point in (solution, problem.w0):
        assert problem.set is None or problem.set.contains(point)
    for radius in (1e-3, 1e-1, 1.0):
        for step in points(problem, 50, radius):
            w = solution + step
            f, g = problem.mean_losses(w).tolist()
            outside = problem.set is not None and not problem.set.contains(w)
            assert g > 1e-12 or outside or f >= best - 1e-8
