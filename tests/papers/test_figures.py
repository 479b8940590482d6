"""What a page shows of stored runs has the values of the runs that its words name.

Each figure is held against the study in four ways, each table in the last one:

- the frame under it has stored values of the runs that it names, or the page computes them
  (`COMPUTED`);
- a label of the frame is that of its run;
- the words of a legend, of a title or of a tick stand beside values that the frame has under them;
- the words fit the name and the labels of the run better than those of another run would.

The run of a row of a table is found by its values. Curves that a note computes itself have no
stored run: their labels are not held against anything.
"""

from functools import cache

import pytest
from matplotlib.colors import to_hex

from papers import STUDIES
from papers.kit import plot, store
from tests.helpers import drawn_artists, stored_values
from tests.helpers.drawn_runs import NamedRuns, exchanged
from tests.helpers.page_figures import (
    changed_figure,
    executed,
    figures_of,
    source_of,
    stored_runs,
)
from tests.helpers.stored_values import Stored
from tests.helpers.weekly import further_weekly

#: Studies with a second's work or more, which are held against the runs weekly.
LONG = ("bounds", "np_unified", "ssca_convergence", "fw_leakage")
DRAWING = [name for name in STUDIES if "plot.theme()" in source_of(name)]
SHOWING = [name for name in STUDIES if "page(globals())" in source_of(name)]

#: Starts of titles that say a number in another unit than the label: epochs for steps, the batch of
#: all clients for that of one. They are not compared.
RESTATED = {
    "fairness": ("2 epochs", "2 Adam epochs"),
    "ssca_convergence": ("SGD, B", "Algorithm 3, B", "features, B"),
}
#: What pages compute of stored curves, which no stored number is: column, panel.
COMPUTED = {
    ("np_workshop", "figure_1"): {"mean, violating rounds so far"},
    ("bounds", "rounds"): {"value, bound"},
    ("bounds", "scaled"): {"value, f gap / bound", "value, g / bound"},
    ("cmoo_qm9", "figure_3"): {"x, round", "x, uploaded (model size x clients of a round)"},
    ("ssca_tradeoff", "theorem_5"): {"mean, |∇(27)| / |∇F|"},
    ("ssca_long", "violation"): {"mean"},
    ("fw_lowrank", "clock"): {"side, LMO", "side, projection by SVD"},
}
#: Figures of running means over rounds.
SMOOTHED = {("cmoo_probe", "figure_11")}
#: A figure of a page, a text of its cell, another with which two labels are exchanged, and which
#: of the ways notices.
MISLABELLED = [
    pytest.param(*case, id=f"{case[0]}-{case[1]}-{case[4]}")
    for case in (
        (
            "np_workshop",
            "figure_1",
            "grid = sns",
            'means["switch"] = means["switch"].map({"hard": "soft", "soft": "hard"})\ngrid = sns',
            "labels",
        ),
        (
            "cmoo_pairs",
            "dropout",
            "method=METHODS",
            "method=dict(zip(METHODS, reversed(METHODS.values())))",
            "words",
        ),
        (  # points
            "ssca_tradeoff",
            "figure_4",
            '"by lambda, Algorithms 1 and 3", "limit": "by U, Algorithms 2 and 4"',
            '"by U, Algorithms 2 and 4", "limit": "by lambda, Algorithms 1 and 3"',
            "words",
        ),
        (
            "ssca_tradeoff",
            "figure_4",
            "line = {",
            'means["cost"] = means["cost"].to_numpy()[::-1]\nline = {',
            "values",
        ),
        (  # points whose runs have no column
            "cartpole",
            "table_1",
            "name_of(labels, usual): text for labels, text, *_ in TABLE_1",
            "name_of(row[0], usual): other[1] for row, other in zip(TABLE_1, TABLE_1[::-1])",
            "words",
        ),
        (  # bars
            "fw_authors",
            "waterfall",
            "ax.barh(after.index, after - before",
            "ax.barh(after.index[::-1], after - before",
            "artists",
        ),
        (  # a legend
            "np_workshop",
            "learning_rates",
            "plot.show(",
            'left.legend(left.get_legend().legend_handles, ["soft", "hard"])\nplot.show(',
            "artists",
        ),
        (  # the titles of panels
            "cmoo_sweeps",
            "figure_2",
            "plot.show(",
            "a, b = grid.axes[0]\nwords = a.get_title()\na.set_title(b.get_title())\n"
            "b.set_title(words)\nplot.show(",
            "artists",
        ),
    )
]
#: A figure of a page, a text of its cell, and what a reader writes in its place.
EDITS = {
    "cmoo_pairs": ("dropout", 'hue="method", style="dropout"', 'hue="dropout"'),
    "cmoo_sweeps": ("figure_2", 'hue="method", col="data"', 'hue="data", col="method"'),
    "cmoo_probe": ("figure_11", 'gains, hue="method"', 'gains, hue="data"'),
}


def drawing(names):
    """A parameter `name` of these pages; the long ones are looked at weekly."""
    always = [name for name in names if name not in LONG]
    return pytest.mark.parametrize("name", further_weekly(names, always))


@cache
def stored_of(study, profile="full"):
    """The runs and quantities of a study."""
    return Stored(stored_runs(study, profile), store.read_numbers(study, profile))


def faults(study, name, shown):
    """What is wrong with a figure, by the way in which it is seen: sentences."""
    stored = stored_of(study, shown.profile)
    figure = shown.drawn.figure
    frame = shown.frame
    by_way = {"values": [], "labels": [], "artists": [], "words": []}
    if "run" in frame:
        by_way["labels"] = stored_values.mislabelled(stored, frame)
        computed = stored_values.unexplained(stored, frame)
        if (study, name) not in SMOOTHED:
            by_way["values"] = sorted(computed ^ COMPUTED.get((study, name), set()))
    by_way["artists"] = drawn_artists.wrong_words(figure, frame)
    compared, pairs, by_way["words"] = exchanged(NamedRuns(stored), labelled(stored, shown))
    if compared < 0.6 * pairs:
        by_way["words"].append("give labels that say what a run is")
    return {check: sentences for check, sentences in by_way.items() if sentences}


def labelled(stored, shown):
    """The series of a figure: the panel, the words that a reader sees, and the runs."""
    frame = shown.frame
    if "run" not in frame:
        named = stored_values.named(stored, frame)
        return [("", ", ".join(map(str, texts)), runs) for texts, runs in named if runs]
    texts = drawn_artists.texts_of(shown.drawn.figure)
    columns = [
        name
        for name in stored_values.texts_of(frame)
        if name != "metric" and (name in texts or {*frame[name].dropna().astype(str)} <= texts)
    ]
    facets = (getattr(shown.drawn, "_row_var", None), getattr(shown.drawn, "_col_var", None))
    panels = [name for name in facets if name in frame]
    series = []
    for within, run, rows in stored_values.series_of(frame):
        if run in stored.traces:
            label = ", ".join(f"{name} {rows[name].iloc[0]}" for name in columns)
            series.append(((*within, *(rows[name].iloc[0] for name in panels)), label, {run}))
    return series


@drawing(DRAWING)
def test_a_figure_draws_the_runs_that_its_words_name(name):
    for figure, shown in figures_of(name).items():
        if shown.frame is not None:
            assert not faults(name, figure, shown), f"labels of {name}, {figure} are wrong"


@pytest.mark.parametrize(("study", "name", "words", "instead", "way"), MISLABELLED)
def test_exchanged_labels_are_noticed(study, name, words, instead, way):
    assert way in faults(study, name, changed_figure(study, name, words, instead))


def wrong_rows(study, table):
    """Rows of a table whose titles fit better exchanged; how many rows have a known run."""
    best = 0
    wrong = []
    for profile in ("full", store.PAPER):
        if not store.read_numbers(study, profile):
            continue
        stored = stored_of(study, profile)
        series = []
        for title, runs in stored_values.shown_rows(stored, table):
            if runs and not title.startswith(RESTATED.get(study, ())):
                series.append(("", title, runs))
        if len(series) > best:
            best = len(series)
            _, _, wrong = exchanged(NamedRuns(stored), series)
    return wrong, best


@drawing(SHOWING)
def test_a_row_of_a_table_has_the_values_of_the_run_that_its_title_names(name):
    counts = []
    for table in executed(name).tables:
        assert len(table) > 0, f"{name}: a table has no row"
        wrong, count = wrong_rows(name, table)
        assert not wrong, f"titles of rows fit better exchanged: {'; '.join(wrong)}"
        counts.append(count)
    assert any(counts) or "runs_table" not in source_of(name)


@pytest.mark.parametrize("name", ["np_protocol", "cmoo_pairs", "cartpole", "fw_tables"])
def test_exchanged_titles_of_rows_are_noticed(name):
    table = max(executed(name).tables, key=lambda table: wrong_rows(name, table)[1])
    top, *middle, bottom = table.index
    assert wrong_rows(name, table.set_axis([bottom, *middle, top]))[0]


@drawing(DRAWING)
def test_hard_and_soft_switching_have_their_colours(name):
    colors = dict(zip(("hard", "soft"), plot.COLORS, strict=False))
    for figure, shown in figures_of(name).items():
        if shown.frame is None or "curve" not in shown.frame:
            continue
        for legend in shown.drawn.figure.legends:
            for text, handle in zip(legend.get_texts(), legend.legend_handles, strict=True):
                words = text.get_text()
                if words in colors and len(legend.get_texts()) == len(colors):
                    assert to_hex(handle.get_color()) == colors[words], f"{figure}: {words}"


@pytest.mark.parametrize("name", EDITS)
def test_a_reader_changes_a_figure_in_its_cell(name):
    figure, words, instead = EDITS[name]
    usual = plot.figure_data(figures_of(name)[figure].drawn.figure)
    changed = plot.figure_data(changed_figure(name, figure, words, instead).drawn.figure)
    assert not changed.equals(usual)
