"""One-token changes of Python code, found in its syntax tree and made in its text.

Left alone: docstrings and annotations; the sentences of errors; decorators; names of who is called;
`strict=True` of zip, which guards against a bug that is not there.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

COMPARED = {
    ast.Lt: ("<", "<=", ">="), ast.LtE: ("<=", "<", ">"), ast.Gt: (">", ">=", "<="),
    ast.GtE: (">=", ">", "<"), ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}  # fmt: skip
COUNTED = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "*"), ast.Pow: ("**", "*"), ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"),
}  # fmt: skip
PAIRS = (
    ("min", "max"), ("amin", "amax"), ("argmin", "argmax"), ("clamp_min", "clamp_max"),
    ("minimum", "maximum"), ("any", "all"), ("sum", "mean"), ("zeros", "ones"),
    ("zeros_like", "ones_like"), ("new_zeros", "new_ones"), ("floor", "ceil"), ("cos", "sin"),
    ("float32", "float64"), ("round", "int"), ("exp", "log"), ("argsort", "sort"),
)  # fmt: skip
OTHER = {one: other for pair in PAIRS for one, other in (pair, pair[::-1])}
SKIPPED_KEYWORDS = ("strict", "metadata", "repr")
#: Statements and functions whose strings are wording: who is called, and what is wrong.
WORDING = re.compile(r"checks\.|check|_share|sentence|warn|present")
#: Their arguments may stand in any order, or cannot be names of each other's kind.
ORDERLESS = re.compile(r"(^|\.)(min|max|minimum|maximum|isinstance|hasattr|getattr)$")


@dataclass(frozen=True)
class Change:
    """A piece of one line replaced by another."""

    path: str
    line: int
    start: int
    end: int
    new: str
    text: str  # the line before

    @property
    def after(self) -> str:
        """The line after."""
        held = self.text.encode()
        return (held[: self.start] + self.new.encode() + held[self.end :]).decode()

    @property
    def name(self) -> str:
        """Where, and the line before and after."""
        return f"{self.path}:{self.line} {self.text.strip()}  ->  {self.after.strip()}"

    def of(self, source: str) -> str:
        """The whole source with the change."""
        lines = source.splitlines(keepends=True)
        assert lines[self.line - 1].rstrip("\n") == self.text
        lines[self.line - 1] = self.after + "\n"
        return "".join(lines)


class Finder:
    """Collects the changes of one source."""

    def __init__(self, path: str, source: str) -> None:
        self.path, self.lines = path, [line.encode() for line in source.splitlines()]
        self.found: list[Change] = []
        self.visit(ast.parse(source), strings=True)

    def add(self, line: int, start: int, end: int, new: str) -> None:
        """Keep a change, unless it changes nothing."""
        text = self.lines[line - 1]
        if text[start:end] != new.encode():
            self.found.append(Change(self.path, line, start, end, new, text.decode()))

    def replace(self, node: ast.expr, new: str) -> None:
        """A node of one line becomes another text."""
        if node.end_lineno == node.lineno and node.end_col_offset is not None:
            self.add(node.lineno, node.col_offset, node.end_col_offset, new)

    def between(self, left: ast.expr, right: ast.expr, old: str, *new: str) -> None:
        """The operator that stands between two operands, on the line where one of them is."""
        for line in range(left.end_lineno or 0, right.lineno + 1):
            start = (left.end_col_offset or 0) if line == left.end_lineno else 0
            end = right.col_offset if line == right.lineno else len(self.lines[line - 1])
            place = self.lines[line - 1][start:end].find(old.encode())
            if place >= 0:
                for one in new:
                    self.add(line, start + place, start + place + len(old), one)
                return

    def visit(self, node: ast.AST, strings: bool) -> None:
        """The changes of a node and of what is in it."""
        if isinstance(node, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom):
            return
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "").startswith("__"):
            return
        getattr(self, f"on_{type(node).__name__.lower()}", lambda *_: None)(node)
        if isinstance(node, ast.Call) and WORDING.search(ast.unparse(node.func)):
            strings = False
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if strings and re.fullmatch(r"\w{1,20}", node.value):
                self.replace(node, f'"{node.value}_"')
            return
        for child in children(node):
            self.visit(child, strings)

    def on_compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for left, kind, right in zip(sides, node.ops, sides[1:], strict=False):
            self.between(left, right, *COMPARED[type(kind)])

    def on_binop(self, node: ast.BinOp) -> None:
        texts = any(isinstance(s, ast.JoinedStr) for s in (node.left, node.right))
        if type(node.op) in COUNTED and not texts:
            self.between(node.left, node.right, *COUNTED[type(node.op)])

    def on_augassign(self, node: ast.AugAssign) -> None:
        if type(node.op) in COUNTED:
            old, new = COUNTED[type(node.op)]
            self.between(node.target, node.value, f"{old}=", f"{new}=")

    def on_boolop(self, node: ast.BoolOp) -> None:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self.between(left, right, old, new)

    def on_unaryop(self, node: ast.UnaryOp) -> None:
        length = {ast.USub: 1, ast.Not: 4, ast.Invert: 1}.get(type(node.op), 0)
        self.add(node.lineno, node.col_offset, node.col_offset + length, "")

    def on_constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self.replace(node, str(not node.value))
        elif isinstance(node.value, int):
            self.replace(node, str(node.value + 1))
            self.replace(node, str(node.value - 1) if node.value else "(-1)")
        elif isinstance(node.value, float):
            self.replace(node, repr(node.value * 2 if node.value else 1.0))
            self.replace(node, repr(node.value + 1))

    def on_name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and node.id in OTHER:
            self.replace(node, OTHER[node.id])

    def on_attribute(self, node: ast.Attribute) -> None:
        if node.attr in OTHER and node.end_col_offset is not None and node.end_lineno is not None:
            end = node.end_col_offset
            self.add(node.end_lineno, end - len(node.attr), end, OTHER[node.attr])

    def on_call(self, node: ast.Call) -> None:
        """Two neighbouring arguments that are plain names change places."""
        called = ast.unparse(node.func)
        if WORDING.search(called) or ORDERLESS.search(called):
            return
        for one, two in zip(node.args, node.args[1:], strict=False):
            plain = all(isinstance(a, ast.Name | ast.Attribute) for a in (one, two))
            if plain and one.lineno == two.end_lineno:
                assert two.end_col_offset is not None
                new = f"{ast.unparse(two)}, {ast.unparse(one)}"
                self.add(one.lineno, one.col_offset, two.end_col_offset, new)

    def on_slice(self, node: ast.Slice) -> None:
        """One too few at an end that is no number itself."""
        for end in (node.lower, node.upper):
            if end is not None and not isinstance(end, ast.Constant | ast.UnaryOp):
                self.replace(end, f"{ast.unparse(end)} - 1")

    def on_if(self, node: ast.If | ast.While | ast.IfExp) -> None:
        if not isinstance(node.test, ast.UnaryOp) and ast.unparse(node.test) != "TYPE_CHECKING":
            self.replace(node.test, f"(not ({ast.unparse(node.test)}))")

    on_ifexp = on_while = on_if


def children(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node that are code: no annotations, decorators or guards."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            keyword = isinstance(child, ast.keyword) and child.arg in SKIPPED_KEYWORDS
            if isinstance(child, ast.AST) and not keyword:
                yield child


def changes(path: str, source: str) -> list[Change]:
    """All changes of a source."""
    return Finder(path, source).found


def draw(found: list[Change], count: int, seed: int) -> list[Change]:
    """That many lines at random, and a change of each; edits of other lines move no draw."""
    lines: dict[tuple[str, int], list[Change]] = {}
    for one in found:
        lines.setdefault((one.path, one.line), []).append(one)
    texts: Counter[tuple[str, str]] = Counter()
    drawn = []
    for some in lines.values():
        key = some[0].path, some[0].text
        texts[key] += 1  # which of equal lines of a file it is

        def order(*words: object, key: tuple[str, str] = key) -> str:
            text = "|".join(map(str, (seed, *key, texts[key], *words)))
            return hashlib.sha256(text.encode()).hexdigest()

        change = min(some, key=lambda one, order=order: order(one.start, one.new))
        drawn.append((order(), change))
    return [change for _, change in sorted(drawn, key=lambda pair: pair[0])[:count]]
