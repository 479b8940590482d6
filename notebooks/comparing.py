"""What two executions of a cell show, held against each other.

For pages that follow from stored runs: texts and tables must be equal, what a figure draws may be
rounded otherwise, and pictures may differ by what the eye does not see.
"""

from __future__ import annotations

import base64
import gzip
import io
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from PIL import Image

Pixels = np.ndarray[Any, Any]
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])")
SPACES = re.compile(" +")
PICTURE = re.compile(r'src="data:image/png;base64,([^"]*)"')
ADDRESS = re.compile(r"T_[0-9a-f]{5,}|at 0x[0-9a-f]+")  # of a styled table, of an object
IDENTIFIER = re.compile(r"(?<=[\"#])[a-z]?[0-9a-f]{8,}(?=[\")])")  # of a shape in an SVG
SHARE = 1e-3  # how far off a number of a figure's data may be
LEVEL, FEW = 48, 5e-5  # a pixel is another one from this level on; so many may be (as a share)
THEMES = 96  # the same between the two themes, whose palettes of 256 colours differ


def unlike(shown: Sequence[Any], made: Sequence[Any]) -> str:
    """What differs between the outputs of a cell and those made again; empty where nothing does."""
    one, other = flat(shown), flat(made)
    if [kind for kind, _ in one] != [kind for kind, _ in other]:
        return f"shows {kinds(one)}, and running it again {kinds(other)}"
    for (kind, left), (_, right) in zip(one, other, strict=True):
        found = _unlike_one(kind, left, right)
        if found:
            return found
    return ""


def flat(outputs: Sequence[Any]) -> list[tuple[str, Any]]:
    """All that is shown as (kind, content): what is printed first, put together, then the rest."""
    found = []
    outputs = [o for o in outputs if "notice" not in o.get("metadata", {})]
    for name in ("stdout", "stderr"):
        texts = [o["text"] for o in outputs if o.get("name") == name]
        if texts:
            found.append((name, "".join(texts)))
    for output in outputs:
        if output["output_type"] == "error":
            found.append(("error", output["ename"]))
        data = output.get("data", {})
        # A table comes with a plain text of it, cut to the width of some terminal.
        found += [(k, v) for k, v in sorted(data.items()) if k != "text/plain" or len(data) == 1]
        files = output.get("metadata", {}).get("fedlib", {})
        found += [(kind, files[kind]) for kind in sorted(files)]
    return [(kind, text(value)) for kind, value in found]


def text(value: Any) -> str:
    """A content as one text without what changes by chance."""
    return ADDRESS.sub("", "".join(value) if isinstance(value, list) else str(value))


def kinds(contents: Sequence[tuple[str, Any]]) -> str:
    """The kinds of some contents, to be read."""
    return ", ".join(kind for kind, _ in contents) or "nothing"


def _unlike_one(kind: str, left: str, right: str) -> str:
    """The same of one content."""
    if kind in ("csv", "svg"):
        left, right = unpacked(left), unpacked(right)
        left, right = (IDENTIFIER.sub("", t) for t in (left, right))
    pictures = [PICTURE.findall(t) for t in (left, right)]
    left, right = (PICTURE.sub("", t) for t in (left, right))
    drawn = kind in ("csv", "svg") or (kind == "text/html" and "<table" not in left)
    found = unlike_text(left, right, SHARE if drawn else 0.0)
    if found:
        return f"{kind}: {found}"
    if len(pictures[0]) != len(pictures[1]):
        return f"shows {len(pictures[0])} pictures, and running it again {len(pictures[1])}"
    for a, b in zip(*pictures, strict=True):
        if a != b and unlike_picture(pixels(a), pixels(b)):
            return "the picture is not the one that is drawn again"
    return ""


def unpacked(content: str) -> str:
    """The text of a file that a figure carries along (`papers.kit.plot.packed`)."""
    try:
        return gzip.decompress(base64.b64decode(content)).decode()
    except (OSError, ValueError, EOFError):
        return content


def unlike_text(left: str, right: str, share: float = 0.0) -> str:
    """The first place where two texts differ, with what stands there; numbers by a share."""
    if left == right:
        return ""
    if share:  # a number that is a digit shorter leaves another space beside it
        left, right = (SPACES.sub(" ", t) for t in (left, right))
    a, b = (NUMBER.split(t) for t in (left, right))
    x, y = (NUMBER.findall(t) for t in (left, right))
    if a != b:
        near = next((i for i, (p, q) in enumerate(zip(left, right, strict=False)) if p != q), None)
        start = max(0, min(len(left), len(right)) - 20 if near is None else near - 20)
        return f"{left[start : start + 50]!r} is now {right[start : start + 50]!r}"
    for p, q in zip(x, y, strict=True):
        if p != q and not close(p, q, share):
            return f"{p} is now {q}"
    return ""


def close(one: str, other: str, share: float) -> bool:
    """Whether two printed numbers are the same but for a share."""
    p, q = float(one), float(other)
    return abs(p - q) <= share * max(abs(p), abs(q))


@lru_cache(maxsize=16)
def pixels(encoded: str) -> Pixels:
    """A picture `[height, width, 4]`, its colours times what is seen of them."""
    with Image.open(io.BytesIO(base64.b64decode(encoded))) as image:
        found = np.asarray(image.convert("RGBA"), dtype=np.int32)
    return np.concatenate([found[..., :3] * found[..., 3:] // 255, found[..., 3:]], -1)


def unlike_picture(one: Pixels, other: Pixels) -> bool:
    """Whether more than a few pixels differ by more than smoothing does."""
    if one.shape != other.shape:
        return True
    return bool((abs(one - other).max(-1) > LEVEL).mean() > FEW)


def themes_differ(light: Pixels, dark: Pixels) -> bool:
    """Whether two pictures are not one figure in the styles of a light and of a dark page.

    Texts and grids are grey in both and cover the same places; what has a colour has the same.
    """
    if light.shape != dark.shape:
        return True
    hue = [np.diff(p[..., :3], axis=-1) for p in (light, dark)]
    far = (abs(hue[0] - hue[1]).max(-1) > THEMES) | (abs(light - dark)[..., 3] > THEMES)
    return bool(far.mean() > FEW)
