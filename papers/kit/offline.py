"""Problems as far as they can be had without a network, and what tells two of them apart."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from fedlib.core import Problem
from fedlib.data import DataError, File, cache

Maker = Callable[[int], Problem]


@contextmanager
def offline() -> Iterator[None]:
    """Nothing is downloaded meanwhile: a data set that is not there is a DataError.

    Nor is it said in a notebook that progress bars of downloads would need widgets.
    """
    usual = cache._download

    def refuse(file: File, path: Path) -> Path:
        raise OSError(f"{file.path} is not wanted from afar, for {path}")

    cache._download = refuse
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "IProgress not found")
        try:
            yield
        finally:
            cache._download = usual


def made_here(maker: Maker, seed: int) -> Problem | None:
    """The problem of a seed; None without its data, which are not downloaded."""
    with offline():
        try:
            return maker(seed)
        except DataError:
            return None


def recipe(maker: Maker) -> Any:
    """The function that makes a problem, and its arguments."""
    if isinstance(maker, partial):
        return maker.func, maker.args, dict(sorted(maker.keywords.items()))
    return maker
