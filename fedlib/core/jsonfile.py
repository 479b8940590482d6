"""JSON files that are sealed by a digest, read with checks and written whole."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar

from fedlib.core.files import atomic_write

SCHEMA = 1
#: An innermost list without texts: nearly all of a file, written by `as_text` digit for digit as
#: its digest has it.
NUMBERS = re.compile(r"\[[^\[\]{}\"]*\]")
MARK = r"\u0000"  # in texts that stand for such a list

T = TypeVar("T")


def once(make: Callable[[Path], T]) -> Callable[[Path], T]:
    """What a function makes of a file, remembered until the file is another."""

    @cache
    def remembered(path: Path, state: object) -> T:  # noqa: ARG001 - part of the cache's key
        return make(path)

    @wraps(make)
    def of_now(path: Path) -> T:
        return remembered(path, state_of(path))

    return of_now


def state_of(path: Path) -> tuple[int, ...] | None:
    """What tells one state of a file from another; None where there is no file."""
    try:
        held = path.stat()
    except OSError:
        return None
    return held.st_mtime_ns, held.st_ctime_ns, held.st_size, held.st_ino


def read(path: Path, kind: str | None = None) -> dict[str, Any]:
    """A stored file, checked; of a certain kind, if one is named.

    Raises
    ------
    ValueError
        one sentence, for a file that is missing, damaged, changed by hand, or of another schema or
        kind.
    """
    what = "/".join(path.parts[-3:])
    try:
        text = path.read_text(encoding="utf-8")
        data: dict[str, Any] = json.loads(text)
    except FileNotFoundError:
        raise ValueError(
            f"store: {what} must exist, it is not there; make it with `papers reproduce`, set "
            "FEDLIB_RESULTS to a folder that has it, such as `results` of the repository, or use "
            "Trace.save for a run of your own."
        ) from None
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise ValueError(
            f"store: {what} must be a file that can be read, got {why!r}; see its place and its "
            "permissions."
        ) from error
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, too long or too deep
        why = str(error).partition("\n")[0]
        raise ValueError(
            f"store: {what} must be whole JSON, it is damaged ({why}); delete it and reproduce."
        ) from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        given = data.get("schema") if isinstance(data, dict) else None
        raise ValueError(
            f"store: {what} must have schema {SCHEMA}, got {given}; reproduce it with this version."
        )
    sealed = data.pop("digest", None)
    if not _seals(sealed, text) and digest(data) != sealed:
        raise ValueError(
            f"store: {what} must agree with its digest, it was changed after it was written; "
            "restore it or reproduce it."
        )
    if kind is not None and data.get("kind") != kind:
        raise ValueError(
            f"store: {what} must be of kind {kind!r}, got {data.get('kind')!r}; restore it or "
            "reproduce it."
        )
    return {**data, "digest": sealed}


def write_json(path: Path, payload: Mapping[str, Any]) -> None:
    """Write a file whole: one line a seed, so that a change shows as one line."""
    text = as_text(payload)
    atomic_write(path, lambda file: file.write(text.encode()))


def as_text(payload: Mapping[str, Any]) -> str:
    """What is in the file of a payload."""
    return compact(json.dumps(payload, indent=1))


def compact(text: str) -> str:
    """Indented JSON with every innermost list on one line."""
    return re.sub(r"\[[^\[\]{}]*\]", lambda m: re.sub(r"\s*\n\s*", " ", m[0]), text) + "\n"


def digest(content: Any) -> str:
    """SHA-256 of canonical JSON."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _seals(sealed: object, text: str) -> bool:
    """Whether the digest is found without writing all numbers anew, which takes most of the time.

    False says nothing: another hand may have written the same content in another way.
    """
    lists: list[str] = []

    def number(found: re.Match[str]) -> str:
        lists.append(found[0].replace("\n", "").replace(" ", ""))
        return f'"{MARK}{len(lists) - 1}"'

    if MARK in text:
        return False
    try:
        rest = json.loads(NUMBERS.sub(number, text))
    except ValueError:  # a bracket within a text
        return False
    rest.pop("digest", None)
    brief = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    whole = re.sub(rf'"\{MARK}(\d+)"', lambda found: lists[int(found[1])], brief)
    return hashlib.sha256(whole.encode()).hexdigest() == sealed
