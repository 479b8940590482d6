"""The derived numbers of the study of SSCA's Figure 4 and of Theorem 5."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.kit import plot
from papers.kit.numbers import Number, mean
from papers.kit.panels import panel, row
from papers.kit.study import Params, Traces, swept
from papers.ssca.common import NUMBERS, SPLITS

METRICS = ("cost", "norm", "accuracy")  # of the runs of Figure 4
PATH = ("cost", "norm", "slope", "along", "across")  # of the runs of Theorem 5


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Where every run ends; the order along each curve; Theorem 5's gradients."""
    numbers: dict[str, Number] = {}
    for name, trace in traces.items():
        if name.startswith("theorem_"):
            found = theorem(trace)
        else:
            found = {k: mean(trace.metrics[k][:, -1]) for k in METRICS}
        numbers |= {f"{name}.{k}": v for k, v in found.items()}
    for split in SPLITS:
        numbers |= curves(traces, split, p)
    return numbers


def sweep(traces: Traces, split: str, kind: str) -> dict[float, Trace]:
    """The runs of one curve by their lambda (`kind` `"ssca"`) or U (`"limit"`), ascending."""
    return swept(traces, f"{split}_{kind}_" + ("ridge" if kind == "ssca" else "U"))


def final(runs: dict[float, Trace], metric: str) -> Array:
    """The metric of the final models, `[runs, S]`."""
    return np.array([t.metrics[metric][:, -1] for t in runs.values()])


def curves(traces: Traces, split: str, p: Params) -> dict[str, Number]:
    """Rank correlations along the two curves of a split; levels kept."""
    found: dict[str, Number] = {}
    ridges, limits = (sweep(traces, split, kind) for kind in ("ssca", "limit"))
    for kind, runs in (("ssca", ridges), ("limit", limits)):
        if len(runs) > 1:
            found[f"{split}_{kind}.order"] = ordered(final(runs, "cost"), final(runs, "norm"))
    if len(limits) > 1:
        levels = np.repeat(np.array([*limits])[:, None], len(p["seeds"]), 1)
        found[f"{split}_limit.accuracy_order"] = ordered(levels, final(limits, "accuracy"))
    for level, trace in limits.items():
        name = f"{split}_limit_U{level:g}"
        found[f"{name}.excess"] = mean(100 * (trace.metrics["cost"][:, -1] / level - 1), "%")
    return found


def ordered(x: Array, y: Array) -> Number:
    """Per seed the rank correlation of two rows of values `[runs, S]`."""
    return mean([scipy.stats.spearmanr(a, b).statistic for a, b in zip(x.T, y.T, strict=True)])


def relative_gradient(trace: Trace) -> tuple[NDArray[np.int64], Array]:
    """Rounds, and |grad (27)| / |grad F| there with lambda = 1 / nu of that round, `[S, T]`.

    Infinite where nu is zero; the start, before which no round has given a nu, is left out.
    """
    rounds = trace.rounds[1:]
    m = {k: v[:, 1:] for k, v in trace.metrics.items()}
    with np.errstate(divide="ignore"):
        ridge = 1 / trace.info["nu"][:, rounds - 1]
    whole = np.hypot(m["across"], m["along"] + 2 * ridge * np.sqrt(m["norm"]))
    return rounds, np.asarray(whole / m["slope"])


def theorem(trace: Trace) -> dict[str, Number]:
    """What holds after the last round, and the share of the gradient at half the rounds."""
    rounds, gradient = relative_gradient(trace)
    half = np.searchsorted(rounds, rounds[-1] // 2, side="right") - 1
    return {
        "cost": mean(trace.metrics["cost"][:, -1]),
        "nu": mean(trace.info["nu"][:, -1]),
        "slope": mean(trace.metrics["slope"][:, -1]),
        "half_gradient": mean(gradient[:, half]),
        "gradient": mean(gradient[:, -1]),
    }


FORMS = {"ssca": ("Algorithm {}, by λ", "o"), "limit": ("Algorithm {}, by U", "s")}


def figure_4(traces: Traces) -> plot.Drawing:
    """|w|^2 against the training cost, a panel for each split."""

    def curves(split: str, ax: plot.Axes) -> None:
        for i, (kind, number) in enumerate(zip(FORMS, NUMBERS[split], strict=True)):
            text, marker = FORMS[kind]
            curve(ax, sweep(traces, split, kind), text.format(number), plot.COLORS[i], marker)
        plot.plain_log(ax)

    first, second = (
        panel(partial(curves, split), title=split, xlabel="training cost F", legend=True)
        for split in SPLITS
    )
    return row(panel(first, ylabel="squared norm |w|²"), second, sharey=True, sharex=True)


def curve(ax: plot.Axes, runs: Mapping[float, Trace], label: str, color: str, marker: str) -> None:
    """Means joined by a line with bars of one standard deviation both ways, a faint dot a seed."""
    ends = [(t.metrics["cost"][:, -1], t.metrics["norm"][:, -1]) for t in runs.values()]
    for cost, norm in ends:
        ax.scatter(cost, norm, s=6, color=color, alpha=0.35, linewidths=0)
    x, y = (np.array([e[k].mean() for e in ends]) for k in (0, 1))
    dx, dy = (np.array([e[k].std() for e in ends]) for k in (0, 1))
    look: Any = {"marker": marker, "markersize": 4, "linewidth": 1.3, "elinewidth": 0.9}
    below = np.minimum(dy, 0.99 * y)
    ax.errorbar(x, y, xerr=dx, yerr=below, color=color, label=label, **look)


def theorem_5(traces: Traces) -> plot.Drawing:
    """The gradient of (27) and the cost, by level."""
    runs = {f"U = {u:g}": trace for u, trace in swept(traces, "theorem_U").items()}
    top = max(float(t.metrics["cost"][:, len(t.rounds) // 10 :].max()) for t in runs.values())

    def seeds(curves: Callable[[Trace], tuple[Any, Any]], ax: plot.Axes) -> None:
        for (label, trace), color in zip(runs.items(), plot.COLORS, strict=False):
            rounds, y = curves(trace)
            ax.plot(rounds, y.mean(0), color=color, label=label)
            ax.plot(rounds, y.T, color=color, linewidth=0.5, alpha=0.5)
        ax.set_xlabel("round")

    gradients = partial(seeds, relative_gradient)
    costs = partial(seeds, lambda trace: (trace.rounds, trace.metrics["cost"]))
    return row(
        panel(gradients, plot.plain_log, ylabel="|∇(27)| / |∇F|", legend=True),
        panel(costs, ylim=(0, 1.2 * top), ylabel="training cost F"),
    )


FIGURES = {"figure_4": figure_4, "theorem_5": theorem_5}
