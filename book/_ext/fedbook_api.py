"""The API, a page a package: `book/api.md` is the one list, from which the pages take their part.

In `book/api.md` every module has its `automodule` block; those of `fedlib/algorithms` are made from
the files of that folder, and stand where the list says `%% algorithms`. When that page is read a
block becomes a link with the first sentence of the module; a page `book/api/PACKAGE.md` gets the
blocks of its modules, which go to the page with the longest name that theirs begins with.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from fedbook_data import BookError, warn
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
LIST = "book/api"
MARK = "%% modules"
ALGORITHMS = "%% algorithms"
BLOCK = re.compile(
    r"### (?P<title>\S+)\n\n(?P<body>```\{eval-rst\}\n\.\. automodule:: (?P<module>\S+)\n.*?```\n)",
    re.DOTALL,
)


def listed(path: Path) -> str:
    """The list, with a block for every file of algorithms."""
    files = sorted((ROOT / "fedlib" / "algorithms").glob("[!_]*.py"))
    blocks = (
        f"### fedlib.algorithms.{file.stem}\n\n```{{eval-rst}}\n"
        f".. automodule:: fedlib.algorithms.{file.stem}\n"
        "   :members:\n   :show-inheritance:\n```\n"
        for file in files
    )
    return path.read_text(encoding="utf-8").replace(ALGORITHMS, "\n".join(blocks))


def page_of(module: str, packages: list[str]) -> str:
    """The package whose page describes a module; empty if there is none."""
    fitting = [p for p in packages if module == p or module.startswith(f"{p}.")]
    return max(fitting, key=len, default="")


def packages_of(folder: Path) -> list[str]:
    """The packages with a page."""
    return sorted(path.stem for path in folder.glob("*.md"))


def first_words(module: str) -> str:
    """The first paragraph of a module's docstring, on one line."""
    path = ROOT / module.replace(".", "/")
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    words = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(words.partition("\n\n")[0].split())


def links(text: str, packages: list[str]) -> str:
    """The list with a link and a sentence in place of every block."""

    def link(found: re.Match[str]) -> str:
        module = found["module"]
        if not page_of(module, packages):
            raise BookError(
                f"api: {module} must have a page, got none that it begins with; add "
                f"book/api/{'.'.join(module.split('.')[:2])}.md."
            )
        return f"* {{py:mod}}`{module}`: {first_words(module)}\n"

    return BLOCK.sub(link, text)


def part(text: str, package: str, packages: list[str]) -> str:
    """The blocks of one package's page."""
    own = [b for b in BLOCK.finditer(text) if page_of(b["module"], packages) == package]
    return "\n".join(f"## {b['title']}\n\n{b['body']}" for b in own)


def read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Changes the text of the list and of its pages as they are read."""
    path = Path(app.srcdir) / f"{LIST}.md"
    if docname != LIST and not docname.startswith(f"{LIST}/"):
        return
    packages = packages_of(path.with_suffix(""))
    try:
        if docname == LIST:
            source[0] = links(listed(path), packages)
        else:
            app.env.note_dependency(str(path))
            own = part(listed(path), docname.removeprefix(f"{LIST}/"), packages)
            source[0] = source[0].replace(MARK, own)
    except BookError as error:
        warn(error, "api", docname)


def setup(app: Sphinx) -> None:
    """Changes pages when they are read."""
    app.connect("source-read", read)
