"""Atomic file writes, and JSON files whose content is checked by a digest."""

import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

PART = ".part-"  # prefix of files being written; an old one was left by a killed process
DAY = 24 * 3600
SCHEMA = 1
REPAIR = "restore it, or delete it and reproduce it"


def atomic_write(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Call `write` on a temporary file beside `path`, and rename it to `path` once it is complete.

    The file has the access rights that the umask gives to a new file. Temporary files that killed
    processes left in the folder are removed after a day. Raises OSError if the folder is not
    writable or the disk is full; then no file is left behind, and a file that was at `path` before
    is unchanged.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        clear_parts(path.parent)
        with temporary_file(path.parent) as (name, file):
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
def temporary_file(folder: Path) -> Iterator[tuple[Path, IO[bytes]]]:
    """A new file in a folder, which is removed afterwards unless it has been renamed."""
    name = folder / f"{PART}{secrets.token_hex(8)}"
    try:
        with open(name, "xb") as file:
            yield name, file
    finally:
        name.unlink(missing_ok=True)


def clear_parts(folder: Path) -> None:
    """Remove unfinished files that killed processes left, if they are older than a day."""
    with suppress(OSError):
        for path in folder.glob(f"{PART}*"):
            if time.time() - path.stat().st_mtime > DAY:
                path.unlink()


def read_json(path: Path, kind: str | None = None) -> dict[str, Any]:
    """Read a stored file and check its schema, its digest and, if `kind` is given, its kind.

    Raises ValueError for a file that is missing, damaged, changed by hand, or of another schema or
    kind.
    """
    what = f"store: {'/'.join(path.parts[-3:])} must"
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        make = "make it with `papers reproduce`"
        where = "set FEDLIB_RESULTS to a folder that has it, or use Trace.save for your own run"
        raise ValueError(f"{what} exist, but it is missing; {make}, {where}.") from None
    except (OSError, ValueError, RecursionError) as error:  # not UTF-8, not JSON, or nested deeply
        why = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise ValueError(f"{what} be complete JSON, but is damaged ({why}); {REPAIR}.") from None
    held = data if isinstance(data, dict) else {}
    own = digest({key: value for key, value in held.items() if key != "digest"})
    for fits, rule in (
        (held.get("schema") == SCHEMA, f"have schema {SCHEMA}, got {held.get('schema')}"),
        (own == held.get("digest"), "agree with its digest, but it was changed"),
        (kind in (None, held.get("kind")), f"be of kind {kind!r}, got {held.get('kind')!r}"),
    ):
        if not fits:
            raise ValueError(f"{what} {rule}; {REPAIR}.")
    return {**held}


def write_json(path: Path, payload: Mapping[str, Any]) -> None:
    """Write a JSON file atomically, with one line for each seed, so that differences are short."""
    text = json_text(payload)
    atomic_write(path, lambda file: file.write(text.encode()))


def json_text(payload: Mapping[str, Any]) -> str:
    """Indented JSON with every innermost list on one line."""
    text = json.dumps(payload, indent=1)
    return re.sub(r"\[[^\[\]{}]*\]", lambda m: re.sub(r"\s*\n\s*", " ", m[0]), text) + "\n"


def digest(content: Any) -> str:
    """The SHA-256 digest of canonical JSON."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
