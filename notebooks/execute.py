"""Executes a notebook source with papermill and stamps the result.

    python notebooks/execute.py NAME|all --profile quick|full [-p name value ...] [--out PATH]

The source is ``notebooks/src/NAME.py``. Without ``--out`` it goes to ``notebooks/executed``
(full) or ``notebooks/quick`` (quick). The stamp makes two executions of one source comparable: no
random cell ids, no paths of this machine, and when it ran and what it took in one place only. A
notebook is written whole or not at all.
"""

from __future__ import annotations

import argparse
import datetime
import logging
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import active_children
from pathlib import Path

import jupytext
import matplotlib
import papermill
from jupyter_client.kernelspec import NoSuchKernel
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell
from parameters import (
    Parameters,
    check_device,
    check_parameters,
    declared_parameters,
    literal,
    placed,
    unknown,
)
from stamping import ROOT, NotebookError, stamp, write

SOURCES = ROOT / "notebooks" / "src"
FOLDERS = {"quick": ROOT / "notebooks" / "quick", "full": ROOT / "notebooks" / "executed"}
AFTER_STOP = "no notebook is half written"

#: Errors whose message is a sentence for the user; of any other the whole traceback is shown.
SENTENCES = ("ValueError", "TypeError", "OSError", "PermissionError", "Diverged", "DataError")


def read_source(name: str) -> NotebookNode:
    """The notebook of ``notebooks/src/NAME.py``, with one cell tagged ``parameters``."""
    if name not in source_names():
        raise NotebookError(unknown("execute", "notebook", name, source_names()))
    notebook = jupytext.read(SOURCES / f"{name}.py", fmt="py:percent")
    cells = [c for c in notebook.cells if "parameters" in c.metadata.get("tags", ())]
    if len(cells) != 1:  # with none papermill injects at the top, and the defaults then win
        raise NotebookError(
            f"{name}: exactly one cell must be tagged 'parameters', found {len(cells)}."
        )
    return notebook


def source_names() -> list[str]:
    """Names of all notebook sources."""
    return sorted(p.stem for p in SOURCES.glob("*.py"))


#: What a kernel is told: to end quietly. Who stops it interrupts it first, and its last answer may
#: not be quite out; it would log that as an error of its own. Errors of cells are no log.
KERNEL = ["--IPKernelApp.log_level=50"]

#: A last cell, which is not part of what is written: it leaves the run's numbers for `view.py`.
LEAVE = """if "study" in globals() and "numbers" in globals():
    from pathlib import Path
    from papers.kit.kept import keep
    keep(Path({folder!r}), study, traces, numbers)
"""


def execute(
    name: str, given: Parameters, *, pictures: bool = True, keep: Path | None = None
) -> NotebookNode:
    """Runs the source of ``name`` with the given parameters and returns the stamped notebook.

    Without ``pictures`` it holds none: the committed quick notebooks are there to be compared. What
    it computed is left in the folder ``keep``, if there is one.
    """
    notebook = read_source(name)
    check_parameters(name, notebook, given)
    profile = str(given.get("profile", declared_parameters(name, notebook)["profile"]))
    device = str({**declared_parameters(name, notebook), **given}.get("device", "cpu"))
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # repeatable, and kernels share few cores
    # pooch asks tqdm for a widget; without ipywidgets that is a warning in the first cell.
    os.environ.setdefault("PYTHONWARNINGS", "ignore:IProgress not found")
    matplotlib.get_configdir()  # where it cannot be written to, kernels inherit a temporary one
    if keep is not None:
        shutil.rmtree(keep, ignore_errors=True)
        folder = str(keep.resolve())
        notebook.cells.append(new_code_cell(LEAVE.format(folder=folder)))
    for cell in notebook.cells:
        cell.metadata.setdefault("tags", [])
    began, spent = time.perf_counter(), children_seconds()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # papermill's own, of its file handlers
        done = papermill.execute_notebook(
            notebook,
            str(Path(folder) / f"{name}.ipynb"),
            parameters=placed(name, notebook, given),
            kernel_name="python3",
            cwd=str(ROOT / "notebooks"),
            progress_bar=False,
            extra_arguments=KERNEL,
        )
    if keep is not None:
        done.cells.pop()
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
    from fedlib.run import resolve_device

    return resolve_device(device).type


def target(name: str, profile: str, out: str | None) -> Path:
    """Where the notebook goes, a place that can be written to; ``out`` is a file or a folder."""
    from papers.kit.commands import is_open

    if out is None and profile not in FOLDERS:
        raise NotebookError(f"{name}: profile {profile!r} has no folder; pass --out PATH.")
    path = Path(FOLDERS[profile] if out is None else out)
    if path.suffix and path.suffix != ".ipynb" and not path.is_dir():
        raise NotebookError(f"execute: --out must be a folder or end in .ipynb, got {out!r}.")
    if path.suffix != ".ipynb" or path.is_dir():
        path /= f"{name}.ipynb"
    if path.is_dir() or not is_open(path.parent):
        where = os.path.relpath(path)
        raise NotebookError(
            f"execute: --out must lead to a file in a folder that can be written to, got {where!r}."
        )
    return path


def produce(
    name: str, profile: str, given: Parameters, out: str | None, *, keep: bool = False
) -> str:
    """Executes and writes one notebook; returns the line to print."""
    path = target(name, profile, out)
    try:
        pictures, left = profile != "quick" or out is not None, path.with_suffix(".results")
        given = {"profile": profile, **given}
        write(execute(name, given, pictures=pictures, keep=left if keep else None), path)
    except papermill.PapermillExecutionError as error:  # does not survive the way between processes
        if error.ename in SENTENCES:  # the library said in one sentence what was wrong
            raise NotebookError(
                f"{name}: a cell failed, nothing was written: {error.evalue}"
            ) from None
        raise NotebookError(f"{name}: a cell failed, nothing was written.\n{error}") from None
    except (DeadKernelError, NoSuchKernel, CellTimeoutError) as error:
        why = str(error).partition("\n")[0].rstrip(".")
        raise NotebookError(f"{name}: the kernel failed, nothing was written: {why}.") from None
    return os.path.relpath(path)


class Worker:
    """What one of several processes knows: Ctrl-C stops its notebook, and it begins no other."""

    busy = stopped = False

    @classmethod
    def ready(cls) -> None:
        """What a process begins with."""
        signal.signal(signal.SIGINT, cls.stop)

    @classmethod
    def stop(cls, *_: object) -> None:
        """What a process does on Ctrl-C."""
        first, cls.stopped = not cls.stopped, True
        if cls.busy and first:  # while a kernel is shut down a second Ctrl-C changes nothing
            raise KeyboardInterrupt

    @classmethod
    def work(cls, name: str, profile: str, given: Parameters, out: str | None) -> str:
        """`produce`, unless the process has been stopped."""
        if cls.stopped:
            raise KeyboardInterrupt
        cls.busy = True
        try:
            return produce(name, profile, given, out)
        finally:
            cls.busy = False


def produce_all(
    names: list[str], profile: str, given: Parameters, options: argparse.Namespace
) -> Iterator[str]:
    """Executes several notebooks, ``options.jobs`` at a time, and yields the lines to print."""
    if options.jobs == 1 or len(names) == 1:
        keep = options.keep
        yield from (produce(name, profile, given, options.out, keep=keep) for name in names)
        return
    with ProcessPoolExecutor(max_workers=options.jobs, initializer=Worker.ready) as pool:
        try:
            work = [pool.submit(Worker.work, name, profile, given, options.out) for name in names]
            yield from (future.result() for future in work)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in active_children():
                os.kill(child.pid, signal.SIGINT)
            raise


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    from papers.kit.commands import Parser, count

    parser = Parser(prog="execute.py", description=__doc__.splitlines()[0])
    parser.add_argument("name", help="a notebook of notebooks/src, or all")
    parser.add_argument("--profile", default="quick", help="quick or full")
    parser.add_argument("-p", dest="parameters", nargs=2, action="append", default=[],
                        metavar=("NAME", "VALUE"), help="a parameter; may be repeated")  # fmt: skip
    parser.add_argument("--out", help="file (*.ipynb) or folder")
    parser.add_argument("--keep", action="store_true", help="leave the runs beside it: view.py")
    parser.add_argument("--jobs", type=count, default=1, help="notebooks at a time, with all")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Command line entry; an error is one sentence on stderr and exit status 1 or 2."""
    from papers.kit.commands import carried_out

    return carried_out(lambda: carry_out(parse(arguments)), "execute", AFTER_STOP)


def carry_out(options: argparse.Namespace) -> int:
    """Execute what a command line asks for."""
    logging.getLogger("papermill").setLevel(logging.WARNING)
    try:
        given = values_of(options)
        profile = str(given.pop("profile"))
        names = source_names() if options.name == "all" else [options.name]
        if len(names) > 1 and options.out and options.out.endswith(".ipynb"):
            raise NotebookError(f"execute: --out must be a folder with all, got {options.out!r}.")
        check_device(given)
        for name in names:  # refuse before the first kernel starts
            check_parameters(name, read_source(name), {"profile": profile, **given})
            target(name, profile, options.out)
        for path in produce_all(names, profile, given, options):
            print(f"wrote {path}", flush=True)
    except NotebookError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def values_of(options: argparse.Namespace) -> Parameters:
    """The parameters of a command line, each given once, and the profile, theirs or its own."""
    keys = [key for key, _ in options.parameters]
    if twice := {key for key in keys if keys.count(key) > 1}:
        named = ", ".join(sorted(twice))
        raise NotebookError(f"execute: parameter {named} must be given once, got it twice.")
    return {"profile": options.profile} | {key: literal(v) for key, v in options.parameters}


if __name__ == "__main__":
    sys.exit(main())
