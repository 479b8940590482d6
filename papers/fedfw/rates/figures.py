"""Figures of the study of FedFW's rates: Theorem 1, and the paper's Figures 2 to 4."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlib.core import Trace
from papers.fedfw import theory_fw
from papers.fedfw.rates.numbers import EARLY, NORMS, along, bounds
from papers.kit import plot
from papers.kit.panels import Layer, columns, grid, on, panel, row
from papers.kit.study import Traces

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GREY = "#888888"
STYLES = ("-", "--", "-.")
TITLES = {"l1": "l1 ball", "l2": "l2 ball"}
LABELS = {"loss": "training loss", "gap": "Frank-Wolfe gap", "accuracy": "test accuracy"}
Figure = Callable[[Traces], plot.Drawing]


def counterexample(traces: Traces) -> plot.Drawing:
    """X by rounds on the problem of appendix A, a panel for each method."""

    def curves(ax: Axes, kind: str) -> None:
        if kind == "fedfw":
            for step, style in zip(("falling", "constant"), STYLES, strict=False):
                trace = traces[f"pair_naive_{step}"]
                band(ax, trace, "x", GREY, f"naive, {step} step", style)
        for i, lam in enumerate(along(traces, f"pair_{kind}_L")):
            trace = traces[f"pair_{kind}_L{lam:g}"]
            band(ax, trace, "x", plot.COLORS[i], f"λ₀ = {lam:g}", STYLES[i % len(STYLES)])
        plot.level(ax, 1, "")

    titles = {"fedfw": "FedFW", "plus": "FedFW+", "code": "variant of the published code"}
    frame: dict[str, Any] = {"xscale": "log", "xlabel": "round", "legend": True}
    first, *rest = (panel(on(curves, kind), title=title, **frame) for kind, title in titles.items())
    return row(panel(first, ylabel="x (minimizer: 1)"), *rest, sharey=True)


def band(ax: Axes, trace: Trace, metric: str, color: str, label: str, style: str) -> None:
    """Mean and standard deviation over seeds, of logarithms on a logarithmic axis; no start."""
    x = np.maximum(trace.metrics[metric][:, 1:], 1e-15)
    look: Any = {"linestyle": style, "label": label, "linewidth": 1.4, "shade": 0.15}
    plot.band(ax, trace.rounds[1:], x, color=color, **look)


def theorem_1(traces: Traces) -> plot.Drawing:
    """F - F* by rounds, a panel for each set, the bound (38) dotted, and its power in grey."""

    def curves(ax: Axes, norm: str) -> None:
        start = f"convex_{norm}_fedfw_L"
        for i, lam in enumerate(along(traces, start)):
            trace, color = traces[f"{start}{lam:g}"], plot.COLORS[i]
            band(ax, trace, "excess", color, f"λ₀ = {lam:g}", "-")
            some = np.unique(np.geomspace(1, trace.rounds[-1], 40).astype(int))
            known = traces[f"convex_{norm}_reference"]
            above = bounds(theory_fw.convex_excess, known, lam, some)
            ax.plot(some, above.mean(0), ":", color=color, linewidth=1.2)
        t = np.array([0.05, 1]) * trace.rounds[-1]
        low = min(np.nanmin(np.asarray(x.get_ydata(), float)) for x in ax.lines)
        ax.plot(t, 3 * low * (t / t[-1]) ** -0.5, color=GREY, linewidth=2, label="t^(-1/2)")

    titles = {n: text for n, text in TITLES.items() if f"convex_{n}_reference" in traces}
    frame: Any = {"xlabel": "round", "ylabel": "F − F*", "xscale": "log", "yscale": "log"}
    return row(*columns(curves, titles, legend=True, at=-1, **frame), sharey=True)


def figure_2(traces: Traces) -> plot.Drawing:
    """Participation: logistic regression on the l1 ball, a column for each lambda_0."""
    start = "share_mclr_L"
    found = {float(n.removeprefix(start).split("_")[0]) for n in traces if n.startswith(start)}
    titles = {f"{start}{x:g}_p": f"regression, λ₀ = {x:g}" for x in sorted(found, reverse=True)}
    return by_share(traces, titles)


def figure_3(traces: Traces) -> plot.Drawing:
    """Participation: the network on the l2 ball with a fixed penalty, FedFW and FedFW+."""
    return by_share(traces, {"share_fedfw_p": "network, FedFW", "share_plus_p": "network, FedFW+"})


def by_share(traces: Traces, titles: Mapping[str, str]) -> plot.Drawing:
    """Loss above accuracy, a column a setting, a curve for each p."""

    def line(metric: str, **frame: Any) -> list[Layer]:
        def fill(ax: Axes, start: str) -> None:
            plot.bands(ax, labelled(traces, start, "p"), metric, log=metric == "loss")

        return columns(fill, titles, ylabel=LABELS[metric], at=-1, **frame)

    loss = line("loss", legend=True, xlabel="")
    accuracy = [panel(one, title="") for one in line("accuracy")]
    return grid(loss, accuracy, sharex=True, sharey="row")


def labelled(traces: Traces, start: str, symbol: str) -> dict[str, Trace]:
    """The runs of a sweep by their values, without the start that all have."""
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
        if start != [*rows][-1]:
            ax.set_xlabel("")
        if metric == "gap":
            ax.axvspan(1, EARLY, color=GREY, alpha=0.12, linewidth=0)
        if metric == "accuracy" and start == next(iter(rows)):
            ax.legend()

    return grid(*([on(curves, start, metric) for metric in LABELS] for start in rows))


FIGURES: dict[str, Figure] = {
    "counterexample": counterexample,
    "theorem_1": theorem_1,
    "figure_2": figure_2,
    "figure_3": figure_3,
    "figure_4": figure_4,
}
