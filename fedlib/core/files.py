"""Atomic file writes, and JSON files whose content is checked by a digest.

Every kind of file has a `Format` with a version of its own. A file of an older version is read
through the format's migrations, so a change of one kind of file leaves the others readable.
"""

import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

PART = ".part-"  # prefix of files being written; an old one was left by a killed process
DAY = 24 * 3600
REPAIR = "restore it, or delete it and reproduce it"
UPDATE = "read it with the version of fedlib that wrote it, or reproduce it"

Content = dict[str, Any]
SEAL = ("schema", "kind", "digest")  # what a format adds to the content of a file


@dataclass(frozen=True)
class Format:
    """A kind of file: its version, and how files of older versions are read.

    Attributes
    ----------
    kind : str
        The name of the kind, which every file has under "kind".
    version : int
        The version that is written, under "schema".
    migrations : mapping of int to callable
        Version n -> the function that makes content of version n + 1 of it.
    """

    kind: str
    version: int
    migrations: Mapping[int, Callable[[Content], Content]] = field(default_factory=dict)

    def sealed(self, content: Mapping[str, Any]) -> Content:
        """The content of a file of this format, with its version, its kind and its digest."""
        signed = {"schema": self.version, "kind": self.kind, **content}
        return {**signed, "digest": digest(signed)}

    def current(self, content: Content, name: str) -> Content:
        """Content of this version, made by migrations of content of an older one.

        Raises ValueError with the file's `name` if the content is of another kind, of a newer
        version, or of one from which no migrations lead here.
        """
        if content.get("kind") != self.kind:
            raise ValueError(
                f"store: {name} must be of kind {self.kind!r}, got {content.get('kind')!r}; "
                f"{REPAIR}."
            )
        version = content.get("schema")
        if version == self.version:
            return content
        if not isinstance(version, int) or not self.reads(version):
            raise ValueError(
                f"store: {name} must have version {self.version} of the format {self.kind!r}, "
                f"got {version!r}; {UPDATE}."
            )
        migrated = self.migrated(content, version)
        unsealed = {k: v for k, v in migrated.items() if k not in SEAL}
        return self.sealed(unsealed)

    def reads(self, version: int) -> bool:
        """Whether a version is this one, or an older one from which migrations lead to it."""
        steps = range(version, self.version)
        return version <= self.version and all(step in self.migrations for step in steps)

    def migrated(self, content: Content, version: int) -> Content:
        """Content of this version, made of content of one that the format reads."""
        for step in range(version, self.version):
            content = self.migrations[step](content)
        return content


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


def read_json(path: Path, form: Format | None = None) -> Content:
    """Read a stored file and check its digest; check its format and migrate it if `form` is given.

    Raises ValueError for a file that is missing, damaged, changed by hand, of another kind, or of a
    version that cannot be read.
    """
    name = "/".join(path.parts[-3:])
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(
            f"store: {name} must exist, but it is missing; make it with `papers reproduce`, set "
            "FEDLIB_RESULTS to a folder that has it, or use Trace.save for your own run."
        ) from None
    except (OSError, ValueError, RecursionError) as error:  # not UTF-8, not JSON, or nested deeply
        line = str(error).partition("\n")[0]
        why = getattr(error, "strerror", None) or line
        raise ValueError(
            f"store: {name} must be complete JSON, but is damaged ({why}); {REPAIR}."
        ) from None
    if not isinstance(content, dict):
        content = {}
    signed = {key: value for key, value in content.items() if key != "digest"}
    if digest(signed) != content.get("digest"):
        raise ValueError(f"store: {name} must agree with its digest, but it was changed; {REPAIR}.")
    return content if form is None else form.current(content, name)


def write_json(path: Path, payload: Mapping[str, Any]) -> None:
    """Write a JSON file atomically, with one line for each seed, so that differences are short."""
    text = json_text(payload)
    atomic_write(path, lambda file: file.write(text.encode()))


def json_text(payload: Mapping[str, Any]) -> str:
    """Indented JSON with every innermost list on one line."""
    text = json.dumps(payload, indent=1)
    innermost_list = r"\[[^\[\]{}]*\]"
    line_break = r"\s*\n\s*"
    text = re.sub(innermost_list, lambda match: re.sub(line_break, " ", match[0]), text)
    return f"{text}\n"


def digest(content: Any) -> str:
    """The SHA-256 digest of canonical JSON."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
