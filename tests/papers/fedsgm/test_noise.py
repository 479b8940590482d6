"""Samplers against what they promise."""

import itertools
import math

import numpy as np
import pytest
import torch

from papers.fedsgm import noise as c
from tests.helpers.expect import near
from tests.helpers.randoms import generator


def test_samples_are_of_distinct_clients_and_uniform():
    values = torch.eye(5, dtype=torch.float64)
    means = c.sample_means(
        values,
        2,
        4000,
        generator(),
    )
    assert set(means.flatten().tolist()) == {0.0, 0.5}
    assert torch.allclose(means.sum(1), torch.ones(4000, dtype=torch.float64))
    assert (means.mean(0) - 0.2).abs().max() < 0.02


@pytest.mark.parametrize("family", c.FAMILIES)
@pytest.mark.parametrize("dim", [1, 4])
def test_noise_is_centred_and_meets_the_assumption_with_equality(family, dim):
    x = c.noise(
        family,
        (400, 500),
        dim,
        generator(1),
    )
    assert x.shape == (400, 500, dim)
    assert x.mean((0, 1)).abs().max() < 0.01
    level = x.square().sum(-1)
    # exp(radius^2) has no variance for some families: cut where all of them still have mass
    capped = level.clamp(max=1.0).exp().mean()
    if family == "exponential":
        theta = 1 - 1 / math.e
        below = (1 - math.exp(-(1 - theta) / theta)) / (1 - theta)
        above = math.exp(1 - 1 / theta)
        near(capped, below + above, rel=0.01)
    elif family == "gaussian":
        v = (1 - math.exp(-2 / dim)) / 2
        near((1 - 2 * v) ** (-dim / 2), math.e)
        near(level.mean(), dim * v, rel=0.02)
    else:
        near(level.exp().mean(), math.e, rel=0.1)


def test_value_exponent_is_the_mean_over_everything_that_can_happen():
    values = torch.tensor([[0.0, 1.0], [2.0, -1.0], [0.5, 0.5]], dtype=torch.float64)
    exponentials = []
    for a, b in ((0, 1), (0, 2), (1, 2)):
        for i, j in itertools.product(range(2), repeat=2):
            report = float(values[a, i] + values[b, j]) / 2
            exponentials.append(math.exp(1.5 * (report - 0.5)))
    expected = math.log(np.mean(exponentials))
    near(c.value_exponent(values, 2, 1, 1.5), expected)
    assert c.value_exponent(values, 2, 2, 1.5) < expected
