"""The toy problem of the theory notes: values and gradients by hand, solution, constant G."""

import numpy as np
import pytest
import torch
from expect import refuses

from fedlib import run
from fedlib.algorithms import FedSGM
from fedlib.core.problem import Batch
from papers.fedsgm.problems import norms as c
from papers.fedsgm.theory import Setting, theorem_3


def two_clients():
    a = torch.tensor([[3.0, 4.0], [0.0, 0.0]], dtype=torch.float64)
    b = torch.tensor([[0.0, 1.0], [0.0, -1.0]], dtype=torch.float64)
    return c.norms(a, b, 2.0, torch.zeros(2, dtype=torch.float64))


def test_values_by_hand():
    problem = two_clients()
    w = torch.tensor([3.0, 0.0], dtype=torch.float64)
    f, g = problem.mean_losses(w).tolist()
    assert f == pytest.approx((4 + 3) / 2)
    assert g == pytest.approx(np.sqrt(10) - 2)


def test_gradient_is_that_of_autograd_and_zero_at_a_centre():
    problem = c.random_norms(0)
    batch = Batch(problem.data, torch.full((8,), 1 / 8, dtype=torch.float64))
    weights = torch.tensor([0.3, 0.7], dtype=torch.float64)
    w = torch.randn(3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    wanted = torch.func.grad(lambda u: weights @ problem.losses(u, batch))(w)
    assert torch.allclose(problem.gradient(w, batch, weights), wanted, atol=1e-14)
    corner = two_clients()
    one = Batch(tuple(x[1:] for x in corner.data), torch.ones(1, dtype=torch.float64))
    at = corner.gradient(
        torch.zeros(2, dtype=torch.float64), one, torch.tensor([1.0, 0.0]).double()
    )
    assert at.tolist() == [0.0, 0.0]


def test_every_loss_is_one_lipschitz():
    problem = c.random_norms(3)
    rng = torch.Generator().manual_seed(0)
    clients = problem.all_clients()
    losses = torch.func.vmap(problem.losses, in_dims=(None, 0))
    for _ in range(50):
        u, w = torch.randn(2, 3, generator=rng, dtype=torch.float64)
        change = (losses(u, clients) - losses(w, clients)).abs().max()
        assert change <= (u - w).norm() * (1 + 1e-12)


def test_one_client_has_its_solution_on_the_segment():
    """min |w - a| with |w - b| <= c: the point of the ball on the way from b to a."""
    a, b = torch.tensor([[4.0, 3.0]]).double(), torch.tensor([[0.0, 0.0]]).double()
    w = c.reference_solution(c.norms(a, b, 2.0, torch.zeros(2).double()))
    assert torch.allclose(w, torch.tensor([1.6, 1.2]).double(), atol=1e-8)


@pytest.mark.parametrize("seed", range(12))
def test_reference_solution_beats_every_feasible_point_nearby(seed):
    problem = c.varied_norms(seed)
    w = problem.heldout[0]
    best, excess = problem.mean_losses(w).tolist()
    assert -1e-6 < excess <= 1e-12  # feasible, and the constraint is active
    rng = torch.Generator().manual_seed(seed)
    for radius in (1e-3, 1e-1, 1.0):
        for step in torch.randn(200, 3, generator=rng, dtype=torch.float64):
            f, g = problem.mean_losses(w + radius * step).tolist()
            assert g > 0 or f >= best - 1e-9


def test_random_instance_starts_at_the_given_distance_and_is_repeatable():
    one, two, other = (c.random_norms(seed, distance=2.5) for seed in (5, 5, 6))
    assert (one.w0 - one.heldout[0]).norm().item() == pytest.approx(2.5)
    assert torch.equal(one.data[0], two.data[0])
    assert not torch.equal(one.data[0], other.data[0])


def test_drift_of_a_gradient_that_does_not_turn():
    """One client, far away: unit steps 0, 1, 2, 3, so 0 + 1 + 4 + 9 = 14; nearer, less."""
    a, b = torch.tensor([[1e6, 0.0]]).double(), torch.zeros(1, 2).double()
    far = c.norms(a, b, 1.0, torch.zeros(2).double())
    assert c.drift_sum(far, 4, 0.1) == pytest.approx(14.0, rel=1e-9)
    near = c.norms(a * 1e-6, b, 1.0, torch.zeros(2).double())
    assert c.drift_sum(near, 4, 0.9) == pytest.approx(0 + 1 + 4 + 1)  # 0, 0.9, 1.8, 0.9


def test_theorem_3_holds_on_instances():
    rate = theorem_3(Setting(D=1.0, G=1.0, E=2, T=100, N=8))
    algorithm = FedSGM(lr=rate.lr, local_steps=2, participants=8, tolerance=rate.tolerance)
    trace = run(algorithm, c.varied_norms, rounds=100, seeds=range(12), progress=False)
    sigma = trace.info["sigma"]
    gap = (1 - sigma) * trace.metrics["f_gap"][:, :-1] + sigma * trace.metrics["g_gap"][:, :-1]
    assert (gap.mean(-1) <= rate.tolerance).all()
    assert gap.mean(-1).max() > 0.3 * rate.tolerance  # the bound is not far away on all of them
    for w, solution in zip(
        torch.func.vmap(algorithm.output)(trace.state), map(c.varied_norms, range(12)), strict=True
    ):
        gaps = solution.metrics(w, solution)
        assert gaps["f_gap"] <= rate.tolerance
        assert gaps["g"] <= rate.tolerance


def test_errors():
    refuses("norms: b must fit a", c.norms, torch.ones(2, 3), torch.ones(3, 3), 1.0, torch.ones(3))
    refuses("norms: w0 must fit", c.norms, torch.ones(2, 3), torch.ones(2, 3), 1.0, torch.ones(2))
    refuses("c must be positive", c.norms, torch.ones(2, 3), torch.ones(2, 3), 0.0, torch.ones(3))
    refuses("random_norms: seed must lie in 0..", c.random_norms, -1)


def test_a_minimizer_on_a_kink_is_reported():
    same = torch.zeros(1, 2, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="optimality conditions must hold"):
        c.reference_solution(c.norms(same + 0.3, same, 5.0, same[0]))
