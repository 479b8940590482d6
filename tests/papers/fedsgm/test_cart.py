"""The cart and its pole: the equations of motion, the forbidden places, the ends."""

import math

import torch

from papers.fedsgm.cartpole.cart import (
    CART,
    FORCE,
    GRAVITY,
    HALF_LENGTH,
    MAX_ANGLE,
    MAX_X,
    POLE,
    SAFE_ANGLE,
    TAU,
    ends,
    forbidden,
    step,
)


def test_the_constants_are_those_of_the_classic_problem():
    assert (GRAVITY, CART, POLE, HALF_LENGTH, FORCE, TAU) == (9.8, 1.0, 0.1, 0.5, 10.0, 0.02)
    assert abs(MAX_ANGLE - math.radians(12)) < 1e-12
    assert MAX_X == 2.4


def test_a_step_solves_the_equations_of_motion():
    """(M + m) a + m l (alpha cos - omega^2 sin) = F;  4/3 l alpha + a cos = g sin."""
    rng = torch.Generator().manual_seed(0)
    states = torch.randn(50, 4, generator=rng, dtype=torch.float64)
    forces = 10 * torch.randn(50, generator=rng, dtype=torch.float64)
    for state, force, after in zip(states, forces, step(states, forces), strict=True):
        x, v, angle, spin = state
        cos, sin = angle.cos(), angle.sin()
        lever = POLE * HALF_LENGTH
        matrix = torch.stack([
            torch.stack([torch.tensor(CART + POLE, dtype=torch.float64), lever * cos]),
            torch.stack([cos, torch.tensor(4 / 3 * HALF_LENGTH, dtype=torch.float64)]),
        ])  # fmt: skip
        pull, turn = torch.linalg.solve(
            matrix, torch.stack([force + lever * spin**2 * sin, GRAVITY * sin])
        )
        wanted = torch.stack([x + TAU * v, v + TAU * pull, angle + TAU * spin, spin + TAU * turn])
        torch.testing.assert_close(after, wanted, rtol=1e-12, atol=1e-12)


def test_forbidden_places_and_ends():
    def at(x=0.5, angle=0.0):
        return torch.tensor([x, 0.0, angle, 0.0], dtype=torch.float64)

    for centre in (-2.3, -1.2, 0.0, 1.2, 2.3):
        assert forbidden(at(centre - 0.1))
        assert forbidden(at(centre + 0.1))
        assert not forbidden(at(centre + 0.11))
    assert [bool(forbidden(at(angle=a * SAFE_ANGLE))) for a in (-1.01, 0.99, 1.01)] == [1, 0, 1]
    for x, gone in ((-2.41, True), (-2.4, False), (2.4, False), (2.41, True)):
        assert [bool(e) for e in ends(at(x))] == [gone, False]
    for angle, fallen in ((-1.01, True), (-1.0, False), (1.0, False), (1.01, True)):
        assert [bool(e) for e in ends(at(angle=angle * MAX_ANGLE))] == [False, fallen]
