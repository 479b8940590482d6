"""The derived numbers of the study on bounds: what was reached, and what was promised."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedsgm.bounds.methods import METHODS, RHO_HAT
from papers.fedsgm.bounds.runs import Plan, again, parts
from papers.fedsgm.problems.prox import stationarity
from papers.kit import plot
from papers.kit.numbers import Number, exact, mean
from papers.kit.panels import grid, on, panel, row
from papers.kit.study import Params, Traces


@dataclass(frozen=True)
class Reached:
    """What a run reached on every instance, and what its theorem promises.

    For weakly convex f, `gap` is the mean distance to the prox points over the good rounds that
    were looked at, and `gap_bound` its bound; else both are those of f(mean iterate) - f*.
    """

    gap: Array  # [S]
    g: Array  # [S]
    gap_bound: float
    bound: float  # of g, and of the gap but for weakly convex f

    @property
    def worst(self) -> Array:
        """The accuracy that was reached, max(f gap, g); NaN where no round was a good one."""
        return np.asarray(np.maximum(self.gap, self.g))

    @property
    def plotted(self) -> Array:
        """What figures and slopes show: the gap for weakly convex f, else `worst`."""
        return self.worst if self.gap_bound == self.bound else self.gap

    @property
    def share(self) -> Array:
        """The largest of both measures, each divided by its bound."""
        return np.asarray(np.maximum(self.gap / self.gap_bound, self.g / self.bound))


def reached(name: str, trace: Trace) -> Reached:
    """The measured values of a run, from its stored solutions."""
    planned = again(name, trace)
    accuracy = planned.rate.accuracy
    if parts(name)[0] == "weak":
        gap, g = _good_rounds(planned, trace)
        return Reached(gap, g, planned.stationarity, accuracy)
    rows = []
    for seed, w in zip(trace.seeds, torch.from_numpy(trace.output), strict=True):
        problem = planned.spec.problem(seed)
        values = problem.metrics(w, problem)
        rows.append([float(values["f_gap"]), float(values["g"])])
    gap, g = np.array(rows).T
    return Reached(gap, g, accuracy, accuracy)


def _good_rounds(planned: Plan, trace: Trace) -> tuple[Array, Array]:
    """Mean distance to the prox points and mean g over the good rounds that were evaluated.

    On these instances all g_j are equal, so that a round is good exactly if g <= tolerance.
    """
    tolerance = trace.config["algorithm"]["tolerance"]
    names = sorted(k for k in trace.metrics if k.startswith("w"))
    points = np.stack([trace.of_rounds(k) for k in names], -1)  # [S, T, d]
    rows = []
    for seed, w, g in zip(trace.seeds, points, trace.of_rounds("g"), strict=True):
        good = g <= tolerance
        distance = stationarity(planned.spec.problem(seed), w[good], RHO_HAT)
        rows.append([distance.mean(), g[good].mean()])
    gap, values = np.array(rows).T
    return gap, values


def derive(traces: Traces, p: Params) -> dict[str, Number]:  # noqa: ARG001
    """Per run what was reached and the bound; per sweep over T the fitted slopes."""
    found = {name: reached(name, trace) for name, trace in traces.items()}
    numbers: dict[str, Number] = {}
    for name, r in found.items():
        each = {"gap": r.gap, "g": r.g, "worst": r.worst, "share": r.share}
        numbers |= {f"{name}.{k}": over_instances(name, x) for k, x in each.items()}
        numbers |= {f"{name}.top": exact(r.share.max()), f"{name}.bound": exact(r.bound)}
    for start in dict.fromkeys(n.rsplit("_", 1)[0] for n in found if horizon(n)):
        numbers |= {f"{start}.{k}": v for k, v in slopes(start, found).items()}
    return numbers


def over_instances(name: str, values: Array) -> Number:
    """The mean over the instances; the staircase is a single one, of which nothing is drawn."""
    return exact(values[0]) if name.startswith("stairs") else mean(values)


def slopes(start: str, found: Mapping[str, Reached]) -> dict[str, Number]:
    """Slopes of log `shown` and of the log of its bound against log T, least squares.

    The interval is over the instances; those where the measure is not positive somewhere are left
    out. Of a single T there is no slope.
    """
    runs = horizons(start, found)
    if len(runs) < 2:
        return {}
    x = np.log(list(runs))
    shown = np.array([found[n].plotted for n in runs.values()])  # [T, S]
    usable = (shown > 0).all(0)
    promised = np.log([found[n].gap_bound for n in runs.values()])
    bound = {"slope_bound": exact(np.polyfit(x, promised, 1)[0])}
    if not usable.any():
        return bound
    return {"slope": over_instances(start, np.polyfit(x, np.log(shown[:, usable]), 1)[0])} | bound


def horizons(start: str, names: Iterable[str]) -> dict[int, str]:
    """T -> name of the runs of a sweep over T, in order."""
    found = {horizon(n): n for n in names if n.rsplit("_", 1)[0] == start and horizon(n)}
    return dict(sorted(found.items()))


def horizon(name: str) -> int:
    """T, if this is a run of a sweep over T; else 0."""
    setting = parts(name)[2]
    return int(setting[1:]) if setting[0] == "T" else 0


SHADES = {"printed": 0, "corrected": 1, "ours": 2, "tenth": 3}
NAMES = {
    "printed": "as printed",
    "corrected": "corrected",
    "ours": "ours",
    "tenth": "printed step, a tenth of the threshold",
}
ACCURACY = "max(f gap, g)"


def sweep_rounds(traces: Traces) -> plot.Drawing:
    """Measured accuracy and bound against T, one panel a theorem, with the fitted slopes."""
    found = {n: reached(n, t) for n, t in traces.items() if parts(n)[2].startswith("T")}

    def theorem(ax: plot.Axes, key: str) -> None:
        for i, version in enumerate((*METHODS[key].versions, *(["tenth"] * (key == "hard")))):
            runs = horizons(f"{key}_{version}", found)
            curve(ax, list(runs), [found[n] for n in runs.values()], version)
            if slope := slopes(f"{key}_{version}", found).get("slope"):
                ax.text(0.03, 0.03 + 0.1 * i, slope.text(".2f"), transform=ax.transAxes,
                        color=plot.COLORS[SHADES[version]], fontsize=7.5)  # fmt: skip
        first = horizons(f"{key}_printed", found)
        if key != "weak":  # whose distance is a square root, of slope -1/4
            top = found[next(iter(first.values()))].gap_bound / 3
            line = [top * (T / min(first)) ** -0.5 for T in first]
            ax.plot([*first], line, ":", color="gray", label="slope -1/2", linewidth=1.2)
            begun = traces[next(iter(first.values()))].metrics
            worst = np.maximum(begun["f_gap"][:, 0], begun["g"][:, 0]).mean()
            ax.axhline(worst, color="gray", linewidth=0.8, label="at the start")
        ax.set_title(METHODS[key].label, fontsize=9)
        frame(ax, [T for T in runs if str(T)[0] == "1"])
        lowest = min(np.min(np.asarray(line.get_ydata(), float)) for line in ax.get_lines())
        ax.set_ylim(lowest / 4, None)

    panels = [
        panel(
            on(theorem, key),
            xlabel="rounds T" if i >= 6 else "",
            ylabel="distance to prox point" if key == "weak" else "" if i % 3 else ACCURACY,
        )
        for i, key in enumerate(METHODS)
    ]
    return with_legend(grid(panels[:3], panels[3:6], panels[6:]))


def scaled(traces: Traces) -> plot.Drawing:
    """The f gap, g and their maximum when threshold and step are not what the theorem says."""
    runs = {n: reached(n, t) for n, t in traces.items() if parts(n)[1] == "scaled"}
    pairs = {tuple(map(float, parts(n)[2][1:].split("s"))): r for n, r in runs.items()}
    factors, steps = (sorted({pair[i] for pair in pairs}) for i in (0, 1))

    def shares(ax: plot.Axes, measure: str, title: str) -> None:
        for color, k in zip(plot.COLORS, steps, strict=False):
            values = [getattr(pairs[x, k], measure) / pairs[x, k].bound for x in factors]
            spread(ax, factors, values, color, f"{k:g} times the step")
        ax.set_title(f"{title} / bound", fontsize=9)
        ax.set_xscale("symlog", linthresh=0.03)
        ax.set_xticks(factors, [f"{x:g}" for x in factors])
        ax.minorticks_off()

    titles = {"gap": "f gap", "g": "g", "worst": ACCURACY}
    return row(
        *(
            panel(on(shares, *item), xlabel="threshold / bound", legend=item[0] == "gap")
            for item in titles.items()
        )
    )


def curve(ax: plot.Axes, x: Sequence[float], row: Sequence[Reached], version: str) -> None:
    """Measured values with the range over the instances, and the bound as a dashed line."""
    color, width = plot.COLORS[SHADES[version]], 2.2 if version == "printed" else 1.2
    spread(ax, x, [r.plotted for r in row], color, f"reached, {NAMES[version]}", width)
    if version != "tenth":
        bounds = [r.gap_bound for r in row]
        ax.plot(x, bounds, "--", color=color, label=f"bound, {NAMES[version]}", linewidth=width)


def spread(
    ax: plot.Axes,
    x: Sequence[float],
    values: Sequence[Array],
    color: str,
    label: str,
    width: float = 1.5,
) -> None:
    """Mean with dots, and a band from the smallest to the largest instance."""
    look: Any = {"marker": "o", "markersize": 3, "linewidth": width, "shade": 0.12}
    plot.band(ax, x, np.stack(values, 1), around=plot.RANGE, color=color, label=label, **look)


def frame(ax: plot.Axes, ticks: Sequence[float]) -> None:
    """Logarithmic axes with plain numbers, horizontal ticks at the given values."""
    plot.plain_log(ax)
    plot.log_ticks(ax, ticks)
    low, high = ax.get_ylim()
    decades = np.log10(high / low)
    steps = (1, 2, 5) if decades < 1.7 else (1,)
    marks = [m * 10.0**k for k in range(-5, 4) for m in steps]
    ax.set_yticks([m for m in marks if low <= m <= high])


def with_legend(draw: plot.Drawing) -> plot.Drawing:
    """The figure with one legend above all panels, every label once."""

    def drawn(fig: plot.Figure) -> None:
        draw(fig)
        found: dict[str, Any] = {}
        for ax in fig.axes:
            handles, labels = ax.get_legend_handles_labels()
            found |= dict(zip(labels, handles, strict=True))
        place: Any = {"loc": "outside upper center", "ncols": 4, "fontsize": 7.5}
        fig.legend(list(found.values()), list(found), **place)

    return drawn


FIGURES = {"rounds": sweep_rounds, "scaled": scaled}
