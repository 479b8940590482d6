"""The page of all statements: each that a theory page names has one verdict."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

BOOK = Path(__file__).parents[2] / "book"
PAPERS = ("fedsgm", "fedcmoo", "ssca", "fedfw")
NAMED = re.compile(r"(?:W|F|C|Y|D)[ ,]")


def rows(path: Path) -> list[list[str]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [[c.strip() for c in x.strip("|").split(" | ")] for x in lines if x.startswith("| ")]


def bare(name: str) -> str:
    """A statement's name without its number in the appendix or the source that it is taken from."""
    return re.sub(r" \((?:6|7|8|2\.1|2|[\w ]*in the appendix)\)|, from .*", "", name).strip()


BOARD = [r for r in rows(BOOK / "statements.md") if NAMED.match(r[0])]


@pytest.mark.parametrize("paper", PAPERS)
def test_every_statement_of_a_theory_page_has_a_verdict(paper):
    tested = [r for r in rows(BOOK / paper / "theory.md") if len(r) == 4]
    named = {bare(r[0]) for r in tested if NAMED.match(r[0])}
    assert len(named) >= 10
    assert named <= {r[0] for r in BOARD}


def test_verdicts_are_of_three_kinds_and_a_wrong_one_says_where():
    assert len({r[0] for r in BOARD}) == len(BOARD)
    for name, verdict, where, *_ in BOARD:
        assert verdict in ("right", "right, changed", "wrong"), name
        assert verdict == "right" or where, name


def test_errata_that_are_named_exist():
    there = "".join((BOOK / p / "errata.md").read_text(encoding="utf-8") for p in PAPERS)
    for name, _, where, *_ in BOARD:
        for item in re.findall(r"\b[EMYD]\d+\b", where):
            assert f"| {item} |" in there, (name, item)
