"""The canonical text of a piece of source code: what decides the numbers that it gives, no more.

A digest of code covers what decides numbers. Left out are, therefore: comments, docstrings and
formatting; annotations (of a class's fields only that and in which order they exist, and whether
they are fields at all, because dataclasses and named tuples are made of that); imports, since every
imported name is written as what it stands for; and statements that can only refuse arguments, for a
run that was stored passed them. These are calls of the functions of `checks`, and an `if` that does
no more than raise a ValueError or TypeError, outside of `try`, where raising decides what comes
next. A condition that assigns stays. A `__post_init__` that is empty then is left out, unless it
could hide that of a base. No module of our own is named anywhere.

The text does not depend on the version of Python: it has the classes of the syntax tree, their
fields by name, nothing that is empty, and constants in ASCII; pieces of f-strings are joined.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

#: Fields that are never written: they say nothing, or nothing about numbers.
LEFT_OUT = frozenset({"ctx", "type_comment", "kind", "annotation", "returns", "simple"})
#: Annotations that make an entry of a class another thing than a field.
NO_FIELDS = frozenset({"ClassVar", "InitVar", "KW_ONLY"})
REFUSALS = frozenset({"ValueError", "TypeError"})
NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
NAMING = (*NESTED[:2], ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)
ACTIVE = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)


class Meaning(NamedTuple):
    """What a dotted name stands for, of which its first `used` parts are.

    `definition` is its full name if it is one of ours; `checks` whether it only checks arguments.
    """

    text: str
    used: int
    definition: str | None = None
    checks: bool = False


class Text(NamedTuple):
    """The canonical text, and the definitions of ours that it names, in order of appearance."""

    text: str
    uses: tuple[str, ...]


#: From the parts of a dotted name; None for a name that a module neither imports nor defines.
Find = Callable[[Sequence[str]], Meaning | None]


def canonical(statements: Sequence[ast.stmt], find: Find) -> Text:
    """The canonical text of statements at the top level of a module."""
    writer = _Writer(find)
    return Text(writer.body(statements, frozenset()), tuple(writer.uses))


class _Writer:
    """Writes syntax trees; `hidden` are the names that functions around a place bind."""

    def __init__(self, find: Find) -> None:
        self.find = find
        self.uses: list[str] = []
        self.tries = 0

    def write(self, node: object, hidden: frozenset[str]) -> str:
        if isinstance(node, list):
            return f"[{', '.join(self.write(part, hidden) for part in node)}]"
        if not isinstance(node, ast.AST):
            return _constant(node)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self.name(node, hidden)
        if isinstance(node, ast.Constant):
            return f"Constant({_constant(node.value)})"
        inner = hidden
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            inner = hidden | _bound_by(node)
        elif isinstance(node, COMPREHENSIONS):
            return self.comprehension(node, hidden)
        elif isinstance(node, ast.JoinedStr):
            node = ast.JoinedStr(values=_joined(node.values))
        parts = [
            f"{field}={self.field(node, field, inner if field == 'body' else hidden)}"
            for field in _written(node._fields)
            if getattr(node, field, None) not in (None, [])
        ]
        return f"{type(node).__name__}({', '.join(part for part in parts if part[-3:] != '=[]')})"

    def field(self, node: ast.AST, field: str, hidden: frozenset[str]) -> str:
        value = getattr(node, field)
        if not (isinstance(value, list) and isinstance(value[0], ast.stmt)):
            empty = isinstance(value, ast.JoinedStr) and not _joined(value.values)
            return "[]" if empty and field == "format_spec" else self.write(value, hidden)
        tries = isinstance(node, (ast.Try, ast.TryStar)) and field == "body"
        self.tries += tries
        text = self.body(value, hidden, node if isinstance(node, ast.ClassDef) else None)
        self.tries -= tries
        return text

    def body(
        self, statements: Iterable[ast.stmt], hidden: frozenset[str], of: ast.ClassDef | None = None
    ) -> str:
        """A list of statements without those that decide nothing."""
        kept = []
        for part in statements:
            if isinstance(part, ast.AnnAssign) and of is not None:
                kind = _kind(part.annotation)
                value = "" if part.value is None else f", value={self.write(part.value, hidden)}"
                kept.append(f"Field({self.write(part.target, hidden)}{kind}{value})")
            elif isinstance(part, ast.AnnAssign) and part.value is not None:
                plain = ast.Assign(targets=[part.target], value=part.value)
                kept.append(self.write(plain, hidden))
            elif not self.is_idle(part, hidden, of):
                kept.append(self.write(part, hidden))
        return f"[{', '.join(kept)}]"

    def is_idle(self, node: ast.stmt, hidden: frozenset[str], of: ast.ClassDef | None) -> bool:
        """Whether a statement decides no number."""
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.Pass)):
            return True
        if isinstance(node, ast.AnnAssign):
            return node.value is None
        if isinstance(node, ast.Expr):
            return isinstance(node.value, ast.Constant) or self.is_check(node.value, hidden)
        if isinstance(node, ast.If):
            if node.orelse or _acts(node.test):
                return False
            refuses = not self.tries and _refuses(node.body)
            return refuses or all(self.is_idle(part, hidden, None) for part in node.body)
        if isinstance(node, ast.FunctionDef) and node.name == "__post_init__":
            inner = hidden | _bound_by(node)
            idle = all(self.is_idle(part, inner, None) for part in node.body)
            return idle and of is not None and not of.bases and not node.decorator_list
        return False

    def is_check(self, node: ast.expr, hidden: frozenset[str]) -> bool:
        if not isinstance(node, ast.Call) or _acts(node) or self.tries:
            return False
        names = _dotted(node.func)
        found = self.find(names) if names and names[0] not in hidden else None
        return found is not None and found.checks

    def name(self, node: ast.Name | ast.Attribute, hidden: frozenset[str]) -> str:
        names = _dotted(node)
        found = self.find(names) if names and names[0] not in hidden else None
        if found is None or isinstance(node.ctx, ast.Store):
            if isinstance(node, ast.Name):
                return f"Name({node.id})"
            return f"Attribute({self.write(node.value, hidden)}, {node.attr})"
        if found.definition is not None:
            self.uses.append(found.definition)
        text = f"Known({found.text})"
        for attribute in names[found.used :]:
            text = f"Attribute({text}, {attribute})"
        return text

    def comprehension(self, node: Comprehension, hidden: frozenset[str]) -> str:
        """Its first iterable is outside of its scope."""
        first, *others = node.generators
        inner = hidden | set(_stored(_within([g.target for g in (first, *others)])))
        source = self.write(first.iter, hidden)
        rest = [first.target, first.ifs, others]
        rest += [getattr(node, f) for f in ("key", "value", "elt") if hasattr(node, f)]
        written = [source, *(self.write(part, inner) for part in rest)]
        return f"{type(node).__name__}({', '.join(written)})"


@cache
def _written(fields: tuple[str, ...]) -> list[str]:
    """Those of the fields of a class of nodes that are written, in their order."""
    return sorted({*fields} - LEFT_OUT)


def _constant(value: object) -> str:
    return f"{type(value).__name__} {value!a}"


def _dotted(node: ast.expr) -> list[str]:
    """The parts of `a.b.c`; nothing for an attribute of anything but a name."""
    if isinstance(node, ast.Name):
        return [node.id]
    held = _dotted(node.value) if isinstance(node, ast.Attribute) else []
    return [*held, node.attr] if isinstance(node, ast.Attribute) and held else []


def _joined(values: Sequence[ast.expr]) -> list[ast.expr]:
    """The parts of an f-string with neighbouring text joined, which parsers cut differently."""
    found: list[ast.expr] = []
    for part in values:
        if isinstance(part, ast.Constant):
            last = found[-1] if found else None
            if isinstance(last, ast.Constant):
                found[-1] = ast.Constant(f"{last.value!s}{part.value!s}")
            elif part.value:
                found.append(part)
        else:
            found.append(part)
    return found


def _kind(annotation: ast.expr) -> str:
    """What an annotation in a class makes of the entry, if not a field."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    while isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    last = (_dotted(annotation) or [""])[-1]
    return f", {last}" if last in NO_FIELDS else ""


def _acts(node: ast.expr) -> bool:
    return any(isinstance(part, ACTIVE) for part in ast.walk(node))


def _refuses(body: Sequence[ast.stmt]) -> bool:
    """Whether statements only raise, after preparing the sentence."""
    *before, last = body
    raised = last.exc if isinstance(last, ast.Raise) else None
    name = _dotted(raised.func) if isinstance(raised, ast.Call) else []
    prepared = all(isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name) for s in before)
    return prepared and name[-1:] != [] and name[-1] in REFUSALS


def _bound_by(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    """The names that a function binds: arguments, and what its body assigns."""
    held = node.args
    every = [*held.posonlyargs, *held.args, *held.kwonlyargs, held.vararg, held.kwarg]
    names = {part.arg for part in every if part is not None}
    body: Sequence[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else node.body
    scope = [*_within(body)]
    names |= set(_stored(scope))
    return names - {n for part in scope if isinstance(part, ast.Global) for n in part.names}


def _stored(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The names that are assigned, defined or captured by the nodes of a scope."""
    for part in nodes:
        if isinstance(part, ast.Name) and isinstance(part.ctx, (ast.Store, ast.Del)):
            yield part.id
        elif isinstance(part, NAMING) and part.name:
            yield part.name
        elif isinstance(part, ast.MatchMapping) and part.rest:
            yield part.rest


def _within(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of one scope; of a comprehension only what `:=` assigns belongs to it."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, COMPREHENSIONS):
            waiting += [n.target for n in ast.walk(node) if isinstance(n, ast.NamedExpr)]
        elif not isinstance(node, NESTED):
            waiting += ast.iter_child_nodes(node)
