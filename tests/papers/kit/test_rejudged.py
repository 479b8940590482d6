"""An earlier verdict beside the one on the same sentence."""

from papers import STUDIES
from papers.kit import rejudged as kit


def test_a_sentence_stands_beside_its_earlier_verdict():
    page = STUDIES["np_protocol"].open()
    table = kit.rejudged(page, STUDIES["np_unified"])
    name = "fedsgm/R12: unstable from round to round"
    assert table.loc[name, "before"] == "mixed: 3 hold, 2 fail, 1 open"
    assert table.loc["fedsgm/R9", "here"] == "reproduced: 3 hold"
    assert len(table) == sum(len(claim.each) for claim in page.study.claims)
