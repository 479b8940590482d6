"""The page of all claims, the scoreboard, and links to single claims."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from docutils import nodes
from fedbook_data import (
    BookDirective,
    BookError,
    Cell,
    badge,
    download_link,
    folder_of,
    freshness,
    page_link,
    raw,
    read_stored,
    slug,
    table,
)
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxRole

if TYPE_CHECKING:
    from fedlib.claims import Claim, Outcome
    from fedlib.studies.base import Study

SCRIPT = """
<script>
(() => {
  const bar = document.currentScript.previousElementSibling;
  bar.hidden = false;
  bar.addEventListener("click", (event) => {
    const show = event.target.dataset.show;
    if (!show) return;
    for (const button of bar.children)
      button.setAttribute("aria-pressed", button === event.target);
    for (const row of document.querySelectorAll("table.claims tbody tr"))
      row.hidden = show !== "all" && !row.classList.contains("claim-" + show);
  });
})();
</script>
"""


class Row(NamedTuple):
    """One claim, its study's name, its outcome, and whether the code is still the same."""

    claim: Claim
    study: str
    outcome: Outcome
    fresh: bool


def evaluated(env: BuildEnvironment, paper: str | None = None) -> list[Row]:
    """All claims of a paper (or of all) with their outcome, failing ones first."""
    from fedlib.claims import VERDICTS
    from fedlib.studies import STUDIES

    rows = [
        evaluate(env, study, claim)
        for study in STUDIES.values()
        for claim in study.claims
        if paper is None or paper in claim.paper
    ]
    return sorted(rows, key=lambda row: VERDICTS.index(row.outcome.verdict))


def evaluate(env: BuildEnvironment, study: Study, claim: Claim) -> Row:
    """The verdict on one claim, by its rule, from the stored runs."""
    for name in ("numbers", *claim.runs):
        read_stored(env, folder_of(study.name) / f"{name}.json")
    try:
        result = study.evaluate(claim)
    except KeyError as error:
        raise BookError(f"{claim.id}: the rule asks for the number {error}, not stored.") from None
    return Row(claim, study.name, result.outcome, result.fresh)


class Claims(BookDirective):
    """``{claims} [paper]``: every claim with its rule, measurement and verdict."""

    optional_arguments = 1
    kind = "claims"

    def build(self) -> list[nodes.Node]:
        """Filter buttons and the table."""
        done = evaluated(self.env, self.arguments[0] if self.arguments else None)
        head = ("Claim", "What the paper says", "Measured", "Verdict")
        result = table(head, [self.line(e) for e in done], (12, 42, 30, 16), "claims")
        for row, e in zip(result.findall(nodes.row), [None, *done], strict=True):
            if e is not None:
                self.anchor(row, e)
        return [nodes.raw("", filter_bar(done), format="html"), result]

    def anchor(self, row: nodes.row, e: Row) -> None:
        """Makes the line a target, for links from outside and for the ``claim`` role."""
        name = e.claim.anchor
        row["ids"].append(name)
        row["classes"].append(f"claim-{slug(e.outcome.verdict)}")
        domain, key = self.env.get_domain("std"), name.lower()
        if key not in domain.labels or not self.arguments:  # links go to the page of all claims
            domain.labels[key] = (self.env.docname, name, e.claim.id)
            domain.anonlabels[key] = (self.env.docname, name)

    def line(self, e: Row) -> list[Cell]:
        """The four cells of one claim."""
        claim, outcome = e.claim, e.outcome
        measured = [
            nodes.paragraph("", text) for text in (outcome.measured, outcome.reason) if text
        ]
        return [
            [paragraph(nodes.strong(claim.id, claim.id)),
             paragraph(nodes.Text(f"{claim.paper}, "), *self.inline(claim.place)),
             paragraph(page_link(self.env, e.study))],
            [paragraph(*self.inline(claim.wording)), *self.details(e)],
            measured,
            [paragraph(badge(outcome.verdict, outcome.verdict)), *self.state_of(e)],
        ]  # fmt: skip

    def state_of(self, e: Row) -> list[nodes.Node]:
        """Fresh or stale, where runs are behind the verdict."""
        return [paragraph(freshness(fresh=e.fresh))] if e.claim.runs else []

    def details(self, e: Row) -> list[nodes.Node]:
        """How it is measured, the rule and the runs, folded away."""
        runs = [nodes.strong("", "Stored runs: ")]
        for number, name in enumerate(e.claim.runs):
            runs += [nodes.Text(", ")] if number else []
            path = folder_of(e.study) / f"{name}.json"
            link = path.is_file()
            runs.append(download_link(self.env, path, name) if link else nodes.literal(name, name))
        return [
            raw("<details><summary>How it is judged</summary>"),
            paragraph(nodes.strong("", "Measure: "), *self.inline(e.claim.measure)),
            paragraph(nodes.strong("", "Rule: "), *self.inline(e.claim.rule)),
            *([paragraph(*runs)] if e.claim.runs else []),
            raw("</details>"),
        ]


def paragraph(*children: nodes.Node) -> nodes.paragraph:
    """A paragraph of inline nodes."""
    return nodes.paragraph("", "", *children)


def filter_bar(done: list[Row]) -> str:
    """Buttons that show the claims of one verdict; without JavaScript they stay hidden."""
    from fedlib.claims import VERDICTS

    counts = Counter(e.outcome.verdict for e in done)
    choices = [("all", "all", len(done))]
    choices += [(slug(v), v, counts[v]) for v in VERDICTS if counts[v]]
    buttons = "".join(
        f'<button type="button" data-show="{key}" aria-pressed="{str(key == "all").lower()}">'
        f"{escape(text)} ({count})</button>"
        for key, text, count in choices
    )
    label = "Show the claims with this verdict"
    opening = f'<div class="claims-filter" role="group" aria-label="{label}" hidden>'
    return f"{opening}{buttons}</div>{SCRIPT}"


class Scoreboard(BookDirective):
    """``{scoreboard}``: how many claims of each paper have which verdict."""

    kind = "scoreboard"

    def build(self) -> list[nodes.Node]:
        """One line per paper."""
        from fedlib.claims import VERDICTS

        counts = Counter((e.claim.paper, e.outcome.verdict) for e in evaluated(self.env))
        papers = sorted({paper for paper, _ in counts})
        rows = [[paper] + [str(counts[paper, v]) for v in VERDICTS] for paper in papers]
        return [table(["Paper", *VERDICTS], rows, (20, 20, 20, 20, 20), "scoreboard")]


class ClaimRole(SphinxRole):
    """``{claim}`fedsgm/C3` ``: a link to the claim's line on the page of claims."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """A reference that warns when there is no such claim."""
        target = f"claim-{self.text.replace('/', '-')}".lower()
        return [
            addnodes.pending_xref(
                "", nodes.inline(self.text, self.text), refdomain="std", reftype="ref",
                refexplicit=True, refwarn=True, refdoc=self.env.docname, reftarget=target,
            )
        ], []  # fmt: skip


def setup(app: Sphinx) -> None:
    """Registers the directives and the role."""
    app.add_directive("claims", Claims)
    app.add_directive("scoreboard", Scoreboard)
    app.add_role("claim", ClaimRole())
