"""Digests of source code, which tell whether a stored run was made by the code of today.

A digest covers the definitions that decide the numbers of a run: the classes of its algorithm and
of the algorithm's ingredients, the functions of its problem, and every function, class and constant
of the library that these refer to, directly or not. Adding a compressor makes no run stale that
does not use it; changing a helper makes all runs stale that do.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from fedlib.protocols import Algorithm
from fedlib.types import Problem

__all__ = ["code_digest", "definitions", "roots_of"]

PACKAGE = Path(__file__).resolve().parent

#: Not followed: how the loop is batched, what travels between server and client, how arguments are
#: checked. Tests hold these against the plain loop, and stored prefixes are recomputed by the tests
#: whatever has changed.
PLUMBING = frozenset({"types", "checks", "client", "federation", "protocols"})


def roots_of(
    algorithm: Algorithm, problem: Problem, maker: Callable[[int], Problem] | None = None
) -> list[str]:
    """The definitions that a run starts from, as `module:name`, sorted.

    `maker` is what made the problem (data, split, start), a function or a `partial` of one.
    """
    things = [*_parts(algorithm), problem.losses, problem.metrics, problem.gradient, problem.set]
    things += _parts(problem.set)
    things += [*(problem.pooled or ()), problem.simulator, getattr(maker, "func", maker)]
    named = {_root(thing) for thing in things if thing is not None}
    return sorted(name for name in named if name)


def code_digest(roots: Sequence[str]) -> str:
    """SHA-256 over the syntax trees of all definitions reached from some roots.

    Comments and docstrings do not count; a root that is gone does.
    """
    whole = hashlib.sha256()
    for name in sorted(definitions(roots)):
        module, _, own = name.partition(":")
        whole.update(f"{name} {_module(module)[0].get(own, 'gone')}".encode())
    return whole.hexdigest()[:16]


def definitions(roots: Sequence[str]) -> set[str]:
    """All `module:name` reached from some roots, themselves included."""
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            module, _, own = name.partition(":")
            waiting += filter(_defined, _module(module)[1].get(own, ()))
    return found


def _defined(name: str) -> bool:
    module, _, own = name.partition(":")
    return own in _module(module)[0]


def _parts(value: Any) -> Iterator[Any]:
    """A record and the records in its fields and tuples."""
    if isinstance(value, tuple):
        for part in value:
            yield from _parts(part)
    elif is_dataclass(value):
        yield value
        for f in fields(value):
            yield from _parts(getattr(value, f.name))


def _root(thing: Any) -> str | None:
    """The top-level definition of the library that a function or an object comes from."""
    made_by = thing if hasattr(thing, "__qualname__") else type(thing)
    module = str(made_by.__module__)
    if not module.startswith("fedlib."):
        return None
    return f"{module.removeprefix('fedlib.')}:{made_by.__qualname__.partition('.')[0]}"


def _module(name: str) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Per top-level name of a module: its syntax tree as text, and the definitions it refers to."""
    path = PACKAGE.joinpath(*name.split(".")).with_suffix(".py")
    if not path.exists():
        path = PACKAGE.joinpath(*name.split("."), "__init__.py")
    return _read(name, path, path.stat().st_mtime_ns) if path.exists() else ({}, {})


@lru_cache(maxsize=256)
def _read(
    name: str,
    path: Path,
    modified: int,  # noqa: ARG001 - part of the cache's key
) -> tuple[dict[str, str], dict[str, list[str]]]:
    tree = ast.parse(path.read_text())
    _drop_docstrings(tree)
    known = {**_imported(tree), **{own: f"{name}:{own}" for own in _own(tree)}}
    text: dict[str, str] = {}
    uses: dict[str, list[str]] = {}
    for own, node in _own(tree).items():
        text[own] = ast.dump(node)
        uses[own] = sorted(
            {d for d in _references(node, known) if _followed(d)} - {f"{name}:{own}"}
        )
    for alias, target in _imported(tree).items():  # a package that re-exports
        if ":" in target and _followed(target):
            text.setdefault(alias, target)
            uses.setdefault(alias, [target])
    return text, uses


def _own(tree: ast.Module) -> dict[str, ast.stmt]:
    """Functions, classes and constants at the top level."""
    found: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for part in ast.walk(target):
                    if isinstance(part, ast.Name) and not part.id.startswith("__"):
                        found[part.id] = node
    return found


def _imported(tree: ast.Module) -> dict[str, str]:
    """Per imported name: `module:name` of the library, or `module` for a module of it."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "fedlib":
            inside = str(node.module).removeprefix("fedlib").lstrip(".")
            for alias in node.names:
                dotted = f"{inside}.{alias.name}".lstrip(".")
                path = PACKAGE.joinpath(*dotted.split("."))
                module = path.with_suffix(".py").exists() or path.is_dir()
                found[alias.asname or alias.name] = dotted if module else f"{inside}:{alias.name}"
    return found


def _references(node: ast.AST, known: dict[str, str]) -> Iterator[str]:
    """The definitions that a piece of code names: `name`, or `module.name`."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and part.id in known:
            target = known[part.id]
            # a package may re-export a function under the name of the module that defines it
            yield target if ":" in target else f"{target}:{part.id}"
        elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            module = known.get(part.value.id, "")
            if module and ":" not in module:
                yield f"{module}:{part.attr}"


def _followed(definition: str) -> bool:
    return definition.partition(":")[0] not in PLUMBING


def _drop_docstrings(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:] or [ast.Pass()]
