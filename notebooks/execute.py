"""Executes a notebook source with papermill and stamps the result.

    python notebooks/execute.py NAME|all --profile quick|full [-p name value ...] [--out PATH]

The source is ``notebooks/src/NAME.py``. Without ``--out`` it goes to ``notebooks/executed``
(full) or ``notebooks/quick`` (quick). The stamp makes two executions of one source comparable: no
random cell ids, no paths of this machine, and when it ran and what it took in one place only. A
notebook is written whole or not at all.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import logging
import os
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import jupytext
import papermill
from nbformat import NotebookNode
from stamping import ROOT, NotebookError, stamp, write

SOURCES = ROOT / "notebooks" / "src"
FOLDERS = {"quick": ROOT / "notebooks" / "quick", "full": ROOT / "notebooks" / "executed"}
Parameters = dict[str, object]

#: Errors whose message is a sentence for the user; of any other the whole traceback is shown.
SENTENCES = ("ValueError", "TypeError", "OSError", "PermissionError", "Diverged", "DataError")


def read_source(name: str) -> NotebookNode:
    """The notebook of ``notebooks/src/NAME.py``, with one cell tagged ``parameters``."""
    path = SOURCES / f"{name}.py"
    if not path.is_file():
        known = ", ".join(source_names()) or "none"
        raise NotebookError(f"execute: no notebook is named {name!r}; known names: {known}.")
    notebook = jupytext.read(path, fmt="py:percent")
    cells = [c for c in notebook.cells if "parameters" in c.metadata.get("tags", ())]
    if len(cells) != 1:  # with none papermill injects at the top, and the defaults then win
        raise NotebookError(
            f"{name}: exactly one cell must be tagged 'parameters', found {len(cells)}."
        )
    return notebook


def source_names() -> list[str]:
    """Names of all notebook sources."""
    return sorted(p.stem for p in SOURCES.glob("*.py"))


def declared_parameters(name: str, notebook: NotebookNode) -> dict[str, object]:
    """The literals of the ``parameters`` cell: name -> default."""
    (cell,) = (c for c in notebook.cells if "parameters" in c.metadata.get("tags", ()))
    declared = {}
    for statement in ast.parse(cell.source).body:
        if isinstance(statement, ast.Assign):
            (target,) = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            target = statement.target
        else:
            raise NotebookError(f"{name}: the parameters cell may hold assignments only.")
        declared[ast.unparse(target)] = ast.literal_eval(statement.value)  # type: ignore[arg-type]
    return declared


def profiles_of(name: str) -> dict[str, Parameters]:
    """The study's profiles with their values; a note has quick and full, without values."""
    from papers import STUDIES

    if name in STUDIES:
        return {profile: dict(values) for profile, values in STUDIES[name].profiles.items()}
    return {"quick": {}, "full": {}}


def check_parameters(name: str, notebook: NotebookNode, given: Parameters) -> None:
    """Refuses a name that the parameters cell does not have and a value of another kind."""
    declared, profiles = declared_parameters(name, notebook), profiles_of(name)
    for key, value in given.items():
        if key not in declared:
            known = ", ".join(declared)
            raise NotebookError(f"{name}: there is no parameter {key!r}; known names: {known}.")
        if key == "profile" and value not in profiles:
            known = ", ".join(profiles)
            raise NotebookError(f"{name}: there is no profile {value!r}; known names: {known}.")
        default = declared[key]
        if default is None:  # None means the profile's own value, which then shows the kind
            default = profiles.get(str(given.get("profile", declared.get("profile"))), {}).get(key)
        if not same_kind(value, default):
            kind = type(default).__name__
            raise NotebookError(f"{name}: parameter {key!r} must be of kind {kind}, got {value!r}.")


def same_kind(value: object, default: object) -> bool:
    """Whether ``value`` may stand where ``default`` stands (a whole number also for a float)."""
    if value is None or default is None:
        return True
    if isinstance(default, list | tuple | range):
        return isinstance(value, list | tuple | int) and not isinstance(value, bool)
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    if isinstance(default, int | float):  # seeds=5 may also be given as a list of seeds
        return isinstance(value, int | list) or (
            isinstance(value, float) and isinstance(default, float)
        )
    return isinstance(value, type(default))


def execute(name: str, given: Parameters, *, pictures: bool = True) -> NotebookNode:
    """Runs the source of ``name`` with the given parameters and returns the stamped notebook.

    Without ``pictures`` it holds none: the committed quick notebooks are there to be compared.
    """
    notebook = read_source(name)
    check_parameters(name, notebook, given)
    profile = str(given.get("profile", declared_parameters(name, notebook)["profile"]))
    device = str({**declared_parameters(name, notebook), **given}.get("device", "cpu"))
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # repeatable, and kernels share few cores
    # pooch asks tqdm for a widget; without ipywidgets that is a warning in the first cell.
    os.environ.setdefault("PYTHONWARNINGS", "ignore:IProgress not found")
    for cell in notebook.cells:
        cell.metadata.setdefault("tags", [])
    began, spent = time.perf_counter(), children_seconds()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # papermill's own, of its file handlers
        done = papermill.execute_notebook(
            notebook,
            str(Path(folder) / f"{name}.ipynb"),
            parameters=given,
            kernel_name="python3",
            cwd=str(ROOT / "notebooks"),
            progress_bar=False,
        )
    made = stamp(done, name, profile, given, pictures=pictures)
    made.metadata["fedlib"]["ran"] = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "device": resolved(device),
        "wall_s": round(time.perf_counter() - began, 1),
        "cpu_s": round(children_seconds() - spent, 1),
    }
    return made


def children_seconds() -> float:
    """CPU time of the processes that this one has started and that have ended: the kernels."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def resolved(device: str) -> str:
    """Where cells compute whose parameter `device` has this value."""
    from fedlib.core.run import resolve_device

    return resolve_device(device).type


def literal(text: str) -> object:
    """A value from the command line: true, false, none, a number, a list, else the text itself."""
    words: dict[str, object] = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def target(name: str, profile: str, out: str | None) -> Path:
    """Where the notebook goes; ``out`` may be a file or a folder."""
    if out is None:
        if profile not in FOLDERS:
            raise NotebookError(f"{name}: profile {profile!r} has no folder; pass --out PATH.")
        return FOLDERS[profile] / f"{name}.ipynb"
    return Path(out) if out.endswith(".ipynb") else Path(out) / f"{name}.ipynb"


def produce(name: str, profile: str, given: Parameters, out: str | None) -> str:
    """Executes and writes one notebook; returns the line to print."""
    path = target(name, profile, out)
    try:
        pictures = profile != "quick" or out is not None
        write(execute(name, {"profile": profile, **given}, pictures=pictures), path)
    except papermill.PapermillExecutionError as error:  # does not survive the way between processes
        if error.ename in SENTENCES:  # the library said in one sentence what was wrong
            raise NotebookError(
                f"{name}: a cell failed, nothing was written: {error.evalue}"
            ) from None
        raise NotebookError(f"{name}: a cell failed, nothing was written.\n{error}") from None
    return os.path.relpath(path)


def produce_all(
    names: list[str], profile: str, given: Parameters, options: argparse.Namespace
) -> Iterator[str]:
    """Executes several notebooks, ``options.jobs`` at a time, and yields the lines to print."""
    if options.jobs == 1 or len(names) == 1:
        yield from (produce(name, profile, given, options.out) for name in names)
        return
    with ProcessPoolExecutor(max_workers=options.jobs) as pool:
        work = [pool.submit(produce, name, profile, given, options.out) for name in names]
        yield from (future.result() for future in work)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="execute.py", description=__doc__.splitlines()[0])
    parser.add_argument("name", help="a notebook of notebooks/src, or all")
    parser.add_argument("--profile", default="quick", help="quick or full")
    parser.add_argument("-p", dest="parameters", nargs=2, action="append", default=[],
                        metavar=("NAME", "VALUE"), help="a parameter; may be repeated")  # fmt: skip
    parser.add_argument("--out", help="file (*.ipynb) or folder")
    parser.add_argument("--jobs", type=int, default=1, help="notebooks at a time, with all")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Command line entry; an error is one sentence on stderr and exit status 1."""
    options = parse(arguments)
    logging.getLogger("papermill").setLevel(logging.WARNING)
    given = {key: literal(value) for key, value in options.parameters}
    profile = str(given.pop("profile", options.profile))
    names = source_names() if options.name == "all" else [options.name]
    try:
        for name in names:  # refuse before the first kernel starts
            check_parameters(name, read_source(name), {"profile": profile, **given})
        for path in produce_all(names, profile, given, options):
            print(f"wrote {path}", flush=True)
    except NotebookError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
