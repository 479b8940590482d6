"""A verdict with its counts of parts, and the earlier verdict beside it."""

from papers import STUDIES
from papers.kit import rejudged as kit
from papers.kit.rules import Outcome


def test_a_verdict_is_told_with_its_parts():
    parts = {"a": "holds", "b": "undecided", "c": "holds"}
    assert kit.told(Outcome("undecided", "", "", parts)) == "undecided (2 holds, 1 undecided)"
    assert kit.told(Outcome("not judged", "")) == "not judged"


def test_a_sentence_stands_beside_its_earlier_verdict():
    page = STUDIES["np_protocol"].open()
    table = kit.rejudged(page, STUDIES["np_unified"])
    name = "fedsgm/R12: unstable from round to round"
    assert table.loc[name, "before"].startswith("partly (3 holds")
    assert table.loc["fedsgm/R9", "here"] == "reproduced (3 holds)"
    assert len(table) == sum(len(claim.each) for claim in page.study.claims)
