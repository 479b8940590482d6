"""The network for pictures of the FedFW experiments (the authors' code; the paper says CNN)."""

from __future__ import annotations

import math

import torch
from torch import nn

from fedlib import checks
from fedlib.checks import Count, Rng


def picture_cnn(
    rng: Rng, *, channels: Count = 1, side: Count = 28, classes: Count = 10
) -> nn.Sequential:
    """Two convolutions of 5 x 5 with max-pooling of 2 and ReLU, then linear maps; 184,586 numbers.

    Convolutions `channels`-32-64, linear 1024-128 with ReLU and 128-`classes` (1024 for a side of
    28). Weights and biases start uniform in +-1/sqrt(inputs of a unit), drawn from `rng`.

    Raises ValueError or TypeError for counts out of range; `side` is 16 at least.
    """
    checks.arguments(picture_cnn, locals())
    checks.count("picture_cnn", "side", side, low=16)
    left = ((side - 4) // 2 - 4) // 2
    with torch.device("meta"):  # without storage first: nothing comes from the global generator
        module = nn.Sequential(
            *(nn.Conv2d(channels, 32, 5), nn.MaxPool2d(2), nn.ReLU()),
            *(nn.Conv2d(32, 64, 5), nn.MaxPool2d(2), nn.ReLU()),
            *(nn.Flatten(-3), nn.Linear(64 * left**2, 128), nn.ReLU(), nn.Linear(128, classes)),
        )
    module = module.to_empty(device="cpu")
    with torch.no_grad():
        for part in module:
            if isinstance(part, (nn.Conv2d, nn.Linear)):
                bound = 1 / math.sqrt(part.weight[0].numel())
                for parameter in part.parameters():
                    parameter.uniform_(-bound, bound, generator=rng)
    return module
