"""What the loop does to the problems of several seeds before it runs them together."""

import torch

import fedlib as fl
from fedlib.engine.stack import pad_rows
from fedlib.metrics import fw_gap
from fedlib.problems import pareto
from papers.fedfw.matrices import multi_task_regression
from tests.helpers.expect import close


def test_problems_are_padded_to_the_most_rows_of_a_client():
    short, long = (pareto(torch.zeros(2, rows, 1, 3).double()) for rows in (2, 5))
    for problem, original in zip(pad_rows([short, long]), (short, long), strict=True):
        real = original.rows.shape[1]
        assert problem.rows.shape == (2, 5)
        assert torch.equal(problem.rows[:, :real], original.rows)
        assert torch.equal(problem.rows[:, real:], original.rows[:, :1].expand(-1, 5 - real))
        assert problem.lengths.tolist() == [real, real] == list(original.sizes)


def within_own_ball(seed):
    """A problem whose feasible set has a radius of the seed's own, which its metrics use."""
    return multi_task_regression(
        seed=seed,
        clients=3,
        rows=4,
        features=5,
        tasks=4,
        dtype=torch.float64,
    )


def test_every_seed_runs_within_its_own_set():
    """The radius of a ball may depend on the seed: alone or among others, it is the seed's own."""
    problems = {seed: within_own_ball(seed) for seed in (0, 2)}
    assert problems[0].set.radius != problems[2].set.radius
    method = fl.FedFW(lam0=0.1)
    for engine in (fl.Vectorized, fl.Loop):
        options = {"rounds": 4, "progress": False, "engine": engine}
        both = fl.run(method, problems.__getitem__, seeds=(0, 2), **options)
        alone = fl.run(method, problems.__getitem__, seeds=(2,), **options)
        close(both.state.w[1], alone.state.w[0], 1e-12)
        close(fw_gap(problems[2], alone.state.w[0]), fw_gap(problems[2], both.state.w[1]), 1e-12)
        for name, curve in alone.metrics.items():
            close(torch.tensor(both.metrics[name][1]), torch.tensor(curve[0]), 1e-12)
