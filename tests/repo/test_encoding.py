"""No text is read or written in the encoding that a machine happens to prefer: all is UTF-8."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("fedlib", "papers", "notebooks", "book", "benchmarks", "tests")
FORMS = ROOT / "tests" / "papers" / "kit" / "canonical_forms"  # parsed, never run
TEXTS = ("read_text", "write_text")
#: Things whose `open` reads no text.
BINARY = ("Image", "tarfile", "zipfile", "gzip", "os")


def leaves_it_open(call):
    """Whether a call reads or writes text and does not say in which encoding."""
    given = {word.arg: word.value for word in call.keywords}
    if "encoding" in given or any(getattr(a, "value", None) == "utf-8" for a in call.args):
        return False
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if name in TEXTS or getattr(given.get("text"), "value", None) is True:
        return True
    owner = getattr(call.func, "value", None)
    if name not in ("open", "fdopen", "NamedTemporaryFile") or (
        isinstance(owner, ast.Name) and owner.id in BINARY
    ):
        return False
    mode = given.get("mode", next((a for a in call.args if is_mode(a)), None))
    binary = name == "NamedTemporaryFile" and mode is None
    return not binary and "b" not in (ast.unparse(mode) if mode else "")


def is_mode(argument):
    text = getattr(argument, "value", None)
    return isinstance(text, str) and 0 < len(text) <= 3 and set(text) <= set("rwaxbt+")


def places(source):
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return [call.lineno for call in calls if leaves_it_open(call)]


def test_the_rule_tells_text_from_bytes():
    wrong = ["p.read_text()", "p.write_text(x)", "open(p)", "p.open('a')", "run(x, text=True)"]
    right = ["p.read_text(encoding='utf-8')", "open(p, 'rb')", "Image.open(p)", "p.read_bytes()"]
    right += ["NamedTemporaryFile()", "open(p, mode='wb')", "run(x, encoding='utf-8')"]
    assert all(map(places, wrong))
    assert not any(map(places, right))


def test_every_text_names_its_encoding():
    files = [p for folder in FOLDERS for p in (ROOT / folder).rglob("*.py")]
    assert len(files) > 300
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in files
        if FORMS not in path.parents
        for line in places(path.read_text(encoding="utf-8"))
    ]
    assert not found
