"""A notebook that was run again as a page of the book, with the numbers of that very run.

    python notebooks/view.py NAME [--folder FOLDER]

It reads `NAME.ipynb` and what `execute.py --keep` left beside it in a folder, `_build/notebooks` if
none is named, and writes `NAME.html` beside them. Links to other pages lead to the book under
`_build/html` if it is built.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import warnings
from functools import partial
from pathlib import Path

from stamping import ROOT, NotebookError

BUILT = ROOT / "_build" / "html"
OTHER_PAGE = re.compile(r"\]\((?:\.\./\.\./)?([\w/]+)\.(md|ipynb)(#[\w-]+)?\)")
FORWARD = '<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={to}">\n'
QUIET = (  # what a page alone cannot know
    "ref", "myst.*", "toc.*", "bibtex.*", "fedbook.*", "app.*", "image.*", "config.*", "proof.*",
)  # fmt: skip


def view(name: str, folder: Path) -> Path:
    """Builds the page; where it is."""
    notebook = folder / f"{name}.ipynb"
    if not notebook.is_file():
        raise NotebookError(
            f"view: {name} must have been executed into {os.path.relpath(folder)}, it is not "
            f"there; run `make notebook NAME={name} VIEW=html`."
        )
    place = folder / f"{name}.page"
    shutil.rmtree(place, ignore_errors=True)
    results(place / "results", folder / f"{name}.results")
    page = source(place / "source", place / "html", notebook)
    build(place / "source", place / "html")
    entry = folder / f"{name}.html"
    entry.write_text(FORWARD.format(to=f"{name}.page/html/{page}.html"), encoding="utf-8")
    return entry


def results(folder: Path, kept: Path) -> None:
    """A folder of results: those of the run where there are any, the stored ones elsewhere."""
    from papers.kit.store import results_dir

    folder.mkdir(parents=True)
    own = {path.name: path for path in kept.iterdir()} if kept.is_dir() else {}
    others = {p.name: p for p in results_dir().iterdir() if p.stem not in own}
    for path in {**others, **own}.values():
        (folder / path.name).symlink_to(path.resolve())
    os.environ["FEDLIB_RESULTS"] = str(folder)


def source(folder: Path, out: Path, notebook: Path) -> str:
    """The sources of a book of one page and its references; the name of the page."""
    page = f"notebooks/executed/{notebook.stem}"
    (folder / page).parent.mkdir(parents=True)
    (folder / "book").symlink_to(ROOT / "book")
    (folder / "notebooks" / "src").symlink_to(ROOT / "notebooks" / "src")
    toc = {"format": "jb-book", "root": page, "chapters": [{"file": "book/references"}]}
    (folder / "_toc.yml").write_text(json.dumps(toc), encoding="utf-8")
    way = os.path.relpath(BUILT, (out / page).parent)
    held = json.loads(notebook.read_text(encoding="utf-8"))
    for cell in held["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = OTHER_PAGE.sub(partial(elsewhere, way), "".join(cell["source"]))
    (folder / f"{page}.ipynb").write_text(json.dumps(held), encoding="utf-8")
    return page


def elsewhere(way: str, link: re.Match[str]) -> str:
    """A link to another page of the book: to the built one, or none if there is none."""
    path, kind, anchor = link.groups()
    page = f"{path}.html" if kind == "md" else f"notebooks/executed/{path.split('/')[-1]}.html"
    if not (BUILT / page).is_file():
        return "]{.nowhere}"
    return f"]({way}/{page}{anchor or ''})"


def build(folder: Path, out: Path) -> None:
    """Sphinx, with the book's own configuration."""
    from jupyter_book.config import get_final_config
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace, patch_docutils

    sys.path.insert(0, str(ROOT / "book" / "_ext"))
    config, _ = get_final_config(
        user_yaml=ROOT / "_config.yml",
        sourcedir=folder,
        cli_config={"latex_individualpages": False},
        use_external_toc=True,
    )
    config |= {
        "external_toc_path": str(folder / "_toc.yml"),
        "exclude_patterns": [],
        "fedbook_view": True,
        "suppress_warnings": list(QUIET),
        "nitpicky": False,
    }
    if (BUILT / "objects.inv").is_file():
        config["extensions"] = [*config["extensions"], "sphinx.ext.intersphinx"]
        book = (os.path.relpath(BUILT, out), str(BUILT / "objects.inv"))
        config["intersphinx_mapping"] = {"book": book}
    with patch_docutils(str(folder)), docutils_namespace(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of packages that look at torch's modules
        app = Sphinx(
            str(folder), None, str(out), str(out.with_name(".doctrees")), "html",
            confoverrides=config, status=None, freshenv=True,
        )  # fmt: skip
        app.build()


def main(arguments: list[str] | None = None) -> int:
    """Command line entry."""
    from papers.kit.commands import Parser, carried_out

    parser = Parser(prog="view.py", description=__doc__.splitlines()[0])
    parser.add_argument("name", help="a notebook that was executed with --keep")
    parser.add_argument("--folder", default=ROOT / "_build" / "notebooks", help="where it lies")

    def carry_out(given: argparse.Namespace) -> int:
        try:
            print(f"open {os.path.relpath(view(given.name, Path(given.folder)))}")
        except NotebookError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        return 0

    return carried_out(lambda: carry_out(parser.parse_args(arguments)), "view", "nothing was shown")


if __name__ == "__main__":
    sys.exit(main())
