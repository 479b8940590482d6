"""Composite pictures at random: what tests of tasks are made on."""

import torch

from papers.fedcmoo.data.pairs import CIFAR10_SCALE, MNIST_SCALE, Pairs


def random_pairs(count, seed=0, channels=1, names=("first", "second"), **options):
    rng = torch.Generator().manual_seed(seed)
    side, scale = (28, MNIST_SCALE) if channels == 1 else (32, CIFAR10_SCALE)
    X = torch.randint(0, 256, (count, channels, side, side), generator=rng, dtype=torch.uint8)
    return Pairs(X, torch.randint(10, (count, 2), generator=rng), names, scale, **options)
