"""One recorded round of an algorithm: what crosses the line, who sees what, and the bits."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from docutils import nodes
from fedbook_data import BookDirective, BookError, Cell, table, warn
from fedbook_recorder import Recorded, rounds_of
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole

if TYPE_CHECKING:
    from fedlib.core import Problem
    from fedlib.testing.examples import Example


def setting(value: Any) -> str:
    """A record with the fields that are not at their defaults."""
    if not is_dataclass(value):
        return repr(value)
    own = [f for f in fields(value) if f.default is MISSING or getattr(value, f.name) != f.default]
    inner = ", ".join(f"{f.name}={setting(getattr(value, f.name))}" for f in own)
    return f"{type(value).__name__}({inner})"


def in_models(bits: float, problem: Problem) -> str:
    """So many bits, in models of full precision."""
    from fedlib.compress.compressors import FLOAT_BITS

    return f"{bits / (FLOAT_BITS * problem.dim):.3g}"


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
        inbox = {"participant", "each client", "each other client", "every client"}
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
        names = {example.problem.name for example, _ in done}
        rows: list[list[Cell]] = []
        for example, found in done:
            problem = example.problem
            within = [] if problem.set is None else [nodes.literal("", setting(problem.set))]
            text = setting(example.algorithm)
            cell: list[nodes.Node] = [nodes.literal(text, text)]
            cell += [nodes.Text(" in "), *within] if within else []
            cell += [nodes.Text(f" on {problem.name}")] if len(names) > 1 else []
            up = found.bits["bits_up"]
            each = up / found.participants
            share = in_models(each, problem)
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
        each = in_models(bits / found.participants, example.problem)
        text = f"{bits:,} ({each})" if bits else "0"
        return [nodes.Text(text)], []


def setup(app: Sphinx) -> None:
    """Registers the directive and the role."""
    app.add_directive("round", Round)
    app.add_role("round-bits", BitsRole())
