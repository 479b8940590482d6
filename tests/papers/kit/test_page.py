"""A study as its notebook opens it: stored runs are loaded, a changed algorithm is computed."""

from dataclasses import replace

import numpy as np
import pytest

from papers import STUDIES
from papers.fedsgm.np_workshop.runs import problem
from tests.helpers.expect import refuses

STUDY = STUDIES["np_workshop"]


@pytest.fixture
def page():
    small = {"rounds": 4, "seeds": 2, "lrs": [0.1], "betas": [5.0]}
    return STUDY.open("quick", settle_rounds=10, device="cpu", **small)


def test_parameters_are_attributes_and_seeds_a_count(page):
    assert (page.lr, page.seeds) == (0.3, (0, 1))
    with pytest.raises(AttributeError, match=r"parameter must be one of seeds, .*, got 'step'"):
        page.step  # noqa: B018 - what is refused


def test_the_studys_own_algorithms_are_the_studys_own_runs(page, capsys):
    specs = STUDY.specs(page.params)
    traces = page.run(problem, hard=specs["hard"].algorithm)
    assert "runs are the study's" in capsys.readouterr().out
    assert traces.keys() == specs.keys()
    assert page.numbers["hard.f"].value == np.float64(traces["hard"].late("f", 0.2).mean())


def test_a_changed_algorithm_changes_its_run_alone_and_is_said(page, capsys):
    before = page.run()
    soft = STUDY.specs(page.params)["soft"].algorithm
    after = page.run(soft=replace(soft, lr=0.1))
    said = capsys.readouterr().out.splitlines()[-1]
    changed = ("profile 'quick' with", "; your own: soft (parameter: lr 0.1, not 0.3). The result ")
    assert all(words in said for words in changed)
    assert (after["soft"].metrics["f"] != before["soft"].metrics["f"]).any()
    assert (after["hard"].metrics["f"] == before["hard"].metrics["f"]).all()
    assert page.numbers["soft.f"].value == page.numbers["soft_lr0.1.f"].value


def test_a_run_that_the_study_does_not_have_is_refused(page):
    algorithm = STUDY.specs(page.params)["soft"].algorithm
    refuses("np_workshop.run: name must be *got 'sofft'", page.run, sofft=algorithm)
