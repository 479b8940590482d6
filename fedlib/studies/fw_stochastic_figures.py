"""Figures of the study of FedFW's Table 3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from fedlib import plot
from fedlib.studies.fw_cells import column_text
from fedlib.studies.fw_stochastic_numbers import COLUMNS_3, METHODS_3, merged
from fedlib.studies.fw_tables_numbers import chosen, settings
from fedlib.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURES"]

Traces = Mapping[str, Trace]
COLOR = dict(zip(METHODS_3, (plot.COLORS[0], plot.COLORS[1]), strict=True))


def table_3(traces: Traces) -> plot.Drawing:
    """Test accuracy above and training loss below, a panel a column; chosen settings."""
    runs = merged(traces)
    names = [c for c in COLUMNS_3 if settings(runs, c, "sto")]

    def draw(fig: Figure) -> None:
        axes = fig.subplots(2, len(names), sharex=True, squeeze=False)
        for i, column in enumerate(names):
            shown = {}
            for m, text in METHODS_3.items():
                trace = settings(runs, column, m)[chosen(runs, column, m)]
                percent = 100 * trace.metrics["accuracy"]
                shown[text] = replace(trace, metrics={**trace.metrics, "accuracy": percent})
            for k, metric in enumerate(("accuracy", "loss")):
                plot.bands(axes[k, i], shown, metric, colors=[*COLOR.values()])
                axes[k, i].set_xlabel("round" if k else "")
            axes[0, i].set_title(column_text(column, source(traces)).replace(", ", "\n"))
        axes[0, 0].set_ylabel("test accuracy (%)")
        axes[1, 0].set_ylabel("training loss")
        fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)

    return draw


def source(traces: Traces) -> str:
    """`"mnist"` or `"digits"`: the pictures of these runs."""
    first = next(t for n, t in traces.items() if n.split("_")[1] == "pictures")
    return str(first.config["problem"]["data"])


FIGURES = {"table_3": table_3}
