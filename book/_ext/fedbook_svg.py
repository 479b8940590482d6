"""Pictures as small as the eye allows: matplotlib's SVG without what nobody sees.

Curves and bands keep their form to a twentieth of a point, and their points are written as steps
from one to the next; there is no metadata and no indentation. From the same text it is read how
wide a picture must be shown.
"""

from __future__ import annotations

import math
import re

METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
BLANKS = re.compile(r"(?<=>)\s+(?=<(?!/?tspan|/text))")
TAG = re.compile(r"<[^>]*>")
NUMBER = re.compile(r"-?\d+\.\d{3,}")
#: A path of straight lines alone: all curves, bands, grids and bars.
LINES = re.compile(r' d="((?:[ML] -?[\d.]+ -?[\d.]+ \n)+)(z?)\n?"')
NEAR = 0.05  # points

WIDTH = re.compile(r'<svg[^>]* width="([\d.]+)pt"')
LETTERS = re.compile(r"<text[^>]*?font(?:-size)?: ?[^;\"]*?([\d.]+)px")
LEGIBLE = 9  # pixels, of the smallest letters as a reader sees them

Point = tuple[float, float]


def legible_width(svg: str) -> int:
    """How many pixels wide a picture must be shown for its letters to be read; 0 without any."""
    sizes = [float(size) for size in LETTERS.findall(svg)]
    return math.ceil(float(WIDTH.findall(svg)[0]) * LEGIBLE / min(sizes)) if sizes else 0


def slim(svg: bytes) -> bytes:
    """The same picture in half of the bytes."""
    text = METADATA.sub("", svg.decode())
    text = LINES.sub(lambda found: f' d="{steps(found[1])}{found[2]}"', text)
    text = TAG.sub(lambda tag: NUMBER.sub(lambda x: short(float(x[0])), tag[0]), text)
    return BLANKS.sub("\n", text).encode()


def darkened(svg: bytes) -> bytes:
    """The picture for dark pages: words and grid in other colours, all else the same."""
    from papers.kit.plot import STYLES

    for name, color in STYLES["light"].items():
        svg = svg.replace(color.encode(), STYLES["dark"][name].encode())
    return svg


def short(x: float) -> str:
    """A number with two digits after the point, and no zero that says nothing."""
    text = f"{x:.2f}".rstrip("0").rstrip(".")
    return {"-0": "0"}.get(text, text.replace("0.", ".", 1) if abs(x) < 1 else text)


def steps(path: str) -> str:
    """A path of straight lines as steps from point to point."""
    made, at = "", (0.0, 0.0)
    for part in path.split("M ")[1:]:
        numbers = [round(float(x), 2) for x in part.replace("L", " ").split()]
        for i, point in enumerate(straightened([*zip(numbers[::2], numbers[1::2], strict=True)])):
            x, y = short(point[0] - at[0]), short(point[1] - at[1])
            mark = "m" if i == 0 else "l" if i == 1 else "" if x.startswith("-") else " "
            made += f"{mark}{x}{'' if y.startswith('-') else ' '}{y}"
            at = point
    return made.replace("m", "M", 1)


def straightened(points: list[Point]) -> list[Point]:
    """The points without those that lie on the way between others, but for `NEAR`.

    From the last point kept, the next ones are passed as long as they go further in a direction
    that leads past all of them.
    """
    kept, last = points[:1], points[0]
    ux = uy = far = low = high = 0.0
    for x, y in points[1:]:
        dx, dy = x - kept[-1][0], y - kept[-1][1]
        ahead, aside = dx * ux + dy * uy, dy * ux - dx * uy
        if last is not kept[-1] and not (ahead >= far and low * ahead <= aside <= high * ahead):
            kept.append(last)
            dx, dy = x - last[0], y - last[1]
        if last is kept[-1]:  # the direction is that to the first of them
            if not (far := math.hypot(dx, dy)):
                continue
            ux, uy, low, high = dx / far, dy / far, -NEAR / far, NEAR / far
        else:
            far = ahead
            low, high = max(low, (aside - NEAR) / far), min(high, (aside + NEAR) / far)
        last = (x, y)
    return kept if last is kept[-1] else [*kept, last]
