"""Digests of source code, which tell whether a stored run was made by the code of today."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from fedlib.protocols import Algorithm
from fedlib.types import Problem

__all__ = ["code_digest", "modules_of"]

PACKAGE = Path(__file__).resolve().parent

#: What decides the numbers of every run, beside its algorithm and its problem. How the loop is
#: batched and recorded does not: tests hold it against the plain loop, and stored prefixes are
#: recomputed by the tests whatever has changed.
CORE = ("compress", "federation", "sampling", "split", "switching")


def modules_of(algorithm: Algorithm, problem: Problem) -> list[str]:
    """The modules of fedlib whose source decides what a run gives."""
    own = {type(algorithm).__module__, _module(problem.losses), _module(problem.metrics)}
    inside = {m.removeprefix("fedlib.") for m in own if m.startswith("fedlib.")}
    return sorted(inside | set(CORE))


def code_digest(modules: Sequence[str]) -> str:
    """SHA-256 over the syntax trees of some modules; comments and docstrings do not count."""
    whole = hashlib.sha256()
    for name in modules:
        path = PACKAGE.joinpath(*name.split(".")).with_suffix(".py")
        whole.update(_tree(path, path.stat().st_mtime_ns).encode() if path.exists() else b"gone")
    return whole.hexdigest()[:16]


def _module(function: Any) -> str:
    return str(getattr(function, "__module__", ""))


@lru_cache(maxsize=64)
def _tree(path: Path, modified: int) -> str:  # noqa: ARG001 - the time is part of the cache's key
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(tree)
