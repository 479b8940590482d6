"""A sentence judged in all settings that its paper leaves open."""

import pytest

from papers.fedsgm.multiverse import rule, shares

SETTINGS = [f"setting {i}" for i in range(4)]


def judged(states, control=(False,) * 4):
    cells = [(state, float(i)) for i, state in enumerate(states)]
    numbers = shares("C", zip(cells, [(state, 0.0) for state in control], strict=True))
    return rule("C", SETTINGS, "value", 3.0, "none")(numbers)


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


def test_the_best_and_the_worst_setting_are_named():
    text = judged((True, True, False, None)).measured
    assert text.startswith("the claim holds in 50% of 4 settings, fails in 25% and is open in 25%.")
    assert "value is 3 at setting 3. The least favourable value is 0 at setting 0" in text


def test_a_control_that_holds_in_as_many_settings_leaves_no_test():
    assert judged((True,) * 4, control=(True,) * 4).verdict == "not judged"
