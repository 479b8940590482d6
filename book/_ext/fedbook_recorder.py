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

    from fedlib.testing.examples import Example

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
    from fedlib.core.sampling import seeded

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
    from fedlib.algorithms._vertical import messages
    from fedlib.core import Vectorized
    from fedlib.core.sampling import seeded

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
        if ends[0] == ends[1]:
            ends = (ends[0], "each other client")
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
    from fedlib.core import Vectorized
    from fedlib.core.federation import FLOAT_BITS

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
    return ast.parse(Path(file).read_text(encoding="utf-8"))


@lru_cache(maxsize=64)
def rounds_of(name: str) -> tuple[tuple[Example, Recorded], ...]:
    """The examples of an algorithm with their recorded rounds."""
    from fedlib.testing.examples import examples

    known = examples()
    if name not in known:
        raise BookError(f"there is no example of {name!r}; known: {', '.join(known)}.")
    return tuple((example, recorded(example)) for example in known[name])
