"""Composite pictures: geometry on planted pixels, turns, and the real sets where they are."""

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
    canvas = pairs.beside(left, right, side, offset)
    for r in range(28):
        for c in range(28):
            y = int((r + 0.5) * side / 28)
            x = int((c + 0.5) * side / 28)
            values = torch.zeros(2, dtype=torch.uint8)
            if y < 28 and x < 28:
                values = left[:, y, x]
            if 0 <= y - offset < 28 and 0 <= x - offset < 28:
                values = torch.maximum(values, right[:, y - offset, x - offset])
            assert torch.equal(canvas[:, r, c], values), (r, c)


def test_blended_hides_where_the_digit_is_and_nowhere_else():
    below = noise(3, 3, 32, 32)
    digit = noise(3, 28, 28, seed=1)
    digit[digit < 128] = 0
    untouched = below.clone()
    blended = pairs.blended(below, digit)
    assert torch.equal(below, untouched)
    frame = torch.ones(32, 32, dtype=torch.bool)
    frame[2:30, 2:30] = False
    assert torch.equal(blended[..., frame], below[..., frame])
    inside = blended[:, :, 2:30, 2:30].double()
    old = below[:, :, 2:30, 2:30].double()
    over = digit.unsqueeze(1).double().expand_as(old)
    exact = torch.where(over > 0, (156 * over + 99 * old) / 255, old)
    assert (inside - exact).abs().max() <= 0.5
    assert (inside != old).any()


def test_a_quarter_turn_is_exact_and_counter_clockwise():
    X = noise(4, 3, 8, 8)
    for nearest in (False, True):
        turned = pairs.rotated(
            X,
            torch.tensor([0.0, 90.0, -90.0, 180.0]),
            nearest=nearest,
        )
        assert torch.equal(turned[0], X[0])
        assert torch.equal(turned[1], X[1].rot90(1, (-2, -1)))
        assert torch.equal(turned[2], X[2].rot90(-1, (-2, -1)))
        assert torch.equal(turned[3], X[3].rot90(2, (-2, -1)))


def sample(count=6, **options):
    return random_pairs(count, **options)


def test_augmented_turns_every_copy_by_its_own_angle():
    set_ = sample()
    turned = pairs.augmented(set_, 3, generator(1))
    assert turned.shape == (18, 1, 28, 28)
    assert torch.equal(turned, pairs.augmented(set_, 3, generator(1)))
    copy_1 = turned[:6]
    copy_2 = turned[6:12]
    assert not any(torch.equal(a, b) for a, b in zip(copy_1, copy_2, strict=True))
    assert torch.equal(pairs.augmented(sample(angle=0), 2, generator(1)), set_.X.repeat(2, 1, 1, 1))


# ---- real files -----------------------------------------------------------------------------


@pytest.mark.weekly
def test_cifar10_mnist_knows_its_exact_pictures(real):
    real("cifar10", "mnist")
    composites = pairs.load("cifar10_mnist", "test", 200)
    table = data.cifar10("test")
    assert composites.X.shape == (200, 3, 32, 32)
    assert torch.equal(composites.exact, table.exact[:200])
    assert torch.equal(composites.X[:, :, :2], table.X[:200].permute(0, 3, 1, 2)[:, :, :2])
    assert torch.equal(composites.y[:, 1], data.mnist("test").y[:200])
