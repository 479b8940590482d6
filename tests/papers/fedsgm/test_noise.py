"""Samplers against what they promise."""

import itertools
import math

import numpy as np
import pytest
import torch

from papers.fedsgm import noise
from tests.helpers.expect import close, near
from tests.helpers.problems import double
from tests.helpers.randoms import generator


def test_samples_are_of_distinct_clients_and_uniform():
    values = torch.eye(5, dtype=torch.float64)
    means = noise.sample_means(values, 2, 4000, generator())
    assert {*means.flatten().tolist()} == {0.0, 0.5}
    close(means.sum(1), torch.ones(4000).double())
    assert (means.mean(0) - 0.2).abs().max() < 0.02


def gaussian_level(dim):
    """The mean of |x|^2 with E exp |x|^2 = e."""
    return dim * (1 - math.exp(-2 / dim)) / 2


def capped_exponential():
    """E exp min(|x|^2, 1), as the level has no variance."""
    theta = 1 - 1 / math.e
    below = (1 - math.exp(-(1 - theta) / theta)) / (1 - theta)
    return below + math.exp(1 - 1 / theta)


@pytest.mark.parametrize("family", noise.FAMILIES)
@pytest.mark.parametrize("dim", [1, 4])
def test_noise_is_centred_and_meets_the_assumption_with_equality(family, dim):
    x = noise.noise(family, (400, 500), dim, generator(1))
    assert x.shape == (400, 500, dim)
    assert x.mean((0, 1)).abs().max() < 0.01
    level = x.square().sum(-1)
    if family == "exponential":
        near(level.clamp(max=1.0).exp().mean(), capped_exponential(), rel=0.01)
    elif family == "gaussian":
        near(level.mean(), gaussian_level(dim), rel=0.02)
    else:
        near(level.exp().mean(), math.e, rel=0.1)


def test_value_exponent_is_the_mean_over_everything_that_can_happen():
    values = double([0.0, 1.0], [2.0, -1.0], [0.5, 0.5])
    exponentials = []
    for a, b in itertools.combinations(values.tolist(), 2):
        for value, second in itertools.product(a, b):
            report = (value + second) / 2
            exponentials.append(math.exp(1.5 * (report - 0.5)))
    expected = math.log(np.mean(exponentials))
    near(noise.value_exponent(values, 2, 1, 1.5), expected)
    assert noise.value_exponent(values, 2, 2, 1.5) < expected
