"""The paper's Figures 2, 3 and 4: loss, gap and accuracy by participation and by penalty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fedlib.core import Trace
from papers.fedfw.rates.numbers import EARLY, NORMS, along
from papers.kit import plot
from papers.kit.panels import Layer, grid, on, panel
from papers.kit.study import Traces

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABELS = {"loss": "training loss", "gap": "Frank-Wolfe gap", "accuracy": "test accuracy"}


def figure_2(traces: Traces) -> plot.Drawing:
    """Participation: logistic regression on the l1 ball, a column for each lambda_0."""
    start = "share_mclr_L"
    found = {float(n.removeprefix(start).split("_")[0]) for n in traces if n.startswith(start)}
    columns = {f"{start}{x:g}_p": f"regression, λ₀ = {x:g}" for x in sorted(found, reverse=True)}
    return by_share(traces, columns)


def figure_3(traces: Traces) -> plot.Drawing:
    """Participation: the network on the l2 ball with a fixed penalty, FedFW and FedFW+."""
    return by_share(traces, {"share_fedfw_p": "network, FedFW", "share_plus_p": "network, FedFW+"})


def by_share(traces: Traces, columns: Mapping[str, str]) -> plot.Drawing:
    """Loss above accuracy, a column a setting, a curve for each p."""

    def one(start: str, metric: str) -> Layer:
        loss, (first, *_), (*_, end) = metric == "loss", columns, columns
        frame: dict[str, Any] = {"xlabel": "" if loss else "round"}
        frame |= {"title": columns[start]} if loss else {}
        frame |= {"ylabel": LABELS[metric]} if start == first else {}
        curves = on(plot.bands, labelled(traces, start, "p"), metric, log=loss)
        return panel(curves, legend=loss and start == end, **frame)

    rows = ([one(start, metric) for start in columns] for metric in ("loss", "accuracy"))
    return grid(*rows, sharex=True, sharey="row")


def labelled(traces: Traces, start: str, symbol: str) -> dict[str, Trace]:
    return {
        f"{symbol} = {x:g}": replace(
            t, rounds=t.rounds[1:], metrics={k: v[:, 1:] for k, v in t.metrics.items()}
        )
        for x in along(traces, start)
        for t in [traces[f"{start}{x:g}"]]
    }


def figure_4(traces: Traces) -> plot.Drawing:
    """Loss, gap and accuracy by lambda_0, a row for each model and set."""
    rows = {
        f"penalty_{model}_{norm}_L": f"{text}, {norm}"
        for model, text in (("mclr", "regression"), ("net", "network"))
        for norm in NORMS
        if along(traces, f"penalty_{model}_{norm}_L")
    }

    def curves(ax: Axes, start: str, metric: str) -> None:
        runs = labelled(traces, start, "λ₀")
        plot.bands(ax, runs, metric, log=metric != "accuracy")
        ax.set_title(f"{rows[start]}: {LABELS[metric]}", fontsize=9)
        ax.set_xlabel("round" if start == [*rows][-1] else "")
        if metric == "gap":
            ax.axvspan(1, EARLY, color="#888888", alpha=0.12, linewidth=0)
        if metric == "accuracy" and start == next(iter(rows)):
            ax.legend()

    return grid(*([on(curves, start, metric) for metric in LABELS] for start in rows))
