"""Pages about methods: pseudocode beside the code that implements it, and what crosses the line.

Directive ``pseudocode`` takes a class of `fedlib.algorithms` and reads everything from its source:
the numbered pseudocode of its docstring, and the methods, whose comments cite its lines. Directive
``round`` runs one round and lists its messages; ``other-methods`` shows both for all algorithms
without a page.
"""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from docutils import nodes
from docutils.parsers.rst import directives
from fedbook_data import BookDirective, BookError, Cell, raw, reference, table, warn
from fedbook_formulas import set_formulas
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole

if TYPE_CHECKING:
    from fedlib.core.federation import Sent
    from fedlib.testing.examples import Example

STEP = re.compile(r"^ {4}(\d+)( +)(\S.*)$")
#: The words of an algorithm that are set in bold: where a line begins with them, or after a comma.
KEYWORD = re.compile(
    r"(?:(?<=^)|(?<=, )|(?<=; ))(for each|for|if|else|otherwise|while|return|repeat)\b"
)
SKIPPED = {"__post_init__", "init"}  # checks, the same everywhere
PARTS = {"Differs": "Differs from the paper", "Reference": "Reference"}


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
        match = STEP.match(line)
        if match and int(match[1]) == len(steps) + 1:
            columns.append(match.start(3))
            steps.append(Step(int(match[1]), 0, [match[3]]))
        elif steps and line.startswith(" " * 5):
            text = line.strip()
            if "<-" in text or steps[-1].lines[-1].endswith(":"):
                steps[-1].lines.append(text)
            else:
                steps[-1].lines[-1] += f" {text}"
        elif steps:
            break
    left = min(columns, default=0)
    return [step._replace(indent=c - left) for step, c in zip(steps, columns, strict=True)]


def paragraph_of(doc: str, label: str) -> str:
    """The paragraph of a docstring that begins with `label`, without it."""
    match = re.search(rf"^{label}: (.*?)(?:\n\n|\Z)", doc, re.DOTALL | re.MULTILINE)
    return " ".join(match[1].split()) if match else ""


def sources(thing: Any) -> Iterator[str]:
    """The source of a function, or of a class's methods without its checks, one by one."""
    if not inspect.isclass(thing):
        yield textwrap.dedent(inspect.getsource(thing))
        return
    members: dict[str, Any] = {}
    for base in reversed(bases_of(thing)):
        members.update(vars(base))
    files = {inspect.getfile(base) for base in bases_of(thing)}
    for name, member in members.items():
        function = member.fget if isinstance(member, property) else member
        if not inspect.isfunction(function) or name in SKIPPED:
            continue
        if function.__code__.co_filename in files:  # not made by `dataclass`
            yield textwrap.dedent(inspect.getsource(function))


def bases_of(thing: type) -> list[type]:
    """A class and its bases that belong to its pseudocode: of its own file, or shared work."""
    return [
        base
        for base in thing.__mro__
        if base.__module__ == thing.__module__ or base.__module__.startswith("fedlib.work.")
    ]


def named(path: str) -> Any:
    """What a dotted name stands for."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError):
        raise BookError(f"pseudocode: {path!r} must be a dotted name of the library.") from None


class Pseudocode(BookDirective):
    """``{pseudocode} fedlib.algorithms.NAME`` beside its code; with ``:alone:`` without."""

    required_arguments = 1
    option_spec = {"alone": directives.flag}  # noqa: RUF012 - docutils reads it
    subtype = "pseudocode"

    def build(self) -> list[nodes.Node]:
        """Pseudocode, code beside it, and what the docstring says beside them."""
        algorithm = named(self.arguments[0])
        doc = inspect.getdoc(algorithm) or ""
        steps = steps_of(doc)
        if not inspect.isclass(algorithm) or not steps:
            raise BookError(f"pseudocode: {self.arguments[0]} must be a class with pseudocode.")
        name = algorithm.__name__
        fields = []
        for label, title in PARTS.items():
            text = paragraph_of(doc, label)
            if text:
                lead = nodes.strong("", f"{title}: ")
                fields.append(nodes.paragraph("", "", lead, *self.inline(text)))
        pseudo = f'<p class="method-name">{name}</p>{pseudo_html(steps)}'
        side = f'<div class="method-side">{pseudo}</div>'
        if "alone" in self.options:
            return [raw(f'<div id="method-{name.lower()}">{side}</div>'), *fields]
        return [
            raw(
                f'<div class="method-grid wide-page" id="method-{name.lower()}">{side}'
                '<div class="method-code">'
            ),
            self.code(algorithm),
            raw("</div></div>"),
            self.origin(algorithm),
            *fields,
        ]

    def code(self, thing: Any) -> nodes.literal_block:
        """Its source; the page is built again when that changes."""
        for base in bases_of(thing) if inspect.isclass(thing) else [thing]:
            self.env.note_dependency(inspect.getfile(base))
        text = "\n".join(sources(thing))
        return nodes.literal_block(text, text, language="python")

    def origin(self, algorithm: type) -> nodes.paragraph:
        """Where the class is described, with its parameters."""
        name = algorithm.__name__
        target = f"fedlib.algorithms.{name}"
        link = reference(self.env, nodes.literal(name, name), "py", "class", target)
        lead = nodes.Text(
            "The comments in the code cite the lines of the pseudocode. The API describes "
        )
        return nodes.paragraph(
            "",
            "",
            lead,
            link,
            nodes.Text(" with its parameters and errors."),
            classes=["method-origin"],
        )


def pseudo_html(steps: list[Step]) -> str:
    """The pseudocode as a numbered list."""
    items = []
    for step in steps:
        lines = [KEYWORD.sub(r"<b>\1</b>", set_formulas(line)) for line in step.lines]
        text = "<br>".join(lines)
        text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
        items.append(
            f'<li><span class="method-number">{step.number}</span>'
            f'<span class="method-text" style="margin-left: {step.indent}ch">{text}</span></li>'
        )
    return f'<ol class="method-pseudo" aria-label="Pseudocode">{"".join(items)}</ol>'


@cache
def recorded(name: str) -> tuple[Example, list[Sent], dict[str, int], int]:
    """One round of an algorithm's first example: its messages, the bits it reports, participants.

    Raises
    ------
    BookError
        if the messages do not add up to the bits that the round reports.
    """
    from fedlib.core import Vectorized
    from fedlib.core.sampling import seeded
    from fedlib.testing.examples import examples

    if name not in examples():
        raise BookError(f"there is no example of {name!r}; known: {', '.join(examples())}.")
    example = examples()[name][0]
    algorithm, problem = example
    fed = Vectorized(problem)
    fed.log = []
    draw = algorithm.draw(problem, seeded(0, "rounds"))
    _, info = algorithm.round(fed, algorithm.init(problem), draw)
    bits = {key: round(float(value)) for key, value in info.items() if key.startswith("bits_")}
    sums = dict.fromkeys(("bits_up", "bits_down", "bits_between"), 0)
    for sent in fed.log:
        direction = "between"
        if sent.receiver == "server":
            direction = "up"
        elif sent.sender == "server":
            direction = "down"
        sums[f"bits_{direction}"] += sent.bits * sent.copies
    if wrong := {key: sums[key] for key in bits if sums[key] != bits[key]}:
        raise BookError(f"{name}: the messages add up to {wrong}, the round reports {bits}.")
    composite = getattr(problem, "composite", None)  # clients with features of every sample
    participants = composite.clients if composite else len(draw.participants)
    return example, fed.log, bits, participants


def in_models(bits: float, example: Example) -> str:
    """So many bits, in models of full precision."""
    from fedlib.compress.wire import FLOAT_BITS

    return f"{bits / (FLOAT_BITS * example.problem.dim):.3g}"


class Round(BookDirective):
    """``{round} NAME``: the messages of one recorded round and their bits."""

    required_arguments = 1
    subtype = "round"

    def build(self) -> list[nodes.Node]:
        """A sentence that says what was run, and a line a message."""
        example, log, bits, participants = recorded(self.arguments[0])
        problem = example.problem
        noun = "participant" if participants == 1 else "participants"
        if not log:
            text = f"`{self.arguments[0]}` sends no messages: all data are in one place."
            return [nodes.paragraph("", "", *self.inline(text))]
        text = (
            f"A recorded round of `{self.arguments[0]}` with {participants} {noun} and "
            f"{problem.dim} parameters: {bits['bits_up']:,} bits up, {bits['bits_down']:,} down."
        )
        rows: list[list[Cell]] = []
        for (ends, content, size), group in groupby(log, key=line_of):
            copies = sum(sent.copies for sent in group)
            name = nodes.literal(content, content)
            rows.append([ends, name, f"{size:,}", in_models(size, example), f"{copies:,}"])
        head = ("From and to", "Message, as the code names it", "Bits", "In models", "Times sent")
        widths = (30, 34, 12, 12, 12)
        return [
            nodes.paragraph("", "", *self.inline(text)),
            table(head, rows, widths, "round"),
        ]


def line_of(sent: Sent) -> tuple[str, str, int]:
    """What messages of one line have in common: both ends without numbers, what, and the bits."""
    ends = f"{sent.sender} to {sent.receiver}"
    return re.sub(r"\bclient \d+", "each client", ends), sent.name, sent.bits


class BitsRole(SphinxRole):
    """``{round-bits}`NAME up` ``: bits of a recorded round, and in models a client."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """`1,430 (0.149)`, or a typed warning."""
        name, _, direction = self.text.partition(" ")
        try:
            example, _, all_bits, participants = recorded(name)
            bits = all_bits[f"bits_{direction}"]
        except (BookError, KeyError) as error:
            warn(error, "round-bits", self.get_location())
            return [nodes.problematic(self.rawtext, self.text)], []
        text = "0"
        if bits:
            text = f"{bits:,} ({in_models(bits / participants, example)})"
        return [nodes.Text(text)], []


class Others(BookDirective):
    """``{other-methods}``: pseudocode and messages of all algorithms that no page shows."""

    subtype = "other-methods"

    def build(self) -> list[nodes.Node]:
        """As on a page of its own, one after another; nothing if all have one."""
        folder = Path(self.env.srcdir, self.env.docname).parent
        pages = [page.read_text(encoding="utf-8") for page in folder.glob("*.md")]
        text = ""
        for algorithm in others("".join(pages)):
            name = algorithm.__name__
            text += (
                f"```{{pseudocode}} fedlib.algorithms.{name}\n```\n\n```{{round}} {name}\n```\n\n"
            )
            text += f"```{{eval-rst}}\n.. autoclass:: {algorithm.__module__}.{name}\n```\n\n"
        return self.parse_text_to_nodes(text) if text else []


def others(shown: str) -> list[type]:
    """The algorithms whose pseudocode some text does not show."""
    from fedlib.algorithms import ALGORITHMS

    names = re.findall(r"^```{pseudocode} fedlib\.algorithms\.(\w+)$", shown, re.MULTILINE)
    return [algorithm for algorithm in ALGORITHMS if algorithm.__name__ not in names]


def setup(app: Sphinx) -> None:
    """Registers the directives."""
    app.add_directive("pseudocode", Pseudocode)
    app.add_directive("other-methods", Others)
    app.add_directive("round", Round)
    app.add_role("round-bits", BitsRole())
