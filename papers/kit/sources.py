"""The source files that a run was computed with: their digests, and which of them changed since."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from fedlib.core import Problem
from fedlib.core.algorithm import Algorithm
from fedlib.provenance import ROOT
from papers.kit.archive import cached

PACKAGES = ("fedlib", "papers")


def sources_of(algorithm: Algorithm, maker: Callable[[int], Problem]) -> dict[str, str]:
    """SHA-256 of the files that define an algorithm, its ingredients and a problem's maker.

    By path in the repository. Files outside our packages, such as a notebook, are left out.
    """
    files = {_file(thing) for thing in (*_parts(algorithm), getattr(maker, "func", maker))}
    return {path.relative_to(ROOT).as_posix(): sha256(path) for path in sorted(files - {None})}


def changed(sources: Mapping[str, str]) -> list[str]:
    """The recorded files that are not there any more, or hold another text today."""
    paths = {name: ROOT / name for name in sources}
    return [n for n, p in paths.items() if not p.is_file() or sha256(p) != sources[n]]


@cached
def sha256(path: Path) -> str:
    """The digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _parts(value: Any) -> Iterator[Any]:
    """The classes and functions in a record, its fields and tuples."""
    if isinstance(value, tuple):
        for part in value:
            yield from _parts(part)
    elif is_dataclass(value):
        yield type(value)
        for f in fields(value):
            yield from _parts(getattr(value, f.name))
    elif callable(value):
        yield value if hasattr(value, "__qualname__") else type(value)


def _file(thing: Any) -> Any:
    """The file of our packages that defines a class or a function; None for others."""
    try:
        path = Path(inspect.getsourcefile(inspect.unwrap(thing)) or "").resolve()
    except TypeError:  # built in
        return None
    return path if any(path.is_relative_to(ROOT / package) for package in PACKAGES) else None
