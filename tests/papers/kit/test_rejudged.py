"""An earlier verdict beside the one on the same sentence."""

from papers import STUDIES
from papers.kit import rejudged as kit


def test_a_sentence_stands_beside_its_earlier_verdict():
    page = STUDIES["np_protocol"].open()
    earlier = STUDIES["np_unified"]
    table = kit.rejudged(page, earlier)
    reading = "unstable from round to round"
    (claim,) = (claim for claim in earlier.claims if claim.id == "fedsgm/C12")
    outcome = earlier.outcomes(claim)[reading]
    assert table.loc[f"fedsgm/R12: {reading}", "before"] == outcome.label
    assert table.loc["fedsgm/R9", "here"] == "reproduced: 3 hold"
    assert len(table) == sum(len(claim.each) for claim in page.study.claims)
