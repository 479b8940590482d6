"""Digests of source code, which tell whether a stored run was made by the code of today.

A digest covers the definitions that decide the numbers of a run: the classes of its algorithm and
of the algorithm's ingredients, the functions of its problem, and every function, class and constant
of our packages that these refer to, directly or not. Adding a compressor makes no run stale that
does not use it; changing a helper makes all runs stale that do.

Of every definition its own name and its canonical text count (see `papers.kit.canonical`), and the
texts of those that it names, which tells namesakes apart. The modules do not count: a definition
that is moved to another file, or imported under another name, is the same.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from fedlib.core import Problem
from fedlib.core.algorithm import Algorithm
from papers.kit.canonical import Meaning, Text, canonical
from papers.kit.seen import PACKAGES, recalled, written

#: The folder in which our packages lie side by side; one may not be there.
ROOT = Path(__file__).resolve().parents[2]
GONE = Text("gone", ())  # in place of a definition that is not there

CHECKS = "fedlib.checks"  # a call of one of its functions decides no number
#: Modules of the library that are not followed: how the loop is batched, what travels between
#: server and client, how arguments are checked. Tests hold these against the plain loop, and stored
#: prefixes are recomputed by the tests whatever has changed.
PLUMBING = frozenset(
    f"fedlib.{folder}{name}"
    for folder in ("", "core.")
    for name in ("types", "client", "federation", "protocols")
)


def roots_of(
    algorithm: Algorithm, problem: Problem, maker: Callable[[int], Problem] | None = None
) -> list[str]:
    """The definitions that a run starts from, as `package.module:name`, sorted.

    `maker` is what made the problem (data, split, start), a function or a `partial` of one.
    """
    return sorted({*roots_of_problem(problem), *own_roots(algorithm, maker)})


def roots_of_problem(problem: Problem) -> list[str]:
    """Those that only the problem tells, once it is made."""
    things = [problem.losses, problem.metrics, problem.gradient, problem.set, problem.simulator]
    return _named([*things, *_parts(problem.set), *(problem.pooled or ())])


def own_roots(algorithm: Algorithm, maker: Callable[[int], Problem] | None = None) -> list[str]:
    """Those of the roots that can be told without making the problem, which may need data."""
    return _named([*_parts(algorithm), getattr(maker, "func", maker)])


def _named(things: Iterable[Any]) -> list[str]:
    return sorted({name for thing in things if thing is not None if (name := _root(thing))})


def code_digest(roots: Sequence[str]) -> str:
    """SHA-256 over the names and texts of all definitions reached; a root that is gone counts."""
    return source().digest(tuple(roots))


def is_today(made: Iterable[tuple[tuple[str, ...], str]]) -> bool:
    """Whether some definitions, each with those they reach, have the digests that are given."""
    now = cache(source)

    def digest(roots: tuple[str, ...]) -> Any:
        return recalled("code", roots, lambda: now().digest(roots))

    return all(digest(roots) == code for roots, code in made)


def source() -> Source:
    """Our packages as they are now."""
    return _source(ROOT, tuple(written(ROOT / name) for name in PACKAGES))


@lru_cache(maxsize=4)
def _source(
    root: Path,
    state: tuple[Any, ...],  # noqa: ARG001 - part of the cache's key
) -> Source:
    return Source(root)


@dataclass(frozen=True)
class Module:
    """A parsed file: its definitions, its imports as `module:name` or `module`, and its stars."""

    name: str
    own: dict[str, list[ast.stmt]]
    imports: dict[str, str]
    stars: tuple[str, ...]


class Source:
    """The definitions of our packages in one folder, read as they are needed, each file once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.unknown: set[str] = set()  # names of ours that cannot be followed
        self._modules: dict[str, Module | None] = {}
        self._texts: dict[str, Text | None] = {}
        self._marks: dict[str, str] = {}
        self._digests: dict[tuple[str, ...], str] = {}

    def digest(self, roots: tuple[str, ...]) -> str:
        """The digest of all definitions reached from some roots."""
        if roots not in self._digests:
            whole = repr(sorted(set(self.reached(roots).values())))
            self._digests[roots] = hashlib.sha256(whole.encode()).hexdigest()[:16]
        return self._digests[roots]

    def reached(self, roots: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Per full name reached: own name, canonical text, and digests of what the text names."""
        found: dict[str, tuple[str, ...]] = {}
        waiting = list(roots)
        while waiting:
            name = waiting.pop()
            if name not in found:
                text = self.text(name) or GONE
                waiting += text.uses
                found[name] = (name.partition(":")[2], text.text, *map(self.mark, text.uses))
        return found

    def mark(self, full: str) -> str:
        """A short digest of the text of a definition."""
        if full not in self._marks:
            text = (self.text(full) or GONE).text
            self._marks[full] = hashlib.sha256(text.encode()).hexdigest()[:16]
        return self._marks[full]

    def text(self, full: str) -> Text | None:
        """The canonical text of a definition; None if it is gone."""
        if full not in self._texts:
            module, _, own = full.partition(":")
            held = self.module(module)
            body = held.own.get(own) if held else None
            self._texts[full] = self._canonical(held, body) if held and body else None
        return self._texts[full]

    def names(self) -> Iterator[str]:
        """The full names of all definitions of all files."""
        for path in sorted(p for package in PACKAGES for p in (self.root / package).rglob("*.py")):
            parts = path.relative_to(self.root).with_suffix("").parts
            module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            held = self.module(module)
            yield from (f"{module}:{own}" for own in (held.own if held else ()))

    def module(self, name: str) -> Module | None:
        """A file of ours, parsed; None if there is none."""
        if name not in self._modules:
            base = self.root.joinpath(*name.split("."))
            file = next(
                (f for f in (base / "__init__.py", base.with_suffix(".py")) if f.exists()), None
            )
            parsed = _parse(name, file) if file and name.split(".")[0] in PACKAGES else None
            self._modules[name] = parsed
        return self._modules[name]

    def _canonical(self, module: Module, body: list[ast.stmt]) -> Text:
        inside = [part for part in body if _defines(part)]
        known = {**module.imports, **{own: f"{module.name}:{own}" for own in module.own}}
        known |= _imports(_statements(inside))

        def find(names: Sequence[str]) -> Meaning | None:
            target = known.get(names[0]) or self._starred(module, names[0])
            return self._meaning(target, names) if target else None

        return canonical(body, find)

    def _meaning(self, target: str, names: Sequence[str]) -> Meaning:
        """What `names` stand for where the first one stands for `target`."""
        found = self._find(*target.split(":"))
        used = 1
        while _is_ours(found) and ":" not in found and used < len(names):
            found = self._find(found, names[used])
            used += 1
        if not _is_ours(found):
            return Meaning(".".join((found.replace(":", "."), *names[used:])), len(names))
        module, _, own = found.partition(":")
        if not own:  # a module as a value: what is used of it cannot be told
            self.unknown.add(module)
            return Meaning(module.rpartition(".")[2], used)
        checks = module.startswith(CHECKS)
        followed = not checks and module not in PLUMBING
        return Meaning(own, used, found if followed else None, checks)

    def _find(self, module: str, name: str = "") -> str:
        """The definition or module that `name` of a module stands for, through all re-exports."""
        held = self.module(module) if name and _is_ours(module) else None
        if not name or not _is_ours(module):
            return f"{module}.{name}".rstrip(".")
        if held and name in held.own:
            return f"{module}:{name}"
        target = held.imports.get(name) if held else None
        if target and target != f"{module}:{name}":  # else a folder that imports its own file
            return self._find(*target.split(":"))
        return (self._starred(held, name) if held else None) or f"{module}.{name}"

    def _starred(self, module: Module, name: str) -> str | None:
        """The definition that an `import *` of a module brings."""
        found = (self._find(star, name) for star in module.stars)
        return next((full for full in found if ":" in full), None)


def _is_ours(name: str) -> bool:
    return name.partition(":")[0].partition(".")[0] in PACKAGES


def _parts(value: Any) -> Iterator[Any]:
    """A record and the records in its fields and tuples."""
    if isinstance(value, tuple):
        for part in value:
            yield from _parts(part)
    elif is_dataclass(value):
        yield value
        for f in fields(value):
            yield from _parts(getattr(value, f.name))


def is_definition(thing: Any) -> bool:
    """Whether a function or a class stands at the top of a module of ours, under its own name."""
    root = _root(thing)
    return root is not None and root.partition(":")[2] == getattr(thing, "__qualname__", None)


def _root(thing: Any) -> str | None:
    """The top-level definition of ours that a function or an object comes from."""
    made_by = thing if hasattr(thing, "__qualname__") else type(thing)
    module = str(made_by.__module__)
    return f"{module}:{made_by.__qualname__.partition('.')[0]}" if _is_ours(module) else None


def _parse(name: str, path: Path) -> Module:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    outside = [*_statements(part for part in tree.body if not _defines(part))]
    stars = (n for n in outside if isinstance(n, ast.ImportFrom) and n.names[0].name == "*")
    return Module(name, _own(tree), _imports(outside), tuple(str(n.module) for n in stars))


def _statements(parts: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Some statements and all within them, without the expressions, which are most of a tree."""
    for part in parts:
        yield part
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from _statements(getattr(part, name, ()))


def _defines(node: ast.stmt) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.ClassDef))


def _own(tree: ast.Module) -> dict[str, list[ast.stmt]]:
    """Functions, classes and constants at the top level, with all that is said about each there."""
    found: dict[str, list[ast.stmt]] = {}
    for node in tree.body:
        names: list[str] = []
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names = [node.name]
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            parts = (part for target in targets for part in ast.walk(target))
            held = (part for part in parts if isinstance(part, ast.Name))
            names = [n.id for n in held if isinstance(n.ctx, ast.Store) or n.id in found]
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            to = node.value.func  # such as `f.register_vmap(...)`
            on = to.value if isinstance(to, ast.Attribute) else None
            names = [on.id] if isinstance(on, ast.Name) and on.id in found else []
        for name in names:
            if not name.startswith("__"):
                found.setdefault(name, []).append(node)
    return found


def _imports(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """What imported names stand for: `module:name`, or a module's name alone."""
    found: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            found |= {a.asname or a.name: f"{node.module}:{a.name}" for a in node.names}
        elif isinstance(node, ast.Import):
            for alias in node.names:
                whole, _, last = alias.name.rpartition(".")
                if alias.asname:
                    found[alias.asname] = f"{whole}:{last}" if whole else last
                else:
                    first = alias.name.partition(".")[0]
                    found[first] = first
    return found
