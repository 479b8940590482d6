"""A fairness task on made-up people, and its formulas written out."""

from itertools import pairwise

import torch

from fedlib.problems.fairness import Rows, fairness

SIZES = (5, 4, 3, 1)


def people(rows, seed=0, men=0.6):
    g = torch.Generator().manual_seed(seed)
    X = torch.randn(rows, SIZES[0], generator=g, dtype=torch.float64)
    group = (torch.rand(rows, generator=g) < men).double()
    y = (X[:, 0] + group + torch.randn(rows, generator=g) > 0.5).double()
    return Rows(X, y, group)


def task(clients=4, **options):
    return fairness(
        people(160),
        people(80, seed=1),
        clients=clients,
        hidden=SIZES[1:-1],
        **options,
    )


def outputs(w, X):
    """The network by hand, layer by layer."""
    for layer, (width, next_width) in enumerate(pairwise(SIZES)):
        size = width * next_width
        A = w[:size].view(next_width, width)
        a = w[size : size + next_width]
        w = w[size + next_width :]
        if layer > 0:
            X = X * (X > 0)
        X = X @ A.T + a
    return 1 / (1 + torch.exp(-X[:, 0]))


def gap(p, group):
    """Mean of group 1 minus mean of group 0, zero if one is missing."""
    if group.sum() in (0, len(group)):
        return 0 * p.sum()
    return p[group == 1].mean() - p[group == 0].mean()


def entropy(p, y):
    return -(y * p.log() + (1 - y) * (1 - p).log()).mean()


def real_rows(problem, j):
    return problem.rows[j, : problem.sizes[j]]
