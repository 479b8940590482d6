"""The front page's picture says what the stored numbers say."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO

import pytest
from expect import refuses
from PIL import Image

from papers import STUDIES, all_claims, overview
from papers.kit import claims, plot, store
from papers.kit.claims import Claim, PaperValue
from papers.kit.numbers import Number
from papers.kit.rules import Rule, value

NUMBERS = {"twice": Number(2.0, 2.0, 2.0, (2.0,)), "half": Number(0.5, 0.5, 0.5, (0.5,))}


def claim(paper: str, key: str) -> Claim:
    """A claim that holds if a number is above one."""
    return Claim(f"x/{paper}{key}", paper, "", "", "", Rule({"": value(key) > 1}, ""), ())


@pytest.fixture
def small(monkeypatch):
    """One study of paper Y with three claims and three printed values, and its stored numbers."""
    values = (
        PaperValue("a", "twice", 4.0, "4", ""),
        PaperValue("b", "half", 0.1, "0.1", ""),
        PaperValue("c", "half", None, "a curve", ""),
    )
    claims = (claim("Y", "twice"), claim("Y", "half"), claim("ours", "half"))
    study = replace(STUDIES["ssca_long"], claims=claims, paper_values=values)
    monkeypatch.setattr(overview, "STUDIES", {"ssca_long": study})
    derived = store.Derived(NUMBERS, {}, {})
    monkeypatch.setattr(store, "read_derived", lambda *_: derived)


def test_counts_and_ratios(small):
    found = {s.paper: s for s in overview.standings()}
    assert found["Y"].verdicts["reproduced"] == found["Y"].verdicts["not reproduced"] == 1
    assert found["Y"].verdicts["partly"] == 0  # and the prediction of ours counts for no paper
    assert found["Y"].ratios == pytest.approx((0.5, 5.0))
    assert found["D"].ratios == ()
    assert not any(found["D"].verdicts.values())


def test_every_claim_is_counted():
    for paper in overview.PROMISES:
        known = [c for _, c in all_claims() if paper in c.paper and c.paper != "ours"]
        assert known, f"no claim of paper {paper}"
    letters = {c.paper for _, c in all_claims()}
    assert letters - {"ours"} <= set(overview.PROMISES), "a paper is missing in PROMISES"
    assert {study.paper for study in STUDIES.values()} - {"all"} <= set(overview.PROMISES)


def test_a_paper_without_its_letter_or_its_promise_is_refused(monkeypatch):
    monkeypatch.setitem(claims.PAPERS, "S", "SCAFFOLD")
    refuses("PROMISES must have a line for every paper *, S is in", overview.standings)
    study = STUDIES["np_workshop"]
    assert replace(study, paper="S").paper == "S"
    refuses("np_workshop: paper must be one of 'W', 'F'", replace, study, paper="Z")


def test_draws(small):
    found = overview.standings()
    picture = plot.render(lambda fig: overview.draw(fig, found), (8.4, 4.3))
    with Image.open(BytesIO(picture)) as image:
        assert image.size == (924, 473)
    svg = plot.export(lambda fig: overview.draw(fig, found), (8.4, 4.3))[0].decode()
    assert "prints curves only" in svg
    assert "not reproduced" in svg
    assert "not judged" not in svg  # no such verdict, no entry in the legend
