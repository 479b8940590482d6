"""Files have at most 300 lines; functions of the packages at most 40, without their docstrings."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINES, BODY = 300, 40


def texts(*folders):
    paths = sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return [(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in paths]


def lengths(text):
    """Where each function is, what it is called, and its lines without those of its docstring."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0]
            told = ast.get_docstring(node, clean=False) is not None
            docstring = first.end_lineno - first.lineno + 1 if told else 0
            yield node.lineno, node.name, node.end_lineno - node.lineno + 1 - docstring


def test_lines_are_counted_without_the_docstring():
    text = 'class C:\n    def f(self):\n        """One.\n\n        Two.\n        """\n' + 8 * "\n"
    assert [*lengths(text + "        return 1\n")] == [(2, "f", 10)]


def test_no_file_is_too_long():
    found = texts("fedlib", "papers", "tests", "benchmarks", "book/_ext")
    counted = {name: len(text.splitlines()) for name, text in found}
    assert len(counted) > 300
    long = [f"{name}: {count} lines" for name, count in counted.items() if count > LINES]
    assert not long, "\n".join(["files above 300 lines:", *long])


def test_no_function_is_too_long():
    long = [
        f"{name}:{line} {function}: {count} lines"
        for name, text in texts("fedlib", "papers")
        for line, function, count in lengths(text)
        if count > BODY
    ]
    assert not long, "\n".join(["functions above 40 lines:", *long])
