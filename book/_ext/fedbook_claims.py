"""The page of all claims, the scoreboard, and links to single claims."""

from __future__ import annotations

from collections import Counter
from html import escape

from docutils import nodes
from fedbook_data import (
    BookDirective,
    badge,
    download_link,
    folder_of,
    freshness,
    numbers_of,
    page_link,
    slug,
    table,
)
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxRole

# Failing claims first: they are what a reader looks for.
VERDICTS = ("not reproduced", "partly", "reproduced", "not testable here")
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


def evaluated(env: BuildEnvironment, paper: str | None = None) -> list:
    """All claims of a paper (or of all) with their outcome, failing ones first."""
    from fedlib import claims

    chosen = [(s, c) for s, c in claims.all_claims() if paper in (None, c.paper)]
    for name in {study.name for study, _ in chosen}:
        numbers_of(env, name)  # a missing file is a warning, a changed one rebuilds the page
    done = [claims.evaluate(study, claim, profile="full") for study, claim in chosen]
    return sorted(done, key=lambda e: VERDICTS.index(e.outcome.verdict))


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

    def anchor(self, row: nodes.row, e: object) -> None:
        """Makes the line a target, for links from outside and for the ``claim`` role."""
        name = f"claim-{e.claim.id.replace('/', '-')}"
        row["ids"].append(name)
        row["classes"].append(f"claim-{slug(e.outcome.verdict)}")
        domain = self.env.get_domain("std")
        domain.labels[name.lower()] = (self.env.docname, name, e.claim.id)
        domain.anonlabels[name.lower()] = (self.env.docname, name)

    def line(self, e: object) -> list:
        """The four cells of one claim."""
        claim, outcome = e.claim, e.outcome
        measured = [nodes.paragraph("", "", *self.inline(outcome.measured or "-"))]
        if outcome.reason:
            measured.append(nodes.paragraph("", "", *self.inline(outcome.reason)))
        return [
            [paragraph(nodes.strong(claim.id, claim.id)),
             paragraph(nodes.Text(f"{claim.paper}, "), *self.inline(claim.place)),
             paragraph(page_link(self.env, e.study if isinstance(e.study, str) else e.study.name))],
            [paragraph(*self.inline(claim.wording)), *self.details(e)],
            measured,
            [paragraph(badge(outcome.verdict, outcome.verdict)), *self.state_of(e)],
        ]  # fmt: skip

    def state_of(self, e: object) -> list[nodes.Node]:
        """Fresh or stale, where runs are behind the verdict."""
        return [paragraph(freshness(fresh=e.fresh))] if e.claim.runs else []

    def details(self, e: object) -> list[nodes.Node]:
        """How it is measured, the rule and the runs, folded away."""
        study = e.study if isinstance(e.study, str) else e.study.name
        runs = [nodes.strong("", "Stored runs: ")]
        for number, name in enumerate(e.claim.runs):
            runs += [nodes.Text(", ")] if number else []
            path = folder_of(study) / f"{name}.json"
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


def raw(text: str) -> nodes.raw:
    """HTML that other builders leave out."""
    return nodes.raw("", text, format="html")


def filter_bar(done: list) -> str:
    """Buttons that show the claims of one verdict; without JavaScript they stay hidden."""
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
