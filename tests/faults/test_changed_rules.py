"""Every change of what judges is asked for an entry in the record."""

import changed_rules
import pytest

from papers import STUDIES


@pytest.mark.parametrize(
    ("study", "claim", "what", "change"),
    changed_rules.CHANGES[::3],
    ids=[change[2] for change in changed_rules.CHANGES[::3]],
)
def test_a_change_of_a_rule_is_noticed(study, claim, what, change):
    other = changed_rules.with_claim(STUDIES[study], claim, change)
    found = changed_rules.noticed(what, other, claim)
    assert found.kind == "good", found


def test_a_change_of_a_printed_value_is_noticed():
    found = [*changed_rules.of_printed(STUDIES["cartpole"])]
    assert {one.kind for one in found} == {"good"}, found


def test_what_is_not_changed_is_not_noticed():
    study = STUDIES["np_workshop"]
    assert changed_rules.noticed("nothing", study, study.claims[0].id).kind == "accepted"


def test_there_are_as_many_changes_as_were_planted_once():
    assert len(changed_rules.CHANGES) >= 13
