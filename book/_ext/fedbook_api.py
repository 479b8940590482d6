"""The docstrings of the library as the pages `book/api.md` and `book/api_own.md` show them.

The pages show the signature, the first paragraph and the table of arguments; the rest of a
docstring is for those who read the code. In the library a docstring is plain text with code in
backticks, LaTeX between dollars, emphasis between asterisks, and formulas such as ``|w0 - w*|``,
whose marks mean other things to reStructuredText. The entries of its tables have a type beside the
name, as numpy's do, or the description; the pages show no types, which stand in the signature.
`prepare` makes it safe. (sphinx-autodoc2 reads no numpy tables.)
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from typing import get_origin

from sphinx.application import Sphinx

TABLES = ("Parameters", "Attributes")
ANNOTATED = re.compile(r"[~\w.]*\bAnnotated\[(?P<inner>(?:[^\[\]]|\[[^\[\]]*\])*), (?P<name>\w+)\]")
ARRAY = re.compile(r"[~\w.]*\bndarray\[tuple\[Any, \.\.\.\], [~\w.]*dtype\[[~\w.]*\]\]")
CLASS = re.compile(r"<class '[\w.]*?(\w+)'>")
CODE = re.compile(r"(``.+?``|`[^`]+`_{0,2})")
MARKS = re.compile(r"(?<!\\)([|*]|_(?![\w{]))")
KEPT = r"(?P<kept>``.+?``|`[^`]+`_{0,2}|^[ ]*(?:>>>|\.\.\.).*?$)"
MATH = r"(?<![\w$])\$(?P<math>[^$`]+?)\$(?![\w$])"
EMPHASIS = r"(?:(?<=^)|(?<=[\s(:]))\*(?P<words>[A-Za-z][^*$`|<>=]*[\w.!?])\*(?=[\s.,:;)]|$)"
MARKED = re.compile(f"{KEPT}|{MATH}|{EMPHASIS}", re.MULTILINE)
WHOLE = ("fedlib.protocols",)  # modules whose docstring is a page of its own
STAR = "\ue000"  # an asterisk that is meant as a mark
#: What stands beside a name if it is a type: `float`, `int or None`, `tuple of float`.
TYPE = re.compile(r"(?:[\w.]+|\"\w+\")(?: (?:or|of) (?:[\w.]+|\"\w+\"))*(?<!\.)")
ENTRY = re.compile(r"(?P<indent> *)(?P<names>\*{0,2}\w+(?:, \*{0,2}\w+)*) : (?P<text>\S.*)")


def prepare(
    app: object, category: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Leaves what the pages show and escapes marks outside of code; changes ``lines`` in place."""
    shown = lines if name in WHOLE else described(brief(lines))
    text = marked("\n".join(shown))
    lines[:] = [escape(line).replace(STAR, "*") for line in text.split("\n")] if lines else []


def skip(
    app: object, category: str, name: str, obj: object, skipped: bool, options: object
) -> bool:
    """Leaves out aliases of types, fields of named tuples, and methods outside of the core.

    Fields are in the signature, and what the methods of all compressors are for is said once, at
    their protocol.
    """
    obj = getattr(obj, "fget", obj)
    module = str(getattr(obj, "__module__", ""))
    owner = getattr(obj, "__qualname__", "").partition(".")[0]
    protocol = getattr(getattr(sys.modules.get(module), owner, None), "_is_protocol", False)
    method = category == "class" and not protocol and not module.startswith("fedlib.core.")
    alias = get_origin(obj) is not None
    return skipped or alias or type(obj).__name__ == "_tuplegetter" or method


def brief(lines: list[str]) -> list[str]:
    """The first paragraph and the tables of arguments."""
    text = textwrap.dedent("\n".join(lines)).strip("\n")
    summary, *sections = re.split(r"\n(?=\S[^\n]*\n-{3,}\n)", f"\n{text}")
    paragraph, _, _ = summary.strip("\n").partition("\n\n")
    blocks = [paragraph] if paragraph else []
    for section in sections:
        title, _, _ = section.partition("\n")
        table, _, _ = section.partition("\n\n")
        if title in TABLES:
            blocks.append(table.rstrip())
    return "\n\n".join(blocks).split("\n")


def described(lines: list[str]) -> list[str]:
    """``lines`` with the names of a table's entries alone on a line, above the description."""
    result: list[str] = []
    table: int | None = None  # the indent of the table's title
    for i, line in enumerate(lines):
        below = lines[i + 1].strip() if i + 1 < len(lines) else ""
        if below and set(below) == {"-"}:
            table = indent(line) if line.strip() in TABLES else None
        entry = ENTRY.match(line)
        if entry and table is not None and indent(line) == table:
            result.append(entry["indent"] + entry["names"])
            if not (TYPE.fullmatch(entry["text"]) and indent(lines[i + 1]) > table):
                result.append(f"{entry['indent']}    {entry['text']}")
        else:
            result.append(line)
    return result


def marked(text: str) -> str:
    """``text`` with LaTeX between dollars as a role, and the asterisks of emphasis as `STAR`."""

    def mark(match: re.Match[str]) -> str:
        if match["kept"] is not None:
            return match[0]
        words = re.sub(r"\s*\n\s*", " ", match["math"] or match["words"])
        return f":math:`{words}`" if match["math"] else f"{STAR}{words}{STAR}"

    return MARKED.sub(mark, text)


def shorten(
    app: object,
    category: str,
    name: str,
    obj: object,
    options: object,
    signature: str | None,
    returns: str | None,
) -> tuple[str | None, str | None]:
    """Writes `Annotated[int, Count]` as `Count`; one without a name is what it annotates.

    A default that is made anew for every object is called `factory`. Of functions stand the names
    and defaults; what they are the table says.
    """

    def short(annotated: re.Match[str]) -> str:
        return annotated["inner"] if annotated["name"] == "Takes" else annotated["name"]

    if signature:  # "<factory>" is no Python: the whole would stand as it is written, unlinked
        signature = ANNOTATED.sub(short, signature).replace("<factory>", "factory")
        signature = ARRAY.sub("ndarray", CLASS.sub(r"\1", signature))
    if signature and category in ("function", "method"):
        return untyped(signature), None
    return signature, returns


def untyped(signature: str) -> str:
    """A signature without its types; as it is where a default is no Python."""
    try:
        function = ast.parse(f"def f{signature}: ...").body[0]
    except SyntaxError:
        return signature
    assert isinstance(function, ast.FunctionDef)
    for node in ast.walk(function.args):
        if isinstance(node, ast.arg):
            node.annotation = None
    return f"({ast.unparse(function.args)})"


def indent(line: str) -> int:
    """How many blanks a line begins with."""
    return len(line) - len(line.lstrip())


def escape(line: str) -> str:
    """``line`` with a backslash before each mark that stands outside of code."""
    if line.lstrip().startswith((">>>", "...")):
        return line
    texts = CODE.split(line)  # code at the odd positions
    texts[::2] = [MARKS.sub(r"\\\1", text) for text in texts[::2]]
    return "".join(texts)


def setup(app: Sphinx) -> None:
    """Changes docstrings and signatures when they are read."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", prepare, priority=100)
    app.connect("autodoc-process-signature", shorten)
    app.connect("autodoc-skip-member", skip)
