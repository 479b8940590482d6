"""Two files a study: `results/STUDY.json`, what its runs are, and `STUDY.npz`, their curves.

While runs are computed each is a JSON file of its own, `results/STUDY/PROFILE/NAME.json`, so that
two writers never meet; `collect` moves them into the study's files. A path of that form stands for
a run wherever it lies, and a file that is there comes before the study's.

Several processes may store, collect and read at once: who writes holds the folder (`exclusive`),
and who reads what somebody is just moving waits for the writer and reads again.
"""

from __future__ import annotations

import copy
import hashlib
import io
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar
from zipfile import ZIP_LZMA, ZipFile

import numpy as np
from numpy.typing import NDArray

from fedlib.core.files import Format, atomic_write, read_json, write_json

Payload = dict[str, Any]
Curves = NDArray[np.float64]
T = TypeVar("T")

RUN = Format("run", 1)
NUMBERS = Format("numbers", 1)
STUDY = Format("study", 1)

CURVES, MODELS = ("metrics", "info"), ("final_w", "output_w")


def cached(make: Callable[[Path], T]) -> Callable[[Path], T]:
    """Decorator: remember what a function makes of a file, or a stored run, until it changes."""

    @cache
    def remembered(path: Path, where: Path, state: object) -> T:  # noqa: ARG001 - the cache's key
        return make(path)

    @wraps(make)
    def current(path: Path) -> T:
        where = place(path)
        state: tuple[int, ...] = ()  # changes with the content; none without a file
        with suppress(OSError):
            stat = where.stat()
            state = stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino
        return remembered(path, where, state)

    return current


@contextmanager
def exclusive(results: Path) -> Iterator[None]:
    """Hold the folder of results: other processes and threads that ask for it wait.

    A thread may ask again while it holds the folder. Where folders cannot be locked, as on Windows,
    only threads wait.
    """
    with _THREADS:
        if _NESTED or os.name == "nt" or not results.is_dir():
            yield
            return
        import fcntl

        folder = os.open(results, os.O_RDONLY)
        _NESTED.append(folder)
        try:
            with suppress(OSError):  # of file systems without locks
                fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            _NESTED.remove(folder)
            os.close(folder)


_THREADS = threading.RLock()
_NESTED: list[int] = []  # the open folder, while this process holds it


def exists(path: Path) -> bool:
    """Whether a run, or a study's numbers, are stored."""
    return path.is_file() or path.stem in _archived(path)


def names(folder: Path) -> set[str]:
    """What is stored of a study's profile, by name."""
    return {p.stem for p in folder.glob("*.json")} | {*_archived(folder / "any.json")}


def place(path: Path) -> Path:
    """The file in which it is looked up."""
    return path if path.is_file() else _study_file(path)


def read(path: Path, *, curves: bool = True) -> Payload:
    """A stored run or a study's numbers; of a run without curves if not `curves`.

    Raises
    ------
    ValueError
        one sentence, for what is missing, damaged or changed by hand.
    """
    return _steadily(path, lambda: _read(path, curves=curves))


def curve_names(path: Path) -> set[str]:
    """The names of a stored run's curves, and `"final_w"` if it has its final models."""

    def look() -> set[str]:
        run = read_json(path) if path.is_file() else _archived(path)[path.stem]
        models = {"final_w"} if run["final_w"] is not None else set()
        return models.union(*(run[part] for part in CURVES))

    return _steadily(path, look)


def digest_of(path: Path) -> str:
    """The digest of a stored run, or of a study's numbers."""

    def look() -> str:
        content = read_json(path) if path.is_file() else _archived(path)[path.stem]
        return str(content["digest"])

    return _steadily(path, look)


def _steadily(path: Path, look: Callable[[], T]) -> T:
    """What `look` reads; it looks again, alone, where somebody may have moved files meanwhile."""
    try:
        return look()
    except (ValueError, KeyError):
        with exclusive(path.parents[2]):
            return look()


def _read(path: Path, *, curves: bool) -> Payload:
    archived = None if path.is_file() else _archived(path).get(path.stem)
    found = read_json(path) if archived is None else copy.deepcopy(dict(archived))
    if found.get("kind") != RUN.kind:
        return NUMBERS.current(found, path.name)
    found = RUN.current(found, path.name)
    if not curves:
        return {k: v for k, v in found.items() if k not in CURVES + MODELS}
    if archived is not None:
        flat = _curves(_study_file(path).with_suffix(".npz"))
        if _archived(path).get(path.stem) is not archived:  # the places were those of other curves
            raise ValueError(f"store: {path.name} must stay while it is read; read it again.")
        for part in CURVES:
            found[part] = {k: _rows(flat, at) for k, at in found[part].items()}
        for part in MODELS:
            found[part] = _rows(flat, found[part])
    return found


def collect(results: Path, study: str) -> None:
    """Move what lies in files of its own into the study's two files, whole or not at all."""
    with exclusive(results):
        _collect(results, study)


def _collect(results: Path, study: str) -> None:
    loose = sorted((results / study).glob("*/*.json"))
    if not loose:
        return
    file = results / f"{study}.json"
    profiles = _profiles(file) if file.is_file() else {}
    held = {results / study / p / f"{name}.json" for p, one in profiles.items() for name in one}
    parts: list[Curves] = []
    collected: dict[str, Payload] = {}
    for path in sorted(held.union(loose)):
        collected.setdefault(path.parent.name, {})[path.stem] = _without_curves(read(path), parts)
    flat = np.concatenate(parts) if parts else np.zeros(0)
    content = {
        "study": study,
        "curves": _seal(flat),
        "profiles": collected,
    }
    atomic_write(results / f"{study}.npz", lambda out: out.write(_packed(flat)))
    write_json(file, STUDY.sealed(content))
    for path in loose:
        path.unlink(missing_ok=True)
    for folder in [*(results / study).glob("*"), results / study]:
        with suppress(OSError):  # it is not empty, or somebody else removed it
            folder.rmdir()


def _study_file(path: Path) -> Path:
    return path.parents[1].with_suffix(".json")


def _archived(path: Path) -> Mapping[str, Payload]:
    """What the study's file holds of the profile of a path, by name, without curves."""
    file = _study_file(path)
    return _profiles(file).get(path.parent.name, {}) if file.is_file() else {}


@cached
def _profiles(file: Path) -> Mapping[str, Mapping[str, Payload]]:
    found: Mapping[str, Mapping[str, Payload]] = read_json(file, STUDY)["profiles"]
    return found


@cached
def _curves(file: Path) -> Curves:
    """All curves of a study, one after another.

    Raises
    ------
    ValueError
        unless they are those that its JSON file was written with.
    """
    sealed = read_json(file.with_suffix(".json"), STUDY)["curves"]
    try:
        with np.load(io.BytesIO(file.read_bytes())) as held:
            flat: Curves = held["curves"]
    except Exception as error:  # of the file, of zipfile, of zlib or of numpy
        why = str(error).partition("\n")[0]
        raise ValueError(f"store: {file.name} must be whole, got {why}; restore it.") from None
    if _seal(flat) != sealed:
        raise ValueError(
            f"store: {file.name} must agree with the digest in {file.stem}.json, it was changed "
            "after it was written; restore it, or delete both and reproduce them."
        )
    return flat


def _without_curves(payload: Payload, parts: list[Curves]) -> Payload:
    """A run with places of its curves in place of them; these are appended to `parts`."""
    if payload["kind"] != "run":
        return payload

    def moved(rows: Any) -> list[int] | None:
        if rows is None:
            return None
        table = np.array(rows, dtype=float)  # None is not a number
        first = sum(map(len, parts))
        parts.append(table.ravel())
        return [first, len(rows), table.shape[1] if table.ndim > 1 else 0]

    curves = {part: {k: moved(rows) for k, rows in payload[part].items()} for part in CURVES}
    return {**payload, **curves, **{part: moved(payload[part]) for part in MODELS}}


def _rows(flat: Curves, at: list[int] | None) -> Curves | None:
    if at is None:
        return None
    first, rows, length = at
    return flat[first : first + rows * length].reshape(rows, length)


def _packed(flat: Curves) -> bytes:
    """Curves as a file: numbers of six digits need a third less by LZMA than numpy's own way."""
    packed = io.BytesIO()
    with ZipFile(packed, "w", ZIP_LZMA) as out, out.open("curves.npy", "w") as file:
        np.save(file, flat)
    return packed.getvalue()


def _seal(flat: Curves) -> str:
    return hashlib.sha256(flat.tobytes()).hexdigest()
