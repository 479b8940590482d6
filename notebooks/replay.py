"""Runs the cells of committed notebooks again and says where these show something else.

    python notebooks/replay.py NAME|all [--jobs N]

For studies, whose pages load stored runs, so that tables and texts must be equal. The cells are
those of the source; they run in this process, without a kernel, and a figure is drawn for light
pages only (that of dark pages is held against it).
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

import nbformat
from comparing import PICTURE, pixels, themes_differ, unlike
from execute import FOLDERS, read_source, source_names
from nbformat import NotebookNode
from nbformat.v4 import new_output
from parameters import profiles_of
from stamping import ROOT, NotebookError, from_source, stamped_outputs

Outputs = dict[int, list[NotebookNode]]


def made_again(name: str) -> Outputs:
    """Number of a code cell of the source -> its outputs, from running all of them here.

    Without those that need a data set which is not on this machine, and what builds on them.
    """
    here, source, found = shell(), read_source(name), dict[int, list[NotebookNode]]()
    results: list[NotebookNode] = []
    here.display_trap.hook = lambda value: results.extend(last_value(here, value))
    with from_stored_runs(here):
        for number, cell in enumerate(source.cells):
            if cell.cell_type == "code":
                results.clear()
                caught = run_cell(
                    here, name, cell, lacking=len(found) < number_of_code(source, number)
                )
                if caught is None:
                    continue
                shown = [] if cell.source.rstrip().endswith(";") else results
                found[number] = stamped_outputs(
                    name, NotebookNode(outputs=[*caught, *shown]), images=True
                )
            if "parameters" in cell.metadata.get("tags", ()):
                here.user_ns["profile"] = "full"
    return found


@contextmanager
def from_stored_runs(here: Any) -> Iterator[None]:
    """Studies load their runs, which needs no data set, and figures are for light pages alone."""
    from papers.kit import plot
    from papers.kit.study import Study

    kept = plot.STYLES, Study.compute, sys.modules["__main__"]
    plot.STYLES, sys.modules["__main__"] = {"light": plot.STYLES["light"]}, here.user_module
    Study.compute = lambda self, profile="full", **_: self.load(profile)  # type: ignore[assignment]
    try:
        yield
    finally:
        plot.STYLES, Study.compute, sys.modules["__main__"] = kept  # type: ignore[method-assign]


def shell() -> Any:
    """The one shell of this process; a table in it looks as it does in a kernel."""
    import pandas as pd
    from ipykernel.zmqshell import ZMQInteractiveShell

    program = sys.modules["__main__"]
    os.chdir(ROOT / "notebooks")
    warnings.filterwarnings("ignore", "IProgress not found")
    pd.set_option("display.max_columns", 20)  # pandas' own, where there is a kernel
    found = ZMQInteractiveShell.instance()
    found.reset(new_session=False)
    found.showtraceback = lambda *_, **__: None  # there is no kernel to send it through
    sys.modules["__main__"] = program  # the first shell puts its own there
    return found


def number_of_code(source: NotebookNode, number: int) -> int:
    """How many code cells stand before one."""
    return sum(cell.cell_type == "code" for cell in source.cells[:number])


def run_cell(
    here: Any, name: str, cell: NotebookNode, *, lacking: bool
) -> list[NotebookNode] | None:
    """Runs one cell; what it printed and displayed, or None if its data set is not here.

    Where cells before are `lacking`, so may be names that they would have given.
    """
    from IPython.utils.capture import capture_output

    from fedlib.data import DataError

    with capture_output() as caught:
        ran = here.run_cell(cell.source)
    if isinstance(ran.error_in_exec, DataError) or (
        lacking and isinstance(ran.error_in_exec, NameError)
    ):
        print(f"{name}: a cell is not checked here: {ran.error_in_exec}", flush=True)
        return None
    if not ran.success:
        error = ran.error_before_exec or ran.error_in_exec
        raise NotebookError(f"{name}: a cell failed when run again: {error}")
    streams = {"stdout": caught.stdout, "stderr": caught.stderr}
    printed = [new_output("stream", name=k, text=v) for k, v in streams.items() if v]
    return printed + [
        new_output("display_data", data=shown.data, metadata=shown.metadata or {})
        for shown in caught.outputs
    ]


def last_value(here: Any, value: object) -> list[NotebookNode]:
    """The last value of a cell, as a kernel shows it; nothing for None."""
    if value is None:
        return []
    data, metadata = here.display_formatter.format(value)
    return [new_output("execute_result", data=data, metadata=metadata)] if data else []


def differences(notebook: NotebookNode, made: Outputs) -> Iterator[str]:
    """Where a committed notebook shows other things than its cells do now."""
    cells = from_source(notebook)
    for number, outputs in made.items():
        if number >= len(cells) or cells[number].cell_type != "code":
            yield f"cell {number} of the source is missing"
            return
        shown = cells[number].outputs
        found = unlike(light(shown), outputs) or dark_unlike(shown)
        if found:
            yield f"cell {number}, `{cells[number].source.splitlines()[-1].strip()[:50]}`: {found}"


def light(outputs: Sequence[NotebookNode]) -> list[NotebookNode]:
    """The same outputs, the figures without their picture for dark pages."""
    found = [nbformat.from_dict(output) for output in outputs]
    for output in found:
        page = output.get("data", {}).get("text/html", "")
        if "fed-figure" in page:
            head, *images = page.split("<img ")
            kept = [i if 'class="fig-dark' not in i else i.partition("/>")[2] for i in images]
            marks = ["" if 'class="fig-dark' in i else "<img " for i in images]
            output["data"] = dict(output["data"]) | {
                "text/html": head + "".join(m + k for m, k in zip(marks, kept, strict=True))
            }
    return found


def dark_unlike(outputs: Sequence[NotebookNode]) -> str:
    """Whether a figure for dark pages is another one than that for light pages."""
    for output in outputs:
        page = output.get("data", {}).get("text/html", "")
        if "fed-figure" in page:
            pictures = [pixels(found) for found in PICTURE.findall(page)]
            if len(pictures) != 2 or themes_differ(*pictures):
                return "the pictures for light and for dark pages are not of one figure"
    return ""


def replayed(name: str) -> list[str]:
    """One sentence for each cell of a study's committed page that shows something else now."""
    notebook = nbformat.read(FOLDERS["full"] / f"{name}.ipynb", as_version=4)
    again = f"find out why, or `notebooks/execute.py {name} --profile full` makes it anew"
    return [
        f"{FOLDERS['full'].name}/{name}: {found}; {again}."
        for found in differences(notebook, made_again(name))
    ]


def chosen(name: str) -> list[str]:
    """The studies that are asked for."""
    from papers import STUDIES

    known = [one for one in source_names() if one in STUDIES and profiles_of(one)["full"]]
    if name not in ("all", *known):
        names = ", ".join(["all", *known])
        raise NotebookError(f"replay: no study is named {name!r}; known names: {names}.")
    return known if name == "all" else [name]


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="replay.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", help="a study, or all")
    parser.add_argument("--jobs", type=int, default=1, help="notebooks at a time")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Command line entry; exit status 1 where something differs."""
    options = parse(arguments)
    try:
        names = chosen(options.name)
        with ProcessPoolExecutor(max_workers=options.jobs) as pool:
            work = [pool.submit(replayed, name) for name in names]
            found = [sentence for future in work for sentence in future.result()]
    except NotebookError as error:
        found = [str(error)]
    for sentence in found:
        print(f"error: {sentence}", file=sys.stderr)
    if not found:
        print(f"{len(names)} notebooks show what their cells show now: {', '.join(names)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
