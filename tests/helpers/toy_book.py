"""A small book with made-up results, built with the book's Sphinx extension."""

import json
import multiprocessing
import os
import sys
from pathlib import Path

from fedlib.core import files

BOOK = Path(__file__).resolve().parents[2] / "book"
#: A build is a process of its own; what all of them import is imported once, before they start.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    ["sphinx.cmd.build", "sphinx_book_theme", "myst_nb.sphinx_ext", "jupytext", "seaborn", "papers"]
)
CONF = """
import sys

sys.path.insert(0, {extension!r})
extensions = ["myst_nb", "fedbook"]
nb_execution_mode = "off"
exclude_patterns = ["out", "results"]
html_theme = "sphinx_book_theme"
html_static_path = [{static!r}]
myst_enable_extensions = ["dollarmath"]
numfig = True

from types import SimpleNamespace

import papers
from papers.kit.claims import Claim, PaperValue
from papers.kit.quantities import Quantities
from papers.kit.rules import Outcome, Rule, of
from papers.kit.study import Study


UNLABELLED = SimpleNamespace(labels={{}})


class Unjudged(Rule):
    def __call__(self, numbers):
        return Outcome("not judged", super().__call__(numbers).measured)


def claim(number, runs, bound=1.0, kind=Rule):
    return Claim(
        id=f"toy/C{{number}}", paper="W" if number < 3 else "ours", place="Section 4",
        wording="$f$ goes down", figure="curve" if number == 1 else "",
        rule=kind({{"small": of("gap") < bound}}), runs=runs,
    )


study = Study(
    name="toy", title="Toy", paper="W",
    profiles={{"quick": {{"rounds": 2}}, "full": {{"rounds": 30}}}},
    parameters={{"rounds": "rounds $T$"}},
    specs=lambda parameters: {{"old": UNLABELLED, "new": UNLABELLED}},
    derive=lambda traces, parameters: Quantities.of([], {{}}),
    claims=(claim(1, ("old",)), claim(2, (), kind=Unjudged), claim(3, ("new",), bound=0.1)),
    paper_values=(
        PaperValue("inside", "gap", 0.5, "0.5", "Table 1", rtol=0.0),
        PaperValue("near", "gap", 0.62, "0.62", "Table 1", rtol=0.3),
        PaperValue("far", "gap", 0.9, "0.9", "Table 1", rtol=0.1),
    ),
)
papers.STUDIES = {{"toy": study}}
"""
PROVENANCE = {
    "fedlib": "0.1.0", "commit": "0123456789ab", "dirty": True, "torch": "2.13.0",
    "numpy": "2.0.0", "python": "3.11.7", "cpu": "x86_64", "date": "2026-02-02",
    "device": "cpu", "threads": 1, "wall_s": 1.5,
}  # fmt: skip
WRONG = {"old": "", "new": "", "grid_3": "dead: f constant from round 2"}
NUMBERS = {
    "kind": "numbers",
    "numbers": {
        "gap": {
            "value": 0.512,
            "low": 0.4,
            "high": 0.6,
            "per_seed": [0.4, 0.6],
            "unit": "nats",
            "measure": "gap",
            "labels": {},
        }
    },
    "defaults": {},
    "health": WRONG,
    "runs": {},
    "provenance": PROVENANCE,
}


def stored_run(name="new"):
    config = {
        "algorithm": {}, "problem": {}, "rounds": 1, "seeds": [0, 1, 2], "evaluate_every": 1,
    }  # fmt: skip
    return {
        "kind": "run", "study": "toy", "profile": "full", "name": name,
        "key": files.digest({**config, "problem": None})[:16], "maker": None, "config": config,
        "rounds": [0, 1], "seeds": [0, 1, 2], "info": {},
        "bits": {"bits_up": 32.0, "bits_down": 32.0},
        "metrics": {"f": [[3.0, 1.0], [3.0, 2.0], [3.0, 1.5]]}, "final_w": None, "output_w": None,
        "provenance": PROVENANCE,
    }  # fmt: skip


def seal(path, content):
    content = {"schema": 1, **content}
    path.write_text(json.dumps({**content, "digest": files.digest(content)}), encoding="utf-8")


def prepare(folder, monkeypatch):
    """Writes the made-up results; returns what builds one page.

    That gives the exit status, the messages and the page.
    """
    stored = folder / "results" / "toy" / "full"
    stored.mkdir(parents=True)
    seal(stored / "numbers.json", NUMBERS)
    seal(stored / "old.json", stored_run("old"))
    seal(stored / "new.json", stored_run())
    (folder / "conf.py").write_text(
        CONF.format(extension=str(BOOK / "_ext"), static=str(BOOK / "_static")), encoding="utf-8"
    )
    monkeypatch.setenv("FEDLIB_RESULTS", str(folder / "results"))

    def make(text):
        (folder / "index.md").write_text(f"# Page\n\n{text}\n", encoding="utf-8")
        process = PROCESSES.Process(target=sphinx, args=(folder, dict(os.environ)))
        process.start()
        process.join()
        page = folder / "out" / "index.html"
        return (
            process.exitcode,
            (folder / "messages.txt").read_text(encoding="utf-8"),
            page.read_text(encoding="utf-8") if page.exists() else "",
        )

    return make


def notebook(*outputs_of_cells):
    """A notebook, one cell per (source, outputs)."""
    cells = [
        {"cell_type": "code", "source": source, "outputs": outputs, "metadata": {},
         "execution_count": 1, "id": f"cell-{number}"}
        for number, (source, outputs) in enumerate(outputs_of_cells)
    ]  # fmt: skip
    title = {"cell_type": "markdown", "source": "# Toy", "metadata": {}, "id": "title"}
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return json.dumps(
        {"cells": [title, *cells], "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    )


def output(**carried):
    """The output of a cell that shows a figure, with what goes along for the book."""
    html = (
        '<figure class="fed-figure"><img class="fig" alt="A curve." '
        'src="data:image/png;base64,iVBORw0KGgo="/></figure>'
    )
    metadata = {"fedlib": carried} if carried else {}
    return [{"output_type": "display_data", "metadata": metadata, "data": {"text/html": html}}]


def sphinx(folder, environment):
    """What the program of that name does, in a process that ends with it."""
    from sphinx.cmd.build import main

    os.chdir(folder)
    os.environ |= environment
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = open("messages.txt", "w", encoding="utf-8")  # noqa: SIM115
    sys.exit(main(["-W", "-n", "--keep-going", "-b", "html", ".", "out"]))
