"""A study as its notebook opens it: stored runs are loaded, a changed algorithm is computed."""

from dataclasses import replace

import pytest

from papers import STUDIES
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


def test_a_changed_algorithm_changes_its_run_alone_and_is_said(page, capsys):
    usual = page.run()
    soft = STUDY.specs(page.params)["soft"].algorithm
    changed = page.run(soft=replace(soft, lr=0.1))
    line = capsys.readouterr().out.splitlines()[-1]
    assert "profile 'quick' with" in line
    assert "; your own: soft (parameter: lr 0.1, not 0.3). The result " in line
    assert (changed["soft"].metrics["f"] != usual["soft"].metrics["f"]).any()
    assert (changed["hard"].metrics["f"] == usual["hard"].metrics["f"]).all()
    assert page.numbers["soft.f"].value == page.numbers["soft_lr0.1.f"].value


def test_curves_by_a_label_that_no_run_has_are_refused_with_the_nearest(page):
    page.run()
    words = "np_workshop.curves: a label must be one of the study's, got 'swich'; nearest: switch."
    refuses(words, page.curves, ["swich"], {"switch": None})
    refuses(
        words,
        page.curves,
        [],
        {"switch": None},
        swich="hard",
    )


def test_a_run_that_the_study_does_not_have_is_refused(page):
    algorithm = STUDY.specs(page.params)["soft"].algorithm
    refuses("np_workshop.run: name must be *got 'sofft'", page.run, sofft=algorithm)
