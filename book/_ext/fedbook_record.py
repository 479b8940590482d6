"""What became of the rules: former ones beside each claim, and all verdicts that changed."""

from __future__ import annotations

from collections import Counter
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from docutils import nodes
from fedbook_data import BookDirective, Cell, badge, label_link, raw, study_of, table
from sphinx.application import Sphinx

if TYPE_CHECKING:
    from papers.kit.record import Entry
    from papers.kit.study import Study

NONE = "none"  # the verdict on a claim that there was not


def entries_of(directive: BookDirective, study: Study) -> dict[str, list[Entry]]:
    """The record of a study; the page is built again when it changes."""
    from papers.kit import record

    found = record.read(study)
    if found:
        directive.env.note_dependency(str(record.path_of(study)))
    return found


def paragraph(title: str, *children: nodes.Node) -> nodes.paragraph:
    """A paragraph with a title in bold."""
    return nodes.paragraph("", "", nodes.strong(title, title), *children)


def fixed(directive: BookDirective, study: str, claim: str) -> list[nodes.Node]:
    """When today's rule of a claim was fixed; nothing without a record."""
    entries = entries_of(directive, study_of(study)).get(claim)
    return [paragraph("Fixed: ", nodes.Text(f"{when(entries[-1])}."))] if entries else []


def when(entry: Entry) -> str:
    """The date of an entry and what it is beside the runs."""
    from papers.kit.record import RUNS

    return f"{entry.date}, {RUNS[entry.runs]}"


def former(directive: BookDirective, study: str, claim: str) -> list[nodes.Node]:
    """Folded away: each former rule with its verdict and why it was changed, the latest first."""
    entries = entries_of(directive, study_of(study)).get(claim, [])
    if len(entries) < 2:
        return []
    last = entries[-1].date
    found = [raw(f"<details><summary>The rule was changed on {escape(last)}</summary>")]
    for before, after in reversed([*pairwise(entries)]):
        found += [paragraph(f"Changed on {after.date}: ", *directive.inline(after.reason))]
        if before.digest != after.digest:
            words = directive.inline(before.words)
            found.append(paragraph(f"Former rule ({when(before)}): ", *words))
        found.append(paragraph("Verdict under it: ", nodes.Text(before.label)))
    return [*found, raw("</details>")]


class Change(NamedTuple):
    """What became of a claim since a day: the entries in force before (if any), and since."""

    claim: str
    old: Entry | None
    since: list[Entry]

    @property
    def verdicts(self) -> tuple[str, str]:
        """The old and the new one."""
        old = self.old.verdict if self.old else NONE
        return old, self.since[-1].verdict if self.since else old

    @property
    def labels(self) -> tuple[str, str]:
        """The same as they are shown, with shares."""
        old = self.old.label if self.old else NONE
        return old, self.since[-1].label if self.since else old


class ChangedVerdicts(BookDirective):
    """``{changed-verdicts} DATE``: every verdict that changed on that day or after, and why."""

    required_arguments = 1
    kind = "changed-verdicts"

    def build(self) -> list[nodes.Node]:
        """Counts before and after, in one sentence the rest, then one line a changed verdict."""
        from papers import STUDIES

        known = {claim.id for study in STUDIES.values() for claim in study.claims}
        found = [
            change(name, entries, self.arguments[0])
            for study in STUDIES.values()
            for name, entries in entries_of(self, study).items()
        ]
        moved = [c for c in found if c.verdicts[0] != c.verdicts[1]]
        same = sum(bool(c.since) for c in found) - len(moved)
        head = ("Claim", "Old", "New", "Why")
        rows = [self.line(c, linked=c.claim in known) for c in moved]
        others = len(found) - len(moved)
        some = f"Of the other {others} claims {same}"
        which = f"All {others} other claims" if same == others else some
        text = (
            f"{len(moved)} verdicts changed. {which} have another rule, or other parts that hold, "
            "with the same verdict."
        )
        return [
            counts(found),
            nodes.paragraph("", text),
            table(head, rows, (14, 17, 17, 52), "changed"),
        ]

    def line(self, c: Change, *, linked: bool) -> list[Cell]:
        """The claim with a link to it, both verdicts, the reasons."""
        target = f"claim-{c.claim.replace('/', '-')}".lower()
        name = label_link(self.env, target, c.claim) if linked else nodes.Text(c.claim)
        reasons = dict.fromkeys(e.reason for e in c.since if e.reason)
        why = [nodes.paragraph("", "", *self.inline(sentence(reason))) for reason in reasons]
        badges = [
            badge(label, verdict) for label, verdict in zip(c.labels, c.verdicts, strict=True)
        ]
        return [name, *badges, why or "A new claim."]


def change(claim: str, entries: list[Entry], day: str) -> Change:
    """What was in force before a day, and what came since; dates are written year first."""
    before = [entry for entry in entries if entry.date < day]
    return Change(claim, before[-1] if before else None, entries[len(before) :])


def sentence(words: str) -> str:
    """A reason, as it was given, with a capital at its head and a point at its end."""
    return words[0].upper() + words[1:] + "." * (words[-1] not in ".!?)")


def counts(found: list[Change]) -> nodes.table:
    """How many claims had each verdict before, and have it now."""
    from papers.kit.record import WITHDRAWN
    from papers.kit.rules import VERDICTS

    sides = [Counter(c.verdicts[i] for c in found) for i in (0, 1)]
    heads = [*VERDICTS, WITHDRAWN]
    rows = [
        [name, *(str(side[verdict]) for verdict in heads)]
        for name, side in zip(("before", "now"), sides, strict=True)
    ]
    return table(["", *heads], rows, (16, *[14] * len(heads)), "scoreboard")


def setup(app: Sphinx) -> None:
    """Registers the directive."""
    app.add_directive("changed-verdicts", ChangedVerdicts)
