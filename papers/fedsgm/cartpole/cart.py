"""The cart and its pole: the dynamics, the forbidden places, the ends of an episode.

Those of the classic control problem (Barto, Sutton, Anderson 1983, as in Gymnasium's CartPole):
gravity 9.8, cart 1.0 kg, pole 0.1 kg, half length 0.5 m, time step 0.02 s, explicit Euler.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

GRAVITY, CART, POLE, HALF_LENGTH, FORCE, TAU = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
MAX_X, MAX_ANGLE, HORIZON = 2.4, 12 * math.pi / 180, 200
CENTRES, HALF_WIDTH = (-2.3, -1.2, 0.0, 1.2, 2.3), 0.1
SAFE_ANGLE = 6 * math.pi / 180


def step(state: Float[Tensor, "*b 4"], force: Float[Tensor, "*b"]) -> Float[Tensor, "*b 4"]:
    """One time step: position, velocity, angle and angular velocity under a force in newton."""
    x, v, angle, spin = state.unbind(-1)
    cos, sin = torch.cos(angle), torch.sin(angle)
    mass = CART + POLE
    push = (force + POLE * HALF_LENGTH * spin * spin * sin) / mass
    turn = (GRAVITY * sin - cos * push) / (HALF_LENGTH * (4 / 3 - POLE * cos * cos / mass))
    pull = push - POLE * HALF_LENGTH / mass * turn * cos
    return torch.stack([x + TAU * v, v + TAU * pull, angle + TAU * spin, spin + TAU * turn], -1)


def forbidden(state: Float[Tensor, "*b 4"]) -> Bool[Tensor, "*b"]:
    """Whether a state costs 1: the cart in a forbidden interval, or the pole beyond 6 degrees."""
    x, angle = state[..., 0], state[..., 2]
    centres = torch.tensor(CENTRES, dtype=x.dtype, device=x.device)
    close = ((x.unsqueeze(-1) - centres).abs() <= HALF_WIDTH + 1e-7).any(-1)
    return close | (angle.abs() > SAFE_ANGLE)


def ends(state: Float[Tensor, "*b 4"]) -> tuple[Bool[Tensor, "*b"], Bool[Tensor, "*b"]]:
    """Whether the cart has left the track, and whether the pole has fallen."""
    return state[..., 0].abs() > MAX_X, state[..., 2].abs() > MAX_ANGLE
