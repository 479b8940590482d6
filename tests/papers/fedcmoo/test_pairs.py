"""Composite pictures: geometry on planted pixels, turns, and a real set where it is."""

import pytest
import torch

from fedlib import data
from papers.fedcmoo.data import pairs
from tests.helpers.composite import random_pairs
from tests.helpers.randoms import generator


def noise(*shape, seed=0):
    return torch.randint(0, 256, shape, generator=generator(seed), dtype=torch.uint8)


@pytest.mark.parametrize(("side", "offset"), [(36, 6), (42, 14)])
def test_beside_pixel_by_pixel(side, offset):
    left = noise(2, 28, 28)
    right = noise(2, 28, 28, seed=1)
    larger = torch.zeros(2, side, side, dtype=torch.uint8)
    larger[:, :28, :28] = left
    corner = larger[:, offset : offset + 28, offset : offset + 28]
    space = corner.shape[-1]
    corner[:] = torch.maximum(corner, right[:, :space, :space])
    places = ((torch.arange(28) + 0.5) * side / 28).long()
    expected = larger[:, places][:, :, places]
    assert torch.equal(pairs.beside(left, right, side, offset), expected)


def test_blended_hides_where_the_digit_is_and_nowhere_else():
    below = noise(3, 3, 32, 32)
    digit = noise(3, 28, 28, seed=1)
    digit[digit < 128] = 0
    blended = pairs.blended(below, digit)
    framed = torch.zeros(3, 1, 32, 32, dtype=torch.uint8)
    framed[..., 2:30, 2:30] = digit.unsqueeze(1)
    mixed = (156 * framed.double() + 99 * below.double()) / 255
    exact = torch.where(framed > 0, mixed, below)
    assert (blended - exact).abs().max() <= 0.5
    assert not torch.equal(blended, below)


@pytest.mark.parametrize("nearest", [False, True])
def test_a_quarter_turn_is_exact_and_counter_clockwise(nearest):
    X = noise(4, 3, 8, 8)
    angles = torch.tensor([0.0, 90.0, -90.0, 180.0])
    turned = pairs.rotated(X, angles, nearest=nearest)
    for k, quarters in enumerate((0, 1, -1, 2)):
        assert torch.equal(turned[k], X[k].rot90(quarters, (-2, -1)))


def test_augmented_turns_every_copy_by_its_own_angle():
    pictures = random_pairs(6)
    turned = pairs.augmented(pictures, 3, generator(1))
    assert turned.shape == (18, 1, 28, 28)
    for copy, second in zip(turned[:6], turned[6:12], strict=True):
        assert not torch.equal(copy, second)
    still = random_pairs(6, angle=0)
    copies = pairs.augmented(still, 2, generator(1))
    assert torch.equal(copies, pictures.X.repeat(2, 1, 1, 1))


@pytest.mark.weekly
def test_cifar10_mnist_knows_its_exact_pictures(real):
    real("cifar10", "mnist")
    composites = pairs.load("cifar10_mnist", "test", 200)
    table = data.cifar10("test")
    frame = table.X[:200].permute(0, 3, 1, 2)[:, :, :2]
    assert composites.X.shape == (200, 3, 32, 32)
    assert torch.equal(composites.exact, table.exact[:200])
    assert torch.equal(composites.X[:, :, :2], frame)
    assert torch.equal(composites.y[:, 1], data.mnist("test").y[:200])
