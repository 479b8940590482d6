"""The derived numbers of the study of SSCA's Figures 2 and 3."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.kit import plot
from papers.kit.numbers import Number, exact, mean
from papers.kit.panels import panel, row
from papers.kit.study import Params, Traces
from papers.ssca.common import NUMBERS, SPLITS, rows
from papers.ssca.convergence.counts import counted, megabits
from papers.ssca.leaks import leaked

LOOKS = (10, 30, 50, 100)  # rounds whose cost is recorded
HE = "he_"  # before the name of a run, and of its numbers: from He's start
STRIDE = 10  # rounds between the points by which curves are compared; all runs have them


def halves(batches: Iterable[int]) -> tuple[int, ...]:
    """Batches of SGD with two steps a round that cost a client what `batches` do with one."""
    return tuple(int(b) // 2 for b in batches if int(b) % 2 == 0)


def at(trace: Trace, rounds: float, metric: str = "cost") -> Array:
    """Per seed, a metric after a number of rounds, linear between evaluations, `[S]`."""
    return np.array([np.interp(rounds, trace.rounds, x) for x in trace.metrics[metric]])


def area(trace: Trace) -> Array:
    """Per seed the mean cost over the rounds 0 .. T, by the trapezoidal rule, `[S]`.

    SGD is evaluated less often than the others: so all are compared by every `STRIDE`-th round.
    """
    last = int(trace.rounds[-1])
    t = np.array(sorted({*range(0, last, STRIDE), last}), float)
    curves = np.stack([at(trace, r) for r in t], 1)
    return np.asarray(np.trapezoid(curves, t, axis=1) / last)


def measures(trace: Trace) -> dict[str, Array]:
    """What one run is measured by, per seed."""
    last = float(trace.rounds[-1])
    found = {f"cost_{r}": at(trace, r) for r in LOOKS if r <= last}
    return found | {"area": area(trace), "accuracy": 100 * at(trace, last, "accuracy")}


def points(traces: Iterable[str], kind: str) -> list[str]:
    """The runs of SGD's grid, such as those of `"samples_sgd_B10"`."""
    return [name for name in traces if name.startswith(f"{kind}_a")]


def chosen(traces: Mapping[str, Trace], kind: str) -> str:
    """The run of SGD's grid with the lowest mean cost over the rounds and the seeds."""
    cost = {name: area(traces[name]).mean() for name in points(traces, kind)}
    return min(cost, key=lambda name: cost[name] if np.isfinite(cost[name]) else np.inf)


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Measures of every run and of the chosen baselines, differences by seed, bits, counts.

    Keys are `run.measure`, of differences `a_vs_b.measure`; a chosen baseline is such as
    `samples_sgd_B10`, with `.lr` and `.fall` beside the measures. All of the runs from He's start
    begin with `HE`. Where a run is missing, the numbers that need it are.
    """
    curves = {n: t for n, t in traces.items() if n.startswith(SPLITS)}
    wide = {n.removeprefix(HE): t for n, t in traces.items() if n.startswith(HE)}
    numbers = compared(curves, p) | {f"{HE}{k}": x for k, x in compared(wide, p).items()}
    return numbers | megabits(shown(curves), p) | counted() | leaked()


def shown(curves: Traces) -> dict[str, Trace]:
    """All runs but those of SGD's grids, of which the best ones are there, by their grid's name."""
    grids = dict.fromkeys(n.rsplit("_a", 1)[0] for n in curves if "_sgd" in n)
    best = {kind: curves[chosen(curves, kind)] for kind in grids}
    return {n: t for n, t in curves.items() if "_sgd" not in n} | best


def compared(curves: Traces, p: Params) -> dict[str, Number]:
    """Measures of all runs from one start and of the baselines chosen there, and differences."""
    runs = shown(curves)
    found = {name: measures(trace) for name, trace in runs.items()}
    numbers = {
        f"{run}.{k}": mean(x, "%" if k == "accuracy" else "")
        for run, each in found.items()
        for k, x in each.items()
    }
    for name, trace in runs.items():
        if "_sgd" in name:
            lr = trace.config["algorithm"]["lr"]
            numbers |= {f"{name}.lr": exact(lr["scale"]), f"{name}.fall": exact(lr["exponent"])}
    for name, (a, b) in pairs(p).items():
        if a in found and b in found:
            for k, x in found[a].items():
                gap = mean(x - found[b][k], "points" if k == "accuracy" else "")
                numbers[f"{name}.{k}"] = gap
    return numbers


def pairs(p: Params) -> dict[str, tuple[str, str]]:
    """Which runs are compared on the same seeds, first minus second."""
    made: dict[str, tuple[str, str]] = {}
    batches = sorted(map(int, p["batches"]))
    for split in SPLITS:
        for which in ("ssca", *(f"limit_U{level:g}" for level in p["levels"])):
            for small, large in pairwise(batches):
                each = (run(split, which, large), run(split, which, small))
                made[f"{split}_{which}_B{large}_vs_B{small}"] = each
        for b in batches:
            own = run(split, "ssca", b)
            made[f"{own}_debiased_vs_plain"] = (f"{own}_debiased", own)
            made[f"{own}_vs_sgd"] = (own, f"{split}_sgd_B{b}")
            made[f"{own}_vs_sgd2"] = (own, f"{split}_sgd2_B{b // 2}")
    for b in batches:
        one, two = (run(split, "ssca", b) for split in SPLITS)
        made[f"features_vs_samples_ssca_B{b}"] = (two, one)
    return made


def run(split: str, which: str, batch: int) -> str:
    """The name of a run of `"ssca"` or, with its level, of `"limit_U0.4"`."""
    kind, _, level = which.partition("_")
    return f"{split}_{kind}_B{batch}" + (f"_{level}" if level else "")


LEVEL_STYLES = ("-", "-.", (0, (3, 1, 1, 1, 1, 1)), (0, (8, 2)))  # SGD is dashed and dotted
GREY = "#8c8c8c"
LEAST = 0.9  # of the lowest mean, where an axis of costs begins
TOP = 3.0  # of the axes of costs; SGD with a large step goes far beyond
METRICS = {"cost": "training cost", "accuracy": "test accuracy (%)"}


def batches(traces: Traces) -> list[int]:
    names = [n.split("_") for n in traces if n.startswith("samples_ssca")]
    return sorted({int(parts[2].removeprefix("B")) for parts in names})


def colors(traces: Traces) -> dict[int, str]:
    return dict(zip(batches(traces), plot.COLORS, strict=False))


def levels(traces: Traces) -> list[float]:
    return sorted({float(n.rpartition("_U")[2]) for n in traces if "_limit_" in n})


def curve(
    ax: plot.Axes, trace: Trace, metric: str, color: str, style: Any = "-", label: str = ""
) -> None:
    """One curve with its band, accuracies in %."""
    scale = 100 if metric == "accuracy" else 1
    shown = {metric: scale * trace.metrics[metric]}
    plot.bands(ax, {label: replace(trace, metrics=shown)}, metric, colors=(color,))
    ax.lines[-1].set(linestyle=style, label=label or "_")  # no entry without a label


def costs(axes: Sequence[plot.Axes]) -> None:
    """One logarithmic axis, from below the lowest mean to a little above the cost of the start."""
    plot.plain_log(axes[0])
    drawn = [np.asarray(line.get_ydata(), float) for ax in axes for line in ax.lines]
    lowest = min(np.nanmin(y) for y in drawn if len(y))
    axes[0].set_ylim(LEAST * lowest, TOP)


def clients(traces: Traces) -> int:
    return int(next(iter(traces.values())).config["problem"]["clients"])


def free(traces: Traces, split: str, ax: plot.Axes, metric: str) -> None:
    """Algorithm 1 or 3, and SGD with the step sizes that are best over the rounds."""
    n, hues = clients(traces), colors(traces)
    for b, color in hues.items():
        label = f"Algorithm {NUMBERS[split][0]}, B = {rows(split, b, n)}"
        curve(ax, traces[f"{split}_ssca_B{b}"], metric, color, label=label)
    for b, color in hues.items():
        run = traces[chosen(traces, f"{split}_sgd_B{b}")]
        curve(ax, run, metric, color, "--", f"SGD, B = {rows(split, b, n)}")
    for b, color in hues.items():
        half = f"{split}_sgd2_B{b // 2}"
        if points(traces, half):
            run = traces[chosen(traces, half)]
            curve(ax, run, metric, color, ":", f"SGD, B = {b // 2}, E = 2")


def limited(traces: Traces, split: str, ax: plot.Axes, metric: str) -> None:
    """Algorithm 2 or 4, one line style a level."""
    for b, color in colors(traces).items():
        for level, style in zip(levels(traces), LEVEL_STYLES, strict=False):
            curve(ax, traces[f"{split}_limit_B{b}_U{level:g}"], metric, color, style)
    for level, style in zip(levels(traces), LEVEL_STYLES, strict=False):
        ax.plot([], [], linestyle=style, color=GREY, label=f"U = {level:g}")
        if metric == "cost":
            ax.axhline(level, color=GREY, linestyle=style, linewidth=0.8)


def convergence(split: str, traces: Traces) -> plot.Drawing:
    """plot.Figure 2 or 3: cost above, accuracy below; beside SGD, and the constrained algorithm."""
    first, second = (f"Algorithm {k}" for k in NUMBERS[split])
    panels: dict[str, Callable[[plot.Axes, str], None]] = {
        f"{first} and SGD": partial(free, traces, split),
        f"{second}, constrained": partial(limited, traces, split),
    }

    def draw(fig: plot.Figure) -> None:
        axes = fig.subplots(2, len(panels), sharex=True, sharey="row")
        for line, (metric, label) in zip(axes, METRICS.items(), strict=True):
            for ax, (title, fill) in zip(line, panels.items(), strict=True):
                fill(ax, metric)
                ax.set_xlabel("" if metric == "cost" else "round")
                if metric == "cost":
                    ax.set_title(title)
            line[0].set_ylabel(label)
        costs(axes[0])
        axes[0, -1].legend(loc="upper right")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        across = -(-len(labels) // len(batches(traces)))  # a line a batch
        fig.legend(handles, labels, loc="outside lower center", ncols=across)

    return draw


def debiased(traces: Traces) -> plot.Drawing:
    """Cost of Algorithms 1 and 3 as in the paper, solid, and without their bias, dashed."""

    def both(split: str, ax: plot.Axes) -> None:
        for b, color in colors(traces).items():
            label = f"B = {rows(split, b, clients(traces))}"
            curve(ax, traces[f"{split}_ssca_B{b}"], "cost", color, label=label)
            curve(ax, traces[f"{split}_ssca_B{b}_debiased"], "cost", color, "--")
        ax.plot([], [], "--", color=GREY, label="debiased")

    def align_costs(ax: plot.Axes) -> None:
        first, second = ax.figure.axes
        costs([first, second])

    one, two = (partial(both, split) for split in SPLITS)
    legend = {"loc": "upper right"}
    return row(
        panel(one, title="samples split", legend=legend, ylabel=METRICS["cost"]),
        panel(two, align_costs, title="features split", legend=legend),
        sharey=True,
    )


FIGURES: dict[str, Callable[[Traces], plot.Drawing]] = {
    "figure_2": partial(convergence, "samples"),
    "figure_3": partial(convergence, "features"),
    "debiased": debiased,
}
