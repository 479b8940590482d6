"""Tables of a study for its notebook: parameters, the paper against ours, verdicts, health."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from html import escape

import pandas as pd

from papers.kit import earlier, forest, parts
from papers.kit.claims import Claim
from papers.kit.display import displayed
from papers.kit.numbers import Number
from papers.kit.quantities import Labels, name_of
from papers.kit.rules import Numbers, Outcome
from papers.kit.store import Derived
from papers.kit.study import Page

pd.set_option("display.max_colwidth", None)  # sentences in these tables are never cut
NOT_OF_BOOK = "not judged: not the book's runs"  # in place of a status


class PrintedValues(pd.DataFrame):  # type: ignore[misc] # pandas has no types here
    """Printed values beside ours, by whose class in HTML the book knows them."""

    def _repr_html_(self) -> str:
        return str(self.to_html(classes="printed-values", notebook=True))


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
    table = pd.DataFrame(rows, columns=columns).set_index("quantity").rename_axis(None)
    return displayed(PrintedValues(table))


class Verdicts(pd.DataFrame):  # type: ignore[misc] # pandas has no types here
    """Verdicts with their reasons; a notebook draws the parts of each claim in their place.

    Attributes
    ----------
    picture : the claims and the plots of their parts, as HTML.
    """

    _metadata = ["picture"]  # noqa: RUF012 - pandas reads it from the class

    def _repr_html_(self) -> str:
        return str(self.picture)


def claims_table(page: Page) -> Verdicts:
    """The verdict on every claim of a study by every reading, or why a page cannot judge it.

    Rules and numbers of the stored runs are on the book's page of claims.
    """
    rows = []
    cards = [f"<style>{forest.STYLE.read_text(encoding='utf-8')}</style>"]
    for claim in page.study.claims:
        wording = claim.wording
        outcomes = page.verdicts(claim)
        for reading, outcome in outcomes.items():
            rows.append(
                (earlier.name_of(claim.id, reading), wording, outcome.label, outcome.reason)
            )
            wording = ""  # once, however many readings a claim has
        cards.append(card(claim, outcomes, parts.frame(page.study, claim, outcomes)))
    columns = ["claim", "the paper says", "verdict", "why"]
    frame = pd.DataFrame(rows, columns=columns).set_index("claim").rename_axis(None)
    table = Verdicts(frame)
    table.picture = "".join(cards)
    return displayed(table)


def card(claim: Claim, outcomes: Mapping[str, Outcome], rows: pd.DataFrame) -> str:
    """A claim as HTML: the paper's words, and the verdict and the plot of every reading."""
    html = [f"<p><b>{claim.id}</b> {escape(claim.place)}: {escape(claim.wording)}</p>"]
    for reading in claim.each:
        outcome = outcomes[reading.name]
        verdict = outcome.verdict.replace(" ", "-")
        title = f"{escape(forest.sentence(reading.name))} " if reading.name else ""
        badge = f'<span class="badge-fed is-{verdict}">{escape(outcome.label)}</span>'
        reason = f" {escape(outcome.reason)}" if outcome.verdict == parts.NOT_JUDGED else ""
        html.append(f"<p>{title}{badge}{reason}</p>")
        texts = [*forest.below(reading, outcome), *earlier.on_earlier_seeds(claim.id, reading.name)]
        below = "".join(f"<p>{escape(text)}</p>" for text in texts)
        picture = forest.plot(rows[rows["reading"] == reading.name])
        details = f"<details><summary>{forest.SUMMARY}</summary>{below}</details>"
        html.append(f'<div class="forest">{picture}{details}</div>')
    return f'<div class="claim">{"".join(html)}</div>'


def runs_table(
    page: Page | Derived, runs: Mapping[str, str | Labels], measures: Mapping[str, str]
) -> pd.DataFrame:
    """Chosen measures of chosen runs: titles down, measures across, each with its interval.

    The numbers are those of a page or stored ones. A run is given by its name or by its labels; one
    that lacks a measure has no row. If some are not healthy, a last column says what is wrong.
    """
    numbers = page.numbers
    rows = {}
    wrong = {}
    for title, run in runs.items():
        name = run if isinstance(run, str) else name_of(run, numbers.defaults)
        keys = {f"{name}.{measure}": text for measure, text in measures.items()}
        if not all(key in numbers for key in keys):
            continue
        rows[title] = {
            with_unit(text, numbers[key]): unbroken(numbers[key]) for key, text in keys.items()
        }
        wrong[title] = page.health.get(name, "")
    if any(wrong.values()):
        for title, row in rows.items():
            row["not healthy"] = wrong[title]
    return displayed(pd.DataFrame.from_dict(rows, orient="index"))


def unbroken(n: Number, spec: str = ".3g") -> str:
    """Value and interval, which a narrow column must not tear apart."""
    return replace(n, unit="").text(spec).replace(" ", "\N{NO-BREAK SPACE}")


def with_unit(text: str, n: Number) -> str:
    """A column's heading, with the unit of its numbers unless the heading says it already."""
    return f"{text} ({n.unit})" if n.unit and n.unit not in text else text
