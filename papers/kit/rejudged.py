"""What a study judged anew, beside what the study of the same sentences had said before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pandas as pd

from papers.kit.display import displayed
from papers.kit.rules import Outcome
from papers.kit.study import Page, Study

STATES = ("holds", "fails", "undecided")


def rejudged(page: Page, before: Study) -> pd.DataFrame:
    """The readings of a page's claims with the states of their parts, and the earlier verdicts.

    Claim `R5` has the sentence of claim `C5`. A reading that the earlier study did not have is
    beside its own verdict on the claim's headline.
    """
    earlier = {claim.id: before.outcomes(claim) for claim in before.claims}
    rows = {}
    for claim in page.study.claims:
        known = earlier.get(claim.id.replace("/R", "/C"), {})
        runs = page.traces, page.numbers, page.params, page.edited
        for reading, outcome in page.study.verdicts(claim, *runs).items():
            name = f"{claim.id}: {reading}" if reading else claim.id
            old = known.get(reading) or next(iter(known.values()), None)
            rows[name] = {
                "the paper says": claim.wording,
                "here": told(outcome),
                "before": told(old) if old else "-",
            }
    return displayed(pd.DataFrame.from_dict(rows, orient="index"))


def told(outcome: Outcome) -> str:
    """A verdict with the number of its parts in each state."""
    count: Mapping[str, int] = Counter(outcome.parts.values())
    states = ", ".join(f"{count[state]} {state}" for state in STATES if count[state])
    return f"{outcome.verdict} ({states})" if states else outcome.verdict
