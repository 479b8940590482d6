"""The canonical text of code: the same on every Python, and only what decides numbers."""

import ast
import hashlib
import json
from pathlib import Path

import pytest

from papers.kit.canonical import Meaning, canonical
from papers.kit.fingerprint import Source

FORMS = Path(__file__).parent / "canonical_forms"

#: A piece of code, and another that gives the same numbers.
SAME = {
    "docstring": ("def f(x):\n    return x", 'def f(x):\n    """Words."""\n    return x'),
    "annotations": ("def f(x, *a):\n    y = x", "def f(x: int, *a: str) -> str:\n    y: int = x"),
    "declared": ("def f(x):\n    x = 1", "def f(x):\n    x: int\n    x = 1"),
    "type of a field": ("class A:\n    x: int = 1", "class A:\n    x: float = 1"),
    "comment": ("X = [1, 2]", "X = [  # why\n    1,\n    2,\n]"),
    "pass": ("class A:\n    pass", 'class A:\n    """Words."""'),
    "quotes": ("X = 'a' f'{y}'", 'X = f"a{y}"'),
    "import": (
        "import math\ndef f(): return math.pi",
        "def f():\n    from math import pi\n    return pi",
    ),
    "refusal": (
        "def f(x):\n    return x",
        "def f(x):\n    if x < 0:\n        s = 'wrong'\n        raise ValueError(s)\n    return x",
    ),
    "check": ("def f(x):\n    return x", "def f(x):\n    checks.positive('f', x)\n    return x"),
    "check if": (
        "def f(x):\n    return x",
        "def f(x):\n    if x is not None:\n        checks.positive('f', x)\n    return x",
    ),
    "post_init": (
        "class A:\n    x: int",
        "class A:\n    x: int\n    def __post_init__(self):\n        checks.positive('A', self.x)",
    ),
}  # fmt: skip
#: A piece of code, and another that may give other numbers.
OTHER = {
    "number": ("X = 1", "X = 2"),
    "type of a number": ("X = 1", "X = 1.0"),
    "truth": ("X = 1", "X = True"),
    "operator": ("def f(x): return x + 1", "def f(x): return x - 1"),
    "comparison": ("def f(x): return x < 1 < 2", "def f(x): return x < 1 <= 2"),
    "default": ("def f(x=1): return x", "def f(x=2): return x"),
    "which default": ("def f(x, y=1): return x", "def f(x=1, y=1): return x"),
    "base": ("class A(B): pass", "class A(C): pass"),
    "decorator": ("@a\ndef f(): return 1", "def f(): return 1"),
    "order of fields": ("class A:\n    x: int\n    y: int", "class A:\n    y: int\n    x: int"),
    "field": ("class A:\n    x: int", "class A:\n    pass"),
    "no field": ("class A:\n    x: int = 1", "class A:\n    x: ClassVar[int] = 1"),
    "quoted": ("class A:\n    x: int = 1", "class A:\n    x: 'typing.ClassVar[int]' = 1"),
    "annotated": ("class A:\n    x: int = 1", "class A:\n    x = 1"),
    "name": ("def f(): return 1", "def g(): return 1"),
    "module": ("import math\nX = math.pi", "import cmath as math\nX = math.pi"),
    "conversion": ("def f(x): return f'{x}'", "def f(x): return f'{x!r}'"),
    "format": ("def f(x): return f'{x:g}'", "def f(x): return f'{x:e}'"),
    "spread": ("X = {'a': 1, **y}", "X = {**y, 'a': 1}"),
    "refusal that is caught": (
        "def f(x):\n    try:\n        g(x)\n    except ValueError:\n        x = 1",
        "def f(x):\n    try:\n        if x:\n            raise ValueError('a')\n        g(x)\n"
        "    except ValueError:\n        x = 1",
    ),
    "another error": (
        "def f(x):\n    return x",
        "def f(x):\n    if x:\n        raise StopIteration('a')\n    return x",
    ),
    "else": (
        "def f(x):\n    x = 2\n    return x",
        "def f(x):\n    if x:\n        raise ValueError('a')\n    else:\n        x = 2\n"
        "    return x",
    ),
    "assigned in a condition": (
        "def f(x):\n    return x",
        "def f(x):\n    if (x := x + 1):\n        raise ValueError('a')\n    return x",
    ),
    "hides the base's": (
        "class A(B):\n    x: int",
        "class A(B):\n    x: int\n    def __post_init__(self):\n        checks.count('A', self.x)",
    ),
    "own checks": ("def f(checks): return 1", "def f(checks):\n    checks.count()\n    return 1"),
    "local": ("def f(x):\n    t = x\n    return t", "def f(x):\n    return t"),
}  # fmt: skip


def text(code):
    """The canonical text of a piece where `checks` is the module of that name."""
    tree = ast.parse(code)
    names = {
        a.asname or a.name: a.name for n in tree.body if isinstance(n, ast.Import) for a in n.names
    }
    names |= {
        a.name: f"{n.module}.{a.name}"
        for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names
    }  # fmt: skip

    def find(parts):
        if parts[0] == "checks":
            return Meaning(parts[-1], len(parts), checks=True)
        head = names.get(parts[0])
        return Meaning(".".join((head, *parts[1:])), len(parts)) if head else None

    return canonical(tree.body, find).text


@pytest.mark.parametrize("pair", SAME.values(), ids=SAME)
def test_what_decides_no_number_is_left_out(pair):
    assert text(pair[0]) == text(pair[1])


@pytest.mark.parametrize("pair", OTHER.values(), ids=OTHER)
def test_what_decides_numbers_is_written(pair):
    assert text(pair[0]) != text(pair[1])


def test_the_form_is_that_of_every_version_of_python(tmp_path, monkeypatch):
    """The table was made by Python 3.11; 3.12, 3.13 and 3.14 gave the same."""
    (tmp_path / "fedlib").mkdir()
    (tmp_path / "fedlib" / "forms.py").write_bytes((FORMS / "forms.py").read_bytes())
    source = Source(tmp_path)
    found = {
        name.partition(":")[2]: hashlib.sha256(source.text(name).text.encode()).hexdigest()
        for name in source.names()
    }
    assert found == json.loads((FORMS / "digests.json").read_text(encoding="utf-8"))
