"""Figures of the study of FedFW's rates: the theorems, Figures 2 to 4 and the wrong oracles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlib.core import Trace
from papers.fedfw import theory_fw
from papers.fedfw.rates.numbers import EARLY, NORMS, Bound, along, bounds, errors, last, least_gaps
from papers.kit import plot
from papers.kit.numbers import mean
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


def by_set(traces: Traces, drawing: Callable[[Axes, str], None], x: str, y: str) -> plot.Drawing:
    """A panel for every set, with a legend in the last; all axes are logarithmic."""
    titles = {n: text for n, text in TITLES.items() if f"convex_{n}_reference" in traces}

    def fill(ax: Axes, norm: str) -> None:
        ax.set_yscale("log")
        drawing(ax, norm)

    frame: Any = {"xlabel": x, "ylabel": y, "xscale": "log", "legend": True, "at": -1}
    return row(*columns(fill, titles, **frame), sharey=True)


def theorem(starts: tuple[str, ...], bound: Bound, power: float, text: str) -> Figure:
    """F - F* by rounds, the runs of the first name labelled, and a dotted bound."""

    def drawing(traces: Traces, ax: Axes, norm: str) -> None:
        names = [start.format(norm) for start in starts]
        for i, lam in enumerate(along(traces, names[0])):
            color, label = plot.COLORS[i], f"λ₀ = {lam:g}"
            for name, style in zip(names, STYLES, strict=False):
                trace = traces[f"{name}{lam:g}"]
                band(ax, trace, "excess", color, label if name == names[0] else "", style)
            some = np.unique(np.geomspace(1, trace.rounds[-1], 40).astype(int))
            batch = trace.config["algorithm"].get("batch_size") or 1
            above = bounds(bound, traces[f"convex_{norm}_reference"], lam, some, batch)
            ax.plot(some, above.mean(0), ":", color=color, linewidth=1.2)
        steep(ax, power, text, trace.rounds)

    return lambda traces: by_set(traces, partial(drawing, traces), "round", "F − F*")


def steep(ax: Axes, power: float, text: str, rounds: Any) -> None:
    """A grey line with the theorem's power."""
    t = np.array([max(0.05 * rounds[-1], rounds[0]), rounds[-1]])
    low = min(np.nanmin(np.asarray(x.get_ydata(), float)) for x in ax.lines)
    ax.plot(t, 3 * low * (t / t[-1]) ** power, color=GREY, linewidth=2, label=text)


def theorem_2(traces: Traces) -> plot.Drawing:
    """The smallest gap of T rounds by T, and (62)."""

    def drawing(ax: Axes, norm: str) -> None:
        known, start = traces[f"nonconvex_{norm}_reference"], f"nonconvex_{norm}_L"
        runs = [n.removeprefix(start) for n in traces if n.startswith(start)]
        for i, lam in enumerate(sorted({float(n.split("_")[0]) for n in runs})):
            T = np.array(along(traces, f"{start}{lam:g}_T"))
            gaps = [mean(least_gaps(traces[f"{start}{lam:g}_T{t:g}"])) for t in T]
            color = plot.COLORS[i]
            plot.dots(ax, [*T], {f"λ₀ = {lam:g}": gaps}, colors=[color], markersize=4)
            above = bounds(theory_fw.nonconvex_gap, known, lam, T - 1).mean(0)
            ax.plot(T, above, ":", color=color, linewidth=1.2)
        steep(ax, -1 / 3, "T^(-1/3)", T)

    return by_set(traces, drawing, "rounds T", "smallest Frank-Wolfe gap")


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


def oracles(traces: Traces) -> plot.Drawing:
    """What errors of the oracle cost: a share of the gap, an additive error, few Lanczos steps."""
    numbers = errors(traces)
    sets = [n for n in TITLES if f"wrong_{n}_exact" in traces]

    def multiplicative(ax: Axes) -> None:
        shares = along(traces, f"wrong_{sets[0]}_quality")
        for norm, color in zip(sets, plot.COLORS, strict=False):
            times = [numbers[f"wrong_{norm}_quality{m:g}.times"] for m in shares]
            plot.dots(ax, shares, {TITLES[norm]: times}, colors=[color], markersize=4)
        m = np.linspace(min(shares), 1, 50)
        ax.plot(m, m**-2.0, color=GREY, linestyle=":", label="1 / m²")

    def additive(ax: Axes) -> None:
        for norm, color in zip(sets, plot.COLORS, strict=False):
            for kind, style in (("slip", "-"), ("falling", "--")):
                sizes = along(traces, f"wrong_{norm}_{kind}")
                ends = [last("excess")(traces[f"wrong_{norm}_{kind}{x:g}"]).mean() for x in sizes]
                label = TITLES[norm] if kind == "slip" else ""
                ax.plot(sizes, ends, style, color=color, marker="o", label=label)
            exact = last("excess")(traces[f"wrong_{norm}_exact"]).mean()
            ax.axhline(exact, color=color, linestyle=":", linewidth=1.2)

    def few_steps(ax: Axes) -> None:
        steps = along(traces, "nuclear_k")
        gaps = [mean(traces[f"nuclear_k{k:g}"].late("fw_gap")) for k in steps]
        plot.dots(ax, steps, {"nuclear ball": gaps}, colors=plot.COLORS[2:], markersize=4)
        plot.log_ticks(ax, steps)

    logs: Any = {"xscale": "log", "yscale": "log", "legend": True}
    y = ("excess by that of the exact oracle", "F − F* at the end", "late Frank-Wolfe gap")
    return row(
        panel(multiplicative, xlabel="share m of the gap", ylabel=y[0], legend=True),
        panel(additive, xlabel="additive error e", ylabel=y[1], **logs),
        panel(few_steps, xlabel="steps of Lanczos", ylabel=y[2], ylim=(0, None), legend=True),
    )


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
