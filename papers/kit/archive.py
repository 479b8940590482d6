"""Two files a study: `results/STUDY.json`, what its runs are, and `STUDY.npz`, their curves.

While runs are computed each is a JSON file of its own, `results/STUDY/PROFILE/NAME.json`, so that
two writers never meet; `collect` moves them into the study's files. A path of that form stands for
a run wherever it lies, and a file that is there comes before the study's.
"""

from __future__ import annotations

import copy
import hashlib
import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedlib.core.files import SCHEMA, atomic_write, digest, read_json, write_json

Payload = dict[str, Any]
Curves = NDArray[np.float64]
Mantissas = NDArray[np.int32] | NDArray[np.int64]
T = TypeVar("T")

CURVES, MODELS = ("metrics", "info"), ("final_w", "output_w")
POWERS = 22  # of ten, up to which float64 has exactly
MINUS_ZERO, NAN = 998, 999  # powers that no float64 has


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


def exists(path: Path) -> bool:
    """Whether a run, or a study's numbers, are stored."""
    return path.is_file() or path.stem in _archived(path)


def names(folder: Path) -> set[str]:
    """What is stored of a study's profile, by name."""
    return {p.stem for p in folder.glob("*.json")} | {*_archived(folder / "any.json")}


def place(path: Path) -> Path:
    """The file in which it is looked up."""
    return path if path.is_file() else _study_file(path)


def read(path: Path, kind: str | None = None, *, curves: bool = True) -> Payload:
    """A stored run or a study's numbers as `read_json` has them; without curves if not `curves`.

    Raises
    ------
    ValueError
        one sentence, for what is missing, damaged, changed by hand or of another kind.
    """
    if path.is_file() or path.stem not in _archived(path):
        found = read_json(path, kind)
        return found if curves else {k: v for k, v in found.items() if k not in CURVES + MODELS}
    held: Payload = copy.deepcopy(_archived(path)[path.stem])  # the caller's own
    if kind is not None and held["kind"] != kind:
        what = "/".join(path.parts[-3:])
        raise ValueError(f"store: {what} must be of kind {kind!r}, got {held['kind']!r}.")
    if held["kind"] != "run":
        return held
    if not curves:
        return {k: v for k, v in held.items() if k not in CURVES + MODELS}
    flat = _curves(_study_file(path).with_suffix(".npz"))
    whole = {part: {k: _rows(flat, at) for k, at in held[part].items()} for part in CURVES}
    return {**held, **whole, **{part: _rows(flat, held[part]) for part in MODELS}}


def collect(results: Path, study: str) -> None:
    """Move what lies in files of its own into the study's two files, whole or not at all."""
    loose = {path: read_json(path) for path in sorted((results / study).glob("*/*.json"))}
    if not loose:
        return
    held = dict(_all_archived(results, study))
    held |= loose
    parts: list[Curves] = []
    profiles: dict[str, Payload] = {}
    for path, payload in sorted(held.items()):
        slim = _slim(payload, parts) if payload["kind"] == "run" else payload
        profiles.setdefault(path.parent.name, {})[path.stem] = slim
    flat = np.concatenate(parts) if parts else np.zeros(0)
    mantissa, power = _as_decimals(flat)
    file = io.BytesIO()
    np.savez_compressed(file, mantissa=mantissa, power=power)
    content = {
        "schema": SCHEMA,
        "kind": "study",
        "study": study,
        "curves": _seal(mantissa, power),
        "profiles": profiles,
    }
    atomic_write(results / f"{study}.npz", lambda out: out.write(file.getvalue()))
    write_json(results / f"{study}.json", {**content, "digest": digest(content)})
    for path in loose:
        path.unlink()
    for folder in [*(results / study).glob("*"), results / study]:
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def _study_file(path: Path) -> Path:
    return path.parents[1].with_suffix(".json")


def _archived(path: Path) -> Mapping[str, Payload]:
    """What the study's file holds of the profile of a path, by name, without curves."""
    file = _study_file(path)
    return _profiles(file).get(path.parent.name, {}) if file.is_file() else {}


@cached
def _profiles(file: Path) -> Mapping[str, Mapping[str, Payload]]:
    found: Mapping[str, Mapping[str, Payload]] = read_json(file, "study")["profiles"]
    return found


@cached
def _curves(own: Path) -> Curves:
    """All curves of a study, one after another.

    Raises
    ------
    ValueError
        unless they are those that its JSON file was written with.
    """
    file = own.with_suffix(".json")
    sealed = read_json(file, "study")["curves"]
    what = f"store: {own.name} must"
    try:
        with np.load(io.BytesIO(own.read_bytes())) as held:
            mantissa, power = held["mantissa"], held["power"]
    except (OSError, ValueError, KeyError, EOFError) as error:
        why = str(error).partition("\n")[0]
        raise ValueError(f"{what} be a whole file of curves, got {why}; restore it.") from None
    except Exception as error:  # of zlib and zipfile
        raise ValueError(f"{what} be whole, it is damaged ({error}); restore it.") from None
    if _seal(mantissa, power) != sealed:
        raise ValueError(
            f"{what} agree with the digest in {file.name}, it was changed after it was written; "
            "restore it or reproduce it."
        )
    return _from_decimals(mantissa, power)


def _all_archived(results: Path, study: str) -> Iterator[tuple[Path, Payload]]:
    file = results / f"{study}.json"
    for profile, held in _profiles(file).items() if file.is_file() else ():
        for name in held:
            path = results / study / profile / f"{name}.json"
            if not path.is_file():
                yield path, read(path)


def _slim(payload: Payload, parts: list[Curves]) -> Payload:
    """A run with places of its curves in place of them; these are appended to `parts`."""

    def moved(rows: Any) -> list[int] | None:
        if rows is None:
            return None
        table = np.array([[np.nan if x is None else x for x in row] for row in rows], dtype=float)
        first = sum(map(len, parts))
        parts.append(table.ravel())
        return [first, len(rows), table.shape[1] if table.ndim > 1 else 0]

    curves = {part: {k: moved(rows) for k, rows in payload[part].items()} for part in CURVES}
    return {**payload, **curves, **{part: moved(payload[part]) for part in MODELS}}


def _rows(flat: Curves, at: list[int] | None) -> list[list[float | None]] | None:
    """The rows at a place, numbers that are none as JSON has them."""
    if at is None:
        return None
    first, rows, length = at
    table = flat[first : first + rows * length].reshape(rows, length)
    if np.isnan(table).any():
        return [[None if np.isnan(x) else float(x) for x in row] for row in table]
    return [[*row] for row in table.tolist()]


def _as_decimals(x: Curves) -> tuple[Mantissas, NDArray[np.int16]]:
    """Numbers of six digits as `mantissa * 10**power`, which packs well; any other, too."""
    unique, inverse = np.unique(x, return_inverse=True)
    m, p = np.zeros(len(unique), np.int64), np.zeros(len(unique), np.int16)
    for k, value in enumerate(unique.tolist()):
        if value != value:
            p[k] = NAN
        elif value:
            digits, _, exponent = repr(value).partition("e")
            whole, _, part = digits.partition(".")
            part = part.rstrip("0")
            m[k], p[k] = int(whole + part), int(exponent or 0) - len(part)
    power = p[inverse]
    power[(x == 0) & np.signbit(x)] = MINUS_ZERO
    mantissa = m[inverse]
    return (mantissa.astype(np.int32) if np.abs(m).max(initial=0) < 2**31 else mantissa), power


def _from_decimals(mantissa: Mantissas, power: NDArray[np.int16]) -> Curves:
    """The same numbers, to the last bit: each is the float nearest to its decimals."""
    m, p = mantissa.astype(float), power.astype(int)
    exact = (np.abs(p) <= POWERS) & (np.abs(m) < 2.0**53)
    scale = 10.0 ** np.where(exact, np.abs(p), 0)
    x = np.where(p < 0, m / scale, m * scale)
    for k in np.flatnonzero(~exact & (p < MINUS_ZERO)):
        x[k] = float(f"{mantissa[k]}e{power[k]}")
    x[p == MINUS_ZERO], x[p == NAN] = -0.0, np.nan
    return x


def _seal(mantissa: Mantissas, power: NDArray[np.int16]) -> str:
    return hashlib.sha256(mantissa.tobytes() + power.tobytes()).hexdigest()
