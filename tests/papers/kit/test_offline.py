"""What is done without a network: nothing is fetched, and notebooks are not told of widgets."""

import warnings

import pytest

from fedlib.data import DataError, cache
from papers.kit.offline import made_here, offline


def test_nothing_is_fetched_meanwhile_and_downloads_are_back_afterwards():
    usual = cache._download
    with offline():
        assert cache._download is not usual
    assert cache._download is usual


def test_a_problem_without_its_data_is_none():
    def maker(seed):
        raise DataError("not there")

    assert made_here(maker, 0) is None


def test_only_what_is_said_of_widgets_is_not_passed_on():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with offline():
            warnings.warn("IProgress not found. Please update jupyter", stacklevel=1)
            with pytest.raises(UserWarning, match="something else"):
                warnings.warn("something else", stacklevel=1)
