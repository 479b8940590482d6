"""The front page's picture says what the stored numbers say."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO

import pytest
from PIL import Image

from papers import STUDIES, all_claims, overview
from papers.kit import claims, plot, store
from papers.kit.claims import Claim
from papers.kit.numbers import Number
from papers.kit.rules import VERDICTS, Rule, value
from tests.helpers.expect import refuses

NUMBERS = {"twice": Number(2.0, 2.0, 2.0, (2.0,)), "half": Number(0.5, 0.5, 0.5, (0.5,))}


def claim(paper: str, key: str) -> Claim:
    """A claim that holds if a number is above one."""
    return Claim(f"x/{paper}{key}", paper, "", "", Rule({"": value(key) > 1}, ""), ())


@pytest.fixture
def small(monkeypatch):
    """One study with three claims, and its stored numbers."""
    claims = (claim("Y", "twice"), claim("Y", "half"), claim("ours", "half"))
    study = replace(STUDIES["ssca_long"], claims=claims)
    monkeypatch.setattr(overview, "all_claims", lambda: [(study, one) for one in claims])
    derived = store.Derived(NUMBERS, {}, {})
    monkeypatch.setattr(store, "read_derived", lambda *_: derived)


def test_counts(small):
    found = overview.standings()
    assert found["Y"] == {"reproduced": 1, "not reproduced": 1}
    assert found["ours"] == {"not reproduced": 1}
    assert not found["D"]


def test_every_claim_is_counted():
    found = overview.standings()
    assert {*overview.SHADES} == {*VERDICTS}
    for paper, verdicts in found.items():
        known = [c for _, c in all_claims() if paper == c.paper]
        assert sum(verdicts.values()) == len(known)
    assert sum(verdicts.total() for verdicts in found.values()) == len(all_claims()) > 80


def test_a_study_of_a_paper_without_its_letter_is_refused(monkeypatch):
    study = STUDIES["np_workshop"]
    refuses("np_workshop: paper must be one of 'W', 'F'", replace, study, paper="Z")
    monkeypatch.setitem(claims.PAPERS, "S", "SCAFFOLD")
    assert replace(study, paper="S").paper == "S"


def test_draws(small):
    found = overview.standings()
    picture = plot.render(lambda fig: overview.draw(fig, found), (4.8, 3.6))
    with Image.open(BytesIO(picture)) as image:
        assert image.size == (528, 396)
    svg = plot.export(lambda fig: overview.draw(fig, found), (4.8, 3.6))[0].decode()
    assert "not reproduced" in svg
    assert "not judged" not in svg  # no such verdict, no entry in the legend
