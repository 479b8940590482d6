"""Whether a committed notebook is what an execution of its source left, without executing it.

`faults` holds it against its seal, its source and its record; what it shows is held against the
stored runs in `replay`. Every sentence says which notebook it is and what to run.
"""

from __future__ import annotations

import copy
import datetime
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from stamping import ABSOLUTE, ROOT, from_source, page_digest, source_digest, stamp_metadata, texts

FOLDERS = {"full": "executed", "quick": "quick"}
#: A formula in a plain output, where nothing typesets it.
LATEX = re.compile(r"\$\$|\\(?:frac|begin|sum|mathbb)\b")


def faults(notebook: NotebookNode, source: NotebookNode, name: str, profile: str) -> list[str]:
    """One sentence for everything that no execution of this source leaves."""
    where = f"{FOLDERS[profile]}/{name}"
    again = (
        f"`notebooks/execute.py {name} --profile {profile}` or `make notebooks` executes it again"
    )
    found = [broken_seal(notebook), *unlike_source(notebook, source)]
    found += [*unlike_record(notebook, source, name, profile), *bad_outputs(notebook, profile)]
    return [f"{where}: {fault}; {again}." for fault in found if fault]


def broken_seal(notebook: NotebookNode) -> str:
    """Whether a cell or an output was changed after the execution."""
    held = notebook.metadata.get("fedlib", {}).get("page")
    if held == page_digest(notebook):
        return ""
    return "its cells and outputs must agree with the digest in its metadata, and do not"


def unlike_source(notebook: NotebookNode, source: NotebookNode) -> Iterator[str]:
    """Cells that are not those of the source: their kind, text, tags and captions."""
    held, wanted = from_source(notebook), [prepared(cell) for cell in source.cells]
    if len(notebook.cells) != len(wanted) + 1:
        yield f"it has {len(notebook.cells)} cells, and its source {len(wanted)} and the parameters"
    for number, (one, other) in enumerate(zip(held, wanted, strict=False)):
        if shape(one) != shape(other):
            yield f"cell {number} is not that of its source"
            break
    if [c["id"] for c in notebook.cells] != [f"cell-{i:03d}" for i in range(len(notebook.cells))]:
        yield "its cells are not numbered"


def prepared(cell: NotebookNode) -> NotebookNode:
    """A cell of the source as the stamp leaves it."""
    cell = copy.deepcopy(cell)
    stamp_metadata(cell)
    return cell


def shape(cell: NotebookNode) -> tuple[Any, ...]:
    """All of a cell that comes from the source."""
    return cell.cell_type, cell.source, dict(cell.metadata)


def unlike_record(
    notebook: NotebookNode, source: NotebookNode, name: str, profile: str
) -> Iterator[str]:
    """What its metadata say of how it was executed."""
    record = notebook.metadata.get("fedlib", {})
    wanted = {
        "source": f"notebooks/src/{name}.py",
        "digest": source_digest(source),
        "profile": profile,
        "parameters": {"profile": profile},
    }
    for key, value in wanted.items():
        if record.get(key) != value:
            yield f"its {key} must be {value!r}, got {record.get(key)!r}"
    injected = [c for c in notebook.cells if "injected-parameters" in c.metadata.get("tags", ())]
    if [c.source for c in injected] != [f'# Parameters\nprofile = "{profile}"\n']:
        yield f"exactly one cell must set its parameters, to profile = {profile!r}"
    for package, version in pins().items():
        made_with = str(record.get("versions", {}).get(package)).partition("+")[0]
        if made_with != version:
            yield f"it must be executed with {package} {version}, the one that is pinned"
    yield unlike_ran(record.get("ran", {}))


def unlike_ran(ran: dict[str, Any]) -> str:
    """When it ran and what it took."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    try:
        date = datetime.date.fromisoformat(str(ran.get("date"))).isoformat()
    except ValueError:
        return f"the date of its execution must be a day, got {ran.get('date')!r}"
    if not "2026-01-01" <= date <= today:
        return f"the date of its execution must be past, got {date}"
    spent = [ran.get(key) for key in ("wall_s", "cpu_s")]
    if not all(isinstance(s, float) and 0 < s < 86400 for s in spent):
        return f"it must say how many seconds it took, got {spent}"
    return ""


def pins() -> dict[str, str]:
    """The pinned versions of the packages that a notebook records."""
    pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    found = re.findall(r"^(torch|numpy)==([\w.]+)", pinned, flags=re.M)
    return dict(found)


def bad_outputs(notebook: NotebookNode, profile: str) -> Iterator[str]:
    """Outputs that no page may show: errors, warnings, paths, formulas that nothing typesets."""
    for cell in (c for c in notebook.cells if c.cell_type == "code"):
        for output in cell.outputs:
            plain = "\n".join(
                texts(output.get("text", output.get("data", {}).get("text/plain", "")))
            )
            if output.output_type == "error" or output.get("name") == "stderr":
                yield f"{cell.id} shows an error or a warning"
            if ABSOLUTE.search("\n".join(texts(output))):
                yield f"{cell.id} shows a path of some machine"
            if LATEX.search(plain):
                yield f"{cell.id} shows a formula as it is typed"
            kinds = output.get("data", {})
            if profile == "quick" and any(
                k.startswith("image/") or k == "text/html" for k in kinds
            ):
                yield f"{cell.id} of a quick notebook holds a picture"


def read_faults(path: Path, source: NotebookNode) -> list[str]:
    """The same of a file, whose folder says the profile."""
    profile = next(k for k, v in FOLDERS.items() if v == path.parent.name)
    return faults(nbformat.read(path, as_version=4), source, path.stem, profile)


def seal_of(path: Path) -> str:
    """One sentence if the file's seal is broken: which page it is, and what to run."""
    fault = broken_seal(nbformat.read(path, as_version=4))
    where = f"{path.parent.name}/{path.stem}"
    return f"{where}: {fault}; `make notebooks` executes it again." if fault else ""
