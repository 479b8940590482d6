"""Figures of the study on bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from papers.fedsgm.bounds.methods import METHODS
from papers.fedsgm.bounds.numbers import Array, Reached, horizons, reached, slopes
from papers.fedsgm.bounds.runs import parts
from papers.kit import plot

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fedlib.core import Trace

__all__ = ["FIGURES", "hard_instance", "scaled", "settings", "sweep_rounds"]

Traces = Mapping[str, "Trace"]
SHADES = {"printed": 0, "corrected": 1, "ours": 2, "tenth": 3}
NAMES = {
    "printed": "as printed",
    "corrected": "corrected",
    "ours": "ours",
    "tenth": "printed step, a tenth of the threshold",
}


def sweep_rounds(traces: Traces) -> plot.Drawing:
    """Measured accuracy and bound against T, one panel a theorem, with the fitted slopes."""
    found = {n: reached(n, t) for n, t in traces.items() if parts(n)[2].startswith("T")}

    def draw(fig: Figure) -> None:
        axes = fig.subplots(3, 3)
        for ax, (key, method) in zip(axes.flat, METHODS.items(), strict=True):
            for i, version in enumerate((*method.versions, *(["tenth"] if key == "hard" else []))):
                runs = horizons(f"{key}_{version}", found)
                curve(ax, list(runs), [found[n] for n in runs.values()], version)
                if slope := slopes(f"{key}_{version}", found).get("slope"):
                    ax.text(0.03, 0.03 + 0.1 * i, slope.text(".2f"), transform=ax.transAxes,
                            color=plot.COLORS[SHADES[version]], fontsize=7)  # fmt: skip
            first = horizons(f"{key}_printed", found)
            if key != "weak":  # whose distance is a square root, of slope -1/4
                half(ax, list(first), found[next(iter(first.values()))])
                start(ax, [traces[n] for n in first.values()])
            ax.set_title(method.label, fontsize=9)
            frame(ax, [T for T in runs if str(T)[0] == "1"])
            ax.set_ylim(lowest(ax) / 4, None)
        for ax in axes[-1]:
            ax.set_xlabel("rounds T")
        for ax in axes[:, 0]:
            ax.set_ylabel("max(f gap, g)")
        axes[-1, -1].set_ylabel("distance to prox point")
        legend(fig, axes.flat)

    return draw


def settings(traces: Traces) -> plot.Drawing:
    """Measured accuracy and bound against E, q, q0 and n."""
    panels = (
        ("hard", "E", "local steps E"),
        ("soft", "E", "local steps E"),
        ("feedback", "up", "uplink K/d"),
        ("feedback", "down", "downlink K/d"),
        ("sampled_feedback", "up", "uplink K/d"),
        ("sampled_feedback", "down", "downlink K/d"),
        ("sampled", "E", "local steps E"),
        ("sampled", "n", "participants n of 10"),
    )

    def draw(fig: Figure) -> None:
        axes = fig.subplots(2, 4)
        for ax, (key, letter, label) in zip(axes.flat, panels, strict=True):
            for version in METHODS[key].versions:
                runs = along(traces, f"{key}_{version}", letter)
                curve(ax, list(runs), [reached(n, traces[n]) for n in runs.values()], version)
            ax.set_title(METHODS[key].label, fontsize=8)
            ax.set_xlabel(label)
            frame(ax, list(runs))
        for ax in axes[:, 0]:
            ax.set_ylabel("max(f gap, g)")
        legend(fig, axes.flat)

    return draw


def scaled(traces: Traces) -> plot.Drawing:
    """The f gap, g and their maximum when threshold and step are not what the theorem says."""
    runs = {n: reached(n, t) for n, t in traces.items() if parts(n)[1] == "scaled"}
    pairs = {tuple(map(float, parts(n)[2][1:].split("s"))): r for n, r in runs.items()}
    factors, steps = (sorted({pair[i] for pair in pairs}) for i in (0, 1))

    def draw(fig: Figure) -> None:
        axes = fig.subplots(1, 3)
        for color, k in zip(plot.COLORS, steps, strict=False):
            row = [pairs[x, k] for x in factors]
            label = f"{k:g} times the step"
            spread(axes[0], factors, [r.gap / r.bound for r in row], color, label)
            spread(axes[1], factors, [r.g / r.bound for r in row], color, label)
            spread(axes[2], factors, [r.worst / r.bound for r in row], color, label)
        for ax, title in zip(axes, ("f gap", "g", "max(f gap, g)"), strict=True):
            ax.set_title(f"{title} / bound", fontsize=9)
            ax.set_xlabel("threshold / bound")
            ax.set_xscale("symlog", linthresh=0.03)
            ax.set_xticks(factors, [f"{x:g}" for x in factors])
            ax.minorticks_off()
        axes[0].legend()

    return draw


def hard_instance(traces: Traces) -> plot.Drawing:
    """The staircase: objective gap and bound against T at E = 1, their ratio against E."""

    def draw(fig: Figure) -> None:
        left, right = fig.subplots(1, 2)
        for version in ("printed", "ours"):
            color = plot.COLORS[SHADES[version]]
            runs = horizons(f"stairs_{version}", traces)
            found = {T: reached(n, traces[n]) for T, n in runs.items()}
            gaps, bounds = (
                [float(r.gap[0]) for r in found.values()],
                [r.bound for r in found.values()],
            )
            left.plot(list(found), bounds, "--", color=color, label=f"bound, {NAMES[version]}")
            left.plot(
                list(found),
                gaps,
                "o",
                color=color,
                label=f"reached, {NAMES[version]}",
                fillstyle="none" if version == "printed" else "full",
                markersize=8 if version == "printed" else 4,
            )
            local = along(traces, f"stairs_{version}", "E")
            last = reached(list(runs.values())[-1], traces[list(runs.values())[-1]])
            shares = [float(last.gap[0] / last.bound)]
            for n in local.values():
                r = reached(n, traces[n])
                shares.append(float(r.gap[0] / r.bound))
            right.plot([1.0, *local], shares, "o-", color=color, label=NAMES[version])
        frame(left, list(horizons("stairs_printed", traces)))
        left.set_xlabel("rounds T")
        left.set_title("f gap of the averaged iterate, E = 1")
        right.set_xlabel("local steps E")
        right.set_title("f gap / bound at the same number of steps E T")
        right.set_ylim(0, 1.05)
        left.legend()
        right.legend()

    return draw


def along(traces: Traces, start: str, letter: str) -> dict[float, str]:
    """Value -> name of the runs of a sweep, in order."""
    found = {}
    for name in traces:
        rest, setting = name.rsplit("_", 1)
        if rest == start and setting.rstrip("0123456789.") == letter:
            found[float(setting[len(letter) :])] = name
    return dict(sorted(found.items()))


def curve(ax: Axes, x: Sequence[float], row: Sequence[Reached], version: str) -> None:
    """Measured values with the range over the instances, and the bound as a dashed line."""
    color, width = plot.COLORS[SHADES[version]], 2.2 if version == "printed" else 1.2
    spread(ax, x, [r.shown for r in row], color, f"reached, {NAMES[version]}", width)
    if version != "tenth":
        bounds = [r.gap_bound for r in row]
        ax.plot(x, bounds, "--", color=color, label=f"bound, {NAMES[version]}", linewidth=width)


def spread(
    ax: Axes,
    x: Sequence[float],
    values: Sequence[Array],
    color: str,
    label: str,
    width: float = 1.5,
) -> None:
    """Mean with dots, and a band from the smallest to the largest instance."""
    ax.plot(x, [v.mean() for v in values], "o-", color=color, label=label, ms=3, linewidth=width)
    low, high = [v.min() for v in values], [v.max() for v in values]
    ax.fill_between(x, low, high, color=color, alpha=0.12, linewidth=0)


def half(ax: Axes, x: Sequence[float], first: Reached) -> None:
    """A line of slope -1/2, from a third of the first bound on."""
    top = first.gap_bound / 3
    line = [top * (T / x[0]) ** -0.5 for T in x]
    ax.plot(x, line, ":", color="gray", label="slope -1/2", linewidth=1.2)


def start(ax: Axes, runs: Sequence[Trace]) -> None:
    """Where the runs begin: the mean over the instances of max(f gap, g) at w0."""
    worst = np.maximum(runs[0].metrics["f_gap"][:, 0], runs[0].metrics["g"][:, 0]).mean()
    ax.axhline(worst, color="gray", linewidth=0.8, label="at the start")


def frame(ax: Axes, ticks: Sequence[float]) -> None:
    """Logarithmic axes with plain numbers, horizontal ticks at the given values."""
    ax.set_xscale("log")
    plot.plain_log(ax)
    ax.set_xticks(ticks, [f"{x:g}" for x in ticks])
    ax.minorticks_off()
    low, high = ax.get_ylim()
    decades = np.log10(high / low)
    steps = (1, 2, 5) if decades < 1.7 else (1,)
    marks = [m * 10.0**k for k in range(-5, 4) for m in steps]
    ax.set_yticks([m for m in marks if low <= m <= high])


def lowest(ax: Axes) -> float:
    """The lowest value that a line of the axes has."""
    return float(min(np.min(np.asarray(line.get_ydata(), float)) for line in ax.get_lines()))


def legend(fig: Figure, axes: Sequence[Axes]) -> None:
    """One legend above all panels, every label once."""
    found: dict[str, Artist] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    fig.legend(
        list(found.values()),
        list(found),
        loc="outside upper center",
        ncols=4,
        fontsize=7.5,
    )


FIGURES = {
    "rounds": sweep_rounds,
    "settings": settings,
    "scaled": scaled,
    "hard_instance": hard_instance,
}
