"""Constrained cartpole as an environment of Gymnasium, for methods that are written for its API.

The physics, the costs and the ends are those of `papers.fedsgm.cartpole.cart`; this file only
speaks the other interface. Importing it registers `fedlib/ConstrainedCartPole-v0`; Gymnasium looks
for no plugins since its version 1.0, so either import this module first or name it:
`gymnasium.make("papers.fedsgm.cartpole.environment:fedlib/ConstrainedCartPole-v0")`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image, ImageDraw
from torch import Tensor

from fedlib import checks
from fedlib.checks import Seed
from papers.fedsgm.cartpole.cart import (
    CENTRES,
    FORCE,
    HALF_LENGTH,
    HALF_WIDTH,
    HORIZON,
    MAX_X,
    TAU,
    ends,
    forbidden,
    step,
)

try:
    import gymnasium
except ImportError as missing:
    raise ImportError(
        "papers.fedsgm.cartpole.environment: gymnasium must be installed for this module, and for "
        "no other; pip install 'fedlib[rl]'."
    ) from missing

#: What `gymnasium.make` knows the environment by, once this module is imported.
ID = "fedlib/ConstrainedCartPole-v0"

#: Position, velocity, angle, angular velocity: no 200 steps lead farther, whatever is done.
LIMITS = (4.0, 80.0, 0.7, 30.0)
START = 0.05  # a new episode's four numbers are uniform within it
WIDTH, HEIGHT, SCALE, GROUND = 600, 220, 110, 170  # a picture's pixels, pixels a metre, the track
INK, PLAIN, WARNING, SHADE = (34, 34, 34), (42, 127, 191), (214, 39, 40), (246, 213, 213)
WOOD = (217, 120, 45)

Observation = Float[np.ndarray, "4"]


class ConstrainedCartPole(gymnasium.Env[Observation, Any]):
    """Balance a pole while the cart keeps away from five forbidden intervals.

    An observation is position (m), velocity (m/s), angle (rad) and angular velocity (rad/s), in
    float32; the physics runs in float64. Every step is rewarded by 1. Its cost, 1 or 0, stands in
    `info["cost"]` and is that of the state that the step leads to. An episode is terminated when
    the cart leaves the track or the pole falls, and truncated after 200 steps.

    Parameters
    ----------
    discrete : two actions, push left (0) or right (1) with 10 N; else one number in [-1, 1], times
        10 N, clipped if it lies outside.
    render_mode : None, or `"rgb_array"` for pictures.

    Raises
    ------
    ValueError
        for another `render_mode`, an action that is none, or a start that is no state.
    gymnasium.error.ResetNeeded
        for a step before `reset`, or after the end of an episode.

    Reference: FedSGM (F), constrained Markov decision processes, Figures 3 and 4.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - Gymnasium's own attribute
        "render_modes": ["rgb_array"],
        "render_fps": round(1 / TAU),
    }

    def __init__(self, discrete: bool = False, render_mode: str | None = None) -> None:
        checks.value("ConstrainedCartPole", "discrete", discrete, bool)
        checks.one_of("ConstrainedCartPole", "render_mode", render_mode, (None, "rgb_array"))
        high = np.array(LIMITS, dtype=np.float32)
        self.observation_space = gymnasium.spaces.Box(-high, high, dtype=np.float32)
        self.action_space = (
            gymnasium.spaces.Discrete(2)
            if discrete
            else gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
        )
        self.discrete = discrete
        self.render_mode = render_mode
        self.state = torch.zeros(4, dtype=torch.float64)
        self.time = 0
        self.running = False

    def reset(
        self, *, seed: Seed | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """A new episode: four numbers uniform in [-0.05, 0.05], or `options["state"]`."""
        checks.arguments(ConstrainedCartPole.reset, locals())
        super().reset(seed=seed)
        start = (options or {}).get("state")
        if start is None:
            start = self.np_random.uniform(-START, START, 4)
        state = _numbers(start)
        if state.shape != (4,) or not torch.isfinite(state).all():
            rule = "be four finite numbers"
            raise ValueError(checks.sentence("ConstrainedCartPole", "state", rule, start))
        self.state, self.time, self.running = state, 0, True
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """One step of 0.02 s: observation, reward 1, terminated, truncated, `{"cost": 0 or 1}`."""
        if not self.running:
            raise gymnasium.error.ResetNeeded(
                "ConstrainedCartPole: step must follow a reset, got one outside of an episode; "
                "call reset() first."
            )
        force = torch.tensor(self._force(action), dtype=torch.float64)
        self.state, self.time = step(self.state, force), self.time + 1
        out_of_track, fallen = ends(self.state)
        terminated = bool(out_of_track | fallen)
        truncated = self.time >= HORIZON
        self.running = not (terminated or truncated)
        cost = float(forbidden(self.state))
        return self._observation(), 1.0, terminated, truncated, {"cost": cost}

    def render(self) -> UInt8[np.ndarray, "220 600 3"] | None:
        """The present state as a picture; None without a render mode."""
        return None if self.render_mode is None else picture(self.state)

    def _observation(self) -> Observation:
        return self.state.numpy().astype(np.float32)

    def _force(self, action: Any) -> float:
        """In newton."""
        given = _numbers(action).flatten()
        number = float(given[0]) if len(given) == 1 else math.nan
        if self.discrete and number in (0.0, 1.0):
            return FORCE * (2 * number - 1)
        if self.discrete or math.isnan(number):
            rule = "be 0 or 1" if self.discrete else "be one number"
            raise ValueError(checks.sentence("ConstrainedCartPole", "action", rule, action))
        return FORCE * min(max(number, -1.0), 1.0)


def _numbers(given: Any) -> Float[Tensor, "..."]:
    """What was given, as a tensor of its own; NaN where it is no numbers."""
    if isinstance(given, Tensor):
        return given.to(torch.float64, copy=True)
    try:
        return torch.from_numpy(np.array(given, dtype=np.float64))
    except (TypeError, ValueError):
        return torch.tensor(math.nan, dtype=torch.float64)


def picture(state: Float[Tensor, "4"]) -> UInt8[np.ndarray, "220 600 3"]:
    """The track with its forbidden intervals, the cart, red where the state costs, and the pole."""
    image = Image.new("RGB", (WIDTH, HEIGHT), (255, 255, 255))
    pen = ImageDraw.Draw(image)
    for centre in CENTRES:
        left, right = (_pixel(centre + side * HALF_WIDTH) for side in (-1, 1))
        pen.rectangle((left, 0, right, HEIGHT), fill=SHADE)
    pen.line((_pixel(-MAX_X), GROUND, _pixel(MAX_X), GROUND), fill=INK, width=2)
    x, angle = float(state[0]), float(state[2])
    colour = WARNING if bool(forbidden(state)) else PLAIN
    pen.rectangle((_pixel(x - 0.2), GROUND - 24, _pixel(x + 0.2), GROUND - 2), fill=colour)
    tip = 2 * HALF_LENGTH
    top = (_pixel(x + tip * math.sin(angle)), GROUND - 24 - round(SCALE * tip * math.cos(angle)))
    pen.line((_pixel(x), GROUND - 24, *top), fill=WOOD, width=7)
    return np.asarray(image).copy()


def _pixel(x: float) -> int:
    """The column of a position on the track, in metres."""
    return round(WIDTH / 2 + SCALE * x)


if ID not in gymnasium.registry:
    gymnasium.register(
        id=ID,
        entry_point="papers.fedsgm.cartpole.environment:ConstrainedCartPole",
        max_episode_steps=HORIZON,
    )
