"""The claims with their rules and verdicts, the scoreboard, and links to single claims.

The table can be narrowed to a paper and to a verdict by `claims-filter.js`; without it, and in
print, it is whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from html import escape
from operator import add
from typing import TYPE_CHECKING, NamedTuple

from docutils import nodes
from fedbook_data import (
    BookDirective,
    BookError,
    Cell,
    add_label,
    badge,
    figure_link,
    folder_of,
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
from papers.kit import archive
from papers.kit.claims import PAPERS
from papers.kit.rules import STATES, VERDICTS, Condition, conditions_of
from papers.kit.run_groups import hours_at_scale, hours_for

if TYPE_CHECKING:
    from papers.kit.claims import Claim
    from papers.kit.rules import Conditions, Outcome
    from papers.kit.study import Study


CLAIMS = "book/claims"


class Row(NamedTuple):
    """One claim, its study's name, its outcome, and those of its other readings."""

    claim: Claim
    study: str
    outcome: Outcome
    readings: Mapping[str, Outcome]


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
    return Row(claim, study.name, readings.pop(claim.reading), readings)


class Claims(BookDirective):
    """``{claims} [paper]``: every claim with its rule, measurement and verdict."""

    optional_arguments = 1
    subtype = "claims"

    def build(self) -> list[nodes.Node]:
        """Filter buttons and the table."""
        paper = self.arguments[0] if self.arguments else None
        rows = evaluated(self.env, paper)
        head = ("Claim", "What the paper says", "Measured", "Verdict")
        result = table(head, map(self.cells, rows), (12, 42, 30, 16), "claims")
        _, *lines = result.findall(nodes.row)
        for line, row in zip(lines, rows, strict=True):
            self.anchor(line, row)
        return [raw(filter_bar(groups(rows), len(rows))), result]

    def anchor(self, line: nodes.row, row: Row) -> None:
        """Makes the line a target, for links from outside and for the ``claim`` role."""
        name = row.claim.anchor
        line["ids"].append(name)
        line["classes"].append(f"claim-{slug(row.outcome.verdict)}")
        line["classes"].append(f"paper-{slug(row.claim.paper)}")
        if not self.arguments or CLAIMS not in self.env.found_docs:  # links go to all claims
            add_label(self.env, name, row.claim.id)

    def cells(self, row: Row) -> list[Cell]:
        """The four cells of one claim."""
        claim = row.claim
        outcome = row.outcome
        source = paragraph(nodes.Text(f"{PAPERS[claim.paper]}, "), *self.inline(claim.place))
        figure = paragraph(figure_link(self.env, row.study, claim.figure))
        wording = paragraph(*self.inline(claim.wording))
        texts = (outcome.measured, why_not(outcome), power_of(row))
        measured = [nodes.paragraph("", sentence(text)) for text in texts if text]
        return [
            [paragraph(nodes.strong(claim.id, claim.id)), source, figure],
            [wording, *self.details(row)],
            measured,
            verdict_of(row),
        ]

    def details(self, row: Row) -> list[nodes.Node]:
        """The parts of its rule, what must be known of it, and its control, folded away.

        Of a further reading only what no reading before it has.
        """
        blocks: dict[str, list[nodes.Node]] = {}
        shown: list[str] = []
        for reading in row.claim.each:
            outcome = row.readings.get(reading.name, row.outcome)
            block: list[nodes.Node] = []
            labels = str(list(reading.rule.primary))
            if labels not in shown:
                block += parts_of(reading.rule.primary, outcome)
            texts = []
            for text in (reading.rule.note, control_of(outcome)):
                if text and not any(text in shown_text for shown_text in shown):
                    texts.append(text)
                    block.append(paragraph(*self.inline(text)))
            shown += [labels, *texts]
            if block:
                blocks[reading.name] = block
        details: list[nodes.Node] = [raw("<details><summary>Rule</summary>")]
        for name, block in blocks.items():
            if len(blocks) > 1:
                details.append(paragraph(nodes.strong("", name or "The text")))
            details += block
        return [*details, raw("</details>")]


def parts_of(primary: Conditions, outcome: Outcome) -> list[nodes.Node]:
    """The parts of a rule with their cases; those of a judged claim that do not hold say so.

    The title of a case is its condition. A mark that all cases have stands once, behind the part;
    cases of the part before are not listed again, and one title has all their conditions.
    """
    states = {} if outcome.verdict == "not judged" else outcome.states
    paragraphs: list[nodes.Node] = []
    listed: list[str] = []
    for label, conditions in primary.items():
        marks = []
        for words, case, _ in conditions_of({label: conditions}):
            title = ", ".join(text for text in (words, case) if text)
            marks.append(mark(states.get(title)))
        common = marks[0] if len(set(marks)) == 1 else ""
        title = sentence(label + common)
        if isinstance(conditions, Condition):
            paragraphs.append(paragraph(titled(title, conditions.words)))
            listed = [""]
            continue
        texts = list(conditions)
        if not common:
            texts = list(map(add, texts, marks))
        line: list[nodes.Node] = [nodes.Text(title)]
        if texts == listed:
            words = [f"{case}: {condition.words}" for case, condition in conditions.items()]
            line += [nodes.Text(" "), titled("Same cases", "; ".join(words))]
        else:
            gap = " Cases: "
            for text, condition in zip(texts, conditions.values(), strict=True):
                line += [nodes.Text(gap), titled(text, condition.words)]
                gap = "; "
        line.append(nodes.Text("."))
        paragraphs.append(paragraph(*line))
        listed = list(conditions)
    return paragraphs


def mark(state: str | None) -> str:
    """What stands behind a part, or behind one of its cases, that does not hold."""
    if state is None or state == STATES[True]:
        return ""
    return f" ({state})"


def control_of(outcome: Outcome) -> str:
    """The negative control, and what the rule says of it unless that is *not reproduced*."""
    if not outcome.control:
        return ""
    if outcome.control_verdict.startswith("not reproduced"):
        return f"Control: {outcome.control}."
    return f"Control: {outcome.control} ({outcome.control_verdict})."


def sentence(text: str) -> str:
    """A text with a capital, unless it starts with a symbol, and a full stop."""
    word = re.match("(?![a-z]+ =)([a-z]{3}|(a|an|at|in|no|on|to) )", text)
    if word:
        text = text[0].upper() + text[1:]
    return text if text.endswith(".") else f"{text}."


def titled(text: str, words: str) -> nodes.abbreviation:
    """Words whose title are those of one or several conditions."""
    title = words.replace("`", "")
    return nodes.abbreviation(text, text, explanation=title, classes=["result"])


def verdict_of(row: Row) -> list[nodes.Node]:
    """The verdict with its share, and under it what other readings of the claim give."""
    lines: list[nodes.Node] = []
    for name, outcome in {row.claim.reading: row.outcome, **row.readings}.items():
        line = paragraph(badge(outcome.label, outcome.verdict))
        if row.readings:
            line.insert(0, nodes.Text(f"{name}: "))
        lines.append(line)
    if row.outcome.size:
        lines.append(nodes.paragraph("", row.outcome.size, classes=["quiet"]))
    return lines


def why_not(outcome: Outcome) -> str:
    """Why the runs do not judge a claim; of others the rule's parts say what does not hold."""
    if outcome.verdict in ("mixed", "not reproduced", "open"):
        return ""
    return counted(outcome.reason.replace("not judged, because ", ""))


def counted(reason: str) -> str:
    """A reason that says of how many others it is the first."""
    reason = reason.replace("(and 1 more)", "(and 1 more reason)")
    return re.sub(r"\(and (\d+) more\)", r"(and \1 more reasons)", reason)


def power_of(row: Row) -> str:
    """How many seeds would decide the open parts of a claim, and what they cost."""
    seeds = row.outcome.seeds
    if not seeds:
        return ""
    hours = hours_for(study_of(row.study), row.claim, seeds)
    return f"Seeds needed: {seeds} ({rounded(hours)} core-hours)."


def paragraph(*children: nodes.Node) -> nodes.paragraph:
    """A paragraph of inline nodes."""
    return nodes.paragraph("", "", *children)


def groups(rows: list[Row]) -> list[str]:
    """Buttons for the paper, if there are several, and for the verdict."""
    papers = {row.claim.paper for row in rows}
    names = [(f"paper-{slug(paper)}", name) for paper, name in PAPERS.items() if paper in papers]
    verdicts = {row.outcome.verdict for row in rows}
    choices = [(f"claim-{slug(verdict)}", verdict) for verdict in VERDICTS if verdict in verdicts]
    by_verdict = group("Verdict", choices)
    if len(names) == 1:
        return [by_verdict]
    return [group("Paper", names), by_verdict]


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


class Scoreboard(BookDirective):
    """``{scoreboard}``: how many claims of each paper have which verdict."""

    subtype = "scoreboard"

    def build(self) -> list[nodes.Node]:
        """A sentence and the table of counts."""
        rows = evaluated(self.env)
        return [in_short(rows), counts(rows)]


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
    several = 0
    for position, row in enumerate(rows):
        if row.readings:
            several += 1
            second = next(iter(row.readings.values()))
            verdicts[position] = second.verdict
    if several:
        text += (
            f" In a second reading, which {several} claims have, the counts are "
            f"{summary_of(verdicts)}."
        )
    return nodes.paragraph("", text)


def summary_of(verdicts: list[str]) -> str:
    """How many claims have each verdict but *not judged*: `3 reproduced, 1 partly`."""
    texts = []
    for verdict in reversed(VERDICTS):
        count = verdicts.count(verdict)
        if count and verdict != "not judged":
            texts.append(f"{count} {verdict}")
    return ", ".join(texts)


def counts(rows: list[Row]) -> nodes.table:
    """How many claims of each paper have which verdict."""
    verdicts: dict[str, list[str]] = {}
    for row in rows:
        for name in (PAPERS[row.claim.paper], "All"):
            verdicts.setdefault(name, []).append(row.outcome.verdict)
    heads = [verdict for verdict in VERDICTS if verdict in verdicts.get("All", ())]
    lines = []
    for name in (*PAPERS.values(), "All"):
        of_paper = verdicts.get(name, [])
        numbers = [str(of_paper.count(head)) for head in heads]
        if of_paper:
            lines.append([name, *numbers])
    return table(["Paper", *heads], lines, (25, *[15] * len(heads)), "scoreboard")


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


def setup(app: Sphinx) -> None:
    """Registers the directives, the role and the script of the filter."""
    app.add_js_file("claims-filter.js", loading_method="defer")
    app.add_directive("claims", Claims)
    app.add_directive("scoreboard", Scoreboard)
    app.add_directive("not-judged", NotJudged)
    app.add_role("claim", ClaimRole())
