"""Linear losses by hand; every instance is within the assumptions that it is said to meet."""

import itertools

import pytest
import torch
from expect import refuses
from randoms import uniform

from fedlib import run
from fedlib.algorithms import FedSGM
from fedlib.core.problem import Batch
from papers.fedsgm.problems.sampled import boxed_norms, linear, skewed_levels, split_objectives
from papers.fedsgm.theory import Setting, theorem_4


def test_values_and_gradient_by_hand():
    p, q = torch.tensor([[1.0, 0.0], [3.0, 2.0]]), torch.tensor([[0.0, 2.0], [0.0, 4.0]])
    problem = linear(p, q, torch.tensor([1.0, 2.0]), torch.zeros(2), torch.ones(2))
    assert problem.mean_losses(torch.tensor([1.0, 2.0])).tolist() == [4.0, 4.5]
    metrics = problem.metrics(torch.tensor([1.0, 2.0]), problem)
    assert metrics["f_gap"] == 1.0
    assert metrics["g_gap"] == 3.0
    batch = Batch(tuple(x[1:] for x in problem.data), torch.ones(1))
    weights = torch.tensor([0.25, 0.75])
    wanted = torch.func.grad(lambda w: weights @ problem.losses(w, batch))(torch.zeros(2))
    assert torch.equal(problem.gradient(torch.zeros(2), batch, weights), wanted)


@pytest.mark.parametrize("make", [split_objectives, skewed_levels])
def test_instances_have_g_and_d_at_most_one_and_their_solution(make):
    problem = make()
    p, q, _ = problem.data
    assert max(p.norm(dim=-1).max(), q.norm(dim=-1).max()) <= 1
    assert problem.set.diameter(problem.dim) <= 1
    solution = problem.heldout[0]
    for point in (solution, problem.w0):
        assert problem.set.contains(point)
    best, excess = problem.mean_losses(solution).tolist()
    assert abs(excess) < 1e-12
    ends = torch.linspace(problem.set.low, problem.set.high, 21, dtype=torch.float64)
    for point in itertools.product(ends, repeat=problem.dim):
        f, g = problem.mean_losses(torch.stack(point)).tolist()
        assert g > 1e-12 or f >= best - 1e-12


def test_values_of_single_clients_lie_around_the_mean():
    for problem, wanted in (
        (split_objectives(0.01), [-0.01, 0.01]),
        (skewed_levels(4, 0.01), [0.03, -0.01, -0.01, -0.01]),
    ):
        each = torch.func.vmap(problem.losses, in_dims=(None, 0))(problem.w0, problem.all_clients())
        assert (each[:, 1] - each[:, 1].mean()).tolist() == pytest.approx(wanted)


def test_the_same_sample_for_query_and_step_goes_the_wrong_way():
    problem, outputs = split_objectives(), []
    rate = theorem_4(Setting(D=1.0, G=1.0, E=1, T=2000, N=2, n=1, sigma=0.003), "corrected")
    for again in (False, True):
        algorithm = FedSGM(
            lr=rate.lr, local_steps=1, participants=1, tolerance=0.02, resample_for_update=again
        )
        trace = run(algorithm, problem, rounds=2000, seeds=(0,))
        outputs.append(trace.output[0, 1])
    assert outputs[0] > outputs[1] + 0.1


@pytest.mark.parametrize(("seed", "rows"), [(0, 1), (1, 1), (2, 1), (0, 6), (4, 6)])
def test_boxed_norms_keep_their_constants(seed, rows):
    problem = boxed_norms(seed, clients=5, rows=rows, sigma=0.02)
    solution, box = problem.heldout[0], problem.set
    assert (problem.w0 - solution).norm().item() == pytest.approx(1.0)
    assert box.contains(problem.w0)
    assert box.contains(solution)
    assert box.diameter(3) == pytest.approx(3**0.5)
    best, excess = problem.mean_losses(solution).tolist()
    assert -1e-6 < excess <= 1e-12
    assert torch.pdist(problem.data[1]).max().item() == pytest.approx(0.04)
    for w in uniform(300, 3, seed=seed) - 0.5:
        f, g = problem.mean_losses(w).tolist()
        assert g > 0 or f >= best - 1e-9
        each = (w - problem.data[1]).norm(dim=-1)
        assert each.max() - each.min() <= 0.04 + 1e-12


def test_errors():
    refuses("split_objectives: gap must be positive", split_objectives, 0.0)
    refuses("boxed_norms: sigma must be positive", boxed_norms, 0, sigma=0.0)
    refuses("boxed_norms: rows must be at least 1", boxed_norms, 0, rows=0)
    refuses("skewed_levels: clients must be at least 2", skewed_levels, 1)
    p, three = torch.ones(2, 3), torch.ones(3)
    refuses("linear: r must fit p", linear, p, p, three, three, three)
    refuses("linear: q must fit p", linear, p, torch.ones(2, 2), torch.ones(2), three, three)
