"""Files that are written whole or not at all, whatever stops the process that writes them."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # not a POSIX system: files cannot be told from abandoned ones, and stay
    fcntl = None  # type: ignore[assignment]

PART = ".part-"  # files being written; one that nobody holds was left by a process that was killed


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
        sync_folder(path.parent)
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
        for entry in [*os.scandir(folder)]:
            if entry.name.startswith(PART):
                with suppress(OSError), open(entry.path, "rb") as file:
                    if _lock(file, wait=False):
                        os.unlink(entry.path)


def _lock(file: IO[bytes], *, wait: bool) -> bool:
    """Whether the file is now locked by this process; the system unlocks it when it ends."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # held by another, or a file system without locks
        return False
    return True


def sync_folder(folder: Path) -> None:
    """Have the system write the folder's names to the disk, where it lets us."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
