"""The toy problem of the theory notes: values and gradients by hand, solution, constant G."""

import numpy as np
import torch

from papers.fedsgm.problems import norms as c
from tests.helpers.expect import near
from tests.helpers.problems import double


def two_clients():
    a = double([3.0, 4.0], [0.0, 0.0])
    b = double([0.0, 1.0], [0.0, -1.0])
    return c.norms(a, b, 2.0, torch.zeros(2, dtype=torch.float64))


def test_values_by_hand():
    problem = two_clients()
    w = double(3.0, 0.0)
    f, g = problem.mean_losses(w).tolist()
    near(f, (4 + 3) / 2)
    near(g, np.sqrt(10) - 2)


def test_one_client_has_its_solution_on_the_segment():
    """min |w - a| with |w - b| <= c: the point of the ball on the way from b to a."""
    a = double([4.0, 3.0])
    b = double([0.0, 0.0])
    w = c.reference_solution(c.norms(a, b, 2.0, torch.zeros(2).double()))
    assert torch.allclose(w, double(1.6, 1.2), atol=1e-8)


def test_drift_of_a_gradient_that_does_not_turn():
    """One client, far away: unit steps 0, 1, 2, 3, so 0 + 1 + 4 + 9 = 14; nearer, less."""
    a = double([1e6, 0.0])
    b = torch.zeros(1, 2).double()
    far = c.norms(a, b, 1.0, torch.zeros(2).double())
    near(c.drift_sum(far, 4, 0.1), 14.0, rel=1e-9)
    closer = c.norms(a * 1e-6, b, 1.0, torch.zeros(2).double())
    near(c.drift_sum(closer, 4, 0.9), 0 + 1 + 4 + 1)  # 0, 0.9, 1.8, 0.9
