"""The Neyman-Pearson problem on breast cancer, as the tests use it: in float64."""

import torch

from fedlib import data
from fedlib.problems import neyman_pearson


def np_problem(seed=0, clients=20, fraction=0.8, **options):
    table = data.breast_cancer()
    options.setdefault("dtype", torch.float64)
    return neyman_pearson(
        table.X, table.y, clients=clients, seed=seed, train_fraction=fraction, **options
    )
