"""Who computes a group of runs: a file beside its checkpoint that one living process holds.

The file names process, start of the process, and host. On one host the process is looked at; a file
of another host is abandoned once nobody has touched it for a while, which its holder does all the
time.
"""

from __future__ import annotations

import json
import os
import platform
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # not a POSIX system: two that take over one file at once are not told apart
    fcntl = None  # type: ignore[assignment]

BEAT = 20.0  # seconds between two touches
ABANDONED = 600.0  # seconds without one; hosts and file servers do not agree on the time


@contextmanager
def tenure(path: Path) -> Iterator[bool]:
    """Whether this process is now the one that works at what `path` stands for; until the end."""
    if not take(path):
        yield False
        return
    stop = threading.Event()
    beats = threading.Thread(target=_beat, args=(path, stop), daemon=True)
    beats.start()
    try:
        yield True
    finally:
        stop.set()
        beats.join()
        path.unlink(missing_ok=True)


def take(path: Path) -> bool:
    """Write the file, unless a living process holds it; one that was abandoned is taken over."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _alone(path.parent):
        if path.exists():
            if not is_abandoned(path):
                return False
            path.unlink(missing_ok=True)
        try:
            with open(path, "x", encoding="utf-8") as file:
                json.dump(_own(), file)
        except FileExistsError:
            return False
    return True


def is_abandoned(path: Path) -> bool:
    """Whether the process that holds a file is gone, or has not been heard of for long."""
    try:
        age = time.time() - path.stat().st_mtime
        held = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return True
    except ValueError:  # being written, or cut off by a crash of the system
        held = {}
    if isinstance(held, dict) and held.get("host") == platform.node():
        return not _lives(held.get("pid"), held.get("started"))
    return age > ABANDONED


def _own() -> dict[str, object]:
    return {"pid": os.getpid(), "started": _started(os.getpid()), "host": platform.node()}


def _lives(pid: object, started: object) -> bool:
    """Whether a process of this host is there, and is the one that started then."""
    if not isinstance(pid, int) or pid < 1:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return _started(pid) == started


def _started(pid: int) -> str | None:
    """When a process started, in ticks since the host did; None where the system does not say."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    return None if words[0] == "Z" else words[19]


def _beat(path: Path, stop: threading.Event) -> None:
    while not stop.wait(BEAT):
        with suppress(OSError):
            os.utime(path)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time, where the file system has locks."""
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
