"""A drawn part of the cases of bad_commands.py; the script tries all."""

import os

import bad_commands
import numpy as np
import pytest
from judging import judge
from programs import make, process

CASES = bad_commands.quick_cases()
DRAWN = [CASES[i] for i in np.random.default_rng(0).permutation(len(CASES))[:60]]


@pytest.mark.skipif(os.name != "posix", reason="permissions and signals are POSIX's")
@pytest.mark.parametrize("case", DRAWN, ids=lambda case: case.name)
def test_it_ends_in_one_sentence(case):
    outcome = judge(case)
    assert outcome.kind == "good", outcome


def test_make_says_what_is_missing():
    status, said = process(make("notebook"))
    assert status == 2
    assert "needs NAME=" in said
    assert "Traceback" not in said


def test_the_names_of_cases_differ():
    names = [case.name for case in CASES]
    assert len(CASES) >= 161
    assert sorted({*names}) == sorted(names)
