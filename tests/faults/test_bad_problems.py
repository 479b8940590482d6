"""Bad arguments are refused in one sentence, and good ones are not."""

import argparse

import bad_compare
import bad_makers
import bad_own
import bad_papers
import bad_problems
import bad_runs
import pytest


def test_bad_arguments_are_refused_in_one_sentence():
    found = bad_problems.outcomes(argparse.Namespace(seed=0, count=None))
    assert len(found) > 4000
    assert not [f"{o.kind} {o.name}: {o.said}" for o in found if o.kind != "good"]


@pytest.mark.parametrize("group", [bad_own, bad_runs, bad_compare])
def test_good_arguments_pass(group):
    for _, work in group.good():
        work()


@pytest.mark.parametrize("group", [bad_makers, bad_papers])
def test_every_function_takes_its_good_arguments(group):
    for calls in group.good_calls():
        calls.call()
