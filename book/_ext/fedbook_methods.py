"""Pages about methods: pseudocode beside the code that implements it, and verdicts.

Directive ``pseudocode`` takes a class of `fedlib.algorithms` and reads everything from its source:
the numbered pseudocode of its docstring, the methods, and the numbers of pseudocode lines that the
code carries as comments, which become the margin of the listing. Directive ``other-methods`` does
so for all algorithms without a page, directive ``verdicts`` lists claims.
"""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from docutils import nodes
from docutils.parsers.rst import directives
from fedbook_claims import ClaimRole, evaluate
from fedbook_data import BookDirective, BookError, Cell, badge, page_link, table
from fedbook_recorder import CITED
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from sphinx import addnodes
from sphinx.application import Sphinx

STEP = re.compile(r"^ {4}(\d+)( +)(\S.*)$")
#: The words of an algorithm that are set in bold: where a line begins with them, or after a comma.
KEYWORD = re.compile(
    r"(?:(?<=^)|(?<=, )|(?<=; ))(for each|for|if|else|otherwise|while|return|repeat)\b"
)
SKIPPED = {"__post_init__", "init"}  # checks, the same everywhere
PARTS = {"Differs": "Differs from the paper", "Info": "A round reports", "Reference": "Reference"}


class Step(NamedTuple):
    """One numbered line of pseudocode."""

    number: int
    indent: int  # characters
    lines: list[str]


def steps_of(doc: str) -> list[Step]:
    """The numbered lines of a docstring; what follows a line further in belongs to it."""
    steps: list[Step] = []
    columns: list[int] = []
    for line in doc.split("\n"):
        found = STEP.match(line)
        if found and int(found[1]) == len(steps) + 1:
            columns.append(found.start(3))
            steps.append(Step(int(found[1]), 0, [found[3]]))
        elif steps and line.startswith(" " * 5):
            text = line.strip()
            if "<-" in text or steps[-1].lines[-1].endswith(":"):
                steps[-1].lines.append(text)
            else:
                steps[-1].lines[-1] += f" {text}"
        elif steps:
            break
    first = min(columns, default=0)
    return [step._replace(indent=c - first) for step, c in zip(steps, columns, strict=True)]


def paragraph_of(doc: str, label: str) -> str:
    """The paragraph of a docstring that begins with `label`, without it."""
    found = re.search(rf"^{label}: (.*?)(?:\n\n|\Z)", doc, re.DOTALL | re.MULTILINE)
    return " ".join(found[1].split()) if found else ""


def numbers_in(text: str) -> list[int]:
    """`4-7, 9` as 4, 5, 6, 7, 9."""
    found: list[int] = []
    for part in text.split(",") if text else ():
        low, _, high = part.strip().partition("-")
        found += range(int(low), int(high or low) + 1)
    return found


class Line(NamedTuple):
    """A line of code, and the pseudocode lines that its comment cites."""

    text: str
    cites: str


def listing(thing: Any) -> list[Line]:
    """The lines of a function or of a class's methods, an empty one after each."""
    lines: list[Line] = []
    for text in sources(thing):
        for line in [*text.rstrip().split("\n"), ""]:
            found = CITED.search(line)
            lines.append(Line(CITED.sub("", line), found[1] if found else ""))
    return lines


def sources(thing: Any) -> Iterator[str]:
    """The source of a function, or of a class's methods without its checks, one by one."""
    if not inspect.isclass(thing):
        yield textwrap.dedent(inspect.getsource(thing))
        return
    bases = [c for c in thing.__mro__ if c.__module__ == thing.__module__]
    for name, member in {k: v for c in reversed(bases) for k, v in vars(c).items()}.items():
        function = member.fget if isinstance(member, property) else member
        if not inspect.isfunction(function) or name in SKIPPED:
            continue
        if function.__code__.co_filename == inspect.getfile(thing):  # not made by `dataclass`
            yield textwrap.dedent(inspect.getsource(function))


def named(path: str) -> Any:
    """What a dotted name stands for."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError):
        raise BookError(f"pseudocode: {path!r} must be a dotted name of the library.") from None


class Pseudocode(BookDirective):
    """``{pseudocode} fedlib.algorithms.NAME``; ``:also:`` names what it hands work to."""

    required_arguments = 1
    option_spec = {"also": directives.unchanged_required}  # noqa: RUF012 - docutils reads it
    kind = "pseudocode"

    def build(self) -> list[nodes.Node]:
        """The grid, and what the docstring says beside the pseudocode."""
        algorithm = named(self.arguments[0])
        doc = inspect.getdoc(algorithm) or ""
        steps = steps_of(doc)
        if not inspect.isclass(algorithm) or not steps:
            raise BookError(f"pseudocode: {self.arguments[0]} must be a class with pseudocode.")
        name = algorithm.__name__.lower()
        code = listing(algorithm)
        self.depend(algorithm)
        cited = {n for line in code for n in numbers_in(line.cites)}
        grid = (
            f'<div class="method-grid wide-page" id="method-{name}">'
            f'<div class="method-side"><p class="method-name">{algorithm.__name__}</p>'
            f"{pseudo_html(name, steps, cited)}</div>"
            f'<div class="method-code">{code_html(name, code)}{self.also()}</div></div>'
        )
        fields = [
            nodes.paragraph("", "", nodes.strong("", f"{title}: "), *self.inline(text))
            for label, title in PARTS.items()
            if (text := paragraph_of(doc, label))
        ]
        return [nodes.raw("", grid, format="html"), self.origin(algorithm), *fields]

    def also(self) -> str:
        """The code of the functions that the class hands work to, folded away."""
        paths = self.options.get("also", "").split()
        parts = []
        for path in paths:
            self.depend(named(path))
            code = [line._replace(cites="") for line in listing(named(path))]
            parts.append(f"<p><code>{escape(path)}</code></p>{code_html('', code)}")
        names = ", ".join(f"<code>{escape(path.rpartition('.')[2])}</code>" for path in paths)
        opening = f"<details><summary>What it hands work to: {names}</summary>"
        return f"{opening}{''.join(parts)}</details>" if parts else ""

    def depend(self, thing: Any) -> None:
        """Builds the page again when the source changes."""
        self.env.note_dependency(inspect.getfile(thing))

    def origin(self, algorithm: type) -> nodes.paragraph:
        """Where the class is described, with its parameters."""
        target = f"{algorithm.__module__}.{algorithm.__qualname__}"
        text = f"{algorithm.__name__}"
        link = addnodes.pending_xref(
            "", nodes.literal(text, text), refdomain="py", reftype="class", refexplicit=True,
            refwarn=True, refdoc=self.env.docname, reftarget=target,
        )  # fmt: skip
        file = f"{algorithm.__module__.replace('.', '/')}.py"
        lead = "Parameters, errors and the checks of "
        if not self.env.temp_data.get("pseudocode_explained"):  # once a page
            self.env.temp_data["pseudocode_explained"] = True
            lead = (
                "The numbers in the margin of the code are those of the pseudocode's lines; in the "
                f"source they stand in comments. {lead}"
            )
        first = nodes.Text(lead)
        return nodes.paragraph(
            "", "", first, nodes.literal("", "init"), nodes.Text(": "), link,
            nodes.Text(" in "), nodes.literal("", file), nodes.Text("."), classes=["method-origin"],
        )  # fmt: skip


def pseudo_html(name: str, steps: list[Step], cited: set[int]) -> str:
    """The pseudocode as a list; a number leads to the first code line that cites it."""
    items = []
    for step in steps:
        number = str(step.number)
        if step.number in cited:
            number = f'<a href="#{name}-code-{step.number}">{number}</a>'
        text = "<br>".join(KEYWORD.sub(r"<b>\1</b>", escape(line)) for line in step.lines)
        text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
        items.append(
            f'<li class="n{step.number}" id="{name}-line-{step.number}">'
            f'<span class="method-number">{number}</span>'
            f'<span class="method-text" style="margin-left: {step.indent}ch">{text}</span></li>'
        )
    return f'<ol class="method-pseudo" aria-label="Pseudocode">{"".join(items)}</ol>'


def code_html(name: str, code: list[Line]) -> str:
    """The highlighted code; a number in the margin leads to its pseudocode line."""
    code = code[:-1] if code[-1].text == "" else code
    plain = "\n".join(line.text for line in code)
    margin = max(len(line.cites) for line in code)
    made = highlight(plain, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True))
    shown: list[str] = []
    seen: set[int] = set()
    for line, html in zip(code, made.removesuffix("\n").split("\n"), strict=True):
        numbers = numbers_in(line.cites)
        anchors = "".join(f'<span id="{name}-code-{n}"></span>' for n in numbers if n not in seen)
        seen |= set(numbers)
        link = f'<a href="#{name}-line-{numbers[0]}">{line.cites}</a>' if numbers else ""
        pad = " " * (margin - len(line.cites))
        classes = " ".join(f"n{n}" for n in numbers)
        label = f'{anchors}<span class="linenos">{pad}{link}  </span>' if margin else ""
        shown.append(f'<span class="{classes}">{label}{html}</span>' if label else html)
    body = "\n".join(shown)
    return (
        '<div class="highlight-python notranslate">'
        f'<div class="highlight"><pre>{body}\n</pre></div></div>'
    )


class Verdicts(BookDirective):
    """``{verdicts} PAPER/C1 PAPER/C2``: some claims with what was measured and the verdict."""

    required_arguments = 1
    final_argument_whitespace = True
    kind = "verdicts"

    def build(self) -> list[nodes.Node]:
        """One line a claim, in the order given."""
        rows = [self.line(name) for name in self.arguments[0].split()]
        head = ("Claim", "What is claimed", "Measured", "Verdict")
        return [table(head, rows, (14, 40, 30, 16), "verdicts")]

    def line(self, name: str) -> list[Cell]:
        """Number and study, wording, measurement, verdict."""
        from papers import STUDIES

        known = {c.id: (c, s) for s in STUDIES.values() for c in s.claims}
        if name not in known:
            raise BookError(f"verdicts: {name!r} must be the number of a claim, as fedsgm/C1.")
        claim, study = known[name]
        outcome = evaluate(self.env, study, claim).outcome
        link, _ = ClaimRole()("claim", name, name, self.lineno, self.state.inliner)
        return [
            [nodes.paragraph("", "", *part) for part in (link, [page_link(self.env, study.name)])],
            self.inline(claim.wording),
            [nodes.paragraph("", text) for text in (outcome.measured, outcome.reason) if text],
            badge(outcome.label, outcome.verdict),
        ]  # fmt: skip


class Others(BookDirective):
    """``{other-methods}``: pseudocode and messages of all algorithms that no page shows."""

    kind = "other-methods"

    def build(self) -> list[nodes.Node]:
        """As on a page of its own, one after another; nothing if all have one."""
        pages = Path(self.env.srcdir, self.env.docname).parent.glob("*.md")
        text = ""
        for algorithm in others("".join(page.read_text(encoding="utf-8") for page in pages)):
            name = algorithm.__name__
            text += (
                f"```{{pseudocode}} fedlib.algorithms.{name}\n```\n\n```{{round}} {name}\n```\n\n"
            )
            text += f"```{{eval-rst}}\n.. autoclass:: {algorithm.__module__}.{name}\n```\n\n"
        return self.parse_text_to_nodes(text) if text else []


def others(shown: str) -> list[type]:
    """The algorithms whose pseudocode some text does not show."""
    from fedlib.algorithms import ALGORITHMS

    there = set(re.findall(r"^```{pseudocode} fedlib\.algorithms\.(\w+)$", shown, re.MULTILINE))
    return [a for a in ALGORITHMS if a.__name__ not in there]


def setup(app: Sphinx) -> None:
    """Registers the directives."""
    app.add_directive("pseudocode", Pseudocode)
    app.add_directive("other-methods", Others)
    app.add_directive("verdicts", Verdicts)
