"""Execute notebook sources with papermill, and clean what differs from run to run.

    python notebooks/execute.py NAME ...|all --profile quick|full [-p name value ...] [--out PATH]
    python notebooks/execute.py NAME ...|all --parameters

The source is `notebooks/src/NAME.py`. Without parameters of one's own the notebook goes to
`notebooks` (full), where it is committed, or to `_build/quick` (quick), and every check in it
must hold; with them it goes to `_build/runs`, under a name of its own, so that no run overwrites
another. With `--parameters` nothing is executed: the cells of parameters in the sources are written
anew from the parameters of their studies.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import hashlib
import json
import logging
import os
import re
import resource
import shlex
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib import metadata
from pathlib import Path

import jupytext
import matplotlib
import nbformat
import papermill
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "notebooks" / "src"
FOLDERS = {"quick": ROOT / "_build" / "quick", "full": ROOT / "notebooks"}
#: Errors whose message is a sentence for the user; of any other the whole traceback is shown.
SENTENCES = ("ValueError", "TypeError", "OSError", "PermissionError", "Diverged", "DataError")
#: A folder of some machine, in the middle of a text; URLs and relative paths do not match.
ABSOLUTE = re.compile(
    r"(?<![\w.:/~-])/(?:home|root|Users|tmp|opt|usr|var|work|mnt|private)/[^\s'\"<>]*"
)
PACKAGES = re.compile(r"(?<![^\s'\"])[^\s'\"]*/site-packages/")  # of whatever environment
CELL = re.compile(r"/\S*/ipykernel_\d+/\d+\.py")  # in a warning: the cell that it is of
ADDRESS = re.compile(r"\bat 0x[0-9a-f]{6,}")  # of an object whose type has no better text
FAILED = re.compile(r"^ *(.*): NO(?: \(.*\))?$", re.M)  # the line of `papers.kit.claims.check`
NUMBER = re.compile(r"\{result\}`([^`/]+)/([^`:]+):([^`]+)`")  # a stored number in a sentence

Parameters = dict[str, object]


class NotebookError(Exception):
    """A notebook that cannot be executed as asked; the message is one sentence."""


def source_names() -> list[str]:
    """Names of all notebook sources."""
    return sorted(p.stem for p in SOURCES.glob("*.py"))


def read_source(name: str) -> NotebookNode:
    """The notebook of `notebooks/src/NAME.py`, with one cell tagged `parameters`."""
    known("notebook", name, source_names())
    notebook = jupytext.read(SOURCES / f"{name}.py", fmt="py:percent")
    cells = [c for c in notebook.cells if "parameters" in tags(c)]
    if len(cells) != 1:  # with none papermill injects at the top, and the defaults then win
        raise NotebookError(f"{name}: exactly one cell must be tagged 'parameters'.")
    return notebook


def tags(cell: NotebookNode) -> list[str]:
    """The tags of a cell."""
    return list(cell.metadata.get("tags", ()))


def parameters_cell(notebook: NotebookNode) -> NotebookNode:
    """The cell tagged `parameters`."""
    return next(cell for cell in notebook.cells if "parameters" in tags(cell))


def declared_parameters(notebook: NotebookNode) -> Parameters:
    """The literals of the `parameters` cell: name -> default."""
    cell = parameters_cell(notebook)
    lines = [s for s in ast.parse(cell.source).body if isinstance(s, ast.Assign)]
    return {ast.unparse(s.targets[0]): ast.literal_eval(s.value) for s in lines}


def with_parameters(notebook: NotebookNode, given: Parameters) -> NotebookNode:
    """The notebook whose cell of parameters says the given values.

    A reader who opens the notebook finds one such cell, and an edit of it has effect.
    """
    cell = parameters_cell(notebook)
    lines = cell.source.splitlines()
    for statement in ast.parse(cell.source).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) in given:
            value = repr(given[ast.unparse(statement.targets[0])])
            number, end = statement.lineno - 1, statement.value.end_col_offset
            line = lines[number].encode()  # columns of the syntax tree count bytes
            before, after = line[: statement.value.col_offset], line[end:]
            lines[number] = before.decode() + value + after.decode()
    cell.source = "\n".join(lines)
    return notebook


def with_study_parameters(name: str) -> str:
    """The text of a study's source, its cell of parameters written from the study."""
    from papers import STUDIES
    from papers.kit.parameters_cell import renewed

    notebook = read_source(name)
    cell = parameters_cell(notebook)
    cell.source = renewed(cell.source, STUDIES[name])
    return str(jupytext.writes(notebook, "py:percent"))


def write_parameters(names: list[str]) -> None:
    """Write the cells of parameters of some studies' sources; NotebookError for another page."""
    from papers import STUDIES

    for name in names:
        known("study", name, [*STUDIES])
    for name in names:
        path = SOURCES / f"{name}.py"
        text = with_study_parameters(name)
        if text != path.read_text(encoding="utf-8"):
            path.write_text(text, encoding="utf-8")
            print(f"wrote {os.path.relpath(path)}")


def known(what: str, name: str, there: list[str]) -> None:
    """Refuse a name that is not there, with the nearest that is."""
    from papers.kit.parameters import nearest

    if name not in there:
        raise NotebookError(f"execute: there is no {what} {name!r}; {nearest(name, there)}.")


def execute(name: str, given: Parameters) -> NotebookNode:
    """The notebook with some parameters, executed and cleaned."""
    notebook = with_parameters(read_source(name), given)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # repeatable, and kernels share few cores
    os.environ.setdefault("PYTHONWARNINGS", "ignore:IProgress not found")
    matplotlib.get_configdir()  # where it cannot be written to, kernels inherit a temporary one
    began, spent = time.perf_counter(), children_seconds()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # papermill's own, of its file handlers
        done = papermill.execute_notebook(
            notebook,
            str(Path(folder) / f"{name}.ipynb"),
            kernel_name="python3",
            cwd=str(ROOT / "notebooks"),
            progress_bar=False,
            extra_arguments=["--IPKernelApp.log_level=50"],  # its last answer may not be quite out
        )
    made = cleaned(done, name, given)
    made.metadata["fedlib"]["ran"] = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "wall_s": round(time.perf_counter() - began, 1),
        "cpu_s": round(children_seconds() - spent, 1),
    }
    return made


def children_seconds() -> float:
    """CPU time of the processes that this one has started and that have ended: the kernels."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cleaned(notebook: NotebookNode, name: str, given: Parameters) -> NotebookNode:
    """The notebook without times, paths and the tools' metadata, and with numbers for its roles."""
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number:03d}"
        cell.metadata = NotebookNode({"tags": tags(cell)} if tags(cell) else {})
        if cell.cell_type == "markdown":
            cell.source = with_numbers(cell.source)
        if cell.cell_type == "code":
            cell.outputs = joined(o for o in map(relative, cell.outputs) if not is_progress(o))
            if found := ABSOLUTE.search("\n".join(texts(cell.outputs))):
                raise NotebookError(
                    f"{name}: an output shows the path {found.group()!r} of this machine; "
                    "print it relative to the repository."
                )
    versions = {package: metadata.version(package) for package in ("torch", "numpy")}
    notebook.metadata = NotebookNode(
        kernelspec={"display_name": "Python 3", "language": "python", "name": "python3"},
        language_info={"name": "python", "file_extension": ".py", "pygments_lexer": "ipython3"},
        fedlib={"source": f"notebooks/src/{name}.py", "parameters": given, "versions": versions},
    )
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return notebook


def with_numbers(text: str) -> str:
    """A text with the stored numbers in its sentences, as links that the book reads as roles.

    NotebookError for a number that is not stored.
    """
    from papers.kit import store

    def number(role: re.Match[str]) -> str:
        study, key, spec = role.groups()
        name, _, profile = study.partition("@")
        numbers = store.read_numbers(name, profile or "full")
        known(f"number of {study}", key, [str(stored) for stored in numbers])
        return f"[{numbers[key].value:{spec}}](result:{study}/{key}:{spec})"

    return NUMBER.sub(number, text)


def relative(value: object) -> object:
    """`value` without the repository's folder, the environment's, and addresses in memory."""
    if isinstance(value, str):
        text = value.replace(f"{ROOT}{os.sep}", "").replace(str(ROOT), ".")
        return ADDRESS.sub("at 0x0", PACKAGES.sub("", CELL.sub("cell", text)))
    if isinstance(value, dict):
        for key in value:
            value[key] = relative(value[key])
    elif isinstance(value, list):
        value[:] = [relative(item) for item in value]
    return value


def is_progress(output: NotebookNode) -> bool:
    """Whether an output is of a progress bar, or blank like the line that ends one."""
    return output.get("name") == "stderr" and ("%|" in output.text or not output.text.strip())


def joined(outputs: Iterable[NotebookNode]) -> list[NotebookNode]:
    """The outputs, each run of pieces of one stream as one: a progress bar had divided them."""
    whole: list[NotebookNode] = []
    for output in outputs:
        if whole and "name" in output and whole[-1].get("name") == output.name:
            whole[-1].text += output.text
        else:
            whole.append(output)
    return whole


def texts(outputs: list[NotebookNode]) -> list[str]:
    """What outputs show as text, encoded pictures left out."""
    data = [v for o in outputs for k, v in o.get("data", {}).items() if "image/" not in k]
    return [v if isinstance(v, str) else json.dumps(v) for v in data] + [
        o.get("text", "") for o in outputs
    ]


def failed_checks(notebook: NotebookNode) -> list[str]:
    """The labels of the checks that print NO in an executed notebook."""
    outputs = (o for cell in notebook.cells for o in cell.get("outputs", ()))
    return [label for o in outputs for label in FAILED.findall(o.get("text", ""))]


def page_digest(notebook: NotebookNode) -> str:
    """sha256 over the cells and their outputs, the first 16 digits: a changed page is noticed."""
    held = json.dumps(notebook.cells, sort_keys=True)
    return hashlib.sha256(held.encode()).hexdigest()[:16]


def target(name: str, profile: str, given: Parameters, out: str | None) -> Path:
    """Where the notebook goes; `out` is a file or a folder."""
    if out is None:
        if given:
            setting = json.dumps([profile, given], sort_keys=True)
            digest = hashlib.sha256(setting.encode()).hexdigest()
            return ROOT / "_build" / "runs" / f"{name}-{digest[:8]}.ipynb"
        known("profile", profile, [*FOLDERS])
        return FOLDERS[profile] / f"{name}.ipynb"
    return Path(out) if out.endswith(".ipynb") else Path(out) / f"{name}.ipynb"


def produce(name: str, *, profile: str, given: Parameters, out: str | None) -> str:
    """Execute and write one notebook, whole or not at all; the line to print.

    Raises
    ------
    NotebookError
        if a cell fails, or a check without parameters of one's own; then the notebook is written.
    """
    from fedlib.core.files import atomic_write

    path = target(name, profile, given, out)
    check_writable(path.parent)
    try:
        made = execute(name, {"profile": profile, **given})
    except papermill.PapermillExecutionError as error:  # does not survive the way between processes
        what = error.evalue if error.ename in SENTENCES else f"\n{error}"
        raise NotebookError(f"{name}: a cell failed, nothing was written: {what}") from None
    except (DeadKernelError, CellTimeoutError) as error:
        why = str(error).partition("\n")[0].rstrip(".")
        raise NotebookError(f"{name}: the kernel failed, nothing was written: {why}.") from None
    made.metadata["fedlib"]["page"] = page_digest(made)
    text = nbformat.writes(made) + "\n"
    atomic_write(path, lambda file: file.write(text.encode()))
    failed = [] if given else failed_checks(made)
    if failed:
        labels = ", ".join(repr(label) for label in failed)
        raise NotebookError(
            f"{name}: every check must hold in profile {profile!r}, got NO for {labels}; "
            f"see {os.path.relpath(path)}."
        )
    return f"wrote {os.path.relpath(path)}"


def check_writable(folder: Path) -> None:
    """Make a folder if it is not there; NotebookError if nothing can be written into it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise NotebookError(
            f"execute: {os.path.relpath(folder)} must be a folder that can be written to, "
            f"got {error.strerror!r}; name another with --out."
        ) from None


def count(text: str) -> int:
    """The type of an option that takes a whole number from 1 on."""
    if text.isdecimal() and int(text) >= 1:
        return int(text)
    raise argparse.ArgumentTypeError(f"must be a whole number, at least 1, got {text!r}")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    from papers.__main__ import Parser

    parser = Parser(prog="execute.py", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+", metavar="name",
                        help="notebooks of notebooks/src, or all")  # fmt: skip
    parser.add_argument(
        "--profile", default="quick", help="quick, full, or paper where there is one"
    )
    parser.add_argument("-p", dest="parameters", nargs=2, action="append", default=[],
                        metavar=("NAME", "VALUE"), help="a parameter; may be repeated")  # fmt: skip
    parser.add_argument("--out", help="file (*.ipynb) or folder")
    parser.add_argument("--jobs", type=count, default=1, help="notebooks at a time")
    parser.add_argument("--list", action="store_true", help="print the parameters and their values")
    parser.add_argument("--parameters", dest="write_parameters", action="store_true",
                        help="only write the sources' cells of parameters anew")  # fmt: skip
    parser.add_argument("--line", metavar="TEXT", help="arguments in one text, as make has them")
    words = [*(sys.argv[1:] if arguments is None else arguments)]
    if "--line" in words[:-1]:
        place = words.index("--line")
        try:
            words[place : place + 2] = shlex.split(words[place + 1])
        except ValueError as error:
            parser.error(f"{words[place + 1]!r} has {str(error).lower()}")
    return parser.parse_args(words)


def given_parameters(options: argparse.Namespace) -> Parameters:
    """The values of a command line by name; NotebookError for a name that is there twice."""
    from papers.kit.parameters import read

    given: Parameters = {}
    for name, text in options.parameters:
        value = read(text)
        if name in given:
            values = f"{given[name]!r} and {value!r}"
            raise NotebookError(f"execute: parameter {name} must be given once, got {values}.")
        given[name] = value
    return given


def attempt(name: str, *, profile: str, given: Parameters, out: str | None) -> bool:
    """Produce one notebook and print where it is, or print why not; whether all was well."""
    try:
        print(produce(name, profile=profile, given=given, out=out), flush=True)
    except NotebookError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return False
    return True


def checked_request(options: argparse.Namespace) -> tuple[list[str], str, Parameters]:
    """The names, the profile and the parameters that a command line asks for.

    Raises
    ------
    NotebookError
        for a name, a profile or a parameter that is not there.
    """
    names = source_names() if options.names == ["all"] else options.names
    given = given_parameters(options)
    profile = str(given.pop("profile", options.profile))
    for name in names:
        source = read_source(name)
        if options.out is None or profile != "paper":
            known("profile", profile, [*FOLDERS])
        for key in given:
            known(f"parameter of {name}", key, [*declared_parameters(source)])
    return names, profile, given


def carry_out(options: argparse.Namespace) -> int:
    """Do what a command line asks for; every name is checked before a kernel starts."""
    from papers import STUDIES

    logging.getLogger("papermill").setLevel(logging.WARNING)
    try:
        names, profile, given = checked_request(options)
        if options.write_parameters:
            write_parameters([*STUDIES] if options.names == ["all"] else names)
            return 0
    except NotebookError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if options.list:
        for name in names:
            print(parameters_cell(read_source(name)).source)
        return 0
    work = partial(attempt, profile=profile, given=given, out=options.out)
    if options.jobs == 1 or len(names) == 1:
        succeeded = [work(name) for name in names]
    else:
        with ProcessPoolExecutor(max_workers=options.jobs) as pool:
            succeeded = list(pool.map(work, names))
    return 0 if all(succeeded) else 1


def main(arguments: list[str] | None = None) -> int:
    """Command line entry; an error is one sentence on stderr and exit status 1 or 2."""
    from papers.__main__ import carried_out

    return carried_out(
        lambda: carry_out(parse(arguments)), "execute", "no notebook is half written"
    )


if __name__ == "__main__":
    sys.exit(main())
