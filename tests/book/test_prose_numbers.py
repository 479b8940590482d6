"""Numbers that are typed into the prose are listed with what they rest on, and are what it says."""

import re

import prose
import pytest
import typed_numbers

from papers.kit.store import read_numbers

LISTED, PAGES = typed_numbers.listed(), prose.pages()


def test_typed_numbers_are_listed():
    assert not typed_numbers.unlisted(PAGES, LISTED)


@pytest.mark.parametrize("page", sorted(LISTED))
def test_listed_numbers_are_what_they_rest_on(page):
    assert not [s for line in LISTED[page].values() for s in typed_numbers.untrue(page, line)]


@pytest.mark.parametrize("page", sorted(LISTED))
def test_what_cannot_be_held_says_where_it_is_from(page):
    named = [e for line in LISTED[page].values() for e in line if e.kind in ("paper", "theirs")]
    assert not [entry for entry in named if not entry.where]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("It took 12 of 1,430 rounds.", ("12", "1430")),
        ("Theorem 4 and (38), {result}`a/b:.2f`, `x = 3`, [a](b3.md), at $T=3$.", ()),
        ("at $x=0.25$, $4.89\\cdot10^5$ and 2e-3", ("2e-3", "0.25", "4.89e5")),
        ("$$\na = 0.5\n$$\n\n```text\n1 2 3\n```\n", ()),
        ("1. first\n2. second of 7", ("7",)),
        ("CIFAR-10, float64, a network 60-20-10, on 22 November 2026", ()),
    ],
)
def test_what_counts_as_a_typed_number(text, numbers):
    found = [unit.numbers for unit in prose.units("page", text)]
    assert found == ([numbers] if numbers else [])


@pytest.mark.parametrize(
    ("number", "values", "met"),
    [
        ("0.25", {0.2446}, False), ("0.25", {0.2531}, True), ("25", {0.25}, True),
        ("338", {338.4}, False), ("4.89e5", {489231.0}, True), ("3", {3.4}, False),
    ],
)  # fmt: skip
def test_rounding(number, values, met):
    assert typed_numbers.is_one_of(number, frozenset(values)) is met


#: A stored number before a word that it would count, maybe with a line's end in between.
COUNTED = re.compile(
    r"\{result\}`(?P<study>\w+)/(?P<key>[^`]+?):[^`:]*`[*\s]*"
    r"(?P<what>rounds|seeds|splits|repetitions|runs|clients)\b"
)


def miscounted(text):
    """Where a metric stands as a count: seeds and their like have a role, rounds are a unit."""
    for match in COUNTED.finditer(text):
        study, key, what = match.groups()
        if what != "rounds" or read_numbers(study)[key].unit != "rounds":
            yield match.group()


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_count_never_comes_from_a_metric(page):
    assert not [*miscounted(PAGES[page])]


@pytest.mark.parametrize("what", ["seeds", "splits", "**runs**", "clients"])
def test_a_metric_as_a_count_is_found(what):
    assert [*miscounted(f"over {{result}}`np_workshop/hard.violations:.0f`\n{what}.")]
    assert not [*miscounted(f"over {{seeds}}`np_workshop/hard` {what}.")]
    assert [*miscounted("after {result}`np_workshop/hard.f:.1f` rounds")]
    assert not [*miscounted("after {result}`np_workshop/hard.violations:.1f` rounds")]
