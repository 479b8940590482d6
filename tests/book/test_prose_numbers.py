"""Numbers that are typed into the prose are listed with what they rest on, and are what it says."""

import re

from papers.kit.store import read_numbers
from tests.helpers import prose, typed_numbers

LISTED, PAGES = typed_numbers.listed(), prose.pages()


def test_typed_numbers_are_listed():
    assert not typed_numbers.unlisted(PAGES, LISTED)


def test_listed_numbers_are_what_they_rest_on():
    for page, lines in LISTED.items():
        for line in lines.values():
            assert not [*typed_numbers.untrue(page, line)], page


def test_what_cannot_be_held_says_where_it_is_from():
    for page, lines in LISTED.items():
        for line in lines.values():
            for entry in line:
                assert entry.source not in ("paper", "theirs") or entry.where, f"{page}: {entry}"


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


def test_a_count_never_comes_from_a_metric():
    for page, text in PAGES.items():
        assert not [*miscounted(text)], page
