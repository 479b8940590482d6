"""A label of a figure names the run whose stored curve is drawn under it, on every study's page.

Curves that a note computes itself have no stored run, and measured times no curve: their labels
are not held against anything.
"""

import importlib
import inspect
import types
from itertools import pairwise

import pytest

from papers import STUDIES
from tests.helpers.drawn_runs import MarkedRuns, exchanged, misplaced, other_colors
from tests.helpers.weekly import further_weekly

#: Texts of some figures' modules; exchanged, they swap the labels of two runs.
SWAPPED = {
    "np_workshop": ("fedsgm.np_workshop.figures", '"hard": traces', '"soft": traces'),
    "cartpole": ("fedsgm.cartpole.figures", '"federated, soft"', '"federated, hard"'),
    "cmoo_probe": (
        "fedcmoo.probe.figures",
        'f"{trained}_{curve}"',
        'dict(alone="share", share="alone").get(trained, trained) + f"_{curve}"',
    ),
    "fairness": (
        "fedsgm.fairness.figures",
        '"FedSGM {m}": traces',
        '"FedSGM {MODES[m == MODES[0]]}": traces',
    ),
}
#: Figures of counts, sums and messages, whose points are no multiples of one curve, with a text of
#: their module and another that draws the runs of one label under another.
COUNTED = {
    ("np_workshop", "learning_rates"): (
        "fedsgm.np_workshop.figures",
        'replace("hard", mode)',
        'replace("hard", {"hard": "soft", "soft": "hard"}[mode])',
    ),
    ("ssca_long", "violation"): (
        "ssca.long.numbers",
        'f"limit_{name}_U{level}"',
        '"limit_" + dict(paper="valid", valid="paper").get(name, name) + f"_U{level}"',
    ),
    ("cmoo_toy", "rate"): (
        "fedcmoo.toy.figures",
        'part="rate", method=method',
        'part="rate", method=dict(exact="randk", randk="exact")[method]',
    ),
    ("cmoo_qm9", "uploads"): (
        "fedcmoo.qm9.figures",
        'sweep(traces, DEFAULTS, "objectives", method=method)',
        'sweep(traces, DEFAULTS, "objectives", '
        'method=dict(fsmgda="fedcmoo", fedcmoo="fsmgda").get(method, method))',
    ),
}


def series_of(study, figures):
    """The series of some figures of a study whose curves are its runs', by the figure's name."""
    runs = MarkedRuns(study.load())
    return runs, {name: list(runs.series(figure)) for name, figure in figures.items()}


#: Studies with a second's work or more, whose labels are held against the runs weekly.
MANY_CURVES = ("bounds", "np_unified", "ssca_convergence", "fw_leakage")
FEW_CURVES = [name for name in STUDIES if name not in MANY_CURVES]


@pytest.mark.parametrize("name", further_weekly(STUDIES, FEW_CURVES))
def test_labels_name_the_runs_that_are_drawn_and_exchanged_ones_are_noticed(name):
    study = STUDIES[name]
    runs, figures = series_of(study, study.figures)
    for figure, series in figures.items():
        wrong = other_colors(runs.table(study.figures[figure]))
        assert not wrong, f"{name}, {figure}: {'; '.join(wrong)}"
        told, pairs, wrong = exchanged(runs, series)
        assert not wrong, f"{name}, {figure}: labels fit better exchanged: {'; '.join(wrong)}"
        assert told >= 0.6 * pairs, f"{name}, {figure}: give labels that say what a run is"
        noticed = [exchanged(runs, moved)[2] for moved in with_neighbours_exchanged(series)]
        assert any(noticed) or not told


def with_neighbours_exchanged(series):
    """The series, once for each two labels that follow each other, with these exchanged."""
    labels = [*dict.fromkeys(label for _, label, _ in series)]
    for label, other in pairwise(labels):
        change = {label: other, other: label}
        yield [(panel, change.get(text, text), found) for panel, text, found in series]


def changed_figures(place, words, instead):
    """The figures of a module in which a text is another."""
    module = importlib.import_module(f"papers.{place}")
    source = inspect.getsource(module)
    assert words in source
    copy = types.ModuleType(module.__name__)
    exec(compile(source.replace(words, instead), "changed", "exec"), copy.__dict__)
    return copy.FIGURES


@pytest.mark.parametrize("name", SWAPPED)
def test_a_figure_whose_labels_are_swapped_is_noticed(name):
    place, first, second = SWAPPED[name]
    module = importlib.import_module(f"papers.{place}")
    source = inspect.getsource(module)
    assert first in source
    swapped = source.replace(first, "\0").replace(second, first).replace("\0", second)
    copy = types.ModuleType(module.__name__)
    exec(compile(swapped, "swapped", "exec"), copy.__dict__)
    runs, figures = series_of(STUDIES[name], copy.FIGURES)
    assert any(exchanged(runs, series)[2] for series in figures.values())


@pytest.mark.parametrize(("name", "figure"), COUNTED)
def test_the_runs_of_a_label_move_its_points_and_exchanged_ones_are_noticed(name, figure):
    study = STUDIES[name]
    runs = MarkedRuns(study.load())
    told, wrong = misplaced(runs, study.figures[figure])
    assert not wrong
    assert len(told) >= 2
    assert misplaced(runs, changed_figures(*COUNTED[name, figure])[figure])[1]


def test_colors_that_are_exchanged_in_a_panel_without_a_legend_are_noticed():
    name = "np_workshop"
    colors = "zip(shown.items(), plot.COLORS, strict=False)"
    reversed_ones = "zip(shown.items(), plot.COLORS[1::-1], strict=False)"
    figures = changed_figures("fedsgm.np_workshop.figures", colors, reversed_ones)
    table = MarkedRuns(STUDIES[name].load()).table(figures["figure_1"])
    assert len(other_colors(table)) == 2
