"""What was found of stored runs and of the code, kept on disk from one call to the next.

To read a stored run with all its checks takes a thousandth of a second, and a thousand of them lie
there. What a check found is true as long as neither the file is another (its time, size, place and
number on the disk) nor any file of our packages, which may have changed the check.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fedlib.core.files import file_state, write_json
from fedlib.core.provenance import ROOT

PACKAGES = ("fedlib", "papers")
PLACE = ROOT / "_build" / "seen.json"

Found = dict[str, Any]  # by kind, key and the state of the file that it is

_seen: tuple[Found, Found] | None = None  # by an earlier call, and used in this one


@contextmanager
def remembered(place: Path = PLACE, root: Path = ROOT) -> Iterator[None]:
    """What `recalled` finds meanwhile is taken from a file, and kept in it.

    Where the file cannot be read or written, as in an installed package, all is found anew.
    """
    global _seen
    code = repr([written(root / name) for name in PACKAGES])
    earlier, used = _read(place, code), Found()
    _seen = earlier, used
    try:
        yield
    finally:
        _seen = None
    if used.keys() - earlier.keys() and (root / "pyproject.toml").is_file():
        with suppress(OSError):
            write_json(place, {"code": code, "found": used})


def recalled(kind: str, key: object, make: Callable[[], Any]) -> Any:
    """What `make` gives, something that JSON holds, or has given of the same key.

    A key that is a path stands for the file as it is now.
    """
    if _seen is None:
        return make()
    state = file_state(key) if isinstance(key, Path) else None
    name = f"{kind} {key} {state}"
    earlier, used = _seen
    if name not in used:
        used[name] = earlier[name] if name in earlier else make()
    return used[name]


def written(folder: Path) -> tuple[Any, ...]:
    """When the Python files of a folder were written."""
    if not folder.is_dir():
        return ()
    with os.scandir(folder) as entries:
        listed = [e for e in entries if e.name != "__pycache__"]
    files = ((e.name, e.stat().st_mtime_ns) for e in listed if e.name.endswith(".py"))
    return (*sorted(files), *(written(Path(e.path)) for e in listed if e.is_dir()))


def _read(place: Path, code: str) -> Found:
    """What the file holds, if it was found by this code."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        held = json.loads(place.read_text(encoding="utf-8"))
        if held["code"] == code:
            return dict(held["found"])
    return {}
