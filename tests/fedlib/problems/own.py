"""Losses, clients and a network that the tests of people's own problems share."""

import torch
from torch import nn
from torch.nn import functional as F

import fedlib as fl
from tests.helpers.randoms import generator

RNG = generator()
SIZES = (3, 12, 40)
CLIENTS = []
for size in SIZES:
    inputs = torch.randn(size, 5, generator=RNG)
    CLIENTS.append((inputs, torch.arange(size) % 2))
FEDAVG = fl.FedAvg(0.3, 2, 3)


def network(*middle):
    hidden, relu, output = fl.models.mlp((5, 8, 2))
    return nn.Sequential(hidden, *middle, relu, output)


def entropy(rows):
    losses = F.cross_entropy(rows.output, rows.target, reduction="none")
    return rows.mean(losses)


def mean_of(loss):
    """The objective of a loss of one number a row."""

    def objective(rows):
        output = rows.output.flatten()
        target = rows.target.flatten()
        return rows.mean(loss(output, target, reduction="none"))

    return objective


binary = mean_of(F.binary_cross_entropy_with_logits)
square = mean_of(F.mse_loss)


def accuracy(rows):
    return rows.mean(rows.output.argmax(1) == rows.target)


def quiet(method, problem, rounds=4, **options):
    return fl.run(method, problem, rounds=rounds, progress=False, **options)
