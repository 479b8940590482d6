"""Ways in which a stored file can be damaged."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

Damage = Callable[[Path], object]


def bytes_of(make: Callable[[bytes], bytes]) -> Damage:
    """A damage of the bytes of a file."""
    return lambda path: path.write_bytes(make(path.read_bytes()))


def always(content: bytes) -> Damage:
    """Other bytes in a file."""
    return lambda path: path.write_bytes(content)


def in_place(make: Callable[[Path], object]) -> Damage:
    """Something else in the place of a file."""

    def damage(path: Path) -> None:
        path.unlink()
        make(path)

    return damage


#: What is wrong with the file -> how it comes about; None: nobody may read it.
DAMAGES: dict[str, Damage | None] = {
    "missing": Path.unlink,
    "empty": always(b""),
    "half of it": bytes_of(lambda b: b[: len(b) // 2]),
    "without its end": bytes_of(lambda b: b.rstrip()[:-1]),
    "no JSON": always(b"no JSON at all\n"),
    "other bytes": always(bytes(range(256)) * 4),
    "zeros": bytes_of(lambda b: bytes(len(b))),
    "in UTF-16": bytes_of(lambda b: b.decode().encode("utf-16")),
    "with another beginning": bytes_of(lambda b: b"\xef\xbb\xbf" + b),
    "too deep": always(b"[" * 200_000),
    "a number too long": always(b"1" * 10_000),
    "a list": bytes_of(lambda b: b"[" + b + b"]"),
    "a text": always(b'"a text"'),
    "null": always(b"null"),
    "an empty table": always(b"{}"),
    "twice": bytes_of(lambda b: b + b),
    "a folder": in_place(Path.mkdir),
    "a loop": in_place(lambda path: path.symlink_to(path)),
    "a dangling link": in_place(lambda path: path.symlink_to("nowhere")),
    "unreadable": None,
}


def changed(change: Callable[[dict[str, object]], object]) -> Damage:
    """A change of the content, the digest left as it is."""

    def damage(path: Path) -> None:
        held = json.loads(path.read_text(encoding="utf-8"))
        change(held)
        path.write_text(json.dumps(held), encoding="utf-8")

    return damage


CHANGES: dict[str, Damage | None] = {
    "of another schema": changed(lambda held: held.update(schema=99)),
    "without a schema": changed(lambda held: held.pop("schema")),
    "with another digest": changed(lambda held: held.update(digest="0" * 64)),
    "without a digest": changed(lambda held: held.pop("digest")),
    "of another study": changed(lambda held: held.update(study="cartpole")),
    "without provenance": changed(lambda held: held.pop("provenance")),
    "of another study's run": lambda path: shutil.copy(
        path.parent / ("numbers.json" if path.stem != "numbers" else "hard.json"), path
    ),
}


@contextlib.contextmanager
def refuses_everyone(path: Path) -> Iterator[None]:
    """Nobody may read a file or a folder; the superuser becomes somebody for the time."""
    mode, user = path.stat().st_mode, os.geteuid()
    path.chmod(0)
    try:
        if user == 0:
            os.seteuid(65534)
        yield
    finally:
        if user == 0:
            os.seteuid(0)
        path.chmod(mode)
