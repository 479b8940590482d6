"""A label of a figure names the run whose stored curve is drawn under it, on every study's page."""

import importlib
import inspect
import types
from itertools import pairwise

import pytest

from papers import STUDIES
from tests.helpers.drawn_runs import MarkedRuns, exchanged

#: Texts of some figures' modules; exchanged, they swap the labels of two runs.
SWAPPED = {
    "np_workshop": ("fedsgm.np_workshop", '"hard": traces', '"soft": traces'),
    "cartpole": ("fedsgm.cartpole", '"federated, soft"', '"federated, hard"'),
    "cmoo_probe": (
        "fedcmoo.probe",
        '"FSMGDA, each objective alone"',
        '"FSMGDA, share of its step"',
    ),
    "fairness": (
        "fedsgm.fairness",
        '"FedSGM {m}": traces',
        '"FedSGM {MODES[m == MODES[0]]}": traces',
    ),
}


def series_of(study, figures):
    """The series of some figures of a study whose curves are its runs', by the figure's name."""
    runs = MarkedRuns(study.load())
    return runs, {name: list(runs.series(figure)) for name, figure in figures.items()}


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda s: s.name)
def test_labels_name_the_runs_that_are_drawn_and_exchanged_ones_are_noticed(study):
    runs, figures = series_of(study, study.figures)
    for name, series in figures.items():
        told, pairs, wrong = exchanged(runs, series)
        assert not wrong, f"{study.name}, {name}: labels fit better exchanged: {'; '.join(wrong)}"
        assert told >= 0.6 * pairs, f"{study.name}, {name}: give labels that say what a run is"
        noticed = [exchanged(runs, moved)[2] for moved in with_neighbours_exchanged(series)]
        assert any(noticed) or not told


def with_neighbours_exchanged(series):
    """The series, once for each two labels that follow each other, with these exchanged."""
    labels = [*dict.fromkeys(label for _, label, _ in series)]
    for label, other in pairwise(labels):
        change = {label: other, other: label}
        yield [(panel, change.get(text, text), found) for panel, text, found in series]


@pytest.mark.parametrize("name", SWAPPED)
def test_a_figure_whose_labels_are_swapped_is_noticed(name):
    place, first, second = SWAPPED[name]
    module = importlib.import_module(f"papers.{place}.figures")
    source = inspect.getsource(module)
    assert first in source
    swapped = source.replace(first, "\0").replace(second, first).replace("\0", second)
    copy = types.ModuleType(module.__name__)
    exec(compile(swapped, "swapped", "exec"), copy.__dict__)
    runs, figures = series_of(STUDIES[name], copy.FIGURES)
    assert any(exchanged(runs, series)[2] for series in figures.values())
