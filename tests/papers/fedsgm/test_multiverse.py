"""A sentence judged in all settings that its paper leaves open."""

import pytest

from papers.fedsgm.multiverse import rule, shares
from papers.kit.quantities import Quantities


def judged(states, control=(False,) * 4):
    rows = shares("C", zip(states, control, strict=True))
    return rule("C", "none")(Quantities.of([rows], {}))


@pytest.mark.parametrize(
    ("states", "verdict"),
    [
        ((True,) * 4, "reproduced"),
        ((True, True, False, False), "mixed"),
        ((True, False, False, False), "not reproduced"),
        ((True, True, True, None), "mixed"),  # three of four or all
        ((None,) * 4, "open"),
    ],
)
def test_a_sentence_holds_by_its_share_of_the_settings(states, verdict):
    assert judged(states).verdict == verdict


def test_a_control_that_holds_in_as_many_settings_leaves_no_test():
    assert judged((True,) * 4, control=(True,) * 4).verdict == "not judged"
