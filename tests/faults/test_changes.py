"""Planted changes are noticed: of pages, of numbers in the prose, of stored results, of rules.

Drawn samples, or some of each; the scripts plant all.
"""

import changed_prose
import changed_results
import changed_rules
import numpy as np
import prose
import pytest
import typed_numbers
from changed_results import LISTED, MATCHED, OF_NUMBERS, OF_RUN, RUN

from papers import STUDIES

DRAWN = 40
RULES = changed_rules.CHANGES


def test_changed_numbers_of_the_prose_are_noticed():
    class options:
        count, seed = DRAWN, 0

    found = list(changed_prose.outcomes(options))
    assert len(found) == DRAWN + len(changed_prose.UNSEEN)
    short = [outcome for outcome in found if outcome.kind != "good"]
    assert {o.name.split(": ")[1] for o in short} == set(changed_prose.UNSEEN), short


def test_a_number_and_its_line_changed_together_are_noticed_where_it_is_held():
    """A line that says the same wrong number as the sentence: what it rests on says no."""
    page, lines = "book/fedsgm/errata.md", typed_numbers.listed()
    text = prose.pages()[page].replace("1.19 at", "1.23 at")
    own = {
        near: tuple(
            e._replace(numbers=tuple(n.replace("1.19", "1.23") for n in e.numbers)) for e in line
        )
        for near, line in lines[page].items()
    }
    assert not typed_numbers.unlisted({page: text}, {page: own})
    said = changed_prose.said(page, text, {page: own})
    assert "1.23 must be shown by note_soft_switching" in said


def of_file(name, change, file=RUN, how=LISTED):
    return changed_results.of_file(name, change, file, how, np.random.default_rng(0))


@pytest.mark.parametrize("name", [*OF_RUN][::6])
def test_a_change_with_digest_and_listing_made_to_match_is_noticed(name):
    found = of_file(name, OF_RUN[name])
    assert found.kind == "good", found


def test_a_change_of_the_numbers_is_noticed():
    found = of_file("unit", OF_NUMBERS["a number's unit"], "numbers", MATCHED)
    assert found.kind == "good", found


@pytest.mark.parametrize(
    ("study", "claim", "what", "change"), RULES[::3], ids=[change[2] for change in RULES[::3]]
)
def test_a_change_of_a_rule_is_noticed(study, claim, what, change):
    other = changed_rules.with_claim(STUDIES[study], claim, change)
    found = changed_rules.noticed(what, other, claim)
    assert found.kind == "good", found


def test_a_change_of_a_printed_value_is_noticed():
    found = [*changed_rules.of_printed(STUDIES["cartpole"])]
    assert {one.kind for one in found} == {"good"}, found


def test_what_is_not_changed_is_not_noticed():
    found = of_file("nothing", lambda _: None)
    assert found.kind == "accepted", found
    study = STUDIES["np_workshop"]
    assert changed_rules.noticed("nothing", study, study.claims[0].id).kind == "accepted"


def test_there_are_as_many_changes_as_were_planted_once():
    assert len(OF_RUN) + len(OF_NUMBERS) >= 32
    assert len(RULES) >= 13
