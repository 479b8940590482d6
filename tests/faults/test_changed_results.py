"""A drawn sample of the changes in stored results; the script plants all."""

import numpy as np
import pytest
from changed_results import LISTED, MATCHED, OF_NUMBERS, OF_RUN, RUN, of_file


@pytest.mark.parametrize("name", [*OF_RUN][::6])
def test_a_change_with_digest_and_listing_made_to_match_is_noticed(name):
    found = of_file(name, OF_RUN[name], RUN, LISTED, np.random.default_rng(0))
    assert found.kind == "good", found


def test_a_change_of_the_numbers_is_noticed():
    found = of_file(
        "unit", OF_NUMBERS["a number's unit"], "numbers", MATCHED, np.random.default_rng(0)
    )
    assert found.kind == "good", found


def test_what_is_not_changed_is_not_noticed():
    found = of_file("nothing", lambda _: None, RUN, LISTED, np.random.default_rng(0))
    assert found.kind == "accepted", found


def test_there_are_as_many_changes_as_were_planted_once():
    assert len(OF_RUN) + len(OF_NUMBERS) >= 32
