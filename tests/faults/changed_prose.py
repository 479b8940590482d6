"""Planted changes of numbers in the book's prose: every typed number, each by one in a digit.

Also what is no typed number: the number of a theorem, one in words, a whole one in a formula.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "helpers"), str(Path(__file__).parent)]

import prose
import typed_numbers
from judging import Outcome, kind_of, main

#: Page, a piece of it and what is put in its place: changes that nobody sees, and why.
UNSEEN = {
    "the number of a theorem": ("book/fedsgm/errata.md", "F Theorem 7", "F Theorem 8"),
    "a number in words": ("book/ssca/errata.md", "and four after 1000", "and five after 1000"),
    "a whole number in a formula": ("book/ssca/errata.md", "B\\le129", "B\\le12"),
}
Lines = Mapping[str, Mapping[str, tuple[typed_numbers.Entry, ...]]]


def planted(texts: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    """Page, place and next digit of the last digit of every typed number."""
    for page, text in texts.items():
        plain = prose.masked(text)
        for unit in re.finditer(r"(?:(?!\n\s*\n|\n\|).)+", plain, re.S):
            for match in prose.numbers_of(unit[0]):
                at = unit.start() + match.end(1) - 1
                yield page, at, str((int(text[at]) + 1) % 10)


def said(page: str, text: str, lines: Lines) -> str:
    """The first sentence that the suite says of a page; empty if it is content."""
    own = {page: dict(lines.get(page, {}))}
    found = typed_numbers.unlisted({page: text}, own)
    found = found or [s for line in own[page].values() for s in typed_numbers.untrue(page, line)]
    return found[0] if found else ""


def outcome(name: str, page: str, text: str, lines: Lines) -> Outcome:
    """What is said of a changed page."""
    sentence = said(page, text, lines)
    return (
        Outcome(name, kind_of(sentence, [page]), sentence)
        if sentence
        else Outcome(name, "accepted")
    )


def outcomes(options: argparse.Namespace) -> Iterator[Outcome]:
    """Every typed number, or so many drawn ones, and what is no typed number."""
    texts, lines = prose.pages(), typed_numbers.listed()
    cases = list(planted(texts))
    if options.count is not None:
        by_chance = lambda case: hashlib.sha256(f"{options.seed} {case}".encode()).digest()  # noqa: E731
        cases = sorted(cases, key=by_chance)[: options.count]
    for page, at, digit in cases:
        text = texts[page][:at] + digit + texts[page][at + 1 :]
        near = " ".join(texts[page][max(0, at - 30) : at + 10].split())
        yield outcome(f"{page}: ...{near}...", page, text, lines)
    for why, (page, old, new) in UNSEEN.items():
        assert old in texts[page], old
        yield outcome(f"{page}: {why}", page, texts[page].replace(old, new, 1), lines)


if __name__ == "__main__":
    sys.exit(main("changed numbers in the book's prose", outcomes))
