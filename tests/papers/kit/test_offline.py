"""What is done without a network, and what a problem says of itself."""

import warnings
from dataclasses import replace
from functools import partial

import pytest

from fedlib.core.describe import describe
from fedlib.data import DataError, cache
from fedlib.sets import Ball
from papers.fedcmoo.toy.problems import federation, plane
from papers.fedfw.lowrank.problems import pictures_within
from papers.kit import offline as kit
from papers.kit.offline import local_config, offline, problem_config, problems


@pytest.fixture
def described(monkeypatch):
    """The problems that were made and described, from a memory that is empty at first."""
    seen = []

    def noted(config):
        seen.append(config)
        return describe(config)

    monkeypatch.setattr(kit, "CONFIGS", {})
    monkeypatch.setattr(kit, "describe", noted)
    return seen


def test_nothing_is_fetched_meanwhile_and_downloads_are_back_afterwards():
    usual = cache._download
    with offline():
        assert cache._download is not usual
    assert cache._download is usual


def test_a_problem_without_its_data_says_nothing_and_is_asked_again():
    asked = []

    def maker(seed):
        asked.append(seed)
        raise DataError("not there")

    assert local_config(maker, 0) is None
    assert local_config(maker, 0) is None
    assert asked == [0, 0]


def test_only_what_is_said_of_widgets_is_not_passed_on(monkeypatch):
    """The first look for a folder of data imports what warns."""
    usual = cache.cache_folder

    def folder():
        warnings.warn("IProgress not found. Please update jupyter", stacklevel=1)
        return usual()

    def maker(seed):
        folder()
        return plane(seed)

    def another(seed):
        warnings.warn("something else", stacklevel=1)

    monkeypatch.setattr(cache, "cache_folder", folder)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert problem_config(maker, 0) == local_config(plane, 0)
        assert [*problems(maker, [3, 5])] == [3, 5]
        with pytest.raises(UserWarning, match="something else"):
            problem_config(another, 0)


def test_a_problem_of_ours_is_described_once_for_its_arguments(described):
    first = problem_config(partial(federation, tasks=3, dim=4), 0)
    assert first["objectives"] == 3
    assert problem_config(partial(federation, dim=4, tasks=3), 0) is first
    assert len(described) == 1
    assert problem_config(partial(federation, tasks=2, dim=4), 0)["objectives"] == 2
    assert problem_config(partial(federation, tasks=3, dim=4), 1) is not first
    assert problem_config(plane, 0)["kind"] == "plane"
    assert len(described) == 4


def test_arguments_that_are_equal_but_not_alike_are_told_apart(described):
    whole, real = (problem_config(partial(federation, dim=5, scale=scale), 0) for scale in (2, 2.0))
    assert whole is not real


def test_another_folder_of_data_may_hold_other_data(described, monkeypatch, tmp_path):
    problem_config(plane, 0)
    monkeypatch.setenv("FEDLIB_DATA", str(tmp_path))
    problem_config(plane, 0)
    assert len(described) == 2


def test_a_function_that_looks_at_more_than_its_arguments_is_called_every_time(described):
    rate = 1

    def maker(seed):
        made = plane(seed)
        return replace(made, config={**made.config, "rate": rate})

    assert problem_config(maker, 0)["rate"] == 1
    rate = 2
    assert problem_config(maker, 0)["rate"] == 2
    assert problem_config(partial(maker), 0)["rate"] == 2


def test_arguments_without_a_hash_are_described_every_time(described):
    class Changing(Ball):
        __hash__ = None

    maker = partial(pictures_within, convex_set=Changing(1.0), rows=100)
    assert problem_config(maker, 0) == problem_config(maker, 0)
    assert len(described) == 2
