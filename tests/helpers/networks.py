"""The paper's network on a few digits or bytes, in float64."""

from dataclasses import replace

import torch
from torch.func import grad

import fedlib as fl
from fedlib.core.problem import Batch
from fedlib.data import Table, digits
from fedlib.data.split import padded
from papers.ssca.network import swish_network
from tests.helpers.randoms import generator

SIZES = (5, 3, 4)
RHO = fl.PowerLaw(0.6, 0.3)
GAMMA = fl.PowerLaw(0.9, 0.35)
STEPS = {"tau": 0.1, "rho": RHO, "gamma": GAMMA}
NORM = {**STEPS, "penalty": 1e5, "levels": 0.6, "objective": "norm"}


def tiny(seed=0, hidden=3):
    """Twelve rows of five bytes, three classes, clients of 5, 3 and 4 rows, float64."""
    X = torch.randint(0, 256, (12, 5), generator=generator()).to(torch.uint8)
    table = Table(X, torch.arange(12) % 3, ("a", "b", "c"))
    options = {"clients": 3, "hidden": hidden, "seed": seed, "dtype": torch.float64}
    problem = swish_network(table, table, **options)
    order = problem.rows.flatten()
    rows, sizes = padded(torch.split(order, list(SIZES)))
    return replace(problem, rows=rows, sizes=sizes)


def small(seed=0, hidden=6, rows=120, clients=3):
    """Some 8 x 8 digits in float64."""
    table = digits()
    train = replace(table, X=table.X[:rows], y=table.y[:rows])
    test = replace(table, X=table.X[rows : rows + 60], y=table.y[rows : rows + 60])
    options = {"hidden": hidden, "seed": seed, "scale": 16.0, "dtype": torch.float64}
    return swish_network(train, test, clients=clients, **options)


def mean_gradient(problem, w, rows):
    weight = torch.full((len(rows),), 1 / len(rows), dtype=w.dtype)
    batch = Batch(tuple(x[rows] for x in problem.data), weight)
    return grad(lambda u: problem.losses(u, batch)[0])(w)
