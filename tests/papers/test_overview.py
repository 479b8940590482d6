"""The front page's picture says what the stored numbers say."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import matplotlib

from papers import STUDIES, all_claims, overview
from papers.kit import claims, plot
from papers.kit.rules import VERDICTS
from tests.helpers.expect import refuses


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


def test_the_picture_shows_the_verdicts_that_there_are():
    counts = {paper: Counter() for paper in overview.standings()}
    counts["Y"]["not reproduced"] = 2
    with matplotlib.rc_context():
        figure = plot.figure((4.8, 3.6))
        overview.draw(figure, counts)
        svg = plot.picture(figure, "svg").decode()
    assert "not reproduced" in svg
    assert "not judged" not in svg  # no such verdict, no entry in the legend
