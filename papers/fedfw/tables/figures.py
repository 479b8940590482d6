"""Figures of the study of FedFW's Tables 1 and 2."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from papers.fedfw.cells import COLUMNS, METHODS, NORMS, TABLES, column_text
from papers.fedfw.tables.numbers import derive
from papers.kit import plot
from papers.kit.numbers import exact
from papers.kit.panels import grid, legend_below, panel
from papers.kit.study import Traces

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: What is drawn of a cell: its number, words, marks.
KINDS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("{}_{}.accuracy", "final, as written", {"marker": "o"}),
    ("{}_code_{}.best", "best, as behind the tables", {"marker": "s", "markerfacecolor": "none"}),
    ("{}_{}.printed", "printed", {"marker": "x", "markeredgewidth": 1.8}),
)


def title(column: str, traces: Traces) -> str:
    first = next(t for n, t in traces.items() if n.split("_")[1] == "pictures")
    return column_text(column, first.config["problem"]["data"]).replace(", ", "\n")


def protocols(traces: Traces) -> plot.Drawing:
    """Every cell: the printed value, the best by the printed protocol, the final one as written."""
    numbers = derive(traces, {})
    names = [c for c in COLUMNS if f"{c}_l2_fedfw.accuracy" in numbers]
    for (column, norm), values in TABLES.items():
        for m, x in zip(METHODS, values, strict=True):
            numbers[f"{column}_{norm}_{m}.printed"] = exact(x)

    def marks(norm: str, ax: Axes) -> None:
        for k, (m, text) in enumerate(METHODS.items()):
            for form, kind, look in KINDS:
                keys = {i + k / 4: form.format(f"{c}_{norm}", m) for i, c in enumerate(names)}
                there = {x: numbers[key] for x, key in keys.items() if key in numbers}
                if there:
                    own: Any = {
                        "colors": [plot.COLORS[k]],
                        "linestyle": "",
                        "markersize": 4,
                        "capsize": 0,
                    }
                    plot.dots(ax, [*there], {f"{text}, {kind}": [*there.values()]}, **own, **look)
        ax.set_xticks(
            [i + 0.25 for i in range(len(names))], [title(c, traces) for c in names], size=8
        )

    rows = (
        [panel(partial(marks, norm), ylim=(0, 100), ylabel=f"{text}: test accuracy (%)")]
        for norm, text in NORMS.items()
    )
    return legend_below(grid(*rows, sharex=True), len(METHODS))


FIGURES = {"protocols": protocols}
