"""Changes of what judges: thresholds, words of a rule, printed values, the runs behind a claim.

The studies in memory are changed, and the record of rules is asked what is due, as the suite asks.
A change counts as noticed if the record names the claim, or the printed values.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from unittest import mock

from judging import Outcome, main

from papers import STUDIES
from papers.kit import needs, record
from papers.kit.claims import Claim
from papers.kit.needs import Needs
from papers.kit.rules import between, of
from papers.kit.study import Study

Change = Callable[[Claim], Claim]


def ruled(**changes: object) -> Change:
    """Another rule in some parts."""
    return lambda claim: replace(claim, rule=replace(claim.rule, **changes))


def primary(name: str, part: object) -> Change:
    """Another condition in one part, or a new one."""
    return lambda c: ruled(primary={**c.rule.primary, name: part})(c)


def first_run_left_out(claim: Claim) -> Claim:
    """One run fewer behind the claim."""
    return replace(claim, runs=claim.runs[1:])


def reading_without_a_run(claim: Claim) -> Claim:
    """One run fewer behind another reading."""
    first, *rest = claim.readings
    return replace(claim, readings=(replace(first, runs=first.runs[1:]), *rest))


#: Study, claim, what is changed, and how; the thresholds leave the verdict as it is or turn it.
CHANGES: list[tuple[str, str, str, Change]] = [
    (
        "np_workshop", "fedsgm/C3", "between 5 and 50 in place of 2.8 and 5.7",
        lambda c: ruled(primary={k: {m: between(x.keys[0], 5, 50) for m, x in p.items()}
                                 for k, p in c.rule.primary.items()})(c),
    ),
    (
        "np_workshop", "fedsgm/C1", "a threshold of 0.1733 in place of a quarter of log 2",
        primary("f is driven down", {m: of(f"{m}.f") < 0.1733 for m in ("hard", "soft")}),
    ),
    (
        "np_workshop", "fedsgm/C4", "10 % in place of 5 %",
        primary("late f at most 5 % above hard's", of("soft_beta200.f") <= 1.1 * of("hard.f")),
    ),
    (
        "np_workshop", "fedsgm/C4", "at most in place of below in the proviso",
        ruled(proviso={"fewer violations": of("soft_beta200.violations") <= of("hard.violations")}),
    ),
    (
        "np_workshop", "fedsgm/C1", "a part left out",
        lambda c: ruled(primary=dict([*c.rule.primary.items()][:1]))(c),
    ),
    ("np_workshop", "fedsgm/C1", "a part renamed", primary("f is driven far down", of("f") < 1)),
    ("np_workshop", "fedsgm/C3", "a word of the note", ruled(note="About four is 2 to 8.")),
    ("np_workshop", "fedsgm/C3", "the wording of the claim",
     lambda c: replace(c, wording=c.wording.replace("four", "five"))),
    ("np_workshop", "fedsgm/C3", "how it is measured",
     lambda c: replace(c, measure=c.measure.replace("100", "50"))),
    ("np_workshop", "fedsgm/C3", "a run left out", first_run_left_out),
    ("np_workshop", "fedsgm/C4", "a run left out of another reading", reading_without_a_run),
    ("np_workshop", "fedsgm/C4", "a reading left out", lambda c: replace(c, readings=())),
    ("cartpole", "fedsgm/C19", "a run left out", first_run_left_out),
    ("np_workshop", "fedsgm/C1", "no need of three seeds",
     lambda c: replace(c, needs=replace(c.needs, exact=True))),
    ("np_workshop", "fedsgm/C1", "another need", lambda c: replace(c, needs=Needs(dead=("*",)))),
]  # fmt: skip


def with_claim(study: Study, claim: str, change: Change) -> Study:
    """A study with one claim changed."""
    claims = (change(c) if c.id == claim else c for c in study.claims)
    return replace(study, claims=tuple(claims))


def noticed(name: str, study: Study, what: str) -> Outcome:
    """Whether the record names what has to be entered anew."""
    due: list[str] = []
    try:
        for entry, _ in record.due(study):
            due.append(entry)
            if entry == what:
                break
    except KeyError as error:  # of a number that is not there
        return Outcome(name, "good", f"{what} reads a number that is not there: {error}")
    said = f"{study.name}: {', '.join(due)} must be entered in the record."
    return Outcome(name, "good" if what in due else "unnamed" if due else "accepted", said)


def of_printed(study: Study) -> Iterator[Outcome]:
    """Each part of a printed value changed, and one left out."""
    first, *rest = study.paper_values
    changes = {
        "paper": None if first.paper is None else 1.2 * first.paper,
        "paper_text": f"{first.paper_text}9",
        "place": "Table 9",
        "key": f"{first.key}x",
        "rtol": 2 * first.rtol + 0.1,
        "at_most": not first.at_most,
    }
    for part, value in changes.items():
        if value is not None:
            values = (replace(first, **{part: value}), *rest)
            name = f"{study.name}: {part} of a printed value"
            yield noticed(name, replace(study, paper_values=values), record.PRINTED)
    name = f"{study.name}: a printed value left out"
    yield noticed(name, replace(study, paper_values=tuple(rest)), record.PRINTED)


def of_minima() -> Iterator[Outcome]:
    """What all claims need at least."""
    study = STUDIES["np_workshop"]
    for name, value in {"SEEDS": 2, "ROUNDS": 0.1}.items():
        with mock.patch.object(needs, name, value), mock.patch.object(record, name, value):
            yield noticed(f"the least of {name}", study, study.claims[0].id)


def outcomes(options: argparse.Namespace) -> Iterator[Outcome]:
    """Every change; what the record says of it."""
    del options
    for study, claim, what, change in CHANGES:
        name = f"{claim}: {what}"
        yield noticed(name, with_claim(STUDIES[study], claim, change), claim)
    yield from of_printed(STUDIES["cartpole"])
    yield from of_minima()


if __name__ == "__main__":
    sys.exit(main("a threshold, a rule's words, a printed value, a run left out", outcomes))
