"""Figures of the study of FedFW's Tables 1 and 2."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlib.core import Trace
from papers.fedfw.cells import COLUMNS, METHODS, NORMS, TABLES, column_text
from papers.fedfw.tables.numbers import cells, code_run, late, percent, picked, settings, source
from papers.kit import plot
from papers.kit.panels import Layer, grid, legend_below, on, panel
from papers.kit.study import Traces

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOR = dict(zip((*METHODS, "feddr5"), plot.COLORS, strict=False))
MARKS = {"written": ("o", "final, as written"), "code": ("s", "best, as behind the tables")}
PRINTED = "#888888"
WIDTH = 7  # panels a row: the columns of Table 1


def there(traces: Traces, *nets: str) -> list[str]:
    return [c for c in COLUMNS if COLUMNS[c].net in nets and (c, "l2", f"{c}_l2") in cells(traces)]


def in_percent(trace: Trace) -> Trace:
    return replace(trace, metrics={**trace.metrics, "accuracy": percent(trace)})


def title(column: str, traces: Traces) -> str:
    return column_text(column, source(traces)).replace(", ", "\n")


def nothing(fig: Figure) -> None:
    fig.text(0.5, 0.5, "not among these runs", ha="center")


def curves(*nets: str) -> Callable[[Traces], plot.Drawing]:
    """Test accuracy by round, l2 above and l1 below, a panel a column of the table."""

    def made(traces: Traces) -> plot.Drawing:
        names = there(traces, *nets)
        if not names:
            return nothing

        def one(column: str, norm: str) -> Layer:
            shown = picked(traces, f"{column}_{norm}", METHODS)
            runs = {METHODS[m]: in_percent(t) for m, t in shown.items()}
            first, left = norm == "l2", column == names[0]
            return panel(
                on(plot.bands, runs, "accuracy", colors=[COLOR[m] for m in shown]),
                title=title(column, traces) if first else "",
                xlabel="" if first else "round",
                ylabel=f"{NORMS[norm]}: test accuracy (%)" if left else "",
            )

        rows = ([one(column, norm) for column in names] for norm in NORMS)
        return legend_below(grid(*rows, sharex=True), len(METHODS))

    return made


def protocols(traces: Traces) -> plot.Drawing:
    """Every cell: the printed value, the best by the printed protocol, the final one as written."""

    def draw(fig: Figure) -> None:
        axes = fig.subplots(1, len(NORMS), sharey=True)
        names = [c for c in COLUMNS if c in there(traces, "mclr", "cnn", "dnn")]
        for ax, norm in zip(axes, NORMS, strict=True):
            for i, column in enumerate(names):
                for k, m in enumerate(METHODS):
                    row(ax, traces, (column, norm, m), -i + 0.25 * (1 - k))
            ax.set_title(f"{NORMS[norm]} ball")
            ax.set_xlabel("test accuracy (%)")
            ax.set_xlim(0, 100)
        texts = [column_text(c, source(traces)) for c in names]
        axes[0].set_yticks([-i for i in range(len(names))], texts)
        fig.legend(handles=legend(axes[0]), loc="outside lower center", ncols=6)

    return draw


def row(ax: Axes, traces: Traces, cell: tuple[str, str, str], y: float) -> None:
    column, norm, m = cell
    color = COLOR[m]
    found = {"written": percent(picked(traces, f"{column}_{norm}", [m])[m])[:, -1]}
    name = code_run(column, norm, m)
    if name in traces:
        found["code"] = 100 * traces[name].metrics["accuracy"].max(1)
    printed = TABLES[column, norm][[*METHODS].index(m)]
    ax.plot(printed, y, "x", color=color, markersize=6, markeredgewidth=1.8)
    for kind, values in found.items():
        face = color if kind == "written" else "none"
        spread = values.std() if len(values) > 1 else None
        mark = MARKS[kind][0]
        ax.errorbar(values.mean(), y, xerr=spread, fmt=mark, color=color, mfc=face, markersize=4)


def legend(ax: Axes) -> list[Any]:
    """Methods by colour, protocols by mark; the handles belong to `ax`, which shows none of it."""

    def mark(text: str, color: str, marker: str, face: str) -> Any:
        form: dict[str, Any] = {"color": color, "marker": marker, "linestyle": "", "mfc": face}
        return ax.plot([], [], label=text, **form)[0]

    dots = [mark(text, COLOR[m], "o", COLOR[m]) for m, text in METHODS.items()]
    faces = zip(MARKS.values(), (PRINTED, "none"), strict=True)
    forms = [mark(text, PRINTED, marker, face) for (marker, text), face in faces]
    return [*dots, *forms, mark("printed", PRINTED, "x", PRINTED)]


def penalties(traces: Traces) -> plot.Drawing:
    """Late training loss against lambda_0, a panel a cell; FedDR's at its best as lines."""

    def draw(fig: Figure) -> None:
        shown = [(c, norm, cell) for c, norm, cell in cells(traces) if COLUMNS[c].net == "mclr"]
        width = min(WIDTH, len(shown))
        high = -(-len(shown) // width)
        axes = fig.subplots(high, width, sharex=True, squeeze=False).ravel()
        for ax, (column, norm, cell) in zip(axes, shown, strict=False):
            for m in ("fedfw", "plus"):
                sweep(ax, settings(traces, cell, m), METHODS[m], COLOR[m])
            for m, text, style in (("feddr", "FedDR", "--"), ("feddr5", "FedDR, 5 steps", ":")):
                for trace in picked(traces, cell, [m]).values():
                    ax.axhline(late(trace).mean(), color=COLOR[m], linestyle=style, label=text)
            ax.set_xscale("log")
            ax.set_title(f"{NORMS[norm]} {title(column, traces)}", fontsize=8)
        for ax in axes[len(shown) :]:
            ax.set_axis_off()
        for k in range(0, len(shown), width):
            axes[k].set_ylabel("training loss")
        for ax in axes[max(0, len(shown) - width) : len(shown)]:
            ax.set_xlabel("λ₀")
            ax.xaxis.set_tick_params(labelbottom=True)
        fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)

    return draw


def sweep(ax: Axes, runs: Mapping[str, Trace], label: str, color: str) -> None:
    by_value = dict(sorted((float(x), late(t)) for x, t in runs.items()))
    each = np.array([*by_value.values()])
    ax.errorbar(
        [*by_value], each.mean(1), each.std(1), color=color, label=label, marker="o", markersize=3
    )


FIGURES = {
    "table_1": curves("mclr"),
    "table_2": curves("cnn", "dnn"),
    "protocols": protocols,
    "penalties": penalties,
}
