"""Figures of the study of Federated Frank-Wolfe's rates: the theorems and the wrong oracles."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlib.core import Trace
from papers.fedfw import theory_fw
from papers.fedfw.rates.curves import figure_2, figure_3, figure_4
from papers.fedfw.rates.numbers import Bound, along, bounds, horizons, last, least_gaps
from papers.kit import plot
from papers.kit.numbers import Number, mean, ratio
from papers.kit.panels import columns, on, panel, row
from papers.kit.study import Traces

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GREY = "#888888"
STYLES = ("-", "--", "-.")
TITLES = {"l1": "l1 ball", "l2": "l2 ball"}
Figure = Callable[[Traces], plot.Drawing]
excess = last("excess")


def counterexample(traces: Traces) -> plot.Drawing:
    def curves(ax: Axes, kind: str) -> None:
        for step, style in zip(("falling", "constant"), STYLES, strict=False):
            if kind == "fedfw":
                trace = traces[f"pair_naive_{step}"]
                band(ax, trace, "x", GREY, f"naive, {step} step", style)
        for i, lam in enumerate(along(traces, f"pair_{kind}_L")):
            trace = traces[f"pair_{kind}_L{lam:g}"]
            band(ax, trace, "x", plot.COLORS[i], f"λ₀ = {lam:g}", STYLES[i % len(STYLES)])
        ax.axhline(1, color="#d62728", linestyle=":", linewidth=1.2)

    titles = {"fedfw": "FedFW", "plus": "FedFW+", "code": "variant of the published code"}
    frame: dict[str, Any] = {"xscale": "log", "xlabel": "round", "legend": True}
    first, *rest = (panel(on(curves, kind), title=title, **frame) for kind, title in titles.items())
    return row(panel(first, ylabel="x (minimizer: 1)"), *rest, sharey=True)


def band(
    ax: Axes, trace: Trace, metric: str, color: str, label: str, style: str, log: bool = False
) -> None:
    """Mean and standard deviation over seeds; of the logarithms if the axis is logarithmic."""
    x = trace.metrics[metric][:, 1:]
    if log:
        ax.set_yscale("log")
        x = np.maximum(x, 1e-15)
    look: Any = {"linestyle": style, "label": label, "linewidth": 1.4, "shade": 0.15}
    plot.band(ax, trace.rounds[1:], x, color=color, **look)


def shown(traces: Traces) -> list[str]:
    return [norm for norm in TITLES if f"convex_{norm}_reference" in traces]


def by_set(traces: Traces, drawing: Callable[..., None], xlabel: str, ylabel: str) -> plot.Drawing:
    """A panel for every set, `drawing(ax, traces, norm)`, with a legend in the last."""
    panels = columns(
        lambda ax, norm: drawing(ax, traces, norm),
        {norm: TITLES[norm] for norm in shown(traces)},
        ylabel=ylabel,
        legend=True,
        at=-1,
        xlabel=xlabel,
        xscale="log",
        yscale="log",
    )
    return row(*panels, sharey=True)


def theorem(starts: tuple[str, ...], bound: Bound, power: float, text: str) -> Figure:
    """F - F* by rounds, the runs of the first name labelled, and a dotted bound."""

    def drawing(ax: Axes, traces: Traces, norm: str) -> None:
        names = [start.format(norm) for start in starts]
        for i, lam in enumerate(along(traces, names[0])):
            color, label = plot.COLORS[i], f"λ₀ = {lam:g}"
            for name, style in zip(names, STYLES, strict=False):
                trace = traces[f"{name}{lam:g}"]
                own = label if name == names[0] else ""
                band(ax, trace, "excess", color, own, style, log=True)
            some = np.unique(np.geomspace(1, trace.rounds[-1], 40).astype(int))
            batch = trace.config["algorithm"].get("batch_size") or 1
            above = bounds(bound, traces[f"convex_{norm}_reference"], lam, some, batch)
            ax.plot(some, above.mean(0), ":", color=color, linewidth=1.2)
        steep(ax, power, text, trace.rounds)

    return lambda traces: by_set(traces, drawing, "round", "F − F*")


def steep(ax: Axes, power: float, text: str, rounds: Any) -> None:
    """A grey line with the theorem's power."""
    t = np.array([max(0.05 * rounds[-1], rounds[0]), rounds[-1]])
    low = min(np.nanmin(np.asarray(x.get_ydata(), float)) for x in ax.lines)
    ax.plot(t, 3 * low * (t / t[-1]) ** power, color=GREY, linewidth=2, label=text)


def theorem_2(traces: Traces) -> plot.Drawing:
    """The smallest gap of T rounds by T, and (62)."""

    def drawing(ax: Axes, traces: Traces, norm: str) -> None:
        known, start = traces[f"nonconvex_{norm}_reference"], f"nonconvex_{norm}_L"
        runs = [n.removeprefix(start) for n in traces if n.startswith(start)]
        for i, lam in enumerate(sorted({float(n.split("_")[0]) for n in runs})):
            by_length = horizons(traces, norm, lam)
            gaps = [mean(least_gaps(traces[n])) for n in by_length.values()]
            intervals(ax, [*by_length], gaps, plot.COLORS[i], f"λ₀ = {lam:g}")
            T = np.array([*by_length])
            above = bounds(theory_fw.nonconvex_gap, known, lam, T - 1).mean(0)
            ax.plot(T, above, ":", color=plot.COLORS[i], linewidth=1.2)
        steep(ax, -1 / 3, "T^(-1/3)", T)

    return by_set(traces, drawing, "rounds T", "smallest Frank-Wolfe gap")


def intervals(ax: Axes, x: list[Any], numbers: list[Number], color: str, label: str) -> None:
    plot.dots(ax, x, {label: numbers}, colors=[color], markersize=4)


def oracles(traces: Traces) -> plot.Drawing:
    return row(
        panel(
            on(multiplicative, traces),
            xlabel="share m of the gap",
            ylabel="excess by that of the exact oracle",
            legend=True,
        ),
        panel(
            on(additive, traces),
            xlabel="additive error e",
            ylabel="F − F* at the end",
            xscale="log",
            yscale="log",
            legend=True,
        ),
        panel(
            on(few_steps, traces),
            xlabel="steps of Lanczos",
            ylabel="late Frank-Wolfe gap",
            legend=True,
        ),
    )


def multiplicative(ax: Axes, traces: Traces) -> None:
    for i, norm in enumerate(shown(traces)):
        start = f"wrong_{norm}_quality"
        shares, exact = along(traces, start), excess(traces[f"wrong_{norm}_exact"])
        runs = [excess(traces[f"{start}{m:g}"]) for m in shares]
        times = [ratio(x, exact) for x in (*runs, exact)]
        intervals(ax, [*shares, 1.0], times, plot.COLORS[i], TITLES[norm])
    m = np.linspace(min(shares), 1, 50)
    ax.plot(m, m**-2.0, color=GREY, linestyle=":", label="1 / m²")


def additive(ax: Axes, traces: Traces) -> None:
    for i, norm in enumerate(shown(traces)):
        color = plot.COLORS[i]
        for kind, style in (("slip", "-"), ("falling", "--")):
            start = f"wrong_{norm}_{kind}"
            sizes = along(traces, start)
            each = np.array([excess(traces[f"{start}{x:g}"]) for x in sizes])
            label = TITLES[norm] if kind == "slip" else ""
            ax.plot(sizes, each.mean(1), style, color=color, marker="o", label=label)
        exact = excess(traces[f"wrong_{norm}_exact"])
        ax.axhline(exact.mean(), color=color, linestyle=":", linewidth=1.2)


def few_steps(ax: Axes, traces: Traces) -> None:
    steps = [int(k) for k in along(traces, "nuclear_k")]
    gaps = [mean(traces[f"nuclear_k{k}"].late("fw_gap")) for k in steps]
    intervals(ax, steps, gaps, plot.COLORS[2], "nuclear ball")
    ax.set_ylim(0, None)
    plot.log_ticks(ax, steps)


FIGURES: dict[str, Figure] = {
    "counterexample": counterexample,
    "theorem_1": theorem(
        ("convex_{}_fedfw_L", "convex_{}_plus_L"), theory_fw.convex_excess, -1 / 2, "t^(-1/2)"
    ),
    "theorem_2": theorem_2,
    "theorem_3": theorem(("sto_{}_L",), theory_fw.stochastic_excess, -1 / 3, "t^(-1/3)"),
    "figure_2": figure_2,
    "figure_3": figure_3,
    "figure_4": figure_4,
    "oracles": oracles,
}
