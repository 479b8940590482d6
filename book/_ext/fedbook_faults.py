"""The table of planted faults, read from what the scripts of ``tests/faults`` stored."""

from __future__ import annotations

from html import escape
from typing import Any

from docutils import nodes
from fedbook_data import BookDirective, BookError, Cell, raw, read_stored, table
from sphinx.application import Sphinx

HEAD = ("What was planted", "Tried", "Noticed or harmless", "Fell short", "Script", "Day, commit")
WIDTHS = (34, 7, 12, 8, 20, 14)
#: How a fault that fell short did so, in the order of the sentence.
SHORT = ("obscure", "unnamed", "accepted")


class PlantedFaults(BookDirective):
    """``{planted-faults} NAME ...``: a line for each script, and what fell short below."""

    required_arguments = 1
    final_argument_whitespace = True
    kind = "planted-faults"

    def build(self) -> list[nodes.Node]:
        """The table, and a list folded away for every script with faults that fell short."""
        from papers.kit.store import results_dir

        folder = results_dir() / "faults"
        names = self.arguments[0].split()
        forgotten = {path.stem for path in folder.glob("*.json")} - set(names)
        if forgotten:
            raise BookError(
                f"results/faults has {', '.join(sorted(forgotten))}, which no line names."
            )
        held = [read_stored(self.env, folder / f"{name}.json") for name in names]
        rows = [row(one) for one in held]
        return [table(HEAD, [*rows, totals(held)], WIDTHS, "faults"), *map_short(held)]


def row(held: dict[str, Any]) -> list[Cell]:
    """One script's line."""
    origin = held["provenance"]
    commit = (origin["commit"] or "none")[:7] + "+" * bool(origin["dirty"])
    return [
        titled(held),
        str(held["tried"]),
        str(held["good"]),
        fallen(held) or "–",
        nodes.literal("", f"tests/faults/{held['name']}.py"),
        f"{origin['date']}, {commit}",
    ]


def titled(held: dict[str, Any]) -> str:
    """What was planted, with a capital."""
    what = str(held["what"])
    return what[:1].upper() + what[1:]


def fallen(held: dict[str, Any]) -> str:
    """How many fell short, and how."""
    return ", ".join(f"{held[kind]} {kind}" for kind in SHORT if held[kind])


def totals(held: list[dict[str, Any]]) -> list[Cell]:
    """The last line of the table."""
    tried, good = (sum(one[key] for one in held) for key in ("tried", "good"))
    texts = ("All", str(tried), str(good), str(tried - good), "", "")
    return [nodes.strong(text, text) for text in texts]


def map_short(held: list[dict[str, Any]]) -> list[nodes.Node]:
    """What fell short, by script, folded away."""
    found: list[nodes.Node] = []
    for one in (one for one in held if one["short"]):
        title = f"{titled(one)}: {len(one['short'])} fell short"
        items = (nodes.paragraph("", "", *said(outcome)) for outcome in one["short"])
        found.append(raw(f"<details><summary>{escape(title)}</summary>"))
        found.append(nodes.bullet_list("", *(nodes.list_item("", item) for item in items)))
        found.append(raw("</details>"))
    return found


def said(outcome: dict[str, Any]) -> list[nodes.Node]:
    """One fault that fell short: its name, how, and what was said."""
    tail = f": {outcome['kind']}" + (f" ({outcome['said'][:200]})" if outcome["said"] else "")
    return [nodes.literal("", outcome["name"]), nodes.Text(tail)]


def setup(app: Sphinx) -> None:
    """Registers the directive."""
    app.add_directive("planted-faults", PlantedFaults)
