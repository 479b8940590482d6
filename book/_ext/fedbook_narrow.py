"""Figures for phones: the columns of a wide SVG below each other, in a second SVG.

Nothing is drawn again: the second file shows parts of the first picture in other places. A page
names both files, and a browser takes the second one where the window is narrow.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from docutils import nodes
from fedbook_figures import FIGURES, HEIGHT, WIDTH, write_if_changed
from PIL import ImageFont
from sphinx.application import Sphinx

WINDOW = "(max-width: 600px)"  # of the windows that get the second file
IMAGE = re.compile(r'<img [^>]*class="fig dark-light[^>]*src="([^"]*_images/)([^"/]+)\.svg"[^>]*>')
WIDEST = 300.0  # points that columns side by side may take: a phone shows them at 9/10 of the size
GAP = 4.0  # points between a panel and what the next one has at its left
HANDLE = 2.9  # of a legend's line and the gap before its words, in sizes of its letters
LINE = 1.5  # of a legend's lines, in sizes of its letters
SVG = "{http://www.w3.org/2000/svg}"
NUMBER = r"-?\d+(?:\.\d+)?"
POINT = re.compile(rf"({NUMBER}) ({NUMBER})")
ROTATION = re.compile(rf"rotate\(({NUMBER})")
ORIGIN = re.compile(rf"translate\(({NUMBER}) ({NUMBER})\)")
FONT_SIZE = re.compile(r"font(?:-size)?: ?[^;\"]*?([\d.]+)px")
WHOLE = re.compile(r"(<svg[^>]*>)(.*)</svg>\s*$", re.DOTALL)
SIZE = re.compile(r'(width|height)="[\d.]+pt"')
VIEW = re.compile(r'viewBox="[^"]*"')


class Box(NamedTuple):
    """A part of a picture, in points; y grows downwards."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        """From left to right."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """From top to bottom."""
        return self.bottom - self.top


class Panel(NamedTuple):
    """Axes of a picture: their frame, and the words at their left."""

    frame: Box
    words_left: float  # where the leftmost of all words begins
    has_ticks: bool  # whether the vertical axis has numbers or names
    label: Box | None  # the vertical axis' name


@cache
def measuring_font() -> ImageFont.FreeTypeFont:
    """The font that the figures name first, 100 points tall."""
    from matplotlib import font_manager

    path = font_manager.findfont("DejaVu Sans")
    return ImageFont.truetype(path, 100, layout_engine=ImageFont.Layout.BASIC)


class Words(NamedTuple):
    """A text of a picture."""

    box: Box
    is_upright: bool  # whether it runs upwards, as the name of a vertical axis does


def length_of(letters: str, size: float) -> float:
    """How long a text is, in points."""
    return measuring_font().getlength(letters) / 100 * size


def words_of(group: ElementTree.Element) -> Words | None:
    """The text that a group of matplotlib's holds; None if it has no letters."""
    text = next(group.iter(f"{SVG}text"), None)
    if text is None:
        return None
    pieces = text.findall(f"{SVG}tspan")
    if pieces:  # a formula, whose group is moved
        moved = group.find(f"{SVG}g")
        transform = "" if moved is None else moved.get("transform", "")
        return formula_words(pieces, transform)
    font_size = FONT_SIZE.search(text.get("style", ""))
    letters = "".join(text.itertext()).strip()
    if font_size is None or not letters:
        return None
    anchor = re.search(r"text-anchor: (\w+)", text.get("style", ""))
    point = float(text.get("x", "0")), float(text.get("y", "0"))
    size = float(font_size[1])
    transform = text.get("transform", "")
    alignment = anchor[1] if anchor else "start"
    return placed_words(point, length_of(letters, size), size, alignment, transform)


def formula_words(pieces: Sequence[ElementTree.Element], transform: str) -> Words | None:
    """A text that is set in pieces from a point on."""
    origin = ORIGIN.search(transform)
    font_sizes = [FONT_SIZE.search(piece.get("style", "")) for piece in pieces]
    sizes = [float(match[1]) for match in font_sizes if match]
    if origin is None or not sizes:
        return None
    ends = []
    for piece in pieces:
        start = float(piece.get("x", "0").split()[-1])
        ends.append(start + length_of((piece.text or "")[-1:], sizes[0]))
    point = float(origin[1]), float(origin[2])
    return placed_words(point, max(ends), max(sizes), "start", transform)


def placed_words(
    point: tuple[float, float], length: float, size: float, alignment: str, transform: str
) -> Words:
    """A text at a point, with its length, the size of its letters, and how it is turned."""
    x, y = point
    offset = {"middle": length / 2, "end": length}.get(alignment, 0.0)
    turned = ROTATION.search(transform)
    if turned is not None and abs(float(turned[1])) == 90:
        box = Box(x - size, y - length + offset, x + 0.3 * size, y + offset)
        return Words(box, is_upright=True)
    box = Box(x - offset, y - size, x - offset + length, y + 0.3 * size)
    return Words(box, is_upright=False)


def all_words(group: ElementTree.Element) -> list[Words]:
    """The texts of a group."""
    groups = [inner for inner in group.iter(f"{SVG}g") if inner.get("id", "").startswith("text_")]
    texts = map(words_of, groups)
    return [words for words in texts if words is not None]


def at_the_left(boxes: Sequence[Box], frame: Box) -> list[Box]:
    """Those of some boxes that stand at the left of a frame."""
    left_boxes = []
    for box in boxes:
        middle = (box.top + box.bottom) / 2
        if box.left < frame.left - 1 and frame.top - 12 < middle < frame.bottom + 6:
            left_boxes.append(box)
    return left_boxes


def frame_of(axes: ElementTree.Element) -> Box | None:
    """The frame of some axes: the rectangle that matplotlib draws before all else."""
    path = axes.find(f"{SVG}g/{SVG}path")
    if path is None:
        return None
    points = [(float(x), float(y)) for x, y in POINT.findall(path.get("d", ""))]
    if len(points) < 3:
        return None
    x, y = zip(*points, strict=True)
    return Box(min(x), min(y), max(x), max(y))


def panel_of(axes: ElementTree.Element) -> Panel | None:
    """What is to be known of some axes; None if they have no frame."""
    frame = frame_of(axes)
    if frame is None:
        return None
    words = all_words(axes)
    labels = at_the_left([x.box for x in words if x.is_upright], frame)
    ticks = at_the_left([x.box for x in words if not x.is_upright], frame)
    return Panel(
        frame,
        min([frame.left - GAP, *(box.left for box in (*labels, *ticks))]),
        bool(ticks),
        min(labels, default=None),  # the one furthest left
    )


def columns_of(panels: Sequence[Panel]) -> list[list[Panel]]:
    """Panels that stand below each other, from left to right."""
    columns: list[list[Panel]] = []
    for panel in sorted(panels, key=lambda panel: panel.frame.left):
        if columns and panel.frame.left < columns[-1][0].frame.right - 1:
            columns[-1].append(panel)
        else:
            columns.append([panel])
    return columns


class Part(NamedTuple):
    """A column of a picture, and what it borrows from the first column, shown at its left."""

    box: Box
    borrowed: list[Box]

    @property
    def margin(self) -> float:
        """How wide the borrowed is."""
        return max((box.width for box in self.borrowed), default=0.0)

    @property
    def width(self) -> float:
        """How wide all of it is."""
        return self.margin + self.box.width


def parts_of(columns: Sequence[Sequence[Panel]], band: Box) -> list[Part]:
    """The columns of a picture, from left to right.

    A column whose vertical axes have no numbers, or no names, borrows those of the first one.
    """
    edges = [min(panel.words_left for panel in column) - GAP / 2 for column in columns[1:]]
    edges = [band.left, *edges, band.right]
    result = [Part(Box(edges[0], band.top, edges[1], band.bottom), [])]
    for number, column in enumerate(columns[1:], start=1):
        box = Box(edges[number], band.top, edges[number + 1], band.bottom)
        result.append(Part(box, borrowed_by(column, columns[0], band)))
    return result


def borrowed_by(column: Sequence[Panel], leftmost: Sequence[Panel], band: Box) -> list[Box]:
    """The parts of the first column that another one needs to be read."""
    if not any(panel.has_ticks for panel in column):
        right = min(panel.frame.left for panel in leftmost)
        return [Box(band.left, band.top, right, band.bottom)]
    if any(panel.label is not None for panel in column):
        return []
    labels = [panel.label for panel in leftmost if panel.label is not None]
    return [Box(x.left - 1, x.top - 1, x.right + 1, x.bottom + 1) for x in labels]


def packed(columns: Sequence[Part]) -> list[list[Part]]:
    """Rows of columns, as many in a row as a phone can show."""
    rows: list[list[Part]] = []
    for column in columns:
        beside = column._replace(borrowed=[])
        if rows and sum(x.width for x in rows[-1]) + beside.width <= WIDEST:
            rows[-1].append(beside)
        else:
            rows.append([column])
    return rows


def legends_beside(axes: ElementTree.Element) -> list[ElementTree.Element]:
    """The legends of some axes that stand at the right of their frame."""
    frame = frame_of(axes)
    if frame is None:
        return []
    legends = [group for group in axes if group.get("id", "").startswith("legend_")]
    return [legend for legend in legends if begins_after(legend, frame.right)]


def begins_after(legend: ElementTree.Element, right: float) -> bool:
    """Whether a legend stands at the right of some place."""
    entries = entries_of(legend)
    return bool(entries) and min(box.left for box in entries) > right - 1


def entries_of(legend: ElementTree.Element) -> list[Box]:
    """The entries of a legend: a handle, and the words after it; or the words of a heading."""
    boxes = [words.box for words in all_words(legend)]
    entries = []
    for box in boxes:
        size = box.height / 1.3
        left = box.left - HANDLE * size
        if any(0 < other.left - box.left < HANDLE * size for other in boxes):
            left = box.left  # of a heading, whose entries begin further right
        entries.append(Box(left, box.top - 0.1 * size, box.right + 0.6 * size, box.bottom))
    return entries


def flowed(entries: Sequence[Box], width: float) -> tuple[list[tuple[Box, float, float]], float]:
    """Entries one after the other in lines of a width: each with its place; the height of all."""
    placed = []
    x = 0.0
    y = 0.0
    line = max((box.height for box in entries), default=0.0) * LINE / 1.3
    for box in entries:
        if x and x + box.width > width:
            x = 0.0
            y += line
        placed.append((box, x, y))
        x += box.width
    return placed, y + line if entries else 0.0


def shown(box: Box, x: float, y: float) -> str:
    """A part of the picture at another place."""
    size = f'width="{box.width:.2f}" height="{box.height:.2f}"'
    view = f"{box.left:.2f} {box.top:.2f} {box.width:.2f} {box.height:.2f}"
    position = f'x="{x:.2f}" y="{y:.2f}"'
    return f'<svg {position} {size} viewBox="{view}"><use xlink:href="#figure_1"/></svg>'


def narrow(svg: str) -> str | None:
    """The picture with columns and legends below each other; None if there is nothing to move."""
    root = ElementTree.fromstring(svg)
    view = Box(*map(float, root.get("viewBox", "0 0 0 0").split()))
    figure = root.find(f"{SVG}g[@id='figure_1']")
    if figure is None or view.width <= WIDEST:
        return None
    axes = [group for group in figure if group.get("id", "").startswith("axes_")]
    panels = [panel for group in axes if (panel := panel_of(group)) is not None]
    columns = columns_of(panels)
    of_figure = [group for group in figure if group.get("id", "").startswith("legend_")]
    right = max((panel.frame.right for panel in panels), default=view.right)
    beside = [legend for legend in of_figure if begins_after(legend, right)]
    legends = [legend for legend in of_figure if legend not in beside]
    entries = [box for legend in legends for box in entries_of(legend)]
    beside += [legend for group in axes for legend in legends_beside(group)]
    entries_beside = [box for legend in beside for box in entries_of(legend)]
    if len(columns) < 2 and not entries_beside:
        return None
    band = view
    above = bool(entries) and entries[0].top < min(panel.frame.top for panel in panels)
    if above:
        band = band._replace(top=max(box.bottom for box in entries))
    elif entries:
        band = band._replace(bottom=min(box.top for box in entries) - 1)
    if entries_beside:
        band = band._replace(right=min(box.left for box in entries_beside))
    entries += entries_beside
    rows = packed(parts_of(columns, band))
    if len(rows) < 2 and not entries_beside:
        return None
    width = max(sum(column.width for column in row) for row in rows)
    lines, height = flowed(entries, width)
    y = height if above else 0.0
    pieces = []
    for row in rows:
        x = 0.0
        for column in row:
            pieces += [shown(box, x, y + box.top - band.top) for box in column.borrowed]
            pieces.append(shown(column.box, x + column.margin, y))
            x += column.width
        y += band.height
    start = 0.0 if above else y
    pieces += [shown(box, x, start + line) for box, x, line in lines]
    y += 0.0 if above else height
    return rearranged(svg, pieces, width, y)


def rearranged(svg: str, pieces: Sequence[str], width: float, height: float) -> str:
    """The file with pieces of its picture in place of the picture."""
    file = WHOLE.search(svg)
    assert file is not None
    sizes = {"width": width, "height": height}
    head = SIZE.sub(lambda side: f'{side[1]}="{sizes[side[1]]:.2f}pt"', file[1])
    head = VIEW.sub(f'viewBox="0 0 {width:.2f} {height:.2f}"', head)
    styles = "".join(re.findall(r"<style.*?</style>", file[2], flags=re.DOTALL))
    body = f"<defs>{file[2]}</defs>{styles}"
    return f"{svg[: file.start()]}{head}{body}{''.join(pieces)}</svg>"


def put_narrow(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Offer narrow windows the second file of every figure that has one."""
    del pagename, templatename, doctree
    if app.builder.name == "html" and "fig dark-light" in context.get("body", ""):
        context["body"] = IMAGE.sub(lambda image: with_narrow(app, image), context["body"])


def with_narrow(app: Sphinx, image: re.Match[str]) -> str:
    """A page's picture with its second file, if it has one."""
    folder, name = image.groups()
    path = Path(app.srcdir) / FIGURES / f"{name}.svg"
    svg = narrow(path.read_text(encoding="utf-8")) if path.is_file() else None
    if svg is None:
        return image[0]
    write_if_changed(Path(app.outdir) / "_images" / f"{name}-narrow.svg", svg.encode())
    sides = []
    for side, pattern in (("width", WIDTH), ("height", HEIGHT)):
        points = pattern.search(svg)
        assert points is not None
        sides.append(f'{side}="{round(float(points[1]) * 4 / 3)}"')
    address = f"{folder}{name}-narrow.svg"
    source = f'<source media="{WINDOW}" srcset="{address}" {" ".join(sides)}>'
    return f"<picture>{source}{image[0]}</picture>"


def setup(app: Sphinx) -> None:
    """Registers the step with Sphinx."""
    app.connect("html-page-context", put_narrow)
