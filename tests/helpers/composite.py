"""Composite pictures at random: what tests of tasks are made on."""

import torch

from papers.fedcmoo.data.pairs import CIFAR10_SCALE, MNIST_SCALE, Pairs


def random_pairs(count, seed=0, channels=1, names=("first", "second"), **options):
    rng = torch.Generator().manual_seed(seed)
    side = 28 if channels == 1 else 32
    scale = MNIST_SCALE if channels == 1 else CIFAR10_SCALE
    size = (count, channels, side, side)
    X = torch.randint(0, 256, size, generator=rng, dtype=torch.uint8)
    y = torch.randint(10, (count, 2), generator=rng)
    return Pairs(X, y, names, scale, **options)
