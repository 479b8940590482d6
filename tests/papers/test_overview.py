"""The front page's picture says what the stored numbers say."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO

import matplotlib
import pytest
from PIL import Image

from papers import STUDIES, all_claims, overview
from papers.kit import claims, plot, store
from papers.kit.claims import Claim
from papers.kit.numbers import Number
from papers.kit.rules import VERDICTS, Rule, value
from tests.helpers.expect import refuses

NUMBERS = {
    "twice": Number(
        2.0,
        2.0,
        2.0,
        (2.0,),
    ),
    "half": Number(0.5, 0.5, 0.5, (0.5,)),
}


def claim(paper: str, key: str) -> Claim:
    """A claim that holds if a number is above one."""
    return Claim(f"x/{paper}{key}", paper, "", "", Rule({"": value(key) > 1}), ())


@pytest.fixture
def small(monkeypatch):
    """One study with three claims, and its stored numbers."""
    three = (claim("Y", "twice"), claim("Y", "half"), claim("ours", "half"))
    study = replace(STUDIES["ssca_long"], claims=three)
    monkeypatch.setattr(overview, "all_claims", lambda: [(study, claim) for claim in three])
    derived = store.Derived(NUMBERS, {}, {})
    monkeypatch.setattr(store, "read_derived", lambda *_: derived)


def test_counts(small):
    counts = overview.standings()
    assert counts["Y"] == {"reproduced": 1, "not reproduced": 1}
    assert counts["ours"] == {"not reproduced": 1}
    assert not counts["D"]


def test_every_claim_is_counted():
    counts = overview.standings()
    assert {*overview.SHADES} == {*VERDICTS}
    for paper, verdicts in counts.items():
        papers_claims = [claim for _, claim in all_claims() if paper == claim.paper]
        assert verdicts.total() == len(papers_claims)
    assert sum(verdicts.total() for verdicts in counts.values()) == len(all_claims()) > 80


def test_a_study_of_a_paper_without_its_letter_is_refused(monkeypatch):
    study = STUDIES["np_workshop"]
    refuses("np_workshop: paper must be one of 'W', 'F'", replace, study, paper="Z")
    monkeypatch.setitem(claims.PAPERS, "S", "SCAFFOLD")
    assert replace(study, paper="S").paper == "S"


def test_draws(small):
    counts = overview.standings()
    with matplotlib.rc_context():
        figure = plot.figure((4.8, 3.6))
        overview.draw(figure, counts)
        with Image.open(BytesIO(plot.picture(figure, "png"))) as image:
            assert image.size == (528, 396)
        svg = plot.picture(figure, "svg").decode()
    assert "not reproduced" in svg
    assert "not judged" not in svg  # no such verdict, no entry in the legend
