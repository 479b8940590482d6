"""The data of a figure, read off its drawing."""

import json

import numpy as np
from matplotlib.figure import Figure

from papers.kit import plot
from papers.kit.plot import COLUMNS, figure_data


def table_of(draw):
    figure = Figure()
    draw(figure)
    data = figure_data(figure)
    assert tuple(data.columns) == COLUMNS
    return data


def values(data, *columns):
    return data[list(columns)].to_numpy().tolist()


def test_a_line_and_its_band_share_the_colour():
    def draw(figure):
        ax = figure.subplots()
        ax.set_title("loss")
        ax.plot([0, 1, 2], [3.0, np.nan, 1.0], label="ours", color="C1")
        ax.fill_between([0, 1, 2], [2.0, 1.5, 0.5], [4.0, 2.5, 1.5], color="C1", alpha=0.2)
        ax.axhline(7)

    data = table_of(draw)
    assert set(data.panel) == {"loss"}
    assert len(set(data.color)) == 1
    assert values(data[data.series == "ours"], "kind", "x", "y") == [["line", 0, 3], ["line", 2, 1]]
    band = data[data.kind == "outline"]
    assert set(band.series) == {""}
    assert {(0, 2), (0, 4), (1, 1.5), (2, 0.5)} <= {*band[["x", "y"]].itertuples(index=False)}
    assert 7 not in {*data.y}


def test_bars_intervals_and_points():
    def draw(figure):
        left, right, last = figure.subplots(1, 3)
        left.bar([0, 1], [2.0, 5.0], width=1.0)
        right.errorbar([1], [3.0], [[0.5], [0.25]], label="ends", color="C5")
        last.scatter([1, 2], [5, 6], label="dots")

    data = table_of(draw)
    bars = data[data.kind == "bar"]
    assert values(bars, "item", "x", "y") == [[1, -0.5, 0], [1, 0.5, 2], [2, 0.5, 0], [2, 1.5, 5]]
    ends = data[data.kind == "outline"]
    assert values(ends, "x", "y") == [[1, 2.5], [1, 3.25]]
    assert {*ends.series} == {*data[data.kind == "line"].series} == {"ends"}
    assert values(data[data.series == "dots"], "kind", "x", "y") == [
        ["points", 1, 5],
        ["points", 2, 6],
    ]


def test_pictures_give_no_row_and_no_text():
    data = table_of(lambda figure: figure.subplots().imshow(np.zeros((3, 3))))
    assert data.empty
    assert plot.to_csv(data) == ""


def test_only_figures_of_the_notebook_itself_carry_their_files(monkeypatch):
    shown = []
    monkeypatch.setattr(plot, "in_notebook", lambda: True)
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
    assert csv.splitlines()[1] == f"1,line,a,{plot.COLORS[0]},1,0,2"
