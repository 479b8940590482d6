"""Figures of the study on FedCMOO's toys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fedlib.core.trace import Array
from papers.fedcmoo.toy.numbers import edge_ratios, end, imbalance, rate_squares, runs_of, tolerated
from papers.fedcmoo.toy.problems import plane
from papers.kit import plot
from papers.kit.numbers import mean, ratio
from papers.kit.panels import Layer, across, legend_below, on, panel, row
from papers.kit.study import Traces

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


NAMES = {"fedcmoo": "FedCMOO", "fsmgda": "FSMGDA", "scalarized": "Scalarized", "mgda": "MGDA"}


def label_of(name: str) -> str:
    return NAMES.get(name, f"Pref, r = (1, {name[4:]})")


def plane_figure(traces: Traces) -> plot.Drawing:
    runs = {label_of(n): t for n, t in runs_of(traces, "plane").items()}
    seed = next(iter(runs.values())).seeds[0]

    def draw(fig: Figure) -> None:
        left, middle, right = fig.subplots(1, 3)
        contours(left, seed)
        front = plane(seed).heldout[2]
        losses = np.array([plane(seed).mean_losses(w).numpy() for w in front[::10]])
        left.plot(*front.T.numpy(), color="gray", linewidth=5, alpha=0.5, label="Pareto front")
        middle.plot(*losses.T, color="gray", linewidth=5, alpha=0.5)
        for i, (name, trace) in enumerate(runs.items()):
            color = plot.COLORS[i]
            for ax, x, y in ((left, "w_1", "w_2"), (middle, "f_1", "f_2")):
                path = trace.metrics[x][0], trace.metrics[y][0]
                ax.plot(*path, color=color, linewidth=1.3, label=name)
                ax.plot(path[0][-1], path[1][-1], "o", color=color, markersize=5)
            if "weight_1" in trace.info:
                right.plot(*smooth(trace.info["weight_1"].mean(0)), color=color, linewidth=1.3)
        left.set(xlabel="$w_1$", ylabel="$w_2$", title="models")
        middle.set(xlabel="$F_1$", ylabel="$F_2$", title="losses")
        label = "weight of objective 1"
        right.set(xlabel="round", ylabel=label, ylim=(-0.03, 1.03), title="weights")

    return legend_below(draw, 4)


def smooth(values: Array, width: int = 5) -> tuple[Array, Array]:
    """Means of `width` rounds in a row against the middle one of them."""
    width = min(width, len(values))
    means = np.convolve(values, np.full(width, 1 / width), "valid")
    return np.arange(len(means), dtype=np.float64) + (width - 1) / 2, means


def contours(ax: Axes, seed: int) -> None:
    problem = plane(seed)
    x, y = np.meshgrid(np.linspace(-2, 1.4, 60), np.linspace(-1.2, 1.4, 60))
    centres, curvature, _ = (part.numpy() for part in problem.heldout)
    for k, color in ((0, plot.COLORS[0]), (1, plot.COLORS[1])):
        (a, b), (u, v) = curvature[k], centres[k]
        away = a * (x - u) ** 2 + b * (y - v) ** 2
        levels = [0.05, 0.2, 0.6, 1.2, 2.0]
        ax.contour(x, y, away / 2, levels=levels, colors=color, linewidths=0.5, alpha=0.6)


def drift_figure(traces: Traces) -> plot.Drawing:
    """Stationarity at the end against local steps, a panel for every spread, and the ratio."""
    runs = runs_of(traces, "drift")
    settings = sorted({n.split("_")[1] for n in runs}, key=lambda s: float(s[6:]))
    steps = sorted({int(n.rpartition("E")[2]) for n in runs})
    more = [E for E in steps if E > 1]

    def ends(method: str, spread: str, E: int) -> Array:
        return end(runs[f"{method}_{spread}_E{E}"], "stationarity")

    def against(x: list[int], rows: Any, *more: Layer, **frame: Any) -> Layer:
        shown, ticks = on(plot.dots, x, rows), on(plot.log_ticks, x)
        return panel(shown, *more, ticks, xlabel="local steps E", legend=True, **frame)

    each = {
        s: {NAMES[m]: [mean(ends(m, s, E)) for E in steps] for m in ("fedcmoo", "fsmgda")}
        for s in settings
    }
    gains = {
        f"spread {s[6:]}": [ratio(ends("fsmgda", s, E), ends("fedcmoo", s, E)) for E in more]
        for s in settings
    }
    label = "least norm at the end"
    return row(
        *(
            against(steps, rows, title=f"client optima spread by {s[6:]}", ylabel=label)
            for s, rows in each.items()
        ),
        against(
            more,
            gains,
            across(1, color="gray", linewidth=0.8),
            title="FSMGDA over FedCMOO",
            ylabel="ratio",
        ),
    )


def rate_figure(traces: Traces) -> plot.Drawing:
    """The mean square against T, both axes logarithmic, and a line of slope -1/2."""
    labels = {"exact": "uncompressed", "randk": "Rand-K, half of the entries"}
    names = {key: runs_of(traces, f"rate_{key}") for key in labels}
    horizons = sorted(int(n[1:]) for n in names["exact"])
    rows = {
        label: [mean(rate_squares(names[key][f"T{T}"])) for T in horizons]
        for key, label in labels.items()
    }

    def slope(ax: Axes) -> None:
        first = rows["uncompressed"][0].value
        line = [0.7 * first * (T / horizons[0]) ** -0.5 for T in horizons]
        ax.plot(horizons, line, color="gray", linestyle="--", label="slope -1/2")
        plot.log_ticks(ax, horizons)
        plot.plain_log(ax)

    frame = {"xlabel": "rounds T", "ylabel": r"mean of $|\nabla F\,w|^2$"}
    return row(panel(on(plot.dots, horizons, rows), slope, legend=True, **frame))


def edge_figure(traces: Traces) -> plot.Drawing:
    """Ratio of two weighted losses within what epsilon allows, and the imbalance of M losses."""
    runs = runs_of(traces, "edge")
    counts = sorted({int(n[1:].split("_")[0]) for n in runs})
    grid = sorted({float(n.rpartition("eps")[2]) for n in runs})

    def scaled(M: int, epsilon: float) -> Array:
        trace = runs[f"M{M}_eps{epsilon:g}"]
        losses = np.stack([end(trace, f"f_{k + 1}") for k in range(M)], -1)
        return np.asarray(losses * edge_ratios(M))

    def allowed(ax: Axes) -> None:
        bounded = [e for e in grid if e < np.log(2)]  # beyond, every ratio is allowed
        most = np.array([tolerated(e) for e in bounded])
        ax.fill_between(bounded, 1 / most, most, color="gray", alpha=0.25, label="allowed")
        for e in grid if 2 in counts else ():
            x = scaled(2, e)
            ax.plot([e] * len(x), x[:, 0] / x[:, 1], "o", color=plot.COLORS[0], markersize=4)
        ax.set_xscale("log")
        plot.plain_log(ax)

    def reached(ax: Axes) -> None:
        rows = {
            f"M = {M}": [mean(imbalance(scaled(M, e), np.ones(M))) for e in grid] for M in counts
        }
        plot.dots(ax, grid, rows)
        ax.plot(grid, grid, color="gray", linestyle="--", label=r"$\mu=\varepsilon$")
        ax.set(xscale="log", yscale="log")

    title, label = "two objectives, one point an instance", "$r_1F_1/r_2F_2$ at the end"
    frame: Any = {"xlabel": r"$\varepsilon$", "legend": True}
    return row(
        panel(allowed, title=title, ylabel=label, **frame),
        panel(reached, ylabel=r"$\mu$ at the end", **frame),
    )


FIGURES = {"plane": plane_figure, "drift": drift_figure, "rate": rate_figure, "edge": edge_figure}
