"""The page of all statements: each of a paper's has one verdict, and a wrong one says where."""

import re
from pathlib import Path

BOOK = Path(__file__).parents[2] / "book"
NAMED = re.compile(r"(?:W|F|C|Y|D)[ ,]")
VERDICT = re.compile(r"(right|right, changed|\*\*wrong\*\*)(?:: (.+))?")


def rows(page):
    lines = (BOOK / page).read_text(encoding="utf-8").splitlines()
    return [[c.strip() for c in x.strip("|").split(" | ")] for x in lines if x.startswith("| ")]


BOARD = [r for r in rows("statements.md") if len(r) == 5 and NAMED.match(r[0])]


def test_every_statement_has_one_of_three_verdicts_and_a_wrong_one_says_where():
    assert len({r[0] for r in BOARD}) == len(BOARD) > 60
    for name, _, verdict, *_ in BOARD:
        match = VERDICT.fullmatch(verdict)
        assert match, (name, verdict)
        assert match[1] == "right" or match[2], name


def test_errata_that_are_named_exist():
    numbers = {r[0] for r in rows("errata.md")}
    for name, _, verdict, *_ in BOARD:
        assert {*re.findall(r"\b[EMYD]\d+\b", verdict)} <= numbers, name
