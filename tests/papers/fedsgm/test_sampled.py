"""Linear losses by hand; every instance is within the assumptions that it is said to meet."""

import pytest
import torch

from papers.fedsgm.problems.sampled import boxed_norms, linear
from tests.helpers.expect import near
from tests.helpers.randoms import uniform


def test_values_and_gradient_by_hand():
    p = torch.tensor([[1.0, 0.0], [3.0, 2.0]])
    q = torch.tensor([[0.0, 2.0], [0.0, 4.0]])
    problem = linear(
        p,
        q,
        torch.tensor([1.0, 2.0]),
        torch.zeros(2),
        torch.ones(2),
    )
    assert problem.mean_losses(torch.tensor([1.0, 2.0])).tolist() == [4.0, 4.5]
    metrics = problem.metrics(torch.tensor([1.0, 2.0]), problem)
    assert metrics["f_gap"] == 1.0
    assert metrics["g_gap"] == 3.0


@pytest.mark.parametrize(("seed", "rows"), [(0, 1), (1, 1), (2, 1), (0, 6), (4, 6)])
def test_boxed_norms_keep_their_constants(seed, rows):
    problem = boxed_norms(seed, clients=5, rows=rows, sigma=0.02)
    solution = problem.heldout[0]
    box = problem.set
    near((problem.w0 - solution).norm().item(), 1.0)
    assert box.contains(problem.w0)
    assert box.contains(solution)
    near(box.diameter(3), 3**0.5)
    near(torch.pdist(problem.data[1]).max().item(), 0.04)
    for w in uniform(300, 3, seed=seed) - 0.5:
        distances = (w - problem.data[1]).norm(dim=-1)
        assert distances.max() - distances.min() <= 0.04 + 1e-12
