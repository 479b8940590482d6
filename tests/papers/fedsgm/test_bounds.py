"""The study on bounds: instances fit their theorems, runs are as prescribed, numbers as defined."""

import numpy as np
import pytest
import torch

from fedlib import run
from papers.fedsgm.bounds.methods import CLIENTS, DIM, instance
from papers.fedsgm.bounds.runs import stairs
from papers.fedsgm.problems.staircase import staircase
from papers.fedsgm.problems.weakly_convex import value_spread
from tests.helpers.expect import near


def test_sigma_bounds_how_far_two_clients_differ_on_the_constraint():
    for rows in (1, 4):
        problem = instance(3, "ball", rows)
        losses = torch.func.vmap(problem.losses, in_dims=(None, 0))
        rng = torch.Generator().manual_seed(0)
        for w in torch.randn(20, DIM, generator=rng, dtype=torch.float64):
            g = losses(w, problem.all_clients())[:, 1]
            assert g.max() - g.min() <= 2 * value_spread(problem)
    assert problem.sizes == (4,) * CLIENTS


@pytest.mark.parametrize("local_steps", [1, 3])
def test_the_staircase_ends_at_the_gap_of_its_lemma(local_steps):
    for version, gamma in (("printed", 2 * local_steps**2), ("ours", 1.5 * local_steps - 1)):
        planned = stairs({"method": "stairs", "version": version}, 12, local_steps)
        problem = planned.spec.problem(0)
        trace = run(planned.spec.algorithm, problem, rounds=12, progress=False)
        output = torch.from_numpy(trace.output[0])
        gap = float(problem.metrics(output, problem)["f_gap"])
        expected = 1 / np.sqrt(12 * local_steps)
        near(gap, expected)
        expected = 1 / np.sqrt(2 * gamma)
        near(gap / planned.rate.accuracy, expected)


def test_the_staircase_is_what_it_says():
    problem = staircase(4)
    w = problem.heldout[0]
    near(w.norm().item(), 1)
    best = float(problem.mean_losses(w)[0])
    near(best, -0.5)
    rng = torch.Generator().manual_seed(0)
    for scale in (0.1, 1.0, 10.0):
        for u in scale * torch.randn(50, 4, generator=rng, dtype=torch.float64):
            f, _ = problem.mean_losses(u).tolist()
            assert f >= best - 1e-12
