"""The changes that `changed_pages.py` plants: each changes one thing in an executed notebook."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from PIL import Image, ImageDraw

ROOT = Path(__file__).resolve().parents[2]
Change = Callable[[NotebookNode], object]
PICTURE = re.compile(r'(class="fig-(?:light|dark)[^>]*base64,)([^"]+)')
FIGURE, TABLE, VERDICTS = "fed-figure", "<table", "reproduced</td>"


def outputs(notebook: NotebookNode) -> list[NotebookNode]:
    return [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs]


def cells(notebook: NotebookNode, kind: str = "code") -> list[NotebookNode]:
    """The cells of a kind that come from the source, without that of the parameters."""
    own = [c for c in notebook.cells if "remove-cell" not in c.metadata.get("tags", ())]
    return [c for c in own if c.cell_type == kind]


def shown(notebook: NotebookNode, mark: str, kind: str = "text/html") -> NotebookNode:
    """The first output whose content of a kind holds a mark."""
    return next(o for o in outputs(notebook) if mark in o.get("data", {}).get(kind, ""))


def edit(mark: str, old: str, new: Any, kind: str = "text/html") -> Change:
    """Replaces the first match of a pattern in the first output that holds a mark."""

    def change(notebook: NotebookNode) -> None:
        data = shown(notebook, mark, kind)["data"]
        data[kind] = re.sub(old, new, data[kind], count=1, flags=re.S)

    return change


def printed(old: str, new: str) -> Change:
    """Replaces the first match of a pattern in what is printed."""

    def change(notebook: NotebookNode) -> None:
        output = next(o for o in outputs(notebook) if o.get("name") == "stdout")
        output["text"] = re.sub(old, new, output["text"], count=1)

    return change


def record(key: str, value: object) -> Change:
    """Sets an entry of the stamp."""

    def change(notebook: NotebookNode) -> None:
        *path, last = key.split(".")
        target = notebook.metadata["fedlib"]
        for name in path:
            target = target[name]
        target[last] = value

    return change


def next_digit(match: re.Match[str]) -> str:
    return match[1] + str((int(match[2]) + 1) % 10)


def pictures(*which: int) -> Change:
    """Puts the light (0) or dark (1) picture of the last figure in the place of the first's."""

    def change(notebook: NotebookNode) -> None:
        figures = [o for o in outputs(notebook) if FIGURE in o.get("data", {}).get("text/html", "")]
        page, other = (f["data"]["text/html"] for f in (figures[0], figures[-1]))
        found, others = (list(PICTURE.finditer(p)) for p in (page, other))
        for number in which:
            page = page.replace(found[number][2], others[number][2])
        figures[0]["data"]["text/html"] = page

    return change


def blot(notebook: NotebookNode) -> None:
    """Paints a dot of eight pixels' width in both pictures of the first figure."""
    data = shown(notebook, FIGURE)["data"]
    data["text/html"] = PICTURE.sub(lambda m: m[1] + dotted(m[2]), data["text/html"])


def dotted(encoded: str) -> str:
    buffer = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(encoded))) as image:
        picture = image.convert("RGBA")
    ImageDraw.Draw(picture).ellipse((200, 150, 208, 158), fill="#2a7fbf")
    picture.save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def carried(kind: str, old: str, new: Any) -> Change:
    """Changes the CSV or SVG that a figure carries along."""

    def change(notebook: NotebookNode) -> None:
        from papers.kit import plot

        files = next(o for o in outputs(notebook) if "fedlib" in o.get("metadata", {}))["metadata"]
        text = plot.unpacked(files["fedlib"][kind]).decode()
        files["fedlib"][kind] = plot.packed(re.sub(old, new, text, count=1).encode())

    return change


def swap(notebook: NotebookNode) -> None:
    """Exchanges what the first and the last cell show."""
    showing = [c for c in notebook.cells if c.get("outputs")]
    one, other = showing[0], showing[-1]
    one["outputs"], other["outputs"] = other["outputs"], one["outputs"]


def other_page(notebook: NotebookNode) -> None:
    """Puts the page of another study in this one's place."""
    folder = {"full": "executed", "quick": "quick"}[notebook.metadata["fedlib"]["profile"]]
    other = nbformat.read(ROOT / "notebooks" / folder / "ssca_tradeoff.ipynb", as_version=4)
    notebook.clear()
    notebook.update(other)


def add(cell: NotebookNode) -> Change:
    return lambda notebook: notebook.cells.append(cell)


def last_shown(notebook: NotebookNode) -> NotebookNode:
    return [c for c in notebook.cells if c.get("outputs")][-1]


def source(kind: str) -> Change:
    """Changes one character of the source of the last cell of a kind."""

    def change(notebook: NotebookNode) -> None:
        cell = cells(notebook, kind)[-1]
        cell["source"] = cell.source[:-1] + ("," if cell.source[-1] != "," else ".")

    return change


#: Changes that every notebook can bear.
ANY: dict[str, Change] = {
    '"yes" to "NO"': printed("yes", "NO"),
    "a digit of what is printed": printed(r"(\D)(\d)", next_digit),
    "a printed line left out": printed(r".*\n", ""),
    "an output removed": lambda n: last_shown(n).outputs.pop(),
    "a warning in stderr": lambda n: last_shown(n).outputs.append(
        new_output("stream", name="stderr", text="RuntimeWarning: overflow encountered\n")
    ),
    "an error shown": lambda n: last_shown(n).outputs.append(
        new_output("error", ename="ValueError", evalue="lr", traceback=[])
    ),
    "a formula as it is typed": printed(r"\n", r"\n$$x \\\\le 1$$\n"),
    "a path of a machine": printed(r"\n", "\n/home/somebody/run.json\n"),
    "outputs of two cells exchanged": swap,
    "a cell removed": lambda n: n.cells.remove(cells(n)[-1]),
    "a cell added": add(new_markdown_cell("All of this was confirmed twice.", id="added")),
    "a code cell added": add(new_code_cell("lr = 3", id="added")),
    "the code of a cell": source("code"),
    "the prose of a cell": source("markdown"),
    "a cell's tags": lambda n: cells(n)[-1].metadata.update(tags=["remove-cell"]),
    "the page of another study": other_page,
    "the digest of the source": record("digest", "0123456789abcdef"),
    "the parameters": record("parameters", {"profile": "full", "seeds": [0]}),
    "the profile": record("profile", "paper"),
    "the version of torch": record("versions.torch", "2.12.0"),
    "an execution in the future": record("ran.date", "2126-11-22"),
    "the seconds that it took": record("ran.cpu_s", 1.0),
}
#: Of a study's page, which is drawn and tabled from stored runs.
STUDY: dict[str, Change] = {
    "a digit of a table": edit("late f", r"(<td>0\.03)(\d)", next_digit),
    "an end of an interval": edit("late f", r"(<td>[^<]*\[[\d.]*)(\d)", next_digit),
    "a verdict": edit(VERDICTS, "<td>(partly[^<]*|reproduced|undecided)<", "<td>not reproduced<"),
    "a verdict's reason": edit(VERDICTS, r"(<td>reproduced</td>\s*<td>)", r"\1one part fails"),
    "the paper's value": edit("ours [95 % interval]", r"(<td>)(\d)", next_digit),
    "agreement with the paper": edit("ours [95 % interval]", "<td>differs<", "<td>agrees<"),
    "the health of the runs": edit("not healthy", r"(<td>\d*)(\d)", next_digit),
    "a line of a table left out": edit("late f", r"<tr>\s*<th>.*?</tr>", ""),
    "a heading of a table": edit("late f", "late f", "best f"),
    "the picture of light pages": pictures(0),
    "the picture of dark pages": pictures(1),
    "both pictures": pictures(0, 1),
    "a dot in both pictures": blot,
    "a caption": edit(FIGURE, "<figcaption>", "<figcaption>Nearly "),
    "what a picture shows, in words": edit(FIGURE, 'alt="', 'alt="No '),
}
#: Of a page whose own code draws.
DRAWN: dict[str, Change] = {
    "the CSV": carried("csv", r"(\d\.\d)(\d)", next_digit),
    "a row of the CSV left out": carried("csv", r"\n.*\n", "\n"),
    "a curve of the SVG": carried("svg", r"(L )(\d)", next_digit),
    "a word of the SVG": carried("svg", r"(<text[^>]*>)", r"\1not "),
    "a dot in both pictures": blot,
    "a caption": edit(FIGURE, "<figcaption>", "<figcaption>Nearly "),
}
#: What is not compared on another kind of processor than the page's: numbers, all that is drawn.
COMPUTED = {
    *("the CSV", "a row of the CSV left out", "a curve of the SVG", "a word of the SVG"),
    *("a dot in both pictures", "a digit of a table"),
}
#: Of a quick notebook.
QUICK: dict[str, Change] = {
    "a picture in a quick notebook": lambda n: (
        outputs(n)[-1].setdefault("data", {}).update({"image/png": "iVBORw0KGgo="})
    )
}
#: Of a quick notebook with tables as plain text, whose last digits may differ.
QUICK_TABLE: dict[str, Change] = {
    "a digit of a table": edit("late f", r"(\D0\.0)(\d)", next_digit, "text/plain"),
    "a heading of a table": edit("late f", "late f", "best f", "text/plain"),
    "a verdict": edit("fedsgm/C1", "not judged", "reproduced", "text/plain"),
}
