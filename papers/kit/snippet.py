"""A study's runs as a program of their own: the problem, an algorithm, its grid, the run.

The text is made from the specifications that the stored runs are keyed by, so that it cannot say
anything else than what was run; imports are those of the objects that it names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import partial
from importlib import import_module
from inspect import unwrap
from typing import Any

from papers.kit import store
from papers.kit.store import Spec

WIDTH = 88  # of a line: what the book's column shows
INDENT = "    "
MOST = 25  # lines, where leaving runs of the grid out can do it
SHOWN = 6  # runs of a grid that are written down


class Text:
    """A program under way: its lines, and the names that they need."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.needs: dict[str, set[str]] = {"fedlib": {"run"}}

    def whole(self) -> str:
        """Imports, the standard library's first, then the lines."""
        by_module = {
            module: f"from {module} import {', '.join(sorted(names))}"
            for module, names in sorted(self.needs.items())
        }
        own = [line for m, line in by_module.items() if m.partition(".")[0] in ("fedlib", "papers")]
        others = [line for line in by_module.values() if line not in own]
        return "\n".join([*others, *[""][: len(others)], *own, "", *self.lines])

    def named(self, thing: Any) -> str:
        """The name of a class or function, to be imported from the shortest public place."""
        thing = unwrap(thing)
        name, module = str(thing.__qualname__), thing.__module__
        for short in ("fedlib", *parents(module)):
            there: Any = getattr(import_module(short), name, None)
            if callable(there) and unwrap(there) is thing:
                module = short
                break
        self.needs.setdefault(module, set()).add(name)
        return name

    def code(self, value: Any, room: int = WIDTH) -> str:
        """A value as code: in one line if it fits into `room`, else an argument a line."""
        if isinstance(value, partial):
            given = [(None, value.func), *((None, x) for x in value.args)]
            return self.call(partial, [*given, *value.keywords.items()], room)
        if is_dataclass(value) and not isinstance(value, type):
            return self.call(type(value), list(changed(value)), room)
        if hasattr(value, "_asdict"):
            return self.call(type(value), list(value._asdict().items()), room)
        if isinstance(value, tuple):
            inner = ", ".join(self.code(x) for x in value)
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        if isinstance(value, float) and value in (float("inf"), -float("inf")):
            return f'float("{value}")'
        return self.named(value) if callable(value) else repr(value).replace("'", '"')

    def call(self, function: Any, given: Sequence[tuple[str | None, Any]], room: int) -> str:
        """A call with its arguments, each a name (None: by place) and a value."""
        head = self.named(function)
        names = ["" if name is None else f"{name}=" for name, _ in given]
        line = ", ".join(n + self.code(x, 10**6) for n, (_, x) in zip(names, given, strict=True))
        if len(line) + len(head) + 2 <= room:
            return f"{head}({line})"
        if len(line) + len(INDENT) <= WIDTH:
            return f"{head}(\n{INDENT}{line}\n)"
        inner = WIDTH - len(INDENT) - 1
        parts = [n + self.code(x, inner - len(n)) for n, (_, x) in zip(names, given, strict=True)]
        return f"{head}(\n" + "".join(f"{indented(part)},\n" for part in parts) + ")"

    def add(self, start: str, value: str) -> None:
        self.lines.append(start + value)


def snippet(specs: Mapping[str, Spec], name: str) -> str:
    """A program that makes a run of a study and those that advance with it, as one grid.

    Of a grid the named run and at most five others are written down, fewer where that makes more
    than 25 lines.

    Raises
    ------
    ValueError
        if there is no such run.
    """
    if name not in specs:
        raise ValueError(
            f"snippet: name must be a run such as {', '.join([*specs][:3])}, got {name!r}."
        )
    group = next(group for group in store.groups(specs) if name in group)
    others = [n for n in group if n != name][: SHOWN - 1]
    whole = _written(group, name, others)
    while others and whole.count("\n") >= MOST:
        others.pop()
        whole = _written(group, name, others)
    return whole


def _written(group: Mapping[str, Spec], name: str, others: Sequence[str]) -> str:
    """The program of one run and of some that advance with it."""
    text, first = Text(), group[name]
    problem = "problem"
    if isinstance(first.problem, partial):
        text.add("problem = ", text.code(first.problem, WIDTH - len("problem = ")))
    else:
        problem = text.named(first.problem)
    text.add("algorithm = ", text.code(first.algorithm, WIDTH - len("algorithm = ")))
    if others:
        _grid(text, name, first.algorithm, {n: group[n].algorithm for n in others})
    _run(text, first, problem, bool(others))
    return text.whole()


def _grid(text: Text, name: str, algorithm: Any, others: Mapping[str, Any]) -> None:
    """The algorithms of a grid: each of the others has something in the named one's place."""
    text.needs.setdefault("dataclasses", set()).add("replace")
    text.add("grid = {\n", f'{INDENT}"{name}": algorithm,')
    for other, one in others.items():
        given = [
            f"{f.name}={text.code(getattr(one, f.name), WIDTH - 2 * len(INDENT) - len(f.name) - 2)}"
            for f in fields(one)
            if getattr(one, f.name) != getattr(algorithm, f.name)
        ]
        line = f'"{other}": replace(algorithm, {", ".join(given)}),'
        if len(line) + len(INDENT) > WIDTH:
            inner = "".join(f"\n{indented(part)}," for part in given)
            line = f'"{other}": replace(\n{INDENT}algorithm,{inner}\n),'
        text.add("", indented(line))
    text.add("", "}")


def _run(text: Text, spec: Spec, problem: str, many: bool) -> None:
    given = {"rounds": str(spec.rounds), "seeds": seeds_code(spec.seeds)}
    if spec.evaluate_every != 1:
        given["evaluate_every"] = str(spec.evaluate_every)
    options = ", ".join(f"{k}={v}" for k, v in given.items())
    if many:
        text.add("traces = ", f"run([*grid.values()], {problem}, {options})")
        text.add("traces = ", "dict(zip(grid, traces, strict=True))")
    else:
        text.add("trace = ", f"run(algorithm, {problem}, {options})")


def changed(value: Any) -> Iterator[tuple[str, Any]]:
    """The fields of a dataclass that are not at their defaults."""
    for f in fields(value):
        mine = getattr(value, f.name)
        if f.init and mine != default_of(f):
            yield f.name, mine


def default_of(f: Field[Any]) -> Any:
    """A field's default; an object that equals nothing where there is none."""
    if f.default_factory is not MISSING:
        return f.default_factory()
    return object() if f.default is MISSING else f.default


def seeds_code(seeds: Sequence[int]) -> str:
    """Seeds as a range where they are one, else as a tuple."""
    if len(seeds) > 1 and list(seeds) == [*range(seeds[0], seeds[-1] + 1)]:
        return f"range({seeds[0]}, {seeds[-1] + 1})" if seeds[0] else f"range({len(seeds)})"
    return repr(tuple(seeds))


def indented(code: str) -> str:
    return "\n".join(INDENT + line for line in code.split("\n"))


def parents(module: str) -> list[str]:
    """The packages that a module is in, the largest first."""
    parts = module.split(".")
    return [".".join(parts[:i]) for i in range(2, len(parts))]
