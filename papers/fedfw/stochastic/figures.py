"""Figures of the study of FedFW's Table 3."""

from __future__ import annotations

from typing import Any

from papers.fedfw.cells import COLUMNS_3, METHODS_3
from papers.fedfw.stochastic.numbers import merged
from papers.fedfw.tables.figures import title
from papers.fedfw.tables.numbers import picked, settings
from papers.kit import plot
from papers.kit.panels import Layer, grid, legend_below, on, panel
from papers.kit.study import Traces

LABELS = {"accuracy": "test accuracy", "loss": "training loss"}


def table_3(traces: Traces) -> plot.Drawing:
    runs = merged(traces)
    names = [c for c in COLUMNS_3 if settings(runs, c, "sto")]

    def one(column: str, metric: str) -> Layer:
        best = picked(runs, column, METHODS_3)
        curves = {text: best[m] for m, text in METHODS_3.items()}
        frame: dict[str, Any] = {"xlabel": "round"}
        if metric == "accuracy":
            frame = {"xlabel": "", "title": title(column, traces)}
        if column == names[0]:
            frame["ylabel"] = LABELS[metric]
        return panel(on(plot.bands, curves, metric, colors=plot.COLORS[:2]), **frame)

    rows = ([one(column, metric) for column in names] for metric in LABELS)
    return legend_below(grid(*rows, sharex=True), 2)


FIGURES = {"table_3": table_3}
