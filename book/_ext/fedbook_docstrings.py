"""Docstrings as the library writes them, made safe for reStructuredText.

In the library a docstring is plain text with code in backticks, numbered pseudocode in an indented
block, and formulas such as ``|w0 - w*|``, whose marks mean other things to reStructuredText.
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


def prepare(
    app: object, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Makes pseudocode literal, then escapes marks outside of code; changes ``lines`` in place."""
    if lines and lines[0].startswith(
        "Alias for field number"
    ):  # Python's own words, they say nothing
        lines.clear()
    for i in range(len(lines) - 1, 0, -1):
        starts = PSEUDOCODE.match(lines[i]) and not lines[i - 1].strip()
        if starts and not lines[max(i - 2, 0)].rstrip().endswith("::"):
            lines[i:i] = [" " * (indent(lines[i]) - 2) + "::", ""]
    literal: int | None = None  # the indent of the line that opened a literal block
    for i, line in enumerate(lines):
        if literal is not None and line.strip() and indent(line) <= literal:
            literal = None
        if literal is None and not line.lstrip().startswith((">>>", "...", "..")):
            lines[i] = escape(line)
            if line.rstrip().endswith("::"):
                literal = indent(line)


def shorten(
    app: object,
    what: str,
    name: str,
    obj: object,
    options: object,
    signature: str | None,
    returns: str | None,
) -> tuple[str | None, str | None]:
    """Writes `Annotated[int, Count]` as `Count`; one without a name is what it annotates."""

    def short(found: re.Match[str]) -> str:
        return found["inner"] if found["name"] == "Takes" else found["name"]

    return signature and ANNOTATED.sub(short, signature), returns


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
    """`fedlib/core/run.py#L10-L20`; empty for what has no lines of its own, as a constant."""
    try:
        found = inspect.unwrap(attrgetter(name)(sys.modules[module]))
        lines, first = inspect.getsourcelines(found)
    except (AttributeError, KeyError, OSError, TypeError):
        return ""
    path = inspect.getmodule(found).__name__.replace(".", "/")
    package = hasattr(inspect.getmodule(found), "__path__")
    return f"{path}{'/__init__' * package}.py#L{first}-L{first + len(lines) - 1}"
