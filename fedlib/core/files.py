"""Atomic file writes, and JSON files that are sealed by a digest."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, wraps
from pathlib import Path
from typing import IO, Any, TypeVar

try:
    import fcntl
except ImportError:  # not a POSIX system: abandoned files cannot be recognized, and stay
    fcntl = None  # type: ignore[assignment]

PART = ".part-"  # files being written; an unlocked one was left by a process that was killed
SCHEMA = 1

T = TypeVar("T")


def atomic_write(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Call `write` on a temporary file beside `path`, and move it there once it is on the disk.

    The file has the rights that the umask gives a new one. What killed processes left of such
    files in the folder is removed.

    Raises
    ------
    OSError
        one sentence, if the folder cannot be written to or the disk is full; nothing is left
        behind, and what was at `path` before is untouched.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        clear_parts(path.parent)
        with part_of(path) as (name, file):
            write(file)
            file.flush()
            os.fsync(file.fileno())  # else a crash can leave the new name with no data
            os.replace(name, path)
    except OSError as error:
        raise OSError(
            f"atomic_write: the folder of {path.name} must be writable, got "
            f"{error.strerror or error}; nothing was written."
        ) from error


@contextmanager
def part_of(path: Path) -> Iterator[tuple[Path, IO[bytes]]]:
    """A new file beside `path`, locked as long as this process writes it, removed afterwards."""
    while True:
        name = path.parent / f"{PART}{os.getpid()}-{secrets.token_hex(4)}"
        with open(name, "xb") as file:
            try:
                _lock(file, wait=True)
                if os.fstat(file.fileno()).st_nlink:  # else cleared before it was locked
                    yield name, file
                    return
            finally:
                name.unlink(missing_ok=True)


def clear_parts(folder: Path) -> None:
    """Remove the files that killed processes left half written; those being written are locked."""
    with suppress(OSError):
        for path in folder.glob(f"{PART}*"):
            with suppress(OSError), open(path, "rb") as file:
                if _lock(file, wait=False):
                    path.unlink()


def _lock(file: IO[bytes], *, wait: bool) -> bool:
    """Lock a file until it is closed or the process ends; whether that succeeded."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # held by another, or a file system without locks
        return False
    return True


def cache_by_file(make: Callable[[Path], T]) -> Callable[[Path], T]:
    """Decorator: remember what a function makes of a file until the file changes."""

    @cache
    def remembered(path: Path, state: object) -> T:  # noqa: ARG001 - part of the cache's key
        return make(path)

    @wraps(make)
    def current(path: Path) -> T:
        state: tuple[int, ...] = ()  # changes with the content; none without a file
        with suppress(OSError):
            stat = path.stat()
            state = stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino
        return remembered(path, state)

    return current


def read_json(path: Path, kind: str | None = None) -> dict[str, Any]:
    """Read a stored file and check its schema, its digest and, if one is named, its kind.

    Raises
    ------
    ValueError
        one sentence, for a file that is missing, damaged, changed by hand, or of another schema or
        kind.
    """
    what = f"store: {'/'.join(path.parts[-3:])} must"
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(
            f"{what} exist, it is not there; make it with `papers reproduce`, set FEDLIB_RESULTS "
            "to a folder that has it, or use Trace.save for a run of your own."
        ) from None
    except OSError as error:
        raise ValueError(f"{what} be a file that can be read, got {error.strerror!r}.") from error
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, too long or too deep
        why = str(error).partition("\n")[0]
        text = f"{what} be whole JSON, it is damaged ({why}); delete it and reproduce."
        raise ValueError(text) from None
    found = data.get("schema") if isinstance(data, dict) else None
    if found != SCHEMA:
        raise ValueError(f"{what} have schema {SCHEMA}, got {found}; reproduce it.")
    sealed = data.pop("digest", None)
    if digest(data) != sealed:
        raise ValueError(
            f"{what} agree with its digest, it was changed after it was written; restore it or "
            "reproduce it."
        )
    if kind is not None and data.get("kind") != kind:
        raise ValueError(f"{what} be of kind {kind!r}, got {data.get('kind')!r}; reproduce it.")
    return {**data, "digest": sealed}


def write_json(path: Path, payload: Mapping[str, Any]) -> None:
    """Write a JSON file atomically, one line a seed, so that a change shows as one line."""
    text = json_text(payload)
    atomic_write(path, lambda file: file.write(text.encode()))


def json_text(payload: Mapping[str, Any]) -> str:
    """Indented JSON with every innermost list on one line."""
    text = json.dumps(payload, indent=1)
    return re.sub(r"\[[^\[\]{}]*\]", lambda m: re.sub(r"\s*\n\s*", " ", m[0]), text) + "\n"


def digest(content: Any) -> str:
    """SHA-256 of canonical JSON."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
