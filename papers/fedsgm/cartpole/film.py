"""Cartpole policies at work: one episode each, as a picture in time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from papers.fedsgm.cartpole.cart import CENTRES, FORCE, HALF_LENGTH, HALF_WIDTH, HORIZON, ends, step
from papers.fedsgm.cartpole.simulator import SIZES, CartPole
from papers.kit.plot import COLORS, Drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COSTLY = "#d62728"  # forbidden, and steps that cost
CART_SIZE = (0.44, 0.16)  # metres, to be drawn; the physics has no width
SIZE = (7.5, 6.3)  # inches, for `plot.show`: three episodes in six pictures fill it
FRAME = 1.9  # metres of paper between two pictures of the cart
CLOSE = 0.6  # of the steps between two pictures: nearer to the end than that, one is left out


class Rollout(NamedTuple):
    """One episode of L steps."""

    states: Float[Tensor, "L+1 5"]  # the physics (4) and the step, before each step and at the end
    costs: Float[Tensor, "L"]  # of each step, 0 or 1


def rollout_states(
    w: Float[Tensor, "d"], seed: int = 0, *, head: str = "gaussian", noise: bool = True
) -> Rollout:
    """One episode of a policy, to its end; without `noise` actions are the policy's medians."""
    dim = sum(SIZES)
    if w.shape != (dim,):
        raise ValueError(f"rollout_states: w must have shape [{dim}], got {list(w.shape)}.")
    checks.count("rollout_states", "seed", seed, low=0)
    simulator = CartPole(environments=1, head_name=head)
    chance = simulator.chance(1, torch.Generator().manual_seed(seed))[0].to(w)
    if not noise:
        chance[..., 4] = 0.5
    episodes = simulator.episodes(w, chance)
    length = int(episodes.first.sum())
    states, action = episodes.states[:length, 0], episodes.action[length - 1, 0]
    push = action.clamp(-1, 1) if head == "gaussian" else 2 * action - 1
    last = step(states[-1, :4], FORCE * push)  # the next episode hides it
    end = torch.cat([last, states[-1:, 4] + 1]).unsqueeze(0)
    return Rollout(torch.cat([states, end]), episodes.cost[:length, 0])


def ending(rollout: Rollout) -> str:
    """How an episode ended, in words."""
    out_of_track, fallen = ends(rollout.states[-1, :4])
    length = len(rollout.costs)
    if out_of_track:
        return f"leaves the track at step {length}"
    return f"falls at step {length}" if fallen else f"stands after {length} steps"


def film(rollouts: Mapping[str, Rollout], frames: int = 6) -> Drawing:
    """Episodes side by side, time running down the page.

    Forbidden intervals are bands from top to bottom, the line is the cart's path, in red over steps
    that cost 1; at equal times the cart and its pole are drawn to scale, with the cost so far.

    Of a full episode there are `frames` pictures, the first at step 0 and the last at step 200.
    """
    checks.count("film", "frames", frames, low=2)
    if not rollouts:
        raise ValueError("film: rollouts must hold an episode, got none.")

    def draw(fig: Figure) -> None:
        axes = fig.subplots(1, len(rollouts), squeeze=False, sharey=True)[0]
        for ax, (name, rollout) in zip(axes, rollouts.items(), strict=True):
            _column(ax, rollout, frames)
            total = int(rollout.costs.sum())
            ax.set_title(f"{name}\nreward {len(rollout.costs)}, cost {total}\n{ending(rollout)}")
            ax.set_xlabel("position in metres")
        axes[0].set_ylabel("time step")
        handles, labels = axes[0].get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside lower center", ncols=3)

    return draw


def shown_steps(length: int, frames: int) -> list[int]:
    """The steps at which the cart is drawn: equally spaced, and the last one.

    >>> shown_steps(200, 5), shown_steps(60, 5), shown_steps(52, 5)
    ([0, 50, 100, 150, 200], [0, 60], [0, 52])
    """
    gap = HORIZON / (frames - 1)
    steps = [round(i * gap) for i in range(frames)]
    return [s for s in steps if s == 0 or s <= length - CLOSE * gap] + [length]


def _column(ax: Axes, rollout: Rollout, frames: int) -> None:
    rate = FRAME * (frames - 1) / HORIZON  # metres of paper a step
    for i, centre in enumerate(CENTRES):
        left, right = centre - HALF_WIDTH, centre + HALF_WIDTH
        label = "forbidden" if i == 0 else None
        ax.axvspan(left, right, color=COSTLY, alpha=0.25, linewidth=0, label=label)
    x, down = rollout.states[:, 0].tolist(), [-rate * t for t in range(len(rollout.states))]
    ax.plot(x, down, color=COLORS[0], linewidth=1, label="path of the cart")
    costly = [t + 1 for t, cost in enumerate(rollout.costs.tolist()) if cost]
    ax.plot(
        [x[t] for t in costly], [down[t] for t in costly], ".", color=COSTLY, markersize=3,
        label="step that costs 1",
    )  # fmt: skip
    spent = [0, *rollout.costs.cumsum(0).int().tolist()]
    for t in shown_steps(len(rollout.costs), frames):
        _cart(ax, x[t], down[t], float(rollout.states[t, 2]))
        side = -1 if x[t] > 0 else 1
        ax.text(2.32 * side, down[t], f"cost {spent[t]}", ha="right" if side > 0 else "left")
    ax.set_aspect("equal")
    ax.set_xlim(-2.5, 2.5)
    ax.set_ylim(-rate * HORIZON - 0.4, 2 * HALF_LENGTH + CART_SIZE[1] + 0.2)
    ax.set_xticks([-2, -1, 0, 1, 2])
    ticks = shown_steps(HORIZON, frames)
    ax.set_yticks([-rate * t for t in ticks], [str(t) for t in ticks])
    ax.grid(visible=False, axis="x")


def _cart(ax: Axes, x: float, ground: float, angle: float) -> None:
    width, height = CART_SIZE
    left, right, top = x - width / 2, x + width / 2, ground + height
    ax.fill([left, right, right, left], [ground, ground, top, top], color=COLORS[0], zorder=3)
    length = 2 * HALF_LENGTH
    tip = (x + length * math.sin(angle), top + length * math.cos(angle))
    ax.plot([x, tip[0]], [top, tip[1]], color=COLORS[1], linewidth=2.5, zorder=4)
