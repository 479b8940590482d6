"""The API, a page a package: `book/api.md` is the one list, from which the pages take their part.

In `book/api.md` every module has its `automodule` block; those of `fedlib/algorithms` are made from
the files of that folder, and stand where the list says `%% algorithms`. When that page is read a
block becomes a link with the first sentence of the module; a page `book/api/PACKAGE.md` gets the
blocks of its modules, which go to the page with the longest name that theirs begins with.

The pages show the signature, the first paragraph and the table of arguments; the rest of a
docstring is for those who read the code. In the library a docstring is plain text with code in
backticks, LaTeX between dollars, emphasis between asterisks, and formulas such as ``|w0 - w*|``,
whose marks mean other things to reStructuredText. Its tables read `name : what it is`, where
numpy's have the type. `prepare` makes it safe. (sphinx-autodoc2 reads no numpy tables.)
"""

from __future__ import annotations

import ast
import re
import textwrap
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
        "   :members:\n```\n"
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


TABLES = ("Parameters", "Attributes")
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
    """Leaves what the pages show and escapes marks outside of code; changes ``lines`` in place."""
    text = marked("\n".join(described(brief(lines))))
    lines[:] = [escape(line).replace(STAR, "*") for line in text.split("\n")] if lines else []


def skip(app: object, what: str, name: str, obj: object, skipped: bool, options: object) -> bool:
    """Leaves out fields of named tuples, which stand in the signature, and methods but the core's.

    What those of algorithms, compressors or sets are for is said once, where the core has them.
    """
    module = str(getattr(getattr(obj, "fget", obj), "__module__", ""))
    method = what == "class" and not module.startswith("fedlib.core.")
    return skipped or type(obj).__name__ == "_tuplegetter" or method


def brief(lines: list[str]) -> list[str]:
    """The first paragraph and the tables of arguments."""
    text = textwrap.dedent("\n".join(lines)).strip("\n")
    first, *rest = re.split(r"\n(?=\S[^\n]*\n-{3,}\n)", f"\n{text}")
    paragraph = first.strip("\n").partition("\n\n")[0]
    tables = [part.rstrip() for part in rest if part.partition("\n")[0] in TABLES]
    return "\n\n".join(filter(None, (paragraph, *tables))).split("\n")


def described(lines: list[str]) -> list[str]:
    """``lines`` with the words of a table's entry on a line of their own, where numpy has them."""
    found: list[str] = []
    table: int | None = None  # the indent of the table's title
    for i, line in enumerate(lines):
        below = lines[i + 1].strip() if i + 1 < len(lines) else ""
        if below and set(below) == {"-"}:
            table = indent(line) if line.strip() in TABLES else None
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

    A default that is made anew for every object is called `factory`. Of functions stand the names
    and defaults; what they are the table says.
    """

    def short(found: re.Match[str]) -> str:
        return found["inner"] if found["name"] == "Takes" else found["name"]

    if signature:  # "<factory>" is no Python: the whole would stand as it is written, unlinked
        signature = ANNOTATED.sub(short, signature).replace("<factory>", "factory")
    if signature and what in ("function", "method"):
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
    parts = CODE.split(line)
    parts[::2] = [MARKS.sub(r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


def setup(app: Sphinx) -> None:
    """Changes pages and docstrings when they are read."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("source-read", read)
    app.connect("autodoc-process-docstring", prepare, priority=100)
    app.connect("autodoc-process-signature", shorten)
    app.connect("autodoc-skip-member", skip)
