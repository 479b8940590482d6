"""The claims with their rules and verdicts, the scoreboard, and links to single claims.

The table can be narrowed to a paper and to a verdict by `claims-filter.js`; without it, and in
print, it is whole.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from docutils import nodes
from fedbook_data import (
    BookDirective,
    BookError,
    Cell,
    badge,
    figure_link,
    folder_of,
    label_link,
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
from papers.kit.rules import STATES, VERDICTS, Condition, flatten
from papers.kit.run_groups import hours_at_scale, hours_for

if TYPE_CHECKING:
    from papers.kit.claims import Claim
    from papers.kit.rules import Outcome, Parts
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
    rows = [
        evaluate(env, study, claim)
        for study in STUDIES.values()
        for claim in study.claims
        if paper is None or paper in claim.paper
    ]
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
    kind = "claims"

    def build(self) -> list[nodes.Node]:
        """Filter buttons and the table."""
        done = evaluated(self.env, self.arguments[0] if self.arguments else None)
        head = ("Claim", "What the paper says", "Measured", "Verdict")
        result = table(head, [self.line(e) for e in done], (12, 42, 30, 16), "claims")
        for row, e in zip(result.findall(nodes.row), [None, *done], strict=True):
            if e is not None:
                self.anchor(row, e)
        return [raw(filter_bar(groups(done), len(done))), result]

    def anchor(self, row: nodes.row, e: Row) -> None:
        """Makes the line a target, for links from outside and for the ``claim`` role."""
        name = e.claim.anchor
        row["ids"].append(name)
        row["classes"] += [f"claim-{slug(e.outcome.verdict)}", f"paper-{slug(e.claim.paper)}"]
        domain, key = self.env.get_domain("std"), name.lower()
        if not self.arguments or CLAIMS not in self.env.found_docs:  # links go to all claims
            domain.labels[key] = (self.env.docname, name, e.claim.id)
            domain.anonlabels[key] = (self.env.docname, name)

    def line(self, e: Row) -> list[Cell]:
        """The four cells of one claim."""
        claim, outcome = e.claim, e.outcome
        measured = [
            nodes.paragraph("", sentence(text))
            for text in (outcome.measured, why_not(outcome), power_of(e))
            if text
        ]
        return [
            [paragraph(nodes.strong(claim.id, claim.id)),
             paragraph(nodes.Text(f"{PAPERS[claim.paper]}, "), *self.inline(claim.place)),
             paragraph(figure_link(self.env, e.study, claim.figure))],
            [paragraph(*self.inline(claim.wording)), *self.details(e)],
            measured,
            verdict_of(e),
        ]  # fmt: skip

    def details(self, e: Row) -> list[nodes.Node]:
        """The parts of its rule, what must be known of it, and its control, folded away.

        Of a further reading only what no reading before it has.
        """
        blocks: dict[str, list[nodes.Node]] = {}
        shown: list[str] = []
        for reading in e.claim.each:
            outcome = e.readings.get(reading.name, e.outcome)
            own: list[nodes.Node] = []
            if (labels := str([*reading.rule.primary])) not in shown:
                own += parts_of(reading.rule.primary, outcome)
            texts = [
                text
                for text in (reading.rule.note, control_of(outcome))
                if text and not any(text in other for other in shown)
            ]
            own += [paragraph(*self.inline(text)) for text in texts]
            shown += [labels, *texts]
            if own:
                blocks[reading.name] = own
        for name, own in blocks.items():
            if len(blocks) > 1:
                own.insert(0, paragraph(nodes.strong("", name or "The text")))
        found = [node for own in blocks.values() for node in own]
        return [raw("<details><summary>Rule</summary>"), *found, raw("</details>")]


def parts_of(primary: Parts, outcome: Outcome) -> list[nodes.Node]:
    """The parts of a rule with their cases; those of a judged claim that do not hold say so.

    The title of a case is its condition. A mark that all cases have stands once, behind the part;
    cases of the part before are not listed again, and one title has all their conditions.
    """
    states = {} if outcome.verdict == "not judged" else outcome.parts
    found: list[nodes.Node] = []
    before: list[str] = []
    for label, part in primary.items():
        cases = {"": part} if isinstance(part, Condition) else part
        marks = [mark(states.get(key)) for key in flatten({label: part})]
        words = [condition.words for condition in cases.values()]
        alike = len({*marks}) == 1
        texts = [case if alike else case + own for case, own in zip(cases, marks, strict=True)]
        whole = sentence(label + marks[0] if alike else label)
        line = [nodes.Text(whole)]
        if isinstance(part, Condition):
            line = [titled(whole, words[0])]
        elif texts == before:
            every = "; ".join(f"{case}: {c}" for case, c in zip(cases, words, strict=True))
            line += [nodes.Text(" "), titled("Same cases", every), nodes.Text(".")]
        else:
            gaps = [" Cases: ", *["; "] * (len(texts) - 1)]
            for gap, text, condition in zip(gaps, texts, words, strict=True):
                line += [nodes.Text(gap), titled(text, condition)]
            line.append(nodes.Text("."))
        found.append(paragraph(*line))
        before = [*cases]
    return found


def mark(state: str | None) -> str:
    """What stands behind a part, or behind one of its cases, that does not hold."""
    return "" if state in (None, STATES[True]) else f" ({state})"


def control_of(outcome: Outcome) -> str:
    """The negative control, and what the rule says of it unless that is *not reproduced*."""
    what, _, verdict = outcome.control.rpartition(": ")
    other = "" if verdict == "not reproduced" else f" ({verdict})"
    return f"Control: {what}{other}." if what else ""


def sentence(text: str) -> str:
    """A text with a capital, unless it starts with a symbol, and a full stop."""
    word = re.match("(?![a-z]+ =)([a-z]{3}|(a|an|at|in|no|on|to) )", text)
    start = text[0].upper() + text[1:] if word else text
    return start if start.endswith(".") else f"{start}."


def titled(text: str, words: str) -> nodes.abbreviation:
    """Words whose title are those of one or several conditions."""
    title = words.replace("`", "")
    return nodes.abbreviation(text, text, explanation=title, classes=["result"])


def verdict_of(e: Row) -> list[nodes.Node]:
    """The verdict with its share, and under it what other readings of the claim give."""
    own = [nodes.Text(f"{e.claim.reading}: ")] if e.readings else []
    found = [paragraph(*own, badge(e.outcome.label, e.outcome.verdict))]
    for name, other in e.readings.items():
        found.append(paragraph(nodes.Text(f"{name}: "), badge(other.label, other.verdict)))
    if size := e.outcome.size:
        found.append(nodes.paragraph("", size, classes=["quiet"]))
    return found


def why_not(outcome: Outcome) -> str:
    """Why the runs do not judge a claim; of others the rule's parts say what does not hold."""
    if outcome.verdict in ("partly", "not reproduced", "undecided"):
        return ""
    return counted(outcome.reason.replace("not judged, because ", ""))


def counted(reason: str) -> str:
    """A reason that says of how many others it is the first."""
    return re.sub(
        r"\(and (\d+) more\)", lambda m: f"(and {m[1]} more reason{'s' * (m[1] != '1')})", reason
    )


def power_of(e: Row) -> str:
    """How many seeds would decide an undecided claim, and what they cost."""
    if e.outcome.verdict != "undecided" or not e.outcome.seeds:
        return ""
    hours = hours_for(study_of(e.study), e.claim, e.outcome.seeds)
    return f"Seeds needed: {e.outcome.seeds} ({rounded(hours)} core-hours)."


def paragraph(*children: nodes.Node) -> nodes.paragraph:
    """A paragraph of inline nodes."""
    return nodes.paragraph("", "", *children)


def groups(done: list[Row]) -> list[str]:
    """Buttons for the paper and for the verdict."""
    papers = Counter(e.claim.paper for e in done)
    verdicts = Counter(e.outcome.verdict for e in done)
    by_verdict = group("Verdict", [(f"claim-{slug(v)}", v) for v in VERDICTS if verdicts[v]])
    names = [(f"paper-{slug(p)}", name) for p, name in PAPERS.items() if papers[p]]
    return [group("Paper", names), by_verdict][len(names) == 1 :]  # of one there is no choice


def filter_bar(groups: Iterable[str], count: int, noun: str = "claims") -> str:
    """Groups of buttons that narrow the next table; hidden until a script shows them."""
    counted = f'<p class="claims-count" role="status" data-noun="{noun}">{count} {noun}</p>'
    return f'<div class="claims-filter" hidden>{"".join(groups)}{counted}</div>'


def group(label: str, choices: Iterable[tuple[str, str]]) -> str:
    """The buttons of one group, "all" first and pressed."""
    buttons = "".join(
        f'<button type="button" data-show="{key}" aria-pressed="{str(not key).lower()}">'
        f"{escape(text)}</button>"
        for key, text in [("", "all"), *choices]
    )
    title = f'<span class="claims-filter-title" aria-hidden="true">{label}</span>'
    return f'<div role="group" aria-label="{label}">{title}{buttons}</div>'


class Scoreboard(BookDirective):
    """``{scoreboard}``: how many claims of each paper have which verdict."""

    kind = "scoreboard"

    def build(self) -> list[nodes.Node]:
        """A sentence and the table of counts."""
        done = evaluated(self.env)
        return [in_short(done), counts(done)]


class NotJudged(BookDirective):
    """``{not-judged} LETTERS``: claims of these papers that our runs cannot judge, and why."""

    required_arguments = 1
    kind = "not-judged"

    def build(self) -> list[nodes.Node]:
        """A line for each claim."""
        rows = [
            [
                [paragraph(claim_link(self.env, e.claim.id))],
                [paragraph(*self.inline(e.claim.wording))],
                missing_of(e),
            ]
            for paper in self.arguments[0]
            for e in evaluated(self.env, paper)
            if e.outcome.verdict == "not judged"
        ]
        if not rows:
            raise BookError(f"every claim of {self.arguments[0]} is judged; drop the directive.")
        head = ("claim", "what the paper says", "what is missing")
        return [table(head, rows, (15, 45, 40), "not-judged")]


def missing_of(e: Row) -> str:
    """Why a claim is not judged, and what its runs would cost in the paper's setting."""
    scale, _, why = e.outcome.reason.partition("not judged, because ")
    hours = 0.0 if scale else hours_at_scale(study_of(e.study), e.claim)
    cost = f" With the paper's rounds and seeds, its runs take {rounded(hours)} core-hours."
    return sentence(counted(why)) + cost * bool(hours)


def rounded(hours: float) -> str:
    """A duration with two digits: `9.3`, `1,000`."""
    return f"{float(f'{hours:.2g}'):,g}"


def in_short(done: list[Row]) -> nodes.paragraph:
    """How many claims there are, how many of them can be judged, and what comes out."""
    found = Counter(e.outcome.verdict for e in done)
    judged = [v for v in reversed(VERDICTS) if v != "not judged"]
    told = ", ".join(f"{found[v]} {v}" for v in judged if found[v])
    whole = len(done) - found["not judged"]
    text = f"The stored runs can judge {whole} of {len(done)} claims: {told}."
    text += f" Each of the other {found['not judged']} claims says what is missing."
    other = Counter(next(iter(e.readings.values()), e.outcome).verdict for e in done)
    told = ", ".join(f"{other[v]} {v}" for v in judged if other[v])
    several = sum(bool(e.readings) for e in done)
    if several:
        text += f" In a second reading, which {several} claims have, the counts are {told}."
    return nodes.paragraph("", text)


def counts(done: list[Row]) -> nodes.table:
    """How many claims of each paper have which verdict."""
    found = Counter((e.claim.paper, e.outcome.verdict) for e in done)
    papers = sorted({paper for paper, _ in found}, key=[*PAPERS].index)
    heads = [v for v in VERDICTS if any(found[p, v] for p in papers)]
    rows = [[PAPERS[p]] + [str(found[p, v]) for v in heads] for p in papers]
    total = ["All", *(str(sum(found[p, v] for p in papers)) for v in heads)]
    return table(["Paper", *heads], [*rows, total], (25, *[15] * len(heads)), "scoreboard")


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
            near = ", ".join(get_close_matches(self.text, known, n=4, cutoff=0.4)) or "none"
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
