"""The paper's Figures 2, 3 and 4: loss, gap and accuracy by participation and by penalty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from fedlib import plot
from fedlib.studies.fw_rates_numbers import EARLY, NORMS, along
from fedlib.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["figure_2", "figure_3", "figure_4"]

Traces = Mapping[str, Trace]
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

    def draw(fig: Figure) -> None:
        axes = fig.subplots(2, len(columns), sharex=True, sharey="row", squeeze=False)
        for j, (start, title) in enumerate(columns.items()):
            runs = {f"p = {q:g}": traces[f"{start}{q:g}"] for q in along(traces, start)}
            for ax, metric in zip(axes[:, j], ("loss", "accuracy"), strict=True):
                plot.bands(ax, after_start(runs), metric)
                ax.set_xlabel("")
            axes[0, j].set_title(title)
            axes[1, j].set_xlabel("round")
        for ax, metric in zip(axes[:, 0], ("loss", "accuracy"), strict=True):
            ax.set_ylabel(LABELS[metric])
        for ax in axes[0]:
            plot.plain_log(ax)
        axes[0, -1].legend()

    return draw


def after_start(runs: Mapping[str, Trace]) -> dict[str, Trace]:
    """The runs without their common start."""
    return {
        label: replace(t, rounds=t.rounds[1:], metrics={k: v[:, 1:] for k, v in t.metrics.items()})
        for label, t in runs.items()
    }


def figure_4(traces: Traces) -> plot.Drawing:
    """Loss, gap and accuracy by lambda_0, a row for each model and set."""
    rows = {
        f"penalty_{model}_{norm}_L": f"{text}, {norm}"
        for model, text in (("mclr", "regression"), ("net", "network"))
        for norm in NORMS
        if along(traces, f"penalty_{model}_{norm}_L")
    }

    def draw(fig: Figure) -> None:
        axes = fig.subplots(len(rows), len(LABELS), squeeze=False)
        for own, (start, title) in zip(axes, rows.items(), strict=True):
            runs = {f"λ₀ = {x:g}": traces[f"{start}{x:g}"] for x in along(traces, start)}
            for ax, (metric, label) in zip(own, LABELS.items(), strict=True):
                plot.bands(ax, after_start(runs), metric, log=metric != "accuracy")
                ax.set_title(f"{title}: {label}", fontsize=9)
                ax.set_xlabel("")
            own[1].axvspan(1, EARLY, color="#888888", alpha=0.12, linewidth=0)
        for ax in axes[-1]:
            ax.set_xlabel("round")
        axes[0, -1].legend()

    return draw
