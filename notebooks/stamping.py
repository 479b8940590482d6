"""The stamp: what makes two executions of one notebook comparable, and its writing to disk.

It drops times and the tools' metadata, numbers the cells, hides the cell that sets the profile,
makes paths relative to the repository, and keeps parameters, versions and the source's digest. What
is written is sealed: a digest over all cells and outputs tells when one of them was changed since.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import nbformat
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[1]
# A folder of some machine, in the middle of a text; URLs and relative paths do not match.
ABSOLUTE = re.compile(
    r"(?<![\w.:/~-])/(?:home|root|Users|tmp|opt|usr|var|work|mnt|private)/[^\s'\"<>]*"
)
ADDRESS = re.compile(r"\bat 0x[0-9a-f]{6,}")  # of an object whose type has no better text
PROGRESS = re.compile(r"\d+%\|.*\|")  # a line of a progress bar
LOCAL_METADATA = ("papermill", "execution", "jupytext")


class NotebookError(Exception):
    """A notebook that cannot be executed as asked; the message is one sentence."""


def source_digest(notebook: NotebookNode) -> str:
    """sha256 over the code cells of a source, the first 16 digits."""
    code = "\0".join(source_code(notebook))
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def source_code(notebook: NotebookNode) -> list[str]:
    """The code cells that come from the source."""
    return [c.source for c in from_source(notebook) if c.cell_type == "code"]


def from_source(notebook: NotebookNode) -> list[NotebookNode]:
    """The cells that come from the source: all but the one that papermill injects."""
    tags = (c.metadata.get("tags", ()) for c in notebook.cells)
    return [c for c, t in zip(notebook.cells, tags, strict=True) if "injected-parameters" not in t]


def page_digest(notebook: NotebookNode) -> str:
    """sha256 over all that an executed notebook holds, but for this digest; the first 16 digits."""
    record = {k: v for k, v in notebook.metadata.get("fedlib", {}).items() if k != "page"}
    held = {"cells": notebook.cells, "metadata": {**notebook.metadata, "fedlib": record}}
    content = json.dumps(held, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def stamp(
    notebook: NotebookNode, name: str, profile: str, given: Mapping[str, object], *, pictures: bool
) -> NotebookNode:
    """Removes what differs from run to run and writes one metadata key of ours."""
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number:03d}"
        stamp_metadata(cell)
        if cell.cell_type == "code":
            cell.outputs = stamped_outputs(name, cell, images=pictures)
    versions = {package: metadata.version(package) for package in ("torch", "numpy")}
    notebook.metadata = NotebookNode(
        kernelspec={"display_name": "Python 3", "language": "python", "name": "python3"},
        language_info={"name": "python", "file_extension": ".py", "pygments_lexer": "ipython3"},
        fedlib={
            "source": f"notebooks/src/{name}.py",
            "digest": source_digest(notebook),
            "profile": profile,
            "parameters": dict(given),
            "versions": {"python": platform.python_version(), **versions},
            "processor": processor(),
        },
    )
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return notebook


def processor() -> str:
    """The kind of processor: another one adds in another order, and a long run ends elsewhere."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        text = ""
    name = re.search(r"^model name\s*: (.+)$", text, flags=re.M)
    wide = re.search(r"^flags\s*:.* avx512f\b", text, flags=re.M)
    asked = os.environ.get("ATEN_CPU_CAPABILITY", "avx512" if wide else "")
    return f"{name[1] if name else platform.machine()} {asked}".strip()


def stamp_metadata(cell: NotebookNode) -> None:
    """Drops the tools' metadata; hides what papermill injects, unless it says more than a profile.

    The parameters of the source are shown: with them what a page shows runs when it is pasted.
    """
    for key in LOCAL_METADATA:
        cell.metadata.pop(key, None)
    tags = list(cell.metadata.pop("tags", ()))
    more = len(re.findall(r"^\w+ =", cell.source, flags=re.M)) > 1
    if "injected-parameters" in tags and not more and "remove-cell" not in tags:
        tags.append("remove-cell")
    if tags:
        cell.metadata["tags"] = tags


def stamped_outputs(name: str, cell: NotebookNode, *, images: bool) -> list[NotebookNode]:
    """The outputs with paths relative to the repository; without pictures if not ``images``."""
    kept: list[NotebookNode] = []
    for output in cell.outputs:
        if is_progress(output):
            continue
        if kept and output.get("name") and output.get("name") == kept[-1].get("name"):
            kept[-1]["text"] += relative(output)["text"]  # a stream comes in pieces, by chance
            continue
        data = output.get("data")
        if data is not None and not images:
            output.get("metadata", {}).pop("fedlib", None)  # a figure's files go with its picture
            for kind in [k for k in data if k.startswith("image/") or k == "text/html"]:
                del data[kind]
            if not data:
                continue
        kept.append(relative(output))
    found = ABSOLUTE.search("\n".join(texts(kept)))
    if found:
        raise NotebookError(
            f"{name}: an output shows the path {found.group()!r} of this machine; "
            f"print it relative to the repository."
        )
    return kept


def is_progress(output: NotebookNode) -> bool:
    """Whether an output is a progress bar and nothing else: for those who wait, not for readers."""
    lines = re.split(r"[\r\n]+", output.get("text", ""))
    bars = (PROGRESS.search(line) for line in lines if line.strip())
    return output.get("name") == "stderr" and all(bars)


def relative(value: object) -> object:
    """``value`` with the repository's own folder and addresses in memory cut off from its texts."""
    if isinstance(value, str):
        shown = value.replace(f"{ROOT}{os.sep}", "").replace(str(ROOT), ".")
        return ADDRESS.sub("at 0x0", shown)
    if isinstance(value, dict):
        for key in value:
            value[key] = relative(value[key])
    elif isinstance(value, list):
        value[:] = [relative(item) for item in value]
    return value


def texts(value: object) -> list[str]:
    """All texts inside nested lists and dictionaries, encoded pictures left out."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        items = [v for k, v in value.items() if k not in ("image/png", "image/jpeg")]
        return [text for item in items for text in texts(item)]
    return [text for item in value for text in texts(item)] if isinstance(value, list) else []


def write(notebook: NotebookNode, path: Path) -> None:
    """Seals the notebook and writes it, whole or not at all."""
    from fedlib.core.files import atomic_write

    notebook.metadata["fedlib"]["page"] = page_digest(notebook)
    nbformat.validate(notebook)
    text = nbformat.writes(notebook) + "\n"
    atomic_write(path, lambda file: file.write(text.encode()))
