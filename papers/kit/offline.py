"""Problems as far as they can be had without a network, and what tells two of them apart."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from fedlib.core import Problem
from fedlib.core.describe import describe
from fedlib.data import DataError, File, cache

Maker = Callable[[int], Problem]
PACKAGES = ("fedlib", "papers")
CONFIGS: dict[Any, dict[str, Any]] = {}  # of problems, by what tells them apart; in this process


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
def problem_config(maker: Maker, seed: int) -> dict[str, Any]:
    """The configuration of the problem of a seed, which is made for it and may need its data.

    It is made only once where a definition of our packages makes it of arguments, and every time
    where a function of somebody's own may look at more than these.

    Raises
    ------
    DataError
        if its data are not there and cannot be fetched.
    """
    how = recipe(maker)
    key = (how, repr(how), seed, cache.cache_folder())  # 1 and 1.0 are equal, and not alike
    if not (_is_ours(getattr(maker, "func", maker)) and _is_hashable(key)):
        return dict(describe(maker(seed).config))
    if key not in CONFIGS:
        CONFIGS[key] = describe(maker(seed).config)
    return CONFIGS[key]


def local_config(maker: Maker, seed: int) -> dict[str, Any] | None:
    """The same; None without the problem's data, which are not downloaded."""
    with offline():
        try:
            return problem_config(maker, seed)
        except DataError:
            return None


def recipe(maker: Maker) -> Any:
    """The function that makes a problem, and its arguments."""
    if isinstance(maker, partial):
        return maker.func, maker.args, tuple(sorted(maker.keywords.items()))
    return maker


def _is_ours(function: Any) -> bool:
    """Whether a function or a class stands at the top of a module of our packages."""
    package = str(getattr(function, "__module__", "")).partition(".")[0]
    return package in PACKAGES and "." not in getattr(function, "__qualname__", ".")


def _is_hashable(thing: Any) -> bool:
    try:
        hash(thing)
    except TypeError:
        return False
    return True
