"""Problems as far as they can be had without a network, and what tells two of them apart."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from fedlib.core import Problem
from fedlib.core.describe import describe
from fedlib.data import DataError, File, cache
from papers.kit.fingerprint import is_definition, roots_of_problem

Maker = Callable[[int], Problem]
SAID: dict[Any, Said] = {}  # by what tells the problem; in this process


class Said(NamedTuple):
    """What is told of a problem when its data are gone."""

    config: dict[str, Any]
    roots: tuple[str, ...]

    @classmethod
    def of(cls, problem: Problem) -> Said:
        return cls(describe(problem.config), tuple(roots_of_problem(problem)))


@contextmanager
def without_widgets() -> Iterator[None]:
    """It is not said in a notebook that progress bars of downloads would need widgets."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "IProgress not found")
        yield


@contextmanager
def offline() -> Iterator[None]:
    """Nothing is downloaded meanwhile: a data set that is not there is a DataError."""
    usual = cache._download

    def refuse(file: File, path: Path) -> Path:
        raise OSError(f"{file.path} is not wanted from afar, for {path}")

    cache._download = refuse
    try:
        yield
    finally:
        cache._download = usual


@without_widgets()
def problems(maker: Maker, seeds: Iterable[int]) -> dict[int, Problem]:
    """The problems of seeds, by seed."""
    return {seed: maker(seed) for seed in seeds}


@without_widgets()
def said(maker: Maker, seed: int) -> Said:
    """What the problem of a seed says of itself.

    It is made, which may need its data; only once where a definition of our packages makes it of
    arguments, and every time where a function of somebody's own may look at more than these.

    Raises
    ------
    DataError
        if its data are not there and cannot be fetched.
    """
    how = recipe(maker)
    told = (how, repr(how), seed, cache.cache_folder())  # 1 and 1.0 are equal, and not alike
    if not (is_definition(getattr(maker, "func", maker)) and _is_hashable(told)):
        return Said.of(maker(seed))
    if told not in SAID:
        SAID[told] = Said.of(maker(seed))
    return SAID[told]


def said_here(maker: Maker, seed: int) -> Said | None:
    """The same; None without its data, which are not downloaded."""
    with offline():
        try:
            return said(maker, seed)
        except DataError:
            return None


def recipe(maker: Maker) -> Any:
    """The function that makes a problem, and its arguments."""
    if isinstance(maker, partial):
        return maker.func, maker.args, tuple(sorted(maker.keywords.items()))
    return maker


def _is_hashable(thing: Any) -> bool:
    try:
        hash(thing)
    except TypeError:
        return False
    return True
