"""What a real federation gave beside the simulation: the table that ``benchmarks/`` has stored."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from fedbook_data import BookDirective, BookError, Cell, table
from fedbook_speed import digits, machine, measured
from sphinx.application import Sphinx

TABLES = {
    "iterates": (
        "Method", "Rounds", "Parameters", "Numbers", "From Vectorized", "in the same bytes",
        "Up: bits counted", "bytes sent", "Down: bits counted", "bytes sent",
    ),
    "seconds": (
        "Method", "Exchanges a round", "A round, s", "Plain Flower, s", "Ratio",
        "Computation, CPU s",
    ),
    "processes": ("Method, parameters", "How", "A round, ms", "From the first"),
}  # fmt: skip
FILES = {"processes": "distributed"}  # of those that are not in `federation.json`


class FederationTable(BookDirective):
    """``{federation} iterates``, ``seconds`` or ``processes``: the lines, and the machine."""

    required_arguments = 1
    kind = "federation"

    def build(self) -> list[nodes.Node]:
        """The table and the machine below."""
        name = self.arguments[0]
        if name not in TABLES:
            raise BookError(f"there is no table {name!r}; known tables: {', '.join(TABLES)}.")
        held = measured(self.env, FILES.get(name, "federation"))
        lines = {"iterates": iterates, "seconds": seconds, "processes": processes}[name]
        rows = [line for case, its in held["results"].items() for line in lines(case, its)]
        widths = (16, *(12,) * (len(TABLES[name]) - 1))
        return [table(TABLES[name], rows, widths, "speed"), machine(held)]


def iterates(method: str, its: dict[str, Any]) -> list[list[Cell]]:
    """How far apart the models are, and what crossed the line."""
    far = [apart(its.get(k)) for k in ("difference", "in_bytes")]
    ways = ((its["bits"][way], its["bytes"][way]) for way in ("up", "down"))
    crossed = [f"{number:,}" for both in ways for number in both]
    return [[method, str(its["rounds"]), f"{its['parameters']:,}", its["digits"], *far, *crossed]]


def apart(far: float | None) -> str:
    """A largest difference, a dash where it has not been measured."""
    return "\u2013" if far is None else f"{far:.1e}" if far else "0"


def seconds(method: str, its: dict[str, Any]) -> list[list[Cell]]:
    """How long a round takes beside plain Flower."""
    ours, plain = its["seconds"], its["plain"]
    beyond = ours - its["computation"]  # of the simulation, on one processor
    ratio = "\u2013" if plain is None else f"{beyond / plain:.2f}"
    times = (digits(ours), digits(plain), ratio, digits(its["computation"]))
    return [[method, str(its["asks"]), *times]]


def processes(case: str, its: dict[str, Any]) -> list[list[Cell]]:
    """How long a round of many clients takes in each way."""
    return [
        [case if i == 0 else "", way, digits(found["ms"]), f"{found['difference']:.0e}"]
        for i, (way, found) in enumerate(its.items())
    ]


def setup(app: Sphinx) -> None:
    """Registers the directive."""
    app.add_directive("federation", FederationTable)
