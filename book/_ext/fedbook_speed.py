"""How long a round takes: tables and a figure from what ``benchmarks/`` measured and stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from docutils.parsers.rst import directives
from fedbook_data import BookDirective, BookError, Cell, badge, download_link, table
from fedbook_downloads import FIGURES, folded, write_if_changed
from fedbook_figures import ThemedFigure
from fedbook_svg import darkened, slim
from sphinx.application import Sphinx

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from sphinx.environment import BuildEnvironment

SIZE = (7.5, 4.6)
STORED = "benchmarks/results.json"
OURS, SWITCHED, LOOP, SCAN, FEDJAX = (
    "fedlib FedAvg", "fedlib FedSGM", "torch loop", "jax scan", "FedJAX",
)  # fmt: skip
PEERS = (
    "Workload, a round",
    OURS,
    SWITCHED,
    LOOP,
    SCAN,
    FEDJAX,
    "FedAvg / best peer",
    "Goal",
)
STARTS = ("From the start of a process to the end of", "Cold, s", "CPU s", "Warm, s", "CPU s")
#: 100,000 clients in so much of the time of 1,000, and so much memory; SSCA asks all clients.
FEW, MANY, TIMES, GB = 1_000, 100_000, 1.2, 4.0
CLIENTS = (
    *("Method", f"{FEW:,} clients, ms", f"{MANY:,} clients, ms", "Ratio", "Peak, GB"),
    f"Goal: {TIMES:g} and {GB:g} GB",
)
EVERYBODY = ("SSCA",)
AXES = {
    "clients": "clients N, 100 take part",
    "parameters": "parameters d",
    "seeds": "seeds S together",
}


class Speed(BookDirective):
    """``{speed} peers``, ``start`` or ``scale``: the table of that part, and its machine."""

    required_arguments = 1
    kind = "speed"

    def build(self) -> list[nodes.Node]:
        """The table, what was left out, and the machine below."""
        name = self.arguments[0]
        tables: dict[str, Callable[[dict[str, Any]], list[nodes.Node]]] = {
            "peers": peers,
            "start": starts, "scale": clients,
        }  # fmt: skip
        if name not in tables:
            raise BookError(f"there is no table {name!r}; known tables: {', '.join(tables)}.")
        held = measured(self.env, name)
        return [*tables[name](held), machine(held)]


def measured(env: BuildEnvironment, part: str) -> dict[str, Any]:
    """A part of the stored measurements."""
    path = Path(env.srcdir) / STORED
    env.note_dependency(str(path))
    try:
        held: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))[part]
    except (OSError, ValueError, KeyError) as error:
        raise BookError(f"{STORED} cannot be read ({error!r}); make bench.") from None
    return held


def peers(held: dict[str, Any]) -> list[nodes.Node]:
    """A line for every workload, with the ratio to the best peer."""
    found = held["results"].items()
    rows = [[f"{name}: {its['title']}", *beside(its)] for name, its in found]
    return [table(PEERS, rows, (26, 8, 8, 12, 8, 8, 10, 13), "speed")]


def beside(its: dict[str, Any]) -> list[Cell]:
    """The cells of one workload: CPU ms a run and round, the ratio, the goal."""
    times = {k: entry["cpu_ms"] for k, entry in its["entries"].items()}
    others = {k: v for k, v in times.items() if not k.startswith("fedlib")}
    cells: list[Cell] = [digits(times.get(k)) for k in (OURS, SWITCHED)]
    cells.append("; ".join(loops(others)) or "–")
    cells += [digits(times.get(k)) for k in (SCAN, FEDJAX)]
    if not others:
        return [*cells, "–", "–"]
    best = min(others, key=others.__getitem__)
    ratio = times[OURS] / others[best]
    met = badge(*(("met", "fresh") if ratio <= its["goal"] else ("not met", "stale")))
    return [*cells, f"{ratio:.2f} ({best})", [nodes.Text(f"{its['goal']:g} "), met]]


def loops(times: Mapping[str, float]) -> Iterator[str]:
    """The torch loops, the plain one first."""
    for name, value in times.items():
        if name.startswith(LOOP):
            yield ": ".join((*filter(None, [name.removeprefix(LOOP).strip(", ")]), digits(value)))


def digits(value: float | None) -> str:
    """Three digits, and all before the point."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def starts(held: dict[str, Any]) -> list[nodes.Node]:
    """A line for every start."""
    kinds = [(start, clock) for start in ("cold", "warm") for clock in ("s", "cpu_s")]
    rows = [
        [code(its["title"]), *(f"{its[start][clock]:.1f}" for start, clock in kinds)]
        for its in held["results"].values()
    ]
    return [table(STARTS, rows, (40, 12, 12, 12, 12), "speed")]


def code(text: str) -> list[nodes.Node]:
    """A text with code between backquotes."""
    return [
        nodes.literal("", part) if i % 2 else nodes.Text(part)
        for i, part in enumerate(text.split("`"))
        if part
    ]


def clients(held: dict[str, Any]) -> list[nodes.Node]:
    """What a hundred times the clients cost, and what was left out on any axis."""
    found = list(held["results"].values())
    at = {(its["method"], its["at"]): its for its in found if its["axis"] == "clients"}
    methods = dict.fromkeys(its["method"] for its in found)
    rows = [more_clients(m, at[m, FEW], at[m, MANY]) for m in methods if (m, MANY) in at]
    skipped = [its for its in found if "skipped" in its]
    lines = [f"{its['method']}, {its['at']:,} {its['axis']}: {its['skipped']}." for its in skipped]
    items = [nodes.list_item("", nodes.paragraph("", line)) for line in lines]
    left = [nodes.paragraph("", "Left out:"), nodes.bullet_list("", *items)] if items else []
    return [table(CLIENTS, rows, (14, 16, 16, 10, 10, 14), "speed"), *left]


def more_clients(method: str, few: dict[str, Any], many: dict[str, Any]) -> list[Cell]:
    """One method's line."""
    if "skipped" in few or "skipped" in many:
        return [method, *(digits(its.get("cpu_ms")) for its in (few, many)), "–", "–", "–"]
    ratio, gigabytes = many["cpu_ms"] / few["cpu_ms"], many["peak_mib"] * 2**20 / 1e9
    goal: Cell = "all take part"
    if method not in EVERYBODY:
        met = ratio <= TIMES and gigabytes <= GB
        goal = badge(*(("met", "fresh") if met else ("not met", "stale")))
    times = (digits(its["cpu_ms"]) for its in (few, many))
    return [method, *times, f"{ratio:.2f}", f"{gigabytes:.1f}", goal]


def machine(held: dict[str, Any]) -> nodes.paragraph:
    """One sentence: where and when."""
    m = held["machine"]
    known = ("torch", "jax", "fedjax", "numpy", "python")
    versions = ", ".join(f"{name} {m[name]}" for name in known if name in m)
    commit = (m["commit"] or "none")[:7] + "+" * bool(m["dirty"])
    threads = f"{m['threads']} thread" + "s" * (m["threads"] != 1)
    text = (
        f"Measured on {m['date']} at commit {commit}: {m['processor']} ({m['instructions']}, "
        f"{m['cores']} cores), {threads}; {versions}."
    )
    return nodes.paragraph("", "", nodes.emphasis("", text))


class CostFigure(ThemedFigure):
    """``{cost-figure}``: time and memory of a round against clients, parameters and seeds."""

    required_arguments = 0
    option_spec = {  # noqa: RUF012 - docutils reads it from the class
        "alt": directives.unchanged_required,
        "name": directives.unchanged_required,
    }

    def pictures(self) -> tuple[str, str]:
        """The source-relative addresses of the light and the dark picture."""
        from papers.kit import plot

        if not self.options.get("alt"):
            raise BookError("cost-figure needs :alt:, a text that replaces it.")
        held = measured(self.env, "scale")
        base = Path(self.env.srcdir) / FIGURES
        self.files = {k: base / f"speed-scale{k}" for k in ("-light.svg", "-dark.svg", ".csv")}
        svg, data = plot.export(costs(held), SIZE)
        write_if_changed(self.files["-light.svg"], slim(svg))
        write_if_changed(self.files["-dark.svg"], darkened(slim(svg)))
        write_if_changed(self.files[".csv"], plot.to_csv(data).encode())
        light, dark = (FIGURES / self.files[k].name for k in ("-light.svg", "-dark.svg"))
        return f"/{light.as_posix()}", f"/{dark.as_posix()}"

    def below(self) -> list[nodes.Node]:
        """The files of the figure, and the command that measures again."""
        line = nodes.paragraph("", "", classes=["figure-downloads"])
        paths = (self.files["-light.svg"], self.files[".csv"], Path(self.env.srcdir) / STORED)
        for label, path in zip(("SVG", "CSV", "JSON"), paths, strict=True):
            line += [download_link(self.env, path, label), nodes.Text(" ")]
        command = ".venv/bin/python -m benchmarks scale"
        return folded(line, "Measure it again:", command)


def costs(held: dict[str, Any]) -> Callable[[Figure], None]:
    """The drawing: time above, memory below, an axis a column, a method a line."""
    found = [its for its in held["results"].values() if "skipped" not in its]

    def draw(fig: Figure) -> None:
        axes = fig.subplots(2, len(AXES), sharex="col", sharey="row", squeeze=False)
        for column, (axis, label) in enumerate(AXES.items()):
            for row, (key, what) in enumerate((("cpu_ms", "time"), ("peak_mib", "memory"))):
                ax = axes[row][column]
                ax.set_title(f"{what}, {axis}")
                for method in dict.fromkeys(its["method"] for its in found):
                    own = [i for i in found if (i["method"], i["axis"]) == (method, axis)]
                    y = [its[key] for its in own]
                    ax.loglog([its["at"] for its in own], y, label=method, marker="o", ms=3)
                ax.tick_params(which="minor", length=0)
            axes[1][column].set_xlabel(label)
        axes[0][0].set_ylabel("CPU ms a round")
        axes[1][0].set_ylabel("peak memory, MiB")
        fig.legend(*axes[0][0].get_legend_handles_labels(), loc="outside upper center", ncols=5)

    return draw


def setup(app: Sphinx) -> None:
    """Registers the directives."""
    app.add_directive("speed", Speed)
    app.add_directive("cost-figure", CostFigure)
