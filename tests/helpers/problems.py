"""Problems that many tests use, in float64: Neyman-Pearson, and quadratics with a known front."""

import torch

from fedlib import data
from fedlib.core.problem import Batch
from fedlib.problems import neyman_pearson, pareto


def double(*values):
    """A tensor of float64 numbers."""
    return torch.tensor(values, dtype=torch.float64)


def np_problem(seed=0, clients=20, fraction=0.8, **options):
    table = data.breast_cancer()
    options.setdefault("dtype", torch.float64)
    return neyman_pearson(
        table.X, table.y, clients=clients, seed=seed, train_fraction=fraction, **options
    )


def objectives(clients=6, rows=4, tasks=2, dim=5, spread=0.0, noise=0.0, seed=0, **options):
    """Quadratics around random centres; clients differ by `spread`, rows of a client by `noise`."""
    rng = torch.Generator().manual_seed(seed)

    def normal(clients, rows):
        return torch.randn(clients, rows, tasks, dim, generator=rng, dtype=torch.float64)

    common = 0.3 * normal(1, 1)
    of_clients = spread * normal(clients, 1)
    of_rows = noise * normal(clients, rows)
    return pareto(common + of_clients + of_rows, **options)


def centred(convex_set, clients=5, **options):
    """F(w) = mean_i |w - c_i|^2 / 2 on a set, the c_i means of four rows."""
    options = {"rows": 4, "spread": 0.5, "noise": 0.3, **options}
    return objectives(clients=clients, tasks=1, dim=6, **options).within(convex_set)


def three_objectives():
    """Eight clients with three rows each, far from the front at the start."""
    start = torch.ones(5, dtype=torch.float64)
    return objectives(
        clients=8,
        rows=3,
        tasks=3,
        spread=0.1,
        noise=0.1,
        w0=start,
    )


def batches(problem):
    """All rows of each client."""
    data, weight = problem.all_clients()
    return [Batch(tuple(x[j] for x in data), weight[j]) for j in range(problem.num_clients)]


def slope_of(problem, w, batch, weights):
    """The gradient of a weighted sum of the losses on a batch, by autograd."""
    return torch.func.grad(lambda u: weights @ problem.losses(u, batch))(w)
