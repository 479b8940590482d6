"""Cartpole policies at work: one moving picture in SVG, without scripts, for any page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from fedlib import checks
from papers.fedsgm.cartpole.cart import CENTRES, HALF_LENGTH, HALF_WIDTH, HORIZON, MAX_X
from papers.fedsgm.cartpole.film import CART_SIZE, COSTLY, Rollout, ending
from papers.kit.plot import COLORS

PANEL, HEIGHT, SCALE, GROUND = 250, 168, 48, 112  # pixels; pixels a metre; the track
LINE = 16  # pixels a line of text
STEP_TIME, HOLD = 0.04, 40  # seconds a step: half speed; steps at rest before the next play
GLYPHS = " 0123456789"


def animation(rollouts: Mapping[str, Rollout], *, plays: int = 3, id: str = "cartpolefilm") -> str:
    """Episodes side by side in the same time, with their rewards and costs so far, as SVG text.

    Text and track have the colour of the text around the picture (`currentColor`), so it follows a
    page's theme when it stands in the page itself. It plays when the page is loaded, keeps its last
    picture, and plays again at a click.

    `rollouts` are episodes by name; `id` is that of the element, unique in its page.
    """
    checks.count("animation", "plays", plays)
    if not rollouts:
        raise ValueError("animation: rollouts must hold an episode, got none.")
    if not id.isalnum():
        raise ValueError(checks.sentence("animation", "id", "be letters and digits", id))
    timing = (
        f'dur="{STEP_TIME * (HORIZON + HOLD):g}s" begin="0s;{id}.click" '
        f'repeatCount="{plays}" fill="freeze"'
    )
    words = "; ".join(
        f"{name}: reward {len(r.costs)}, cost {int(r.costs.sum())}, {ending(r)}"
        for name, r in rollouts.items()
    )
    window = f'clip-path="url(#{id}window)"'  # one digit high
    clip = f'<clipPath id="{id}window"><rect width="9" height="{LINE}"/></clipPath>'
    panels = [
        f'<g transform="translate({PANEL * i} 0)">{_panel(name, rollout, timing, window)}</g>'
        for i, (name, rollout) in enumerate(rollouts.items())
    ]
    width = PANEL * len(rollouts)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" id="{id}" viewBox="0 0 {width} {HEIGHT}" '
        f'role="img" width="100%" style="max-width:{width}px" font-family="sans-serif" '
        f'font-size="12" fill="currentColor">'
    )
    words = f"<title>Moving picture of cartpole policies. {escape(words)}.</title>"
    return "\n".join([head, words, clip, *panels, "</svg>"]) + "\n"


def _panel(name: str, rollout: Rollout, timing: str, window: str) -> str:
    """One episode; its motion, its numbers and its end all run by the same clock."""
    reward = list(range(len(rollout.costs) + 1))
    cost = [0, *rollout.costs.cumsum(0).int().tolist()]
    end = len(rollout.costs) / (HORIZON + HOLD)
    return "\n".join(
        [
            f'<text x="{PANEL / 2:g}" y="{LINE - 3}" text-anchor="middle" font-weight="bold">'
            f"{escape(name)}</text>",
            *(
                f'<rect x="{_pixel(c - HALF_WIDTH)}" y="{LINE + 6}" '
                f'width="{2 * SCALE * HALF_WIDTH:.1f}" height="{GROUND - LINE - 6}" '
                f'fill="{COSTLY}" opacity="0.25"/>'
                for c in CENTRES
            ),
            f'<line x1="{_pixel(-MAX_X)}" x2="{_pixel(MAX_X)}" y1="{GROUND}" '
            f'y2="{GROUND}" stroke="currentColor"/>',
            _cart(rollout, timing),
            _counter("reward", reward, 40, timing, window),
            _counter("cost", cost, 150, timing, window),
            f'<text x="{PANEL / 2:g}" y="{HEIGHT - 8}" text-anchor="middle" opacity="0">'
            f"{escape(ending(rollout))}"
            f'<animate attributeName="opacity" values="0;1" keyTimes="0;{end:.4f}" '
            f'calcMode="discrete" {timing}/></text>',
        ]
    )


def _cart(rollout: Rollout, timing: str) -> str:
    """The cart, red where it costs, and its pole, at their first state until they are moved."""
    x = [_pixel(value) for value in rollout.states[:, 0].tolist()]
    tilt = [f"{math.degrees(value):.1f}" for value in rollout.states[:, 2].tolist()]
    costs = [0, *rollout.costs.int().tolist()]
    fill = [COSTLY if cost else COLORS[0] for cost in costs]
    width, height = (SCALE * side for side in CART_SIZE)
    length = 2 * SCALE * HALF_LENGTH
    places = [f"{value} {GROUND - 1}" for value in x]
    return (
        f'<g transform="translate({places[0]})">'
        f'<rect x="{-width / 2:.1f}" y="{-height:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'fill="{fill[0]}">{_moving("animate", "fill", fill, timing)}</rect>'
        f'<g transform="translate(0 {-height:.1f})"><line y2="{-length:.1f}" '
        f'stroke="{COLORS[1]}" stroke-width="4" transform="rotate({tilt[0]})">'
        f"{_moving('rotate', 'transform', tilt, timing)}</line></g>"
        f"{_moving('translate', 'transform', places, timing)}</g>"
    )


def _counter(label: str, counts: Sequence[int], x: int, timing: str, window: str) -> str:
    """A word and a number of three digits, each a strip of glyphs behind a window."""
    y = GROUND + 14
    parts = [f'<text x="{x}" y="{y + LINE - 4}">{label}</text>']
    strip = "".join(
        f'<text y="{LINE * i + LINE - 4}">{glyph}</text>'
        for i, glyph in enumerate(GLYPHS)
        if glyph != " "
    )
    for place in range(3):
        digits = [f"{count:3d}"[place] for count in counts]
        shifts = [f"0 {-LINE * GLYPHS.index(digit)}" for digit in digits]
        parts.append(
            f'<g transform="translate({x + 7 * len(label) + 8 * place} {y})" {window}>'
            f'<g transform="translate({shifts[0]})">{strip}'
            f"{_moving('translate', 'transform', shifts, timing)}</g></g>"
        )
    return "\n".join(parts)


def _moving(kind: str, attribute: str, values: Sequence[str], timing: str) -> str:
    """The attribute's value at each step, the last one until the clock stops.

    A value that stays is written once, with the time at which it begins.
    """
    changes = [i for i, value in enumerate(values) if i == 0 or value != values[i - 1]]
    whole = HORIZON + HOLD
    times = ";".join(f"{i / whole:.4f}".rstrip("0").rstrip(".") for i in changes)
    listed = ";".join(values[i] for i in changes)
    tag = "animate" if kind == "animate" else "animateTransform"
    kinds = "" if kind == "animate" else f' type="{kind}"'
    return (
        f'<{tag} attributeName="{attribute}"{kinds} calcMode="discrete" '
        f'keyTimes="{times}" values="{listed}" {timing}/>'
    )


def _pixel(x: float) -> str:
    """The place of a position on the track, in metres, within a panel."""
    return f"{PANEL / 2 + SCALE * x:.1f}"
