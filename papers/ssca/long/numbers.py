"""The derived numbers of the study of longer SSCA runs."""

from __future__ import annotations

import numpy as np

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.kit import plot
from papers.kit.numbers import Number, mean
from papers.kit.panels import columns, row
from papers.kit.study import Params, Traces, after, swept
from papers.ssca.long.claims import TENTH, THIRDS

METRICS = ("cost", "accuracy", "norm", "cost_all", "gradient")
REPORTS = ("nu", "slack", "penalty")
EARLY = 100  # the paper's number of rounds


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Where every run ends, violations, slacks and gradients."""
    numbers: dict[str, Number] = {}
    for name, trace in traces.items():
        found = {k: mean(v[:, -1]) for k, v in trace.metrics.items() if k in METRICS}
        if "gradient" in trace.metrics:
            found |= stationarity(trace)
        if name.startswith("limit_"):
            found |= constraint(trace, p)
        numbers |= {f"{name}.{k}": v for k, v in found.items()}
    return numbers


def at(trace: Trace, metric: str, round_: int) -> Array:
    """Per seed the metric at the last evaluation up to a round."""
    column = int(np.searchsorted(trace.rounds, round_, side="right")) - 1
    return np.asarray(trace.metrics[metric][:, column])


def stationarity(trace: Trace) -> dict[str, Number]:
    """The gradient at the end as a share of that at the start, and how it falls on the way.

    `gradient_first`, `_middle`, `_last` are its means over the thirds of the run, without the
    start; `fall` is the slope of log |gradient| over log t from T / 2 on, at most two points apart.
    """
    g, t = trace.metrics["gradient"], trace.rounds
    late = t >= t[-1] / 2
    x = np.log(t[late])
    x = x - x.mean()
    y = np.log(g[:, late])
    third = np.ceil(3 * t / t[-1])  # 1, 2, 3; 0 is the start
    found = {
        f"gradient_{name}": mean(g[:, third == i].mean(1))
        for i, name in enumerate(THIRDS, 1)
        if (third == i).any()
    }
    found["gradient_share"] = mean(g[:, -1] / g[:, 0])
    return found | {"fall": mean((y @ x) / (x @ x))}


def constraint(trace: Trace, p: Params) -> dict[str, Number]:
    """How far F is above U on all pictures; slack, multiplier and penalty at both ends."""
    method = trace.config["algorithm"]["method"]
    level, few = method["levels"], min(p["patience"], p["rounds"])
    info = trace.info
    found = {
        "violation_end": mean(trace.metrics["cost_all"][:, -1] - level),
        "violation_patience": mean(at(trace, "cost_all", few) - level),
        "slack_first": mean(info["slack"][:, :few].mean(1)),
        "slack_end": mean(info["slack"][:, -few:].mean(1)),
        "nu_end": mean(info["nu"][:, -few:].mean(1)),
    }
    if "penalty" in info:
        found["penalty_end"] = mean(info["penalty"][:, -1])
    if p["rounds"] > EARLY:
        found["violation_early"] = mean(at(trace, "cost_all", EARLY) - level)
    return found


STEPS = {"paper": "the paper's steps", "valid": "valid steps"}
FLOOR = 1e-5  # slacks below are drawn here


def levels(traces: Traces) -> list[str]:
    """The levels U, ascending, as the runs are named."""
    return [f"{level:g}" for level in swept(traces, "limit_paper_U")]


def firsts(traces: Traces) -> list[str]:
    """The first penalties of the runs in which they grow, ascending, as the runs are named."""
    return sorted({n.partition("_")[0] for n in after(traces, "limit_c")}, key=float)


def violation(traces: Traces) -> plot.Drawing:
    """F - U on all training pictures over the rounds, a panel for each level."""
    forms = STEPS | {f"c{c}": f"c growing from {c}" for c in firsts(traces)}

    def fill(ax: plot.Axes, level: str) -> None:
        for (name, text), color in zip(forms.items(), plot.COLORS, strict=False):
            trace = traces[f"limit_{name}_U{level}"]
            above = trace.metrics["cost_all"] - float(level)
            plot.band(ax, trace.rounds, above, color=color, label=text)
        plot.level(ax, 0, "F = U")
        ax.set_yscale("symlog", linthresh=0.01)
        ax.yaxis.set_major_formatter("{x:g}")

    titles = {level: f"U = {level}" for level in levels(traces)}
    return row(
        *columns(fill, titles, ylabel="F - U", legend=True, at=-1, xlabel="round"), sharey=True
    )


def penalty(traces: Traces) -> plot.Drawing:
    """Slack above, penalty and multiplier below, for growing penalties; a column for each level."""

    def draw(fig: plot.Figure) -> None:
        found = levels(traces)
        rows = fig.subplots(2, len(found), sharex=True, sharey="row", squeeze=False)
        for (above, below), level in zip(rows.T, found, strict=True):
            for i, c in enumerate(firsts(traces)):
                trace, color = traces[f"limit_c{c}_U{level}"], plot.COLORS[i]
                t = 1 + np.arange(trace.info["slack"].shape[1])
                slack = np.maximum(trace.info["slack"], FLOOR)
                above.plot(t, slack.T, color=color, linewidth=0.3, alpha=0.3)
                above.plot(t, np.median(slack, 0), color=color, label=f"c from {c}")
                below.plot(t, middle(trace, "penalty"), "--", color=color, label=f"c from {c}")
                below.plot(t, middle(trace, "nu"), color=color, linewidth=1, label="its ν")
            tolerance = float(trace.config["algorithm"]["method"]["tolerance"])
            plot.level(above, tolerance, "tolerance")
            above.set_title(f"U = {level}")
            above.set_yscale("log")
            below.set_yscale("log")
            below.set_xlabel("round")
        rows[0, 0].set_ylabel("slack s")
        rows[1, 0].set_ylabel("penalty c, multiplier ν")
        for ax in rows[:, -1]:
            ax.legend(loc="upper left", bbox_to_anchor=(1, 1.03))

    return draw


def middle(trace: Trace, name: str) -> list[float]:
    """The median over seeds, for quantities that jump at a seed's own time."""
    found: list[float] = np.median(trace.info[name], axis=0).tolist()
    return found


def gradient(traces: Traces) -> plot.Drawing:
    """The norm of the gradient over the rounds, both axes logarithmic, a panel for each batch."""

    def curves(ax: plot.Axes, size: str) -> None:
        for i, (name, text) in enumerate(STEPS.items()):
            log_log(ax, traces[f"ssca_{name}_B{size}"], text, plot.COLORS[i])
        start = float(traces[f"ssca_paper_B{size}"].metrics["gradient"][:, 0].mean())
        plot.level(ax, TENTH * start, "a tenth of the start")

    sizes = [f"{size:g}" for size in reversed(swept(traces, "ssca_paper_B"))]
    titles = {size: f"batch {size}" for size in sizes}
    return row(*columns(curves, titles, ylabel="|∇F₀|", legend=True, xlabel="round"), sharey=True)


def log_log(ax: plot.Axes, trace: Trace, label: str, color: str) -> None:
    """Mean and single seeds of the gradient from the first evaluation after the start on."""
    t, g = trace.rounds[1:], trace.metrics["gradient"][:, 1:]
    ax.plot(t, g.T, color=color, linewidth=0.5, alpha=0.5)
    ax.plot(t, g.mean(0), color=color, label=label)
    ax.set_xscale("log")
    plot.plain_log(ax)


FIGURES = {"violation": violation, "penalty": penalty, "gradient": gradient}
