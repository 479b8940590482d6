"""One recorded round of an algorithm: what crosses the line, who sees what, and the bits."""

from __future__ import annotations

import ast
import inspect
import linecache
import re
import sys
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from docutils import nodes
from fedbook_data import BookDirective, BookError, Cell, table, warn
from fedbook_examples import Example, examples
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole

if TYPE_CHECKING:
    from types import FrameType

    from fedlib.types import Problem

CITED = re.compile(r"\s*#\s(\d[\d, -]*)$")  # the numbers of pseudocode lines, after a line of code
WORD = 32  # bits of one number


class Sent(NamedTuple):
    """A message, as often as it was sent in the round."""

    lines: str  # of the pseudocode
    sender: str
    receiver: str
    what: str
    bits: int  # of one copy
    copies: int


class Recorded(NamedTuple):
    """A round: its messages, and the bits that it reports itself."""

    sent: list[Sent]
    participants: int
    keeps: bool  # whether participants have a memory
    told: bool  # whether clients hold the common model already
    bits: dict[str, int]


def recorded(example: Example) -> Recorded:
    """Runs the first round of an example and writes down every message.

    Raises
    ------
    BookError
        if the messages do not add up to the bits that the round reports.
    """
    from fedlib.vertical import VerticalProblem

    form = isinstance(example.problem, VerticalProblem)
    found = over_features(example) if form else over_samples(example)
    sums = {"bits_up": 0, "bits_down": 0, "bits_between": 0}
    for message in found.sent:
        sums[direction(message)] += message.bits * message.copies
    wrong = {key: sums[key] for key in found.bits if sums[key] != found.bits[key]}
    if wrong:
        name = type(example.algorithm).__name__
        raise BookError(f"{name}: the messages add up to {wrong}, the round reports {found.bits}.")
    return found


def direction(message: Sent) -> str:
    """Which of the three counts a message belongs to."""
    if message.receiver == "server":
        return "bits_up"
    return "bits_down" if message.sender == "server" else "bits_between"


def reported(info: dict[str, Any]) -> dict[str, int]:
    """The bits that a round reports."""
    return {key: round(float(value)) for key, value in info.items() if key.startswith("bits_")}


def over_samples(example: Example) -> Recorded:
    """A round in which every client has some of the samples."""
    from fedlib.sampling import seeded

    algorithm, problem = example
    fed = recorder(type(algorithm))(problem)
    draw = algorithm.draw(problem, seeded(0, "rounds"))
    _, info = algorithm.round(fed, algorithm.init(problem), draw)
    count = len(draw.participants)
    return Recorded(merged(fed.sent), count, fed.keeps, fed.told, reported(info))


def merged(sent: list[Sent]) -> list[Sent]:
    """Neighbouring messages of one kind as one line."""
    return [
        key._replace(copies=sum(m.copies for m in group))
        for key, group in groupby(sent, key=lambda m: m._replace(copies=0))
    ]


def over_features(example: Example) -> Recorded:
    """A round in which every client has some of the features: equal messages are put together."""
    from fedlib.algorithms.vertical_ssca import messages
    from fedlib.federation import Vectorized
    from fedlib.sampling import seeded

    algorithm, problem = example
    form = problem.composite
    log = messages(algorithm, problem, seeded(0, "rounds"))
    sent = []
    for _, group in groupby(log, key=lambda m: (kind(m.sender), kind(m.receiver), m.what)):
        some = list(group)
        sizes = {WORD * (m.floats + m.indices) for m in some}
        if len(sizes) > 1:
            raise BookError(f"{problem.name}: messages of one kind differ in length, {sizes}.")
        ends = (ended(m.sender for m in some), ended(m.receiver for m in some))
        sent.append(Sent("", *ends, some[0].what, sizes.pop(), len(some)))
    draw = algorithm.draw(problem, seeded(0, "rounds"))
    _, info = algorithm.round(Vectorized(problem), algorithm.init(problem), draw)
    return Recorded(sent, form.clients, False, False, reported(info))


def kind(end: str) -> str:
    """`server` or `client`."""
    return end.partition(" ")[0]


def ended(names: Any) -> str:
    """One end of some messages of a kind: its name, or `each client`."""
    names = set(names)
    return names.pop() if len(names) == 1 else "each client"


def recorder(algorithm: type) -> Any:
    """The federation that records, for rounds of one class of algorithms."""
    from fedlib.federation import FLOAT_BITS, Vectorized

    file = inspect.getfile(algorithm)

    class Recorder(Vectorized):
        """What `Vectorized` does, with a list of what was sent."""

        def __init__(self, problem: Any) -> None:
            super().__init__(problem)
            self.sent: list[Sent] = []
            self.keeps = self.told = False

        def ask(self, method: Any, clients: Any, *broadcast: Any, **options: Any) -> Any:
            wire, active = options.get("wire"), options.get("active")
            answer = super().ask(method, clients, *broadcast, **options)
            upload = answer[0] if isinstance(answer, tuple) else answer
            count = upload.shape[0] if active is None else int(active.sum())
            lines, size = cited_by(sys._getframe(1), file), upload[0].numel()
            names = list(inspect.signature(plain(method)).parameters)[1:]
            for name, part in zip(names, broadcast, strict=False):
                bits = FLOAT_BITS * part.numel()
                self.sent.append(Sent(lines, "server", "participant", f"`{name}`", bits, count))
            bits = FLOAT_BITS * size if wire is None else wire.bits(size)
            what = described(method)
            self.sent.append(Sent(lines, "participant", "server", what, bits, count))
            self.keeps |= not isinstance(clients.memory, tuple) and clients.memory.numel() > 0
            self.told |= not isinstance(clients.model, tuple)
            return answer

        def tell(
            self, wire: Any, message: Any, noise: Any = (), receivers: int | None = None
        ) -> Any:
            frame = sys._getframe(1)
            count = self.problem.num_clients if receivers is None else receivers
            whom = "every client" if receivers is None else "participant"
            bits, what = wire.bits(message.numel()), f"`{told_by(frame)}`"
            lines = cited_by(frame, file)
            self.sent.append(Sent(lines, "server", whom, what, bits, count))
            return super().tell(wire, message, noise, receivers)

    return Recorder


def plain(method: Any) -> Callable[..., Any]:
    """The function inside of partials."""
    while isinstance(method, partial):
        method = method.func
    return method  # type: ignore[no-any-return]


def described(method: Any) -> str:
    """What a client's method says of itself, in one sentence."""
    function = plain(method)
    if not function.__doc__:
        raise BookError(f"{function.__qualname__} needs a docstring: what the client sends.")
    first = " ".join(inspect.cleandoc(function.__doc__).split("\n\n")[0].split())
    return re.sub(r"^At (?:the client|a client of S): ", "", first).rstrip(".")


def cited_by(frame: FrameType | None, file: str) -> str:
    """The pseudocode's lines that the nearest numbered line of `file` cites, going outwards."""
    while frame is not None:
        if frame.f_code.co_filename == file:
            found = CITED.search(linecache.getline(file, frame.f_lineno).rstrip())
            if found:
                return found[1]
        frame = frame.f_back
    return ""


def told_by(frame: FrameType) -> str:
    """The message of the call of `tell` that a frame stands at, as its source writes it."""
    for node in ast.walk(parsed(frame.f_code.co_filename)):
        if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") != "tell":
            continue
        if node.lineno <= frame.f_lineno <= (node.end_lineno or node.lineno):
            return ast.unparse(node.args[1]).removeprefix("state.").removesuffix(".flatten()")
    raise BookError(f"no call of tell at line {frame.f_lineno} of {frame.f_code.co_name}.")


@lru_cache(maxsize=32)
def parsed(file: str) -> ast.Module:
    """The syntax tree of a source file."""
    return ast.parse(Path(file).read_text())


@lru_cache(maxsize=64)
def rounds_of(name: str) -> tuple[tuple[Example, Recorded], ...]:
    """The examples of an algorithm with their recorded rounds."""
    if name not in examples():
        raise BookError(f"there is no example of {name!r}; known: {', '.join(examples())}.")
    return tuple((example, recorded(example)) for example in examples()[name])


def setting(value: Any) -> str:
    """A record with the fields that are not at their defaults."""
    from dataclasses import MISSING, fields, is_dataclass

    if not is_dataclass(value):
        return repr(value)
    own = [f for f in fields(value) if f.default is MISSING or getattr(value, f.name) != f.default]
    inner = ", ".join(f"{f.name}={setting(getattr(value, f.name))}" for f in own)
    return f"{type(value).__name__}({inner})"


def count_of(problem: Problem) -> int:
    """N, also where every client has all samples."""
    form = getattr(problem, "composite", None)
    return problem.num_clients if form is None else int(form.clients)


class Round(BookDirective):
    """``{round} NAME``: the messages of one recorded round, who sees what, bits by setting."""

    required_arguments = 1
    kind = "round"

    def build(self) -> list[nodes.Node]:
        """The tables, after a sentence that says what was run."""
        name = self.arguments[0]
        done = rounds_of(name)
        example, first = done[0]
        text = nodes.paragraph("", "", *self.inline(self.sentence(example, first)))
        made: list[nodes.Node] = [text]
        if first.sent:
            made += [self.messages(first), self.views(first, count_of(example.problem))]
        if len(done) > 1:
            made += [self.variants(done)]
        return made

    def sentence(self, example: Example, found: Recorded) -> str:
        """What was run, in what size, and what it took."""
        problem = example.problem
        sizes = [f"$N={count_of(problem)}$", f"$n={found.participants}$", f"$d={problem.dim}$"]
        if problem.num_objectives > 1:
            sizes.append(f"$M={problem.num_objectives}$")
        where = f"on `{problem.name}`"
        if problem.set is not None:
            where += f" in `{setting(problem.set)}`"
        run = f"One recorded round of `{setting(example.algorithm)}` {where}, {', '.join(sizes)}"
        if not found.sent:
            return f"{run}: nothing crosses a line, all data lie in one place."
        parts = [f"{found.bits['bits_up']:,} bits up", f"{found.bits['bits_down']:,} down"]
        if "bits_between" in found.bits:
            parts.append(f"{found.bits['bits_between']:,} between clients")
        return f"{run}: {', '.join(parts)}."

    def messages(self, found: Recorded) -> nodes.table:
        """One line a message."""
        numbered = any(m.lines for m in found.sent)
        rows: list[list[Cell]] = [
            [
                *([m.lines] if numbered else []),
                f"{m.sender} to {m.receiver}",
                self.inline(m.what),
                f"{m.bits:,}",
                f"{m.copies:,}",
                f"{m.bits * m.copies:,}",
            ]
            for m in found.sent
        ]
        head = ["From, to", "What", "Bits", "Times", "In all"]
        widths = [22, 42, 10, 10, 12]
        if numbered:
            head, widths = ["Line", *head], [8, *widths]
        return table(head, rows, widths, "round")

    def views(self, found: Recorded, clients: int) -> nodes.table:
        """Who sees what, from the same messages."""
        own = ["its own rows"] if not found.bits.get("bits_between") else ["its part of every row"]
        inbox = {"participant", "each client", "every client"}
        heads = {m.sender for m in found.sent} - {"server", "participant", "each client"}
        whats = list(dict.fromkeys(m.what for m in found.sent if m.receiver in inbox))
        own += ["the common model `w`"] if found.told and "`w`" not in whats else []
        own += ["what it keeps itself"] if found.keeps else []
        rows: list[list[Cell]] = [["a client that takes part", self.inline("; ".join(own + whats))]]
        if heads:  # one client has a task of its own, with the same view
            rows[0][0] = f"each client, among them {', '.join(sorted(heads))}"
        broadcast = [m.what for m in found.sent if m.receiver == "every client"]
        if found.participants < clients:
            rows.append(["every other client", self.inline("; ".join(broadcast) or "nothing")])
        heard = list(dict.fromkeys(m.what for m in found.sent if m.receiver == "server"))
        rows.append(["the server", self.inline("; ".join(heard))])
        return table(("Who", "Sees"), rows, (24, 76), "views")

    def variants(self, done: tuple[tuple[Example, Recorded], ...]) -> nodes.table:
        """Bits of every setting."""
        rows: list[list[Cell]] = []
        for example, found in done:
            problem = example.problem
            within = [] if problem.set is None else [nodes.literal("", setting(problem.set))]
            text = setting(example.algorithm)
            cell: list[nodes.Node] = [nodes.literal(text, text)]
            cell += [nodes.Text(" in "), *within] if within else []
            up = found.bits["bits_up"]
            each = up / found.participants
            share = f"{each / (WORD * problem.dim):.3g}"
            rows.append([cell, f"{up:,}", f"{found.bits['bits_down']:,}", f"{each:,.0f}", share])
        head = ("Setting", "Bits up", "Bits down", "Up, a client", "in models")
        return table(head, rows, (56, 11, 11, 11, 11), "variants")


class BitsRole(SphinxRole):
    """``{round-bits}`NAME up` ``: bits of a recorded round, and in models a client."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """`1,430 (0.149)`, or a typed warning."""
        name, _, way = self.text.partition(" ")
        try:
            example, found = rounds_of(name)[0]
            bits = found.bits[f"bits_{way}"]
        except (BookError, KeyError) as error:
            warn(error, "round-bits", self.get_location())
            return [nodes.problematic(self.rawtext, self.text)], []
        each = bits / found.participants / (WORD * example.problem.dim)
        text = f"{bits:,} ({each:.3g})" if bits else "0"
        return [nodes.Text(text)], []


def setup(app: Sphinx) -> None:
    """Registers the directive and the role."""
    app.add_directive("round", Round)
    app.add_role("round-bits", BitsRole())
