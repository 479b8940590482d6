"""Samplers against what they promise."""

import itertools
import math
from math import log

import numpy as np
import pytest
import torch

from papers.fedsgm import noise as c
from tests.helpers.randoms import generator


def test_samples_are_of_distinct_clients_and_uniform():
    values = torch.eye(5, dtype=torch.float64)
    means = c.sample_means(values, 2, 4000, generator())
    assert set(means.flatten().tolist()) == {0.0, 0.5}
    assert torch.allclose(means.sum(1), torch.ones(4000, dtype=torch.float64))
    assert (means.mean(0) - 0.2).abs().max() < 0.02


@pytest.mark.parametrize("family", c.FAMILIES)
@pytest.mark.parametrize("dim", [1, 4])
def test_noise_is_centred_and_meets_the_assumption_with_equality(family, dim):
    x = c.noise(family, (400, 500), dim, generator(1))
    assert x.shape == (400, 500, dim)
    assert x.mean((0, 1)).abs().max() < 0.01
    level = x.square().sum(-1)
    # exp(radius^2) has no variance for some families: cut where all of them still have mass
    capped = level.clamp(max=1.0).exp().mean()
    if family == "exponential":
        theta = 1 - 1 / math.e
        below = (1 - math.exp(-(1 - theta) / theta)) / (1 - theta)
        above = math.exp(1 - 1 / theta)
        assert capped == pytest.approx(below + above, rel=0.01)
    elif family == "gaussian":
        v = (1 - math.exp(-2 / dim)) / 2
        assert (1 - 2 * v) ** (-dim / 2) == pytest.approx(math.e)
        assert level.mean() == pytest.approx(dim * v, rel=0.02)
    else:
        assert level.exp().mean() == pytest.approx(math.e, rel=0.1)


def test_mean_of_a_batch_meets_its_noise_level():
    x = c.noise("sphere", (200_000, 12), 3, generator(2)).mean(1)
    sigma = c.batch_noise(1.0, 12)
    assert sigma < 1
    assert (x.square().sum(-1) / sigma**2).exp().mean() < math.e
    assert (x.square().sum(-1) / (sigma / 3) ** 2).exp().mean() > math.e
    assert c.batch_noise(2.0, 1) == 2.0


def test_worst_law_is_never_above_the_assumptions_own_level():
    for x in (1.0, 3.0):
        assert c.largest_proxy(x, points=401)[0] <= 1
    value, law = c.largest_proxy(0.2, points=401)
    assert 0.98 < value <= 1  # a random sign is nearly the worst
    assert np.abs(np.abs(law) - 1).max() < 0.1
    short, _ = c.largest_proxy(0.65, vector=True, points=401)
    long, _ = c.largest_proxy(5.0, vector=True, points=401)
    expected = 2 * log(math.exp(0.65) - 0.65) / 0.65**2
    assert short == pytest.approx(expected, rel=1e-6)
    assert long < 1 < short < 1.5


def test_value_exponent_is_the_mean_over_everything_that_can_happen():
    values = torch.tensor([[0.0, 1.0], [2.0, -1.0], [0.5, 0.5]], dtype=torch.float64)
    exponentials = []
    for a, b in ((0, 1), (0, 2), (1, 2)):
        for i, j in itertools.product(range(2), repeat=2):
            report = float(values[a, i] + values[b, j]) / 2
            exponentials.append(math.exp(1.5 * (report - 0.5)))
    expected = math.log(np.mean(exponentials))
    assert c.value_exponent(values, 2, 1, 1.5) == pytest.approx(expected)
    assert c.value_exponent(values, 2, 2, 1.5) < expected
