"""What a study judged anew, beside what the study of the same sentences had said before."""

from __future__ import annotations

import pandas as pd

from papers.kit.display import displayed
from papers.kit.earlier import name_of
from papers.kit.study import Page, Study


def rejudged(page: Page, earlier_study: Study) -> pd.DataFrame:
    """The verdicts on the readings of a page's claims, and the earlier ones.

    Claim `R5` has the sentence of claim `C5`. A reading that the earlier study did not have is
    beside its own verdict on the claim's headline.
    """
    earlier = {claim.id: earlier_study.outcomes(claim) for claim in earlier_study.claims}
    rows = {}
    for claim in page.study.claims:
        known = earlier.get(claim.id.replace("/R", "/C"), {})
        for reading, outcome in page.verdicts(claim).items():
            name = name_of(claim.id, reading)
            old = known.get(reading) or next(iter(known.values()), None)
            rows[name] = {
                "the paper says": claim.wording,
                "here": outcome.label,
                "before": old.label if old else "-",
            }
    return displayed(pd.DataFrame.from_dict(rows, orient="index"))
