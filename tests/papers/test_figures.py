"""A label of a figure names the run whose stored curve is drawn under it, on every study's page.

Of a figure that a page draws, seaborn makes the colours of the columns of a frame, so the frame is
held against the runs.

Curves that a note computes itself have no stored run, and measured times no curve: their labels
are not held against anything.
"""

from functools import cache

import numpy as np
import pytest
from matplotlib.colors import to_hex

from papers import STUDIES
from papers.kit import plot
from tests.helpers.drawn_runs import NamedRuns, exchanged
from tests.helpers.page_figures import SOURCES, figures_of
from tests.helpers.weekly import further_weekly

#: Studies with a second's work or more, whose labels are held against the runs weekly.
MANY_CURVES = ("bounds", "np_unified", "ssca_convergence", "fw_leakage")
DRAWN_BY_PAGE = [
    name
    for name in STUDIES
    if "plot.theme()" in (SOURCES / f"{name}.py").read_text(encoding="utf-8")
]
#: A figure of a page, a text of its cell, and another with which two labels are exchanged.
MISLABELLED = {
    "np_unified": (
        "figure_1",
        "{page.participants: some, CLIENTS: everyone}",
        "{page.participants: everyone, CLIENTS: some}",
    ),
    "np_workshop": (
        "figure_1",
        "grid = sns",
        'means["switch"] = means["switch"].map({"hard": "soft", "soft": "hard"})\ngrid = sns',
    ),
    "cmoo_pairs": (
        "dropout",
        "method=METHODS",
        "method=dict(zip(METHODS, reversed(METHODS.values())))",
    ),
}
#: A figure of a page, a text of its cell, and what a reader writes in its place.
EDITS = {
    "np_unified": ("figure_1", 'hue="switch", style="clients"', 'hue="clients"'),
    "cmoo_pairs": ("dropout", 'hue="method", style="dropout"', 'hue="dropout"'),
    "cmoo_sweeps": ("figure_2", 'hue="method", col="data"', 'hue="data", col="method"'),
    "cmoo_probe": ("equal_steps", 'y="gain", hue="method"', 'y="gain", hue="data"'),
}


drawn_figures = cache(figures_of)


def has_curves(shown):
    """Whether a figure has means over seeds."""
    return shown.frame is not None and "curve" in shown.frame


def labelled(shown):
    """The series of a grid of curves: the panel, the values that its legend names, and the run."""
    legends = [*shown.drawn.figure.legends]
    words = {legend.get_title().get_text() for legend in legends}
    words |= {text.get_text() for legend in legends for text in legend.get_texts()}
    columns = [name for name in shown.frame if name in words]
    for (metric, run), rows in shown.frame.groupby(["metric", "run"], sort=False):
        label = ", ".join(f"{name} {rows[name].iloc[0]}" for name in columns)
        panel = metric, *(rows[name].iloc[0] for name in facets(shown.drawn))
        yield panel, label, {(run, "")}


def facets(grid):
    """The labels by which a grid has panels."""
    return [name for name in (grid._row_var, grid._col_var) if name not in (None, "metric")]


@pytest.mark.parametrize(
    "name", further_weekly(DRAWN_BY_PAGE, [x for x in DRAWN_BY_PAGE if x not in MANY_CURVES])
)
def test_a_page_draws_the_runs_that_its_labels_name(name):
    study = STUDIES[name]
    for figure, shown in drawn_figures(name).items():
        if not has_curves(shown):
            continue
        traces = study.load(shown.profile)
        for metric, rows in shown.frame.groupby("metric", sort=False):
            by_run = rows.groupby("run", sort=False)
            fitting = {
                run: is_mean_of(means, traces[run]) for run, means in by_run if run in traces
            }
            alike = len({*fitting.values()}) <= 1  # none is, where the page sums or counts
            assert alike, f"{name}, {figure}, {metric}: {fitting}"
        stored = {(run, "") for run in traces}
        series = [entry for entry in labelled(shown) if entry[2] <= stored]
        compared, pairs, wrong = exchanged(NamedRuns(traces), series)
        assert not wrong, f"{name}, {figure}: labels fit better exchanged: {'; '.join(wrong)}"
        assert compared >= 0.6 * pairs, f"{name}, {figure}: give labels that say what a run is"


def is_mean_of(rows, trace):
    """Whether rows hold the means over seeds of a curve of a run, plain or in per cent."""
    for values in (*trace.metrics.values(), *trace.info.values()):
        mean = values.mean(0)
        places = np.searchsorted(trace.rounds, rows["round"])
        if places[-1] >= len(mean):
            continue
        for scale in (1, 100):
            if np.allclose(rows["mean"], scale * mean[places], rtol=1e-9, atol=0):
                return True
    return False


@pytest.mark.parametrize("name", MISLABELLED)
def test_a_page_whose_labels_are_exchanged_is_noticed(name):
    runs = NamedRuns(STUDIES[name].load())
    figure, words, instead = MISLABELLED[name]
    shown = figures_of(name, [(words, instead)], only=figure)[figure]
    assert exchanged(runs, [*labelled(shown)])[2]


@pytest.mark.parametrize("name", DRAWN_BY_PAGE)
def test_hard_and_soft_switching_have_their_colours(name):
    colors = dict(zip(("hard", "soft"), plot.COLORS, strict=False))
    for figure, shown in drawn_figures(name).items():
        for legend in shown.drawn.figure.legends if has_curves(shown) else ():
            for text, handle in zip(legend.get_texts(), legend.legend_handles, strict=True):
                words = text.get_text()
                if words in colors and len(legend.get_texts()) == len(colors):
                    assert to_hex(handle.get_color()) == colors[words], f"{figure}: {words}"


@pytest.mark.parametrize("name", EDITS)
def test_a_reader_changes_a_figure_in_its_cell(name):
    figure, words, instead = EDITS[name]
    before = drawn_figures(name)[figure].drawn
    after = figures_of(name, [(words, instead)], only=figure)[figure].drawn
    assert plot.picture(after.figure, "svg") != plot.picture(before.figure, "svg")
