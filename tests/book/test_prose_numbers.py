"""Numbers that are typed into the prose are listed with what they rest on, and are what it says."""

import re

import pytest

from papers.kit.store import read_numbers
from tests.helpers import prose, typed_numbers

LISTED, PAGES = typed_numbers.listed(), prose.pages()


def test_typed_numbers_are_listed():
    assert not typed_numbers.unlisted(PAGES, LISTED)


@pytest.mark.parametrize("page", sorted(LISTED))
def test_listed_numbers_are_what_they_rest_on(page):
    assert not [s for line in LISTED[page].values() for s in typed_numbers.untrue(page, line)]


@pytest.mark.parametrize("page", sorted(LISTED))
def test_what_cannot_be_held_says_where_it_is_from(page):
    named = [e for line in LISTED[page].values() for e in line if e.source in ("paper", "theirs")]
    assert not [entry for entry in named if not entry.where]


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
