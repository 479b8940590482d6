"""Tables of the stored speed measurements, one for each processor."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docutils import nodes
from fedbook_data import BookDirective, BookError, table
from sphinx.application import Sphinx

OURS = ("fedlib FedAvg", "fedlib FedSGM")
AXES = {"clients": "clients", "many clients": "clients, d = 100", "parameters": "parameters"}

Block = Mapping[str, Any]


class Benchmark(BookDirective):
    """``{benchmark} NAME``: what was measured of `peers`, `start` or `scale`, newest first."""

    required_arguments = 1
    subtype = "benchmark"

    def build(self) -> list[nodes.Node]:
        """For each processor its conditions and a table."""
        name = self.arguments[0]
        if name not in TABLES:
            raise BookError(f"benchmark must be one of {', '.join(TABLES)}, got {name!r}.")
        path = Path(self.env.srcdir) / "benchmarks" / "results.json"
        self.env.note_dependency(str(path))
        stored = json.loads(path.read_text(encoding="utf-8"))
        blocks = {}
        for processor, measured in stored.items():
            if name in measured:
                blocks[processor] = measured[name]
        newest_first = sorted(blocks, key=lambda x: blocks[x]["machine"]["date"], reverse=True)
        shown: list[nodes.Node] = []
        for processor in newest_first:
            text = conditions(processor, blocks[processor])
            shown.append(nodes.paragraph("", "", *self.inline(text)))
            shown += TABLES[name](blocks[processor]["results"])
        return shown


def conditions(processor: str, block: Block) -> str:
    """Where and when a block was measured."""
    machine = block["machine"]
    kernels = {"onednn": "oneDNN's products, ", "torch": "MKL's products, "}
    products = kernels.get(machine.get("products", ""), "")
    return (
        f"**{processor}** ({machine['instructions']}), one thread, {products}torch "
        f"{machine['torch']}, {machine['date']}, commit {machine['commit']}"
    )


def peers_table(results: Block) -> list[nodes.Node]:
    """Milliseconds of a round by each workload, and the ratio to the fastest peer."""
    rows = []
    for name, case in results.items():
        times = {entry: values["cpu_ms"] for entry, values in case["entries"].items()}
        peers = {entry: time for entry, time in times.items() if entry not in OURS}
        fastest = min(peers, key=lambda entry: peers[entry])
        ratio = times[OURS[0]] / peers[fastest]
        columns = [milliseconds(times[entry]) for entry in (*OURS, fastest)]
        rows.append((name, case["title"], *columns, fastest, f"{ratio:.2f}"))
    head = ("", "workload", "FedAvg", "FedSGM", "fastest peer", "which", "ratio")
    return [table(head, rows, (8, 40, 9, 9, 9, 14, 8), "benchmark")]


def start_table(results: Block) -> list[nodes.Node]:
    """CPU seconds of a new process, with empty and with filled caches."""
    rows = []
    for case in results.values():
        cold = case["cold"]["cpu_s"]
        warm = case["warm"]["cpu_s"]
        rows.append((case["title"].replace("`", ""), f"{cold:.1f}", f"{warm:.1f}"))
    return [table(("a new process until", "first time", "later"), rows, (60, 20, 20), "benchmark")]


def scale_table(results: Block) -> list[nodes.Node]:
    """For each axis, milliseconds of a round: a line a method, a column a size."""
    shown: list[nodes.Node] = []
    for axis, label in AXES.items():
        cases = [case for case in results.values() if case["axis"] == axis]
        if not cases:
            continue
        sizes = sorted({case["at"] for case in cases})
        methods = list(dict.fromkeys(case["method"] for case in cases))
        times = {(case["method"], case["at"]): case for case in cases}
        rows = []
        for method in methods:
            cells = [cell(times.get((method, size))) for size in sizes]
            rows.append((method, *cells))
        head = (label, *(f"{size:,}" for size in sizes))
        shown.append(table(head, rows, (20,) + (16,) * len(sizes), "benchmark"))
    return shown


def cell(case: Block | None) -> str:
    """Milliseconds and memory of one case, or why there are none."""
    if case is None:
        return ""
    if "skipped" in case:
        return str(case["skipped"]).partition(":")[0]
    memory = case["peak_mib"]
    text = f"{memory / 1024:.1f} GB" if memory > 1024 else f"{memory:.0f} MB"
    return f"{milliseconds(case['cpu_ms'])} ({text})"


def milliseconds(value: float) -> str:
    """Three digits and the unit."""
    return f"{value:.3g} ms" if value < 999.5 else f"{value:,.0f} ms"


TABLES = {"peers": peers_table, "start": start_table, "scale": scale_table}


def setup(app: Sphinx) -> None:
    """Registers the directive."""
    app.add_directive("benchmark", Benchmark)
