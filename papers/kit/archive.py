"""A study's results: the curves of its runs, what the runs are, and what was measured of them.

`STUDY.parquet` has the curves, `STUDY.json` the runs, `STUDY.csv` the quantities, and `STUDY.npz`
the models that runs end with, where these are stored. The table of curves has a row for a run,
seed and round, with the labels of the run and a column for a curve: pandas reads it with
`pd.read_parquet`.

While runs are computed each is a JSON file of its own, `results/STUDY/PROFILE/NAME.json`, so that
two writers never meet; `collect` moves them into the study's files. A path of that form stands for
a run wherever it lies, and a file that is there comes before the study's. The JSON file of a study
is written last, and it has a fingerprint of the curves of every run: who is killed between two
files leaves all runs that were stored before readable.

Several processes may store, collect and read at once: who writes holds the folder (`exclusive`),
and who reads what somebody is just moving waits for the writer and reads again.
"""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedlib.core.files import SEAL, Format, atomic_write, digest, read_json, write_json
from papers.kit import spreadsheet, tables

Payload = dict[str, Any]
Array = NDArray[Any]
T = TypeVar("T")

RUN = Format("run", 1)
NUMBERS = Format("numbers", 1)
STUDY = Format("study", 2)

#: The ends of the names of a study's files; one without models has no last one.
FILES = (".json", ".parquet", ".csv", ".npz")
CURVES = ("metrics", "info")
MODELS = ("final_w", "output_w")
#: What a study's file says of a run beside the run itself.
ARCHIVED = ("labels", "curves", "models", "values")


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
            state = (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino)
        return remembered(path, where, state)

    return current


@contextmanager
def exclusive(results: Path) -> Iterator[None]:
    """Hold the folder of results: other processes and threads that ask for it wait.

    A thread may ask again while it holds the folder. Where folders cannot be locked, as on Windows,
    only threads wait.
    """
    with _THREADS:
        can_lock = os.name != "nt" and results.is_dir()
        if _NESTED or not can_lock:
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


def _is_archived(path: Path) -> bool:
    """Whether it is in the study's file, and not in a file of its own."""
    return not path.is_file() and path.stem in _archived(path)


def names(folder: Path) -> set[str]:
    """What is stored of a study's profile, by name."""
    loose = {file.stem for file in folder.glob("*.json")}
    archived = _archived(folder / "any.json")
    return loose | archived.keys()


def place(path: Path) -> Path:
    """The file in which it is looked up."""
    return path if path.is_file() else _study_file(path)


def read(path: Path) -> Payload:
    """A stored run with its curves, or a study's numbers.

    Raises
    ------
    ValueError
        one sentence, for what is missing, damaged or changed by hand.
    """
    return _steadily(path, lambda: _read(path))


def summary(path: Path) -> Mapping[str, Any]:
    """A stored run without its curves and models, whose names it has in `curves` and `models`.

    Nobody may change it.
    """
    return _steadily(path, lambda: _summary(path))


def _steadily(path: Path, look: Callable[[], T]) -> T:
    """What `look` reads; it looks again, alone, where somebody may have moved files meanwhile."""
    try:
        return look()
    except (ValueError, KeyError):
        with exclusive(path.parents[2]):
            return look()


def _read(path: Path) -> Payload:
    if not _is_archived(path):
        content = read_json(path)
        form = NUMBERS if path.stem == NUMBERS.kind else RUN
        return form.current(content, path.name)
    content = deepcopy(_archived(path)[path.stem])
    if content["kind"] == RUN.kind:
        arrays = _arrays(path, content)
        return {**_without(content, ARCHIVED), **arrays}
    table = _study_file(path).with_suffix(".csv")
    profile = path.parent.name
    quantities = _quantities(table)
    content["numbers"] = deepcopy(quantities.get(profile, {}))
    signed = _without(content, ("digest",))
    if digest(signed) != content["digest"]:
        raise ValueError(_damaged(table, "other values"))
    return content


def _summary(path: Path) -> Mapping[str, Any]:
    if _is_archived(path):
        return _archived(path)[path.stem]
    return _without_arrays(_read(path))


def _without(content: Mapping[str, Any], keys: Sequence[str]) -> Payload:
    """The other entries."""
    return {key: value for key, value in content.items() if key not in keys}


def _arrays(path: Path, entry: Mapping[str, Any]) -> Payload:
    """The curves and models of a collected run, checked by the fingerprint that was stored."""
    file = _study_file(path)
    table = file.with_suffix(".parquet")
    profile = path.parent.name
    name = path.stem
    rows = _table(table).get((profile, name))
    if rows is None:
        raise ValueError(_damaged(table, f"no run {name!r}"))
    curves = entry["curves"]
    try:
        metrics, info = tables.curves_at(rows, entry["rounds"], curves["metrics"], curves["info"])
    except (KeyError, ValueError) as error:
        reason = f"other rows or columns for run {name!r}"
        raise ValueError(_damaged(table, reason)) from error
    arrays: Payload = {"metrics": metrics, "info": info, **dict.fromkeys(MODELS)}
    for model in entry["models"]:
        models = _models(file.with_suffix(".npz"))
        stored = models[f"{profile}/{name}/{model}"]
        arrays[model] = tables.exact(stored)
    if _fingerprint(arrays) != entry["values"]:
        raise ValueError(_damaged(table, "other values"))
    return arrays


def _fingerprint(arrays: Mapping[str, Any]) -> str:
    named = {}
    for group in CURVES:
        for name, rows in arrays[group].items():
            named[f"{group}/{name}"] = rows
    for model in MODELS:
        if arrays[model] is not None:
            named[model] = arrays[model]
    return tables.fingerprint(named)


def _damaged(file: Path, reason: str) -> str:
    return (
        f"store: {file.name} must agree with {file.stem}.json, got {reason}; restore it, or delete "
        f"{file.stem}.* and reproduce them."
    )


def collect(
    results: Path,
    study: str,
    labels: Mapping[str, Mapping[str, Any]] = {},
    new_names: Mapping[str, Mapping[str, str]] = {},
) -> None:
    """Move what lies in files of its own into the study's files, and renew the labels of runs.

    Parameters
    ----------
    results, study : the folder, and the name of the study.
    labels : profile -> run -> its labels; a run without an entry keeps those that it has.
    new_names : profile -> run -> the name that it gets.
    """
    folder = results / study
    file = results / f"{study}.json"
    with exclusive(results):
        loose = sorted(folder.glob("*/*.json"))
        profiles = _profiles(file) if file.is_file() else {}
        if not loose and not profiles:
            return
        paths = {*loose}
        for profile, entries in profiles.items():
            paths |= {folder / profile / f"{name}.json" for name in entries}
        runs = []
        numbers = {}
        for path in sorted(paths):
            content = read(path)
            profile = path.parent.name
            old_name = path.stem
            if old_name == NUMBERS.kind:
                numbers[profile] = content
                continue
            name = new_names.get(profile, {}).get(old_name, old_name)
            if name != old_name:
                content = _named(content, name)
            entry = profiles.get(profile, {}).get(old_name, {})
            old_labels = entry.get("labels", {})
            new_labels = labels.get(profile, {}).get(name, old_labels)
            runs.append({**content, "labels": dict(new_labels)})
        _write(file, runs, numbers)
        for path in loose:
            path.unlink(missing_ok=True)
        for emptied in [*folder.glob("*"), folder]:
            with suppress(OSError):  # it is not empty, or somebody else removed it
                emptied.rmdir()


def _write(file: Path, runs: list[Payload], numbers: Mapping[str, Payload]) -> None:
    """Write a study's files, the one of the runs last."""
    entries = []
    table = []
    models = {}
    for run in runs:
        arrays = as_arrays(run)
        profile = run["profile"]
        name = run["name"]
        entries.append(_without_arrays(run))
        rows = tables.rows_of(run["seeds"], run["rounds"], arrays["metrics"], arrays["info"])
        table.append({"profile": profile, "run": name, "labels": run["labels"], "rows": rows})
        for model in MODELS:
            if arrays[model] is not None:
                models[f"{profile}/{name}/{model}"] = tables.compact(arrays[model])
    if table:
        atomic_write(file.with_suffix(".parquet"), lambda to: tables.write(to, table))
    models_file = file.with_suffix(".npz")
    if models:
        atomic_write(models_file, lambda to: np.savez_compressed(to, **models))  # type: ignore[arg-type]
    else:
        models_file.unlink(missing_ok=True)
    quantities = {}
    beside = {}
    for profile, content in numbers.items():
        quantities[profile] = content["numbers"]
        beside[profile] = _without(content, ("numbers",))
    if quantities:
        text = spreadsheet.to_csv(quantities).encode()
        atomic_write(file.with_suffix(".csv"), lambda to: to.write(text))
    content = {"study": file.stem, "runs": entries, "numbers": beside}
    write_json(file, STUDY.sealed(content))


def _named(content: Payload, name: str) -> Payload:
    """A run under another name."""
    plain = _as_lists(_without(content, SEAL))
    return RUN.sealed({**plain, "name": name})


def _as_lists(value: Any) -> Any:
    """Arrays as lists, null for NaN, as a run in a file of its own has them."""
    if isinstance(value, dict):
        return {key: _as_lists(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        entries = value.astype(object)
        entries[np.isnan(value)] = None
        return entries.tolist()
    return value


def as_arrays(payload: Mapping[str, Any]) -> Payload:
    """The curves and models of a run as arrays; null is NaN."""
    arrays: Payload = {}
    for group in CURVES:
        curves = payload[group].items()
        arrays[group] = {name: np.array(rows, dtype=float) for name, rows in curves}
    for model in MODELS:
        rows = payload[model]
        arrays[model] = None if rows is None else np.array(rows, dtype=float)
    return arrays


def _without_arrays(run: Payload) -> Payload:
    """What a study's file says of a run."""
    return {
        **_without(run, CURVES + MODELS),
        "labels": run.get("labels", {}),
        "curves": {group: list(run[group]) for group in CURVES},
        "models": [model for model in MODELS if run[model] is not None],
        "values": _fingerprint(as_arrays(run)),
    }


def _study_file(path: Path) -> Path:
    return path.parents[1].with_suffix(".json")


def _archived(path: Path) -> Mapping[str, Payload]:
    """What the study's file holds of the profile of a path, by name, without curves."""
    file = _study_file(path)
    if not file.is_file():
        return {}
    profile = path.parent.name
    return _profiles(file).get(profile, {})


@cached
def _profiles(file: Path) -> Mapping[str, Mapping[str, Payload]]:
    """The runs and the numbers in a study's file, by profile and name."""
    content = read_json(file, STUDY)
    profiles: dict[str, dict[str, Payload]] = {}
    for run in content["runs"]:
        by_name = profiles.setdefault(run["profile"], {})
        by_name[run["name"]] = run
    for profile, numbers in content["numbers"].items():
        by_name = profiles.setdefault(profile, {})
        by_name[NUMBERS.kind] = numbers
    return profiles


@cached
def _quantities(file: Path) -> Mapping[str, Payload]:
    def read_from(source: io.BytesIO) -> Mapping[str, Payload]:
        text = source.read().decode()
        return spreadsheet.from_csv(text)

    return _opened(file, read_from)


@cached
def _table(file: Path) -> dict[tuple[str, str], Any]:
    return _opened(file, tables.read)


@cached
def _models(file: Path) -> Mapping[str, Array]:
    return _opened(file, lambda source: dict(np.load(source)))


def _opened(file: Path, read_from: Callable[[io.BytesIO], T]) -> T:
    """What a file holds; one sentence where it is missing or damaged."""
    try:
        content = file.read_bytes()
        return read_from(io.BytesIO(content))
    except Exception as error:  # of the file, of zipfile, of zlib, of numpy or of pyarrow
        why = str(error).partition("\n")[0]
        raise ValueError(f"store: {file.name} must be whole, got {why}; restore it.") from None
