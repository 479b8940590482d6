"""The claims with their parts drawn, and links to single claims.

The list can be narrowed to a paper, a verdict and older rules by `claims-filter.js`; without it,
and in print, it is whole.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd
from docutils import nodes
from fedbook_data import (
    BookDirective,
    BookError,
    Cell,
    add_label,
    badge,
    download_link,
    figure_link,
    folder_of,
    is_code_cell,
    label_link,
    nearest,
    raw,
    read_stored,
    slug,
    study_of,
    table,
    warn,
)
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxRole

from papers import STUDIES, all_claims
from papers.kit import archive, forest, parts
from papers.kit.claims import PAPERS
from papers.kit.earlier import on_earlier_seeds
from papers.kit.forest import sentence
from papers.kit.rules import VERDICTS, count_states
from papers.kit.run_groups import hours_at_scale, hours_for

if TYPE_CHECKING:
    from papers.kit.claims import Claim, Reading
    from papers.kit.rules import Outcome
    from papers.kit.study import Study


CLAIMS = "book/claims"
DATA = Path("_build", "figures", "claims.csv")
#: Class of the claims that have a rule which is older than the runs that judge it.
OLDER = "rule-older"


class Row(NamedTuple):
    """One claim, its study's name, its outcome, those of its other readings, and all parts."""

    claim: Claim
    study: str
    outcome: Outcome
    readings: Mapping[str, Outcome]
    parts: pd.DataFrame

    @property
    def older(self) -> bool:
        """Whether a rule of the claim is older than the runs that judge it."""
        return bool((self.parts["rule_fixed"] != "").any())


def evaluated(env: BuildEnvironment, paper: str | None = None) -> list[Row]:
    """All claims of a paper (or of all) with their outcome, failing ones first."""
    rows = []
    for study in STUDIES.values():
        claims = [claim for claim in study.claims if paper is None or paper in claim.paper]
        rows += [evaluate(env, study, claim) for claim in claims]
    return sorted(rows, key=lambda row: VERDICTS.index(row.outcome.verdict))


def evaluate(env: BuildEnvironment, study: Study, claim: Claim) -> Row:
    """The verdict on one claim, by its rule, from the stored runs."""
    for name in ("numbers", *claim.all_runs):
        read_stored(env, folder_of(study.name) / f"{name}.json")
    larger = folder_of(f"{study.name}@paper") / "numbers.json"
    if archive.exists(larger):  # a claim may be judged there
        read_stored(env, larger)
    try:
        readings = study.outcomes(claim)
    except KeyError as error:
        raise BookError(f"{claim.id}: the rule asks for the number {error}, not stored.") from None
    rows = parts.frame(study, claim, readings)
    return Row(claim, study.name, readings.pop(claim.reading), readings, rows)


class Claims(BookDirective):
    """``{claims} [paper]``: every claim with its parts drawn, and its verdict."""

    optional_arguments = 1
    subtype = "claims"

    def build(self) -> list[nodes.Node]:
        """What comes out in short, filter buttons and the claims."""
        paper = self.arguments[0] if self.arguments else None
        rows = evaluated(self.env, paper)
        bar = raw(filter_bar(groups(rows), len(rows)))
        cards = [node for row in rows for node in self.card(row)]
        claims = nodes.container("", *cards, classes=["claims"])
        return [in_short(rows), in_parts(rows), bar, claims]

    def card(self, row: Row) -> list[nodes.Node]:
        """One claim: its name and verdict, the paper's words, and the plot of every reading."""
        claim = row.claim
        citation = nodes.inline("", "", classes=["claim-place"])
        citation += [
            nodes.Text(f" {PAPERS[claim.paper]}, "),
            *self.inline(claim.place),
            nodes.Text(" · "),
            figure_link(self.env, row.study, claim.figure),
            nodes.Text(" "),
        ]
        verdict = badge(row.outcome.label, row.outcome.verdict)
        head = paragraph(nodes.strong(claim.id, claim.id), citation, verdict)
        classes = f"claim claim-{slug(row.outcome.verdict)} paper-{slug(claim.paper)}"
        if row.older:
            classes += f" {OLDER}"
        card = [raw(f'<div class="{classes}" id="{claim.anchor}">'), head]
        card.append(paragraph(*self.inline(claim.wording)))
        shown: set[str] = set()
        for reading in claim.each:
            card += self.reading(row, reading, shown)
        if not self.arguments or CLAIMS not in self.env.found_docs:  # links go to all claims
            add_label(self.env, claim.anchor, claim.id)
        return [*card, raw("</div>")]

    def reading(self, row: Row, reading: Reading, shown: set[str]) -> list[nodes.Node]:
        """One reading: its name and verdict where there are several, its plot, and the rest.

        A sentence of the rest that is in `shown` stands with a reading before it; others are added.
        """
        outcome = row.readings.get(reading.name, row.outcome)
        lead: list[nodes.Node] = []
        if row.readings:
            lead.append(paragraph(nodes.emphasis("", sentence(reading.name))))
        if reading.name in row.readings:  # the head has the verdict by the first
            lead[0] += [nodes.Text(" "), badge(outcome.label, outcome.verdict)]
        reason = why_not(outcome)
        if reason:
            lead.append(nodes.paragraph("", sentence(reason)))
        picture = forest.plot(row.parts[row.parts["reading"] == reading.name])
        earlier = on_earlier_seeds(row.claim.id, reading.name)
        texts = [*forest.below(reading, outcome), *earlier, *power_of(row, outcome)]
        details = [paragraph(*self.inline(text)) for text in texts if text not in shown]
        shown.update(texts)
        start = f"<div class=forest>{picture}<details><summary>{forest.SUMMARY}</summary>"
        return [*lead, raw(start), *details, raw("</details></div>")]


def why_not(outcome: Outcome) -> str:
    """Why the runs do not judge a claim; of others the rule's parts say what does not hold."""
    if outcome.verdict in ("mixed", "not reproduced", "open"):
        return ""
    return counted(outcome.reason.replace("not judged, because ", ""))


def counted(reason: str) -> str:
    """A reason that says of how many others it is the first."""
    reason = reason.replace("(and 1 more)", "(and 1 more reason)")
    return re.sub(r"\(and (\d+) more\)", r"(and \1 more reasons)", reason)


def power_of(row: Row, outcome: Outcome) -> list[str]:
    """How many seeds would decide the open parts of a reading, and what they cost."""
    if not outcome.seeds:
        return []
    hours = hours_for(study_of(row.study), row.claim, outcome.seeds)
    return [f"Seeds that decide the open parts: {outcome.seeds} ({rounded(hours)} core-hours)."]


def paragraph(*children: nodes.Node) -> nodes.paragraph:
    """A paragraph of inline nodes."""
    return nodes.paragraph("", "", *children)


def groups(rows: list[Row]) -> list[str]:
    """Buttons for the verdict, and for the paper and older rules if there is a choice."""
    papers = {row.claim.paper for row in rows}
    names = [(f"paper-{slug(paper)}", name) for paper, name in PAPERS.items() if paper in papers]
    verdicts = {row.outcome.verdict for row in rows}
    choices = [(f"claim-{slug(verdict)}", verdict) for verdict in VERDICTS if verdict in verdicts]
    buttons = [group("Verdict", choices)]
    if len(names) > 1:
        buttons.insert(0, group("Paper", names))
    if len({row.older for row in rows}) > 1:
        buttons.append(group("Rule", [(OLDER, "older than its runs")]))
    return buttons


def filter_bar(groups: Iterable[str], count: int, noun: str = "claims") -> str:
    """Groups of buttons that narrow the next table; hidden until a script shows them."""
    counted = f'<p class="claims-count" role="status" data-noun="{noun}">{count} {noun}</p>'
    return f'<div class="claims-filter" hidden>{"".join(groups)}{counted}</div>'


def group(label: str, choices: Iterable[tuple[str, str]]) -> str:
    """The buttons of one group, "all" first and pressed."""
    buttons = ""
    for key, text in (("", "all"), *choices):
        pressed = "false" if key else "true"
        buttons += (
            f'<button type="button" data-show="{key}" aria-pressed="{pressed}">'
            f"{escape(text)}</button>"
        )
    title = f'<span class="claims-filter-title" aria-hidden="true">{label}</span>'
    return f'<div role="group" aria-label="{label}">{title}{buttons}</div>'


class NotJudged(BookDirective):
    """``{not-judged} LETTERS``: claims of these papers that our runs cannot judge, and why."""

    required_arguments = 1
    subtype = "not-judged"

    def build(self) -> list[nodes.Node]:
        """A line for each claim."""
        lines: list[list[Cell]] = []
        for paper in self.arguments[0]:
            for row in evaluated(self.env, paper):
                if row.outcome.verdict == "not judged":
                    link = paragraph(claim_link(self.env, row.claim.id))
                    wording = paragraph(*self.inline(row.claim.wording))
                    lines.append([link, wording, missing_of(row)])
        if not lines:
            raise BookError(f"every claim of {self.arguments[0]} is judged; drop the directive.")
        head = ("claim", "what the paper says", "what is missing")
        return [table(head, lines, (15, 45, 40), "not-judged")]


def missing_of(row: Row) -> str:
    """Why a claim is not judged, and what its runs would cost in the paper's setting."""
    scale, _, reason = row.outcome.reason.partition("not judged, because ")
    text = sentence(counted(reason))
    hours = 0.0 if scale else hours_at_scale(study_of(row.study), row.claim)
    if not hours:
        return text
    return f"{text} With the paper's rounds and seeds, its runs take {rounded(hours)} core-hours."


def rounded(hours: float) -> str:
    """A duration with two digits: `9.3`, `1,000`."""
    return f"{float(f'{hours:.2g}'):,g}"


def in_short(rows: list[Row]) -> nodes.paragraph:
    """How many claims there are, how many of them can be judged, and what comes out."""
    verdicts = [row.outcome.verdict for row in rows]
    unjudged = verdicts.count("not judged")
    text = (
        f"The stored runs can judge {len(rows) - unjudged} of {len(rows)} claims: "
        f"{summary_of(verdicts)}. Each of the other {unjudged} claims says what is missing."
    )
    return nodes.paragraph("", text)


def summary_of(verdicts: list[str]) -> str:
    """How many claims have each verdict but *not judged*: `3 reproduced, 1 mixed`."""
    texts = []
    for verdict in reversed(VERDICTS):
        count = verdicts.count(verdict)
        if count and verdict != "not judged":
            texts.append(f"{count} {verdict}")
    return ", ".join(texts)


def in_parts(rows: list[Row]) -> nodes.paragraph:
    """How many parts there are, how they are drawn, and how many have an older rule."""
    table_of_parts = pd.concat([row.parts for row in rows], ignore_index=True)
    judged = table_of_parts[table_of_parts["state"] != parts.NOT_JUDGED]
    older = (judged["rule_fixed"] != "").sum()
    text = (
        f"In all readings these claims have {len(judged)} parts that are judged: "
        f"{count_states(judged['state'])}. The rule of {older} of them was fixed before the seeds "
        "that judge it were drawn. Every part is drawn with its 95 % interval, on an axis that is "
        "tinted where the part holds. A disc holds, a square fails, a ring is open, and a diamond "
        "is the value that the paper prints."
    )
    return nodes.paragraph("", text)


def claim_link(env: BuildEnvironment, identifier: str) -> nodes.Node:
    """A link to a claim's line on the page of claims, which warns when there is no such claim."""
    target = f"claim-{identifier.replace('/', '-')}".lower()
    return label_link(env, target, identifier)


class ClaimRole(SphinxRole):
    """``{claim}`fedsgm/C3` ``: a link to the claim's line on the page of claims."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """A reference; a typed warning when there is no such claim."""
        known = [claim.id for _, claim in all_claims()]
        if self.text not in known:
            near = nearest(self.text, known)
            error = BookError(f"there is no claim {self.text!r}; ids that look like it: {near}.")
            warn(error, "claim", self.get_location())
            return [nodes.problematic(self.rawtext, self.text)], []
        return [claim_link(self.env, self.text)], []


PRINTED = "report.claims_table("  # in a notebook's cell that draws all parts of its claims


def shorten_verdicts(app: Sphinx, doctree: nodes.document) -> None:
    """Lists a study's verdicts where its notebook draws every part: the claims page draws them."""
    for cell in list(doctree.findall(is_code_cell)):
        if PRINTED in cell.astext():
            study = study_of(Path(app.env.docname).name)
            lines = [verdict_line(app.env, study, claim) for claim in study.claims]
            cell.replace_self(nodes.bullet_list("", *lines, classes=["verdicts"]))


def verdict_line(env: BuildEnvironment, study: Study, claim: Claim) -> nodes.list_item:
    """A claim, what the paper says, and the verdict by every reading."""
    row = evaluate(env, study, claim)
    line = paragraph(claim_link(env, claim.id), nodes.Text(f" {claim.wording}"))
    for name, outcome in {claim.reading: row.outcome, **row.readings}.items():
        line += nodes.Text(" ")
        if row.readings:  # several: say which
            line += [nodes.emphasis("", sentence(name)), nodes.Text(" ")]
        line += badge(outcome.label, outcome.verdict)
    return nodes.list_item("", line)


class DataRole(SphinxRole):
    """``{claims-data}`text` ``: a link to the parts of all claims as CSV, which this writes."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """The link; a typed warning where a claim cannot be judged."""
        try:
            rows = evaluated(self.env)
        except BookError as error:
            warn(error, "claims-data", self.get_location())
            return [nodes.problematic(self.rawtext, self.text)], []
        DATA.parent.mkdir(parents=True, exist_ok=True)
        by_claim = {row.claim.id: row.parts for row in rows}
        ordered = [by_claim[claim.id] for _, claim in all_claims()]
        parts.write_csv(pd.concat(ordered), DATA)
        return [download_link(self.env, DATA, self.text)], []


class Columns(BookDirective):
    """``{claims-columns}``: what the columns of the table of all parts have, folded away."""

    subtype = "claims-columns"

    def build(self) -> list[nodes.Node]:
        """A fold with a table."""
        lines = [(nodes.literal(name, name), words) for name, words in parts.COLUMNS.items()]
        columns = table(("column", "what it has"), lines, (20, 80), "claims-columns")
        return [raw("<details><summary>The columns</summary>"), columns, raw("</details>")]


def write_style(app: Sphinx) -> None:
    """Puts the style of the plots beside those of the book."""
    folder = Path(app.outdir, "_static")
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(forest.STYLE, folder)


def setup(app: Sphinx) -> None:
    """Registers the directives, the roles, the script of the filter and the style of the plots."""
    app.add_js_file("claims-filter.js", loading_method="defer")
    app.add_css_file(forest.STYLE.name)
    app.connect("builder-inited", write_style)
    app.connect("doctree-read", shorten_verdicts, priority=440)
    app.add_directive("claims", Claims)
    app.add_directive("claims-columns", Columns)
    app.add_role("claims-data", DataRole())
    app.add_directive("not-judged", NotJudged)
    app.add_role("claim", ClaimRole())
