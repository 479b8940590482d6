"""Whether a page is the notebook that was executed: its seal is checked when the book is built."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

from docutils import nodes
from fedbook_data import BookError, warn
from sphinx.application import Sphinx


def program(name: str) -> ModuleType:
    """A module beside the notebooks, where the programs are that execute them."""
    folder = str(Path(__file__).resolve().parents[2] / "notebooks")
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(name)


def check_seal(app: Sphinx, doctree: nodes.document) -> None:
    """Warns of a notebook whose cells or outputs were changed after its execution."""
    path = Path(app.env.doc2path(app.env.docname))
    if path.suffix != ".ipynb" or path.parent.name != "executed":
        return
    fault = program("checking").seal_of(path)
    if fault:
        warn(BookError(fault), "page", app.env.docname)


def setup(app: Sphinx) -> None:
    """Checks every notebook that is read."""
    app.connect("doctree-read", check_seal)
