"""Slim pictures and tables: smaller, and they still say the same."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest

from papers.kit import plot


@pytest.fixture(autouse=True)
def extension(monkeypatch):
    """The modules of the book's extension can be imported."""
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[2] / "book" / "_ext")


@pytest.fixture
def pictures():
    return importlib.import_module("fedbook_svg")


@pytest.fixture
def joined():
    return importlib.import_module("fedbook_tables").joined


def draw(figure):
    ax = figure.subplots()
    x = np.linspace(0, 30, 4001)
    y = np.sin(x) + 0.1 * np.sin(40 * x)
    ax.fill_between(x, y - 0.3, y + 0.3, alpha=0.2, label="band 0.12345")
    ax.plot(x, y)
    ax.set_title("lr 0.03125")


def outline(path):
    """The points of a path, of matplotlib's places or of our steps."""
    points, at = [], np.zeros(2)
    for mark, numbers in re.findall(r"([MLl])([^MLl]*)", path):
        pairs = np.array(re.findall(r"-?(?:\d+\.?\d*|\.\d+)", numbers), dtype=float).reshape(-1, 2)
        for pair in pairs:
            at = at + pair if mark == "l" else pair
            points.append(at)
    return np.array(points)


def longest(svg):
    return max(re.findall(r' d="([^"]*)"', svg), key=len)


def distance(point, line):
    """How far a point is from the nearest piece of a polyline."""
    start, way = line[:-1], np.diff(line, axis=0)
    share = ((point - start) * way).sum(1) / np.maximum((way**2).sum(1), 1e-12)
    nearest = start + np.clip(share, 0, 1)[:, None] * way
    return np.hypot(*(point - nearest).T).min()


def test_a_slim_picture_keeps_its_form_and_its_words(pictures):
    svg, _ = plot.export(draw)
    slim = pictures.slim(svg).decode()
    assert len(slim) < len(svg) / 2
    whole, kept = outline(longest(svg.decode())), outline(longest(slim))
    assert len(kept) < len(whole)
    assert max(distance(point, kept) for point in whole[::37]) < 0.1
    assert max(distance(point, whole) for point in kept[::37]) < 0.1
    words = re.compile(r"<text[^>]*>(.*?)</text>", re.DOTALL)
    assert words.findall(slim) == words.findall(svg.decode())
    assert "0.03125" in slim


@pytest.mark.parametrize(
    ("points", "left"),
    [
        ([(0, 0), (1, 0), (2, 0), (3, 0)], [(0, 0), (3, 0)]),
        ([(0, 0), (5, 0), (2, 0)], [(0, 0), (5, 0), (2, 0)]),  # there and back
        ([(0, 0), (1, 1), (2, 0)], [(0, 0), (1, 1), (2, 0)]),
        ([(0, 0), (0, 0), (0, 1)], [(0, 0), (0, 1)]),
        ([(4, 4)], [(4, 4)]),
    ],
)
def test_only_what_lies_on_the_way_is_left_out(pictures, points, left):
    assert pictures.straightened(points) == left


def test_a_picture_for_dark_pages_is_the_light_one_in_other_colours(pictures):
    light, dark = (plot.render(draw, theme, "svg").decode() for theme in ("light", "dark"))
    name = re.compile(r"\b[mpC][0-9a-f]{10,}")  # of parts, which depend on colours
    made = pictures.darkened(light.encode()).decode()
    assert name.sub("", made) == name.sub("", dark)


def test_the_width_of_a_picture_keeps_its_smallest_letters_legible(pictures):
    svg = '<svg width="540pt"><text style="font-size: 8px">a</text><text style="font: 10px x">b'
    assert pictures.legible_width(svg) == 608  # 540 * 9 / 8, up
    assert pictures.legible_width('<svg width="540pt">') == 0


HEAD = "panel,kind,series,item,x,y,low,high,x_tick,y_tick,color,style\n"
LINE = "p,line,a,1,0,2,,,,,#00f,-\np,line,a,1,1,3,,,,,#00f,-\n"


def test_no_table_stays_none(joined):
    assert joined("") == ""


def test_a_band_goes_into_the_rows_of_its_line(joined):
    band = "p,band,a,2,0,,1,4,,,#00f,\np,band,a,2,1,,2,5,,,#00f,\n"
    assert joined(HEAD + LINE + band) == HEAD + LINE.replace("2,,,", "2,1,4,").replace(
        "3,,,", "3,2,5,"
    )


@pytest.mark.parametrize(
    "band",
    [
        "p,band,a,2,0,,1,4,,,#00f,\n",  # other places
        "p,band,b,2,0,,1,4,,,#00f,\np,band,b,2,1,,2,5,,,#00f,\n",  # another name
        "q,band,a,2,0,,1,4,,,#00f,\nq,band,a,2,1,,2,5,,,#00f,\n",  # another panel
    ],
)
def test_a_band_without_its_line_stays(joined, band):
    assert joined(HEAD + LINE + band) == HEAD + LINE + band
