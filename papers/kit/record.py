"""The record of rules: what decided a claim when, with which verdict, and why it was changed.

It stands beside every study, in `record.json`: claim -> its entries, the last one today's. A rule
or a verdict that is no longer what the last entry says needs a new entry with a reason, which
`python -m papers record` adds. So do the runs behind a claim, its wording, and the values that the
paper prints, which have entries of their own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedlib.core.files import atomic_write, digest
from papers.kit import archive, store
from papers.kit.claims import Claim
from papers.kit.needs import ROUNDS, SEEDS, Needs
from papers.kit.rules import Condition, Outcome, Rule
from papers.kit.study import Study

FILE = "record.json"
WITHDRAWN = "withdrawn"
PRINTED = "printed values"  # in place of a claim: what the paper prints beside our numbers

#: When the runs behind a claim were first stored, beside the time at which its rule was fixed.
RUNS = {
    "later": "before its runs were stored",
    "together": "together with its runs",
    "earlier": "after its runs were stored",
}


@dataclass(frozen=True)
class Entry:
    """One state of a claim's rule.

    Attributes
    ----------
    date : when the rule was fixed.
    runs : one of `RUNS`; the runs that decide were stored earlier, together with it, or later.
    digest : of all that decides; empty where the claim is withdrawn.
    words : the rule as sentences.
    verdict : what it gave then, `withdrawn` where there is no claim any more.
    share : how many of its parts held, such as `7 of 9`.
    reason : why it took the place of the entry before; empty in the first.
    setting : a digest of what is judged: the wording, the runs behind every reading, and the least
        that all claims need; empty in entries older than it, and where the claim is withdrawn.
    """

    date: str
    runs: str
    digest: str
    words: str
    verdict: str
    share: str = ""
    reason: str = ""
    setting: str = ""

    @property
    def label(self) -> str:
        """The verdict as it is shown."""
        return f"{self.verdict} ({self.share})" if self.verdict == "partly" else self.verdict

    def says(self, other: Entry) -> bool:
        """Whether both have the same rule and the same verdict on the same."""
        parts = ("digest", "label", "setting")
        return all(getattr(self, part) == getattr(other, part) for part in parts)


Record = dict[str, list[Entry]]


def path_of(study: Study) -> Path:
    """The record of a study, in the folder of its package."""
    for name, module in [*sys.modules.items()]:
        own = getattr(module, "STUDY", None) if name.startswith("papers.") else None
        if own is not None and own.name == study.name and module.__file__:
            return Path(module.__file__).parent / FILE
    raise ValueError(f"record: study must be that of a package of papers, got {study.name!r}.")


def read(study: Study) -> Record:
    """Every claim of a study with its entries, the oldest first; empty without a record."""
    return {name: own for name, own in read_all(study).items() if name != PRINTED}


def read_all(study: Study) -> Record:
    """The same with the entries of the printed values."""
    try:
        path = path_of(study)
    except ValueError:
        return {}
    try:
        held = json.loads(path.read_text(encoding="utf-8")).items()
        return {claim: [Entry(**entry) for entry in own] for claim, own in held}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise ValueError(
            f"record: the {FILE} of {study.name} must be whole, got {type(error).__name__} when "
            "it was read; restore it from the history."
        ) from error


def write(study: Study, record: Record) -> None:
    """Write the record of a study, in the order of the claims' names."""
    order = sorted(record, key=lambda claim: (len(claim), claim))
    content = {claim: [_filled(entry) for entry in record[claim]] for claim in order}
    text = json.dumps(content, indent=1, ensure_ascii=False)
    atomic_write(path_of(study), lambda file: file.write(f"{text}\n".encode()))


def _filled(entry: Entry) -> dict[str, str]:
    return {k: v for k, v in asdict(entry).items() if v or k != "setting"}


def today(study: Study, claim: Claim, reason: str = "") -> Entry:
    """The claim's rule as it is now, and its verdict from the stored numbers."""
    outcome = study.evaluate(claim).outcome
    there = all(archive.exists(store.run_path(study.name, "full", run)) for run in claim.all_runs)
    return entry_of(claim, outcome, "earlier" if there else "later", reason)


def entry_of(claim: Claim, outcome: Outcome, runs: str, reason: str) -> Entry:
    """An entry of today's date."""
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    words, found = claim.rule.words, rule_digest(claim)
    share, under = outcome.share, setting(claim)
    return Entry(date, runs, found, words, outcome.verdict, share, reason, under)


def printed(study: Study, reason: str = "") -> Entry:
    """The values that the paper prints, as an entry of today's date."""
    values = [asdict(value) for value in study.paper_values]
    words = "; ".join(f"{v.label}: {v.paper_text} ({v.place})" for v in study.paper_values)
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    return Entry(date, "earlier", digest(values)[:16], words, PRINTED, "", reason)


def setting(claim: Claim) -> str:
    """A digest of what a rule is applied to: wording, runs, and the least for all claims."""
    own = (claim.reading, claim.runs)
    readings = [own, *((r.name, r.runs) for r in claim.readings)]
    words = [claim.paper, claim.place, claim.wording, claim.measure]
    return digest({"words": words, "readings": readings, "least": [SEEDS, ROUNDS]})[:16]


def rule_digest(claim: Claim) -> str:
    """A digest of all that decides a claim: primary parts, proviso, note, needs of every reading.

    Observations and the text of what was measured decide nothing and are left out.
    """
    own = (claim.reading, claim.rule, claim.needs)
    readings = [own, *((r.name, r.rule, r.needs) for r in claim.readings)]
    return digest({"readings": [_deciding(*each) for each in readings]})[:16]


def _deciding(name: str, rule: Rule, needs: Needs) -> dict[str, Any]:
    parts: list[list[str]] = []
    for text, part in rule.primary.items():
        cells = {"": part} if isinstance(part, Condition) else part
        parts += [[text, cell, condition.words] for cell, condition in cells.items()]
    parts += [["given", why, condition.words] for why, condition in rule.proviso.items()]
    found = {"name": name, "parts": parts, "note": rule.note, "needs": asdict(needs)}
    if rule.control:
        found["control"] = asdict(rule.control)
    sizes = [asdict(size) for size in rule.sizes]
    return found | ({"size": sizes[0] if len(sizes) == 1 else sizes} if sizes else {})


def due(study: Study, reason: str = "") -> Iterator[tuple[str, Entry]]:
    """Claims whose last entry is not today's, with the entry that they lack."""
    record = read(study)
    claims = {claim.id: claim for claim in study.claims}
    last, values = read_all(study).get(PRINTED, [None])[-1], printed(study, reason)
    if (last or study.paper_values) and not (last and last.says(values)):
        yield PRINTED, values
    for name, claim in claims.items():
        now = today(study, claim, reason)
        if name not in record or not record[name][-1].says(now):
            yield name, now
    for name, entries in record.items():
        if name not in claims and entries[-1].verdict != WITHDRAWN:
            date = f"{datetime.now(UTC):%Y-%m-%d}"
            yield name, Entry(date, "earlier", "", "", WITHDRAWN, "", reason)


def add(
    studies: Iterable[Study], names: Iterable[str], reason: str, *, amend: bool = False
) -> list[str]:
    """Add the entries that are due, of all claims or of those (or the studies) named.

    With `amend` an entry takes the place of one of the same day. Nothing is written where one of
    them lacks a reason.
    """
    wanted, done, records = {*names}, list[str](), list[tuple[Study, Record]]()
    for study in studies:
        record = read_all(study)
        for name, entry in due(study, reason):
            if not wanted or wanted & {name, study.name}:
                _append(name, record.setdefault(name, []), entry, amend)
                done.append(name)
        records.append((study, record))
    for study, record in records:
        if done and record:
            write(study, record)
    return done


def _append(name: str, entries: list[Entry], entry: Entry, amend: bool) -> None:
    before = entries[-1] if entries else None
    if amend and len(entries) > 1 and entries[-1].date == entry.date:
        entry = replace(entry, reason=entry.reason or entries[-1].reason)
        entries.pop()
    if before and not entry.reason:
        what = (
            f"the verdict on {name} went from {before.label} to {entry.label}"
            if before.label != entry.label
            else f"{name} changed"
            if name == PRINTED
            else f"the {'rule' if before.digest != entry.digest else 'setting'} of {name} changed"
        )
        raise ValueError(f"record: reason must say why {what}, got none; give --reason.")
    entries.append(entry)
