"""Docstrings as the library writes them, made safe for reStructuredText.

In the library a docstring is plain text with code in backticks, LaTeX between dollars, emphasis
between asterisks, numbered pseudocode in an indented block, and formulas such as ``|w0 - w*|``,
whose marks mean other things to reStructuredText. Its tables read `name : what it is`, where
numpy's have the type.
"""

from __future__ import annotations

import inspect
import re
import sys
from functools import partial
from operator import attrgetter

from sphinx.application import Sphinx
from sphinx.config import Config

PSEUDOCODE = re.compile(r"\s{2,}\d+[a-z]?\s{2,}\S")
ANNOTATED = re.compile(r"[~\w.]*\bAnnotated\[(?P<inner>(?:[^\[\]]|\[[^\[\]]*\])*), (?P<name>\w+)\]")
CODE = re.compile(r"(``.+?``|`[^`]+`_{0,2})")
MARKS = re.compile(r"(?<!\\)([|*]|_(?![\w{]))")
KEPT = r"(?P<kept>``.+?``|`[^`]+`_{0,2}|^[ ]*(?:>>>|\.\.\.).*?$)"
MATH = r"(?<![\w$])\$(?P<math>[^$`]+?)\$(?![\w$])"
EMPHASIS = r"(?:(?<=^)|(?<=[\s(:]))\*(?P<words>[A-Za-z][^*$`|<>=]*[\w.!?])\*(?=[\s.,:;)]|$)"
MARKED = re.compile(f"{KEPT}|{MATH}|{EMPHASIS}", re.MULTILINE)
STAR = "\ue000"  # an asterisk that is meant as a mark
ENTRY = re.compile(r"(?P<indent> *)(?P<names>\*{0,2}\w+(?:, \*{0,2}\w+)*) : (?P<text>\S.*)")


def prepare(
    app: object, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Makes pseudocode literal, then escapes marks outside of code; changes ``lines`` in place."""
    if lines and lines[0].startswith(
        "Alias for field number"
    ):  # Python's own words, they say nothing
        lines.clear()
    lines[:] = marked("\n".join(described(lines))).split("\n") if lines else []
    for i in range(len(lines) - 1, 0, -1):
        starts = PSEUDOCODE.match(lines[i]) and not lines[i - 1].strip()
        if starts and not lines[max(i - 2, 0)].rstrip().endswith("::"):
            lines[i:i] = [" " * max(indent(lines[i]) - 4, 0) + "::", ""]
    literal: int | None = None  # the indent of the line that opened a literal block
    for i, line in enumerate(lines):
        if literal is not None and line.strip() and indent(line) <= literal:
            literal = None
        if literal is None and not line.lstrip().startswith((">>>", "...", "..")):
            lines[i] = escape(line)
            if line.rstrip().endswith("::"):
                literal = indent(line)
        lines[i] = lines[i].replace(STAR, "*")


def described(lines: list[str]) -> list[str]:
    """``lines`` with the words of a table's entry on a line of their own, where numpy has them."""
    found: list[str] = []
    table: int | None = None  # the indent of the table's title
    for i, line in enumerate(lines):
        below = lines[i + 1].strip() if i + 1 < len(lines) else ""
        if below and set(below) == {"-"}:
            table = indent(line) if line.strip() in ("Parameters", "Attributes") else None
        entry = ENTRY.match(line)
        if entry and table is not None and indent(line) == table:
            found += [entry["indent"] + entry["names"], f"{entry['indent']}    {entry['text']}"]
        else:
            found.append(line)
    return found


def marked(text: str) -> str:
    """``text`` with LaTeX between dollars as a role, and the asterisks of emphasis as `STAR`."""

    def mark(found: re.Match[str]) -> str:
        if found["kept"] is not None:
            return found[0]
        words = re.sub(r"\s*\n\s*", " ", found["math"] or found["words"])
        return f":math:`{words}`" if found["math"] else f"{STAR}{words}{STAR}"

    return MARKED.sub(mark, text)


def shorten(
    app: object,
    what: str,
    name: str,
    obj: object,
    options: object,
    signature: str | None,
    returns: str | None,
) -> tuple[str | None, str | None]:
    """Writes `Annotated[int, Count]` as `Count`; one without a name is what it annotates.

    A default that is made anew for every object is called `factory`.
    """

    def short(found: re.Match[str]) -> str:
        return found["inner"] if found["name"] == "Takes" else found["name"]

    if signature:  # "<factory>" is no Python: the whole would stand as it is written, unlinked
        signature = ANNOTATED.sub(short, signature).replace("<factory>", "factory")
    return signature, returns


def indent(line: str) -> int:
    """How many blanks a line begins with."""
    return len(line) - len(line.lstrip())


def escape(line: str) -> str:
    """``line`` with a backslash before each mark that stands outside of code."""
    parts = CODE.split(line)
    parts[::2] = [MARKS.sub(r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


def link_code(app: Sphinx, config: Config) -> None:
    """Where the repository is public, the source of every name is a link to its lines there."""
    options = config.html_theme_options
    if not options.get("repository_url"):
        return
    app.setup_extension("sphinx.ext.linkcode")
    top = f"{options['repository_url']}/blob/{options.get('repository_branch') or 'main'}"
    config.linkcode_resolve = partial(address_of, top)


def address_of(top: str, domain: str, info: dict[str, str]) -> str | None:
    """The address of a name's source; none for what is not Python."""
    found = lines_of(info["module"], info["fullname"]) if domain == "py" else ""
    return f"{top}/{found}" if found else None


def lines_of(module: str, name: str) -> str:
    """`fedlib/run.py#L10-L20`; empty for what has no lines of its own, as a constant."""
    try:
        found = inspect.unwrap(attrgetter(name)(sys.modules[module]))
        lines, first = inspect.getsourcelines(found)
    except (AttributeError, KeyError, OSError, TypeError):
        return ""
    path = inspect.getmodule(found).__name__.replace(".", "/")
    package = hasattr(inspect.getmodule(found), "__path__")
    return f"{path}{'/__init__' * package}.py#L{first}-L{first + len(lines) - 1}"
