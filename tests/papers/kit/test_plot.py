"""The data of a figure, read off its drawing."""

import io
import json

import matplotlib
import numpy as np
import pandas as pd
import pytest
import seaborn as sns
from matplotlib import pyplot
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from papers.kit import plot
from papers.kit.plot import COLUMNS, figure_data
from tests.helpers.expect import refuses


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
        ax.fill_between(
            [0, 1, 2],
            [2.0, 1.5, 0.5],
            [4.0, 2.5, 1.5],
            color="C1",
            alpha=0.2,
        )
        ax.axhline(7)

    data = table_of(draw)
    assert set(data.panel) == {"loss"}
    assert len(set(data.color)) == 1
    assert values(
        data[data.series == "ours"],
        "kind",
        "x",
        "y",
    ) == [["line", 0, 3], ["line", 2, 1]]
    band = data[data.kind == "outline"]
    assert set(band.series) == {""}
    assert {(0, 2), (0, 4), (1, 1.5), (2, 0.5)} <= {*band[["x", "y"]].itertuples(index=False)}
    assert 7 not in {*data.y}


def test_bars_intervals_and_points():
    def draw(figure):
        left, right, last = figure.subplots(1, 3)
        left.bar([0, 1], [2.0, 5.0], width=1.0)
        right.errorbar(
            [1],
            [3.0],
            [[0.5], [0.25]],
            label="ends",
            color="C5",
        )
        last.scatter([1, 2], [5, 6], label="dots")

    data = table_of(draw)
    bars = data[data.kind == "bar"]
    assert values(
        bars,
        "item",
        "x",
        "y",
    ) == [[1, -0.5, 0], [1, 0.5, 2], [2, 0.5, 0], [2, 1.5, 5]]
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


def test_a_figure_without_a_frame_carries_its_points(monkeypatch):
    shown = []
    monkeypatch.setattr(plot, "in_notebook", lambda: True)
    monkeypatch.setattr("IPython.display.display", lambda _, metadata: shown.append(metadata))
    with matplotlib.rc_context():
        figure = plot.figure()
        figure.subplots().plot([0, 1], [2.0, 3.0], label="a")
        plot.show(figure, alt="A line.")
    files = json.loads(json.dumps(shown[0]))["fedlib"]
    svg, csv = (plot.unpacked(files[kind]).decode() for kind in ("svg", "csv"))
    assert svg.startswith("<?xml")
    assert csv.splitlines()[1] == f"1,line,a,{plot.COLORS[0]},1,0,2"


def two_runs():
    """A frame of two runs with two seeds; one of these has no number in the last round."""
    rows = []
    for run, lr in (("short", 0.1), ("long", 1.0)):
        for seed, start in ((0, 1.0), (1, 3.0)):
            rows += [(run, lr, seed, t, start * lr / (1 + t)) for t in range(3)]
    frame = pd.DataFrame(rows, columns=["run", "lr", "seed", "round", "f"])
    frame.loc[2, "f"] = np.nan
    return frame


def test_means_over_seeds_are_those_of_pandas_where_all_seeds_have_a_number():
    frame = two_runs().sample(frac=1, random_state=0)  # in whatever order
    means = plot.over_seeds(frame, {"f": "loss"})
    assert {*means["metric"]} == {"loss"}
    assert len(means) == 5
    table = means.set_index(["run", "round"])
    assert table.loc[("short", 0), ["mean", "lr"]].tolist() == pytest.approx([0.2, 0.1])
    sd = np.std([0.1, 0.3], ddof=1)
    assert table.loc[("short", 0), ["low", "high"]].tolist() == pytest.approx([0.2 - sd, 0.2 + sd])
    for _, curve in means.groupby("curve"):
        assert curve["round"].is_monotonic_increasing
        assert curve["run"].nunique() == 1
    reach = plot.over_seeds(frame, {"f": "loss"}, around=None).set_index(["run", "round"])
    assert reach.loc[("long", 2), ["low", "high"]].tolist() == pytest.approx([1 / 3, 1])


def test_a_metric_that_the_frame_has_not_is_refused():
    words = "over_seeds: a metric must be a column of the frame, got 'drift'; known: run, lr, "
    refuses(words, plot.over_seeds, two_runs(), {"f": "loss", "drift": "drift"})


def test_a_grid_has_a_band_in_the_colour_of_each_curve_and_brings_its_frame(monkeypatch):
    shown = []
    monkeypatch.setattr(plot, "in_notebook", lambda: True)
    monkeypatch.setattr("IPython.display.display", lambda _, metadata: shown.append(metadata))
    means = plot.over_seeds(two_runs(), {"f": "loss"})
    with matplotlib.rc_context():
        plot.theme()
        grid = sns.relplot(means, hue="run", col="metric", **plot.LINES)
        plot.levels([grid.axes_dict["loss"]], 0.5, "level")
        plot.finish(grid, log=True, size=(5.0, 3.0))
        plot.show(grid, "curve", alt="Two curves.")
    lines = [to_hex(line.get_color()) for line in grid.axes[0, 0].lines[:2]]
    bands = [to_hex(band.get_facecolor()[0][:3]) for band in grid.axes[0, 0].collections]
    assert lines == bands == [*plot.COLORS[:2]]
    files = json.loads(json.dumps(shown[0]))["fedlib"]
    assert (files["name"], files["runs"], files["profile"]) == ("curve", ["short", "long"], "full")
    drawn = pd.read_csv(io.BytesIO(plot.unpacked(files["csv"])))
    assert [*drawn.columns] == ["run", "round", "mean", "low", "high", "lr"]
    assert len(drawn) == len(means)
    assert b'width="360pt" height="216pt"' in plot.unpacked(files["svg"])
    assert not pyplot.fignum_exists(grid.figure.number)
