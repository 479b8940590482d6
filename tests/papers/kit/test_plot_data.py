"""The data of a figure, read off its drawing."""

import json

import numpy as np
import pytest
from matplotlib.figure import Figure

from papers.kit import plot
from papers.kit.plot_data import COLUMNS, figure_data


def table_of(draw):
    figure = Figure()
    draw(figure)
    data = figure_data(figure)
    assert tuple(data.columns) == COLUMNS
    return data


def values(data, *columns):
    return data[list(columns)].to_numpy().tolist()


def test_a_line_with_its_band_keeps_the_label_and_the_edges():
    def draw(figure):
        ax = figure.subplots()
        ax.set_title("loss")
        ax.plot([0, 1, 2], [3.0, np.nan, 1.0], label="ours", color="C1")
        ax.fill_between([0, 1, 2], [2.0, 1.5, 0.5], [4.0, 2.5, 1.5], color="C1", alpha=0.2)

    data = table_of(draw)
    assert set(data.panel) == {"loss"}
    assert set(data.series) == {"ours"}
    line, band = data[data.kind == "line"], data[data.kind == "band"]
    assert values(line, "x", "y") == [[0, 3], [2, 1]]
    assert values(band, "x", "low", "high") == [[0, 2, 4], [1, 1.5, 2.5], [2, 0.5, 1.5]]
    assert line.low.isna().all()
    assert band.y.isna().all()


def test_bars_errorbars_and_points():
    def draw(figure):
        left, right, last = figure.subplots(1, 3)
        left.bar([0, 1], [2.0, 5.0], label="bars")
        left.set_xticks([0, 1], ["few", "many"])
        right.errorbar([1, 2], [3.0, 4.0], [[0.5, 1.0], [0.25, 2.0]], label="ends", capsize=3)
        right.errorbar([1], [3.0], xerr=[[0.5], [0.25]], label="across", color="C5")
        last.scatter([1, 2], [5, 6], label="dots")
        last.barh([7], [2.0], color="C7")

    data = table_of(draw)
    bars = data[data.series == "bars"]
    assert values(bars, "kind", "x", "y", "low", "high", "x_tick") == [
        ["bar", 0, 2, 0, 2, "few"],
        ["bar", 1, 5, 0, 5, "many"],
    ]
    ends = data[data.series == "ends"]
    assert values(ends, "kind", "y", "low", "high") == [
        ["errorbar", 3, 2.5, 3.25],
        ["errorbar", 4, 3, 6],
    ]
    across = data[data.series == "across"]
    assert values(across, "kind", "x", "low", "high") == [["x errorbar", 1, 0.5, 1.25]]
    assert values(data[data.series == "dots"], "kind", "x", "y") == [
        ["points", 1, 5],
        ["points", 2, 6],
    ]
    assert values(data[data.kind == "x bar"], "x", "y", "low", "high") == [[2, 7, 0, 2]]


def test_marks_through_the_panel_are_no_points():
    def draw(figure):
        ax = figure.subplots()
        ax.set(xlabel="round", ylabel="g")
        plot.level(ax, 0.1, "level")
        ax.axvline(7)
        ax.axvspan(2, 4)

    data = table_of(draw)
    assert values(data[data.kind == "level"], "series", "y") == [["level", 0.1]]
    assert values(data[data.kind == "mark"], "x") == [[7]]
    assert values(data[data.kind == "x range"], "low", "high") == [[2, 4]]
    assert set(data.panel) == {"g against round"}


def test_contours_say_their_level():
    def draw(figure):
        x = np.linspace(-1, 1, 21)
        figure.subplots().contour(x, x, x[:, None] ** 2 + x**2, levels=[0.25, 0.5])

    data = table_of(draw)
    assert set(data.kind) == {"contour"}
    assert set(data.low) == {0.25, 0.5}
    inner = data[data.low == 0.25]
    assert np.hypot(inner.x, inner.y).to_numpy() == pytest.approx(0.5, abs=0.01)


def test_a_colour_shared_by_two_labels_names_nothing():
    def draw(figure):
        left, right = figure.subplots(1, 2)
        for style, label in (("-", "solid"), ("--", "dashed")):
            left.plot([0, 1], [0, 1], style, color="C0", label=label)
        right.plot([0, 1], [0, 1], "--", color="C0")
        right.plot([0, 1], [0, 1], ":", color="C0")

    right = table_of(draw).iloc[4:]
    assert right.series.tolist() == ["dashed", "dashed", "", ""]


def test_pictures_give_no_row_and_no_text():
    data = table_of(lambda figure: figure.subplots().imshow(np.zeros((3, 3))))
    assert data.empty
    assert plot.to_csv(data) == ""


def test_only_figures_of_the_notebook_itself_carry_their_files(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda _, metadata: shown.append(metadata))

    def draw(figure):
        figure.subplots().plot([0, 1], [2.0, 3.0], label="a")

    plot.show(draw, alt="A line.")
    draw.__module__ = "__main__"
    plot.show(draw, alt="A line.")
    assert shown[0] == {}
    files = json.loads(json.dumps(shown[1]))["fedlib"]
    svg, csv = (plot.unpacked(files[kind]).decode() for kind in ("svg", "csv"))
    assert svg.startswith("<?xml")
    assert csv.splitlines()[1] == f"1,line,a,1,0,2,,,,,{plot.COLORS[0]},-"
