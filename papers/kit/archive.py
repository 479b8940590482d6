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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
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


def labels_of(study_file: Path, profile: str = "full") -> dict[str, dict[str, Any]]:
    """The labels that the collected runs of a profile are stored with, by their names."""
    if not study_file.is_file():
        return {}
    stored = _profiles(study_file).get(profile, {})
    return {name: dict(run["labels"]) for name, run in stored.items() if name != NUMBERS.kind}


def curve_names(path: Path) -> set[str]:
    """The names of a stored run's curves, and `"final_w"` if it has its final models."""

    def look() -> set[str]:
        if not path.is_file():
            archived = _archived(path)[path.stem]
            return {*archived["models"]}.union(*archived["curves"].values())
        run = read_json(path)
        models = {"final_w"} if run["final_w"] is not None else set()
        return models.union(*(run[group] for group in CURVES))

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
    content = read_json(path) if archived is None else _copied(archived)
    if content.get("kind") != RUN.kind:
        if archived is not None:
            content["numbers"] = _quantities(_study_file(path), path.parent.name)
            if digest(without_digest(content)) != content["digest"]:
                raise ValueError(_damaged(_study_file(path).with_suffix(".csv"), "other values"))
        return NUMBERS.current(content, path.name)
    if archived is not None:
        content = {key: value for key, value in content.items() if key not in ARCHIVED}
    run = RUN.current(content, path.name)
    if not curves:
        return {key: value for key, value in run.items() if key not in CURVES + MODELS}
    return run if archived is None else {**run, **_arrays(path, archived)}


def _copied(content: Mapping[str, Any]) -> Payload:
    """A copy of an object of JSON: who changes its lists and objects changes no other."""
    return {key: _copied_value(value) for key, value in content.items()}


def _copied_value(value: Any) -> Any:
    if isinstance(value, dict):
        return _copied(value)
    if isinstance(value, list):
        return [_copied_value(entry) for entry in value]
    return value


def _arrays(path: Path, archived: Mapping[str, Any]) -> Payload:
    """The curves and models of a collected run, checked by the fingerprint that was stored."""
    file = _study_file(path)
    key = path.parent.name, path.stem
    table = _table(file.with_suffix(".parquet"))
    rows = table.rows.get(key)
    if rows is None:
        raise ValueError(_damaged(file.with_suffix(".parquet"), f"no run {key[1]!r}"))
    kept = archived["curves"]
    curves = tables.curves_at(
        table.columns, rows, archived["seeds"], archived["rounds"], kept["metrics"], kept["info"]
    )
    arrays: Payload = {"metrics": curves.metrics, "info": curves.info}
    stored = _models(file.with_suffix(".npz")) if archived["models"] else {}
    for group in MODELS:
        arrays[group] = None
        if group in archived["models"]:
            arrays[group] = tables.exact(stored["/".join([*key, group])])
    if _fingerprint(arrays) != archived["values"]:
        raise ValueError(_damaged(file.with_suffix(".parquet"), "other values"))
    return arrays


def _fingerprint(arrays: Mapping[str, Any]) -> str:
    named = {f"{group}/{name}": rows for group in CURVES for name, rows in arrays[group].items()}
    named |= {group: arrays[group] for group in MODELS if arrays[group] is not None}
    return tables.fingerprint(named)


def _damaged(file: Path, reason: str) -> str:
    return (
        f"store: {file.name} must agree with {file.stem}.json, got {reason}; restore it, or delete "
        f"{file.stem}.* and reproduce them."
    )


def collect(
    results: Path,
    study: str,
    labels: Mapping[str, Mapping[str, Mapping[str, Any]]] | None = None,
    new_names: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Move what lies in files of its own into the study's files, and renew the labels of runs.

    Parameters
    ----------
    results, study : the folder, and the name of the study.
    labels : profile -> run -> its labels; a run without an entry keeps those that it has.
    new_names : profile -> run -> the name that it gets.
    """
    with exclusive(results):
        _collect(results, study, labels or {}, new_names or {})


def _collect(
    results: Path,
    study: str,
    labels: Mapping[str, Mapping[str, Mapping[str, Any]]],
    new_names: Mapping[str, Mapping[str, str]],
) -> None:
    loose = sorted((results / study).glob("*/*.json"))
    file = results / f"{study}.json"
    profiles = _profiles(file) if file.is_file() else {}
    if not loose and not any(new_names.values()) and not _relabelled(profiles, labels):
        return
    paths = {*loose}
    for profile, stored in profiles.items():
        paths.update(results / study / profile / f"{name}.json" for name in stored)
    files = StudyFiles()
    for path in sorted(paths):
        content = read(path)
        profile = path.parent.name
        if content["kind"] != RUN.kind:
            files.numbers[profile] = content
            continue
        before = profiles.get(profile, {}).get(path.stem, {}).get("labels", {})
        name = new_names.get(profile, {}).get(path.stem, path.stem)
        content = content if name == path.stem else _named(content, name)
        files.add(profile, content, dict(labels.get(profile, {}).get(name, before)))
    files.write(file, study)
    for path in loose:
        path.unlink(missing_ok=True)
    for folder in [*(results / study).glob("*"), results / study]:
        with suppress(OSError):  # it is not empty, or somebody else removed it
            folder.rmdir()


@dataclass
class StudyFiles:
    """What a study's files hold.

    Attributes
    ----------
    runs : what the JSON file says of each run.
    numbers : profile -> its quantities.
    curves : the rows of each run, for the table.
    models : the models that runs end with, by profile, run and field.
    """

    runs: list[Payload] = field(default_factory=list)
    numbers: Payload = field(default_factory=dict)
    curves: list[Payload] = field(default_factory=list)
    models: dict[str, Array] = field(default_factory=dict)

    def add(self, profile: str, content: Payload, labels: Payload) -> None:
        """Add a run with its labels."""
        name = content["name"]
        arrays = as_arrays(content)
        self.runs.append(_without_arrays(content, arrays, labels))
        curves = tables.Curves(
            content["seeds"], content["rounds"], arrays["metrics"], arrays["info"]
        )
        rows = tables.rows_of(curves)
        self.curves.append({"profile": profile, "run": name, "labels": labels, "rows": rows})
        for model in MODELS:
            if arrays[model] is not None:
                self.models[f"{profile}/{name}/{model}"] = tables.compact(arrays[model])

    def write(self, file: Path, study: str) -> None:
        """Write the files, the one of the runs last."""
        models = file.with_suffix(".npz")
        if self.curves:
            atomic_write(file.with_suffix(".parquet"), lambda to: tables.write(to, self.curves))
        if self.models:
            atomic_write(models, lambda to: np.savez_compressed(to, **self.models))  # type: ignore[arg-type]
        else:
            models.unlink(missing_ok=True)
        if self.numbers:
            numbers = {profile: content["numbers"] for profile, content in self.numbers.items()}
            table = spreadsheet.to_csv(numbers).encode()
            atomic_write(file.with_suffix(".csv"), lambda to: to.write(table))
        beside = {profile: without_numbers(content) for profile, content in self.numbers.items()}
        write_json(file, STUDY.sealed({"study": study, "runs": self.runs, "numbers": beside}))


def _named(content: Payload, name: str) -> Payload:
    """A run under another name."""
    plain = {key: _as_lists(value) for key, value in content.items() if key not in SEAL}
    return RUN.sealed({**plain, "name": name})


def _as_lists(value: Any) -> Any:
    """Arrays as lists, null for NaN, as a run in a file of its own has them."""
    if isinstance(value, dict):
        return {key: _as_lists(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return [[None if np.isnan(x) else x for x in row] for row in value.tolist()]
    return value


def without_numbers(content: Payload) -> Payload:
    """What a study's JSON file says of its quantities."""
    return {key: value for key, value in content.items() if key != "numbers"}


def without_digest(content: Payload) -> Payload:
    """What the digest of a file is of."""
    return {key: value for key, value in content.items() if key != "digest"}


def _relabelled(profiles: Mapping[str, Mapping[str, Payload]], labels: Mapping[str, Any]) -> bool:
    """Whether a collected run has other labels than it is to have."""
    return any(
        profiles.get(profile, {}).get(run, {}).get("labels", declared) != dict(declared)
        for profile, runs in labels.items()
        for run, declared in runs.items()
    )


def as_arrays(payload: Mapping[str, Any]) -> Payload:
    """The curves and models of a run as arrays; null is NaN."""
    arrays: Payload = {
        group: {name: np.array(rows, dtype=float) for name, rows in payload[group].items()}
        for group in CURVES
    }
    for group in MODELS:
        rows = payload[group]
        arrays[group] = None if rows is None else np.array(rows, dtype=float)
    return arrays


def _without_arrays(payload: Payload, arrays: Payload, labels: Mapping[str, Any]) -> Payload:
    """What a study's file says of a run."""
    run = {key: value for key, value in payload.items() if key not in CURVES + MODELS}
    return {
        **run,
        "labels": dict(labels),
        "curves": {group: list(payload[group]) for group in CURVES},
        "models": [group for group in MODELS if payload[group] is not None],
        "values": _fingerprint(arrays),
    }


def _study_file(path: Path) -> Path:
    return path.parents[1].with_suffix(".json")


def _archived(path: Path) -> Mapping[str, Payload]:
    """What the study's file holds of the profile of a path, by name, without curves."""
    file = _study_file(path)
    return _profiles(file).get(path.parent.name, {}) if file.is_file() else {}


@cached
def _profiles(file: Path) -> Mapping[str, Mapping[str, Payload]]:
    """The runs and the numbers in a study's file, by profile and name."""
    content = read_json(file, STUDY)
    profiles: dict[str, dict[str, Payload]] = {}
    for run in content["runs"]:
        profiles.setdefault(run["profile"], {})[run["name"]] = run
    for profile, numbers in content["numbers"].items():
        profiles.setdefault(profile, {})[NUMBERS.kind] = numbers
    return profiles


def _quantities(file: Path, profile: str) -> Payload:
    """The quantities of a profile as they are stored; one's own, to be changed at will."""
    return _copied(_all_quantities(file.with_suffix(".csv")).get(profile, {}))


@cached
def _all_quantities(file: Path) -> Mapping[str, Payload]:
    return _opened(file, lambda source: spreadsheet.from_csv(source.read().decode()))


@cached
def _table(file: Path) -> tables.Table:
    return _opened(file, tables.read)


@cached
def _models(file: Path) -> Mapping[str, Array]:
    def arrays(source: io.BytesIO) -> dict[str, Array]:
        with np.load(source) as archive:
            return dict(archive)

    return _opened(file, arrays)


def _opened(file: Path, read_from: Callable[[io.BytesIO], T]) -> T:
    """What a file holds; one sentence where it is missing or damaged."""
    try:
        return read_from(io.BytesIO(file.read_bytes()))
    except Exception as error:  # of the file, of zipfile, of zlib, of numpy or of pyarrow
        why = str(error).partition("\n")[0]
        raise ValueError(f"store: {file.name} must be whole, got {why}; restore it.") from None
