"""The source files that a run was computed with: digests of their code, and which changed since.

Docstrings and comments are not code: an edited sentence changes no run. No test and no verdict
looks at source code: where a source file of a run has changed since, loading the run says so, and
nothing more.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fedlib.core import Problem, Trace
from fedlib.core.algorithm import Algorithm
from fedlib.provenance import ROOT
from papers.kit.archive import cached

PACKAGES = ("fedlib", "papers")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)
FEW = 3  # commits that a notice names


def sources_of(algorithm: Algorithm, maker: Callable[[int], Problem]) -> dict[str, str]:
    """Digests of the files that define an algorithm, its ingredients and a problem's maker.

    By path in the repository. Files outside our packages, such as a notebook, are left out.
    """
    files = {_file(thing) for thing in (*_parts(algorithm), getattr(maker, "func", maker))}
    return {path.relative_to(ROOT).as_posix(): code_digest(path) for path in sorted(files - {None})}


def changed(sources: Mapping[str, str]) -> list[str]:
    """The recorded files that are not there any more, or hold other code today."""
    paths = {name: ROOT / name for name in sources}
    return [n for n, p in paths.items() if not p.is_file() or code_digest(p) != sources[n]]


def notify(study: str, traces: Mapping[str, Trace]) -> None:
    """Say in one sentence which source files of loaded runs changed since; once a process."""
    made_by = {name: trace.provenance for name, trace in traces.items()}
    since = {name: changed(made.get("sources", {})) for name, made in made_by.items()}
    if files := dict.fromkeys(file for name in since for file in since[name]):
        runs = [name for name in since if since[name]]
        commits = [*dict.fromkeys(made_by[name]["commit"] for name in runs)]
        when = " or ".join(map(str, commits[:FEW])) + " or others" * (len(commits) > FEW)
        _say(
            f"{study}: {', '.join(files)} {'has' if len(files) == 1 else 'have'} changed since "
            f"{len(runs)} of {len(traces)} runs were stored at commit {when}; recompute=True "
            "computes them anew."
        )


@cached
def code_digest(path: Path) -> str:
    """The SHA-256 of a file's lines without docstrings, lines of comment and empty lines."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            first = node.body[0]
            for place in range(first.lineno - 1, first.end_lineno or first.lineno):
                lines[place] = ""
    code = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return hashlib.sha256("\n".join(code).encode()).hexdigest()


def _parts(value: Any) -> Iterator[Any]:
    """The classes and functions in a record, its fields and tuples."""
    if isinstance(value, tuple):
        for part in value:
            yield from _parts(part)
    elif is_dataclass(value):
        yield type(value)
        for f in fields(value):
            yield from _parts(getattr(value, f.name))
    elif callable(value):
        yield value if hasattr(value, "__qualname__") else type(value)


def _file(thing: Any) -> Any:
    """The file of our packages that defines a class or a function; None for others."""
    try:
        path = Path(inspect.getsourcefile(inspect.unwrap(thing)) or "").resolve()
    except (TypeError, OSError):  # built in, or of a notebook
        return None
    return path if any(path.is_relative_to(ROOT / package) for package in PACKAGES) else None


@cache
def _say(sentence: str) -> None:
    """Once a process; on a page as an output that comparisons of pages leave out."""
    ipython = sys.modules.get("IPython")
    if ipython is not None and ipython.get_ipython() is not None:
        from IPython.display import display

        notice = {"notice": True}
        display({"text/plain": sentence}, raw=True, metadata=notice)  # type: ignore[no-untyped-call]
    else:
        print(sentence, file=sys.stderr)
