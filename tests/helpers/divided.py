"""Problems whose features are split over clients, and the methods that run on them."""

import pytest
import torch

import fedlib as fl
from fedlib.algorithms import ConstrainedVerticalSSCA, VerticalSGD, VerticalSSCA
from fedlib.core import Problem
from fedlib.core.problem import Batch
from fedlib.steps import PowerLaw
from fedlib.vertical import Composite, Line, Partition, contiguous, vertical
from papers.ssca.network import vertical_network
from tests.helpers.networks import GAMMA, RHO, small

J = 6  # hidden units
L = 10  # classes
K = 64  # inputs
B = 7  # rows of a batch
FREE = VerticalSSCA(
    tau=0.1,
    rho=RHO,
    gamma=GAMMA,
    batch_size=B,
    ridge=1e-3,
)
NORM = ConstrainedVerticalSSCA(
    tau=0.1, rho=RHO, gamma=GAMMA, penalty=1e5, batch_size=B, levels=0.5, objective="norm"
)
SGD = VerticalSGD(lr=PowerLaw(0.5, 0.1), batch_size=B, ridge=1e-3)
ALL = (FREE, NORM, SGD)

by_name = {"ids": lambda a: type(a).__name__}


def network(seed=0):
    return small(seed, hidden=J, rows=300)


def task(clients=5, seed=0, **options):
    return vertical_network(network(seed), clients=clients, scale=16.0, **options)


def general(clients=3):
    """An objective and two constraints that see the clients' numbers side by side, by autograd."""
    rng = torch.Generator().manual_seed(5)
    X = torch.randn(40, 7, generator=rng, dtype=torch.float64)
    y = torch.randn(40, generator=rng, dtype=torch.float64)
    blocks = contiguous(7, clients)
    heads = 2 * clients
    sizes = torch.tensor([heads, *(2 * len(block) for block in blocks)])
    dim = int(sizes.sum())
    order = torch.randperm(dim, generator=rng)
    parameters = torch.split(order, sizes.tolist())

    def inner(w, x):
        return torch.tanh(x @ w.view(-1, 2))

    def outer(w, h, labels):
        (target,) = labels
        outputs = torch.cat(h, 1).square() @ w + h[0][:, 0]
        error = (outputs - target).square()
        return torch.stack([error, outputs - 0.1, torch.sin(outputs) * target - 0.2], 1)

    features = Partition("features", blocks, 7)
    form = Composite(features, Partition("parameters", parameters, dim), inner, outer)
    w0 = torch.randn(dim, generator=rng, dtype=torch.float64)
    problem = Problem(
        name="general",
        data=(X, y),
        rows=torch.arange(40).view(2, 20),
        sizes=(20, 20),
        losses=lambda w, batch: batch.weight @ form.losses(w, batch.data[0], batch.data[1:]),
        num_objectives=1,
        num_constraints=2,
        w0=w0,
        metrics=lambda w, problem: {"f": problem.mean_losses(w)[0]},
    )
    return vertical(problem, form)


def batch_of(problem, samples):
    rows = problem.rows[0][samples]
    weight = problem.w0.new_full((len(rows),), 1 / len(rows))
    return Batch(tuple(x[rows] for x in problem.data), weight)


def tapped(problem, algorithm, w, draw):
    """What every end sends in a round, by sender, receiver and what it is."""
    messages = {}
    send = Line._send

    def noted(line, sender, receiver, name, tensors):
        messages[sender, receiver, name] = tensors
        return send(
            line,
            sender,
            receiver,
            name,
            tensors,
        )

    state = algorithm.init(problem)._replace(w=w)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Line, "_send", noted)
        algorithm.round(fl.Vectorized(problem), state, draw)
    return messages
