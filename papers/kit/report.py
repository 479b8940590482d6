"""Tables of a study for its notebook: parameters, the paper against ours, verdicts, health."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from papers.kit.display import displayed
from papers.kit.numbers import Number
from papers.kit.rules import Numbers
from papers.kit.study import Page

pd.set_option("display.max_colwidth", None)  # sentences in these tables are never cut
NOT_OF_BOOK = "not judged: not the book's runs"  # in place of a status


def paper_table(page: Page, numbers: Numbers | None = None) -> pd.DataFrame:
    """The paper's printed values beside those of a page, with the interval over seeds.

    The status says whether they agree, unless the page has other runs than the book. `numbers` are
    stored ones in place of the page's.
    """
    ours = page.numbers if numbers is None else numbers
    judged = numbers is not None or page.of_study
    rows = []
    for v in page.study.paper_values:
        if v.key in ours:
            status = v.status(ours[v.key]) if judged else NOT_OF_BOOK
            rows.append((v.label, v.place, v.paper_text, ours[v.key].text(), status))
    columns = ["quantity", "place", "paper", "ours [95 % interval]", "status"]
    return displayed(pd.DataFrame(rows, columns=columns).set_index("quantity").rename_axis(None))


def claims_table(page: Page) -> pd.DataFrame:
    """The verdict on every claim of a study by every reading, or why a page cannot judge it.

    Rules and numbers of the stored runs are on the book's page of claims.
    """
    rows = []
    for claim in page.study.claims:
        wording = claim.wording
        runs = page.traces, page.numbers, page.params, page.changed_runs
        for reading, found in page.study.verdicts(claim, *runs).items():
            name = f"{claim.id}: {reading}" if reading else claim.id
            rows.append((name, wording, found.label, found.reason))
            wording = ""  # once, however many readings a claim has
    columns = ["claim", "the paper says", "verdict", "why"]
    return displayed(pd.DataFrame(rows, columns=columns).set_index("claim").rename_axis(None))


def runs_table(
    numbers: Numbers,
    runs: Mapping[str, str],
    measures: Mapping[str, str],
    health: Mapping[str, str] = {},
) -> pd.DataFrame:
    """Chosen measures of chosen runs: labels down, measures across, each with its interval.

    With their health a last column says of the runs that are not healthy what is wrong.
    """
    there = {k: v for k, v in runs.items() if all(f"{v}.{m}" in numbers for m in measures)}
    rows = {
        label: {
            with_unit(text, numbers[f"{run}.{m}"]): unbroken(numbers[f"{run}.{m}"])
            for m, text in measures.items()
        }
        for label, run in there.items()
    }
    wrong = {label: health.get(run, "") for label, run in there.items()}
    if any(wrong.values()):
        for label in rows:
            rows[label]["not healthy"] = wrong[label]
    return displayed(pd.DataFrame.from_dict(rows, orient="index"))


def unbroken(n: Number, spec: str = ".3g") -> str:
    """Value and interval, which a narrow column must not tear apart."""
    return replace(n, unit="").text(spec).replace(" ", "\N{NO-BREAK SPACE}")


def with_unit(text: str, n: Number) -> str:
    """A column's heading, with the unit of its numbers unless the heading says it already."""
    return f"{text} ({n.unit})" if n.unit and n.unit not in text else text
