"""Recording one round of an algorithm: every message with its length, and who has what."""

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

from fedbook_data import BookError

if TYPE_CHECKING:
    from types import FrameType

    from fedlib.core.federation import Sent
    from fedlib.testing.examples import Example

CITED = re.compile(r"\s*#\s(\d[\d, -]*)$")  # the numbers of pseudocode lines, after a line of code


class Message(NamedTuple):
    """A message, as often as it was sent in the round."""

    lines: str  # of the pseudocode
    sender: str
    receiver: str
    what: str
    bits: int  # of one copy
    copies: int


class Recorded(NamedTuple):
    """A round: its messages, and the bits that it reports itself."""

    sent: list[Message]
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
    from fedlib.core.sampling import seeded

    algorithm, problem = example
    fed = recorder(type(algorithm))(problem)
    draw = algorithm.draw(problem, seeded(0, "rounds"))
    _, info = algorithm.round(fed, algorithm.init(problem), draw)
    bits = {key: round(float(value)) for key, value in info.items() if key.startswith("bits_")}
    sent, sums = merged(fed), {"bits_up": 0, "bits_down": 0, "bits_between": 0}
    for m in sent:
        sums[direction(m)] += m.bits * m.copies
    wrong = {key: sums[key] for key in bits if sums[key] != bits[key]}
    if wrong:
        name = type(algorithm).__name__
        raise BookError(f"{name}: the messages add up to {wrong}, the round reports {bits}.")
    form = getattr(problem, "composite", None)  # of clients that have features of every sample
    count = len(draw.participants) if form is None else form.clients
    return Recorded(sent, count, fed.keeps, fed.told, bits)


def direction(message: Message) -> str:
    """Which of the three counts a message belongs to."""
    if message.receiver == "server":
        return "bits_up"
    return "bits_down" if message.sender == "server" else "bits_between"


def merged(fed: Any) -> list[Message]:
    """Neighbouring messages of one kind as one line."""
    found = []
    both = zip(fed.log, fed.said or [("", m.what) for m in fed.log], strict=True)
    for (lines, what, *_), group in groupby(both, key=kind):
        some = [m for m, _ in group]
        sizes = {m.bits for m in some}
        if len(sizes) > 1:
            raise BookError(f"{what}: messages of one kind differ in length, {sizes}.")
        ends = (ended(m.sender for m in some), ended(m.receiver for m in some))
        if ends[0] == ends[1]:
            ends = (ends[0], "each other client")
        found.append(Message(lines, *ends, what, sizes.pop(), sum(m.copies for m in some)))
    return found


def kind(noted: tuple[Sent, tuple[str, str]]) -> tuple[str, ...]:
    """What messages have in common that are one line: lines, what, and the ends without numbers."""
    sent, (lines, what) = noted
    bits = "" if sent.sender[-1].isdigit() or sent.receiver[-1].isdigit() else str(sent.bits)
    return lines, what, sent.sender.rstrip("0123456789"), sent.receiver.rstrip("0123456789"), bits


def ended(names: Any) -> str:
    """One end of some messages of a kind: its name, or `each client`."""
    names = set(names)
    return names.pop() if len(names) == 1 else "each client"


def recorder(algorithm: type) -> Any:
    """The federation that records, for rounds of one class of algorithms."""
    from fedlib.core import Vectorized

    file = inspect.getfile(algorithm)

    class Recorder(Vectorized):
        """What `Vectorized` does, with a log; of each message the cited lines and what it is."""

        def __init__(self, problem: Any) -> None:
            super().__init__(problem)
            self.log = []
            self.said: list[tuple[str, str]] = []
            self.keeps = self.told = False

        def ask(self, method: Any, clients: Any, *broadcast: Any, **options: Any) -> Any:
            answer = super().ask(method, clients, *broadcast, **options)
            lines = cited_by(sys._getframe(1), file)
            names = [f"`{m.what}`" for m in self.log[len(self.said) : -1]]
            self.said += [(lines, what) for what in (*names, described(method))]
            self.keeps |= not isinstance(clients.memory, tuple) and clients.memory.numel() > 0
            self.told |= not isinstance(clients.model, tuple)
            return answer

        def broadcast(self, *message: Any, **options: Any) -> Any:
            frame = sys._getframe(1)
            self.said.append((cited_by(frame, file), f"`{told_by(frame)}`"))
            return super().broadcast(*message, **options)

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
    """The message of the call of `broadcast` that a frame stands at, as its source writes it."""
    for node in ast.walk(parsed(frame.f_code.co_filename)):
        if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") != "broadcast":
            continue
        if node.lineno <= frame.f_lineno <= (node.end_lineno or node.lineno):
            return ast.unparse(node.args[1]).removeprefix("state.").removesuffix(".flatten()")
    raise BookError(f"no call of broadcast at line {frame.f_lineno} of {frame.f_code.co_name}.")


@lru_cache(maxsize=32)
def parsed(file: str) -> ast.Module:
    """The syntax tree of a source file."""
    return ast.parse(Path(file).read_text(encoding="utf-8"))


@lru_cache(maxsize=64)
def rounds_of(name: str) -> tuple[tuple[Example, Recorded], ...]:
    """The examples of an algorithm with their recorded rounds."""
    from fedlib.testing.examples import examples

    known = examples()
    if name not in known:
        raise BookError(f"there is no example of {name!r}; known: {', '.join(known)}.")
    return tuple((example, recorded(example)) for example in known[name])
