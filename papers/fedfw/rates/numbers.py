"""The derived numbers of the study of Federated Frank-Wolfe's rates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedfw import theory_fw
from papers.fedfw.theory_fw import Constants
from papers.kit import plot
from papers.kit.numbers import Number, exact, mean, measured, ratio
from papers.kit.panels import Layer, columns, grid, on, panel, row
from papers.kit.study import Params, Traces, after, swept

NORMS = ("l1", "l2")
DIAMETER = 20.0  # of both sets, of radius 10
CLIENTS = 10
ENTRIES = 65  # of a picture of 8 x 8 with its 1 for the bias, each between -1 and 1
#: What no model in the set can exceed: the cross-entropy of ten classes, whose scores differ by 10
#: times the largest entry (l1) or sqrt(2) times 10 times the length (l2) of a row; and the gap of a
#: loss with a slope of at most 1/4 in the score.
MOST = {
    "convex": {"l1": log(10) + 10, "l2": log(10) + 10 * sqrt(2 * ENTRIES)},
    "nonconvex": {"l1": DIAMETER / 4, "l2": DIAMETER / 4 * sqrt(ENTRIES)},
}
WINDOW = 0.05  # slopes are fitted from this share of the rounds on
EARLY = 20  # rounds that are Figure 4's first ones

Bound = Callable[[Constants, int], float]
Measure = Callable[[Trace], Array]
#: How the runs of a theorem begin, its problem, and its bound.
THEOREMS: dict[str, tuple[str, str, Bound]] = {
    "convex": ("convex_{}_fedfw_L", "convex", theory_fw.convex_excess),
    "sto": ("sto_{}_L", "convex", theory_fw.stochastic_excess),
    "nonconvex": ("nonconvex_{}_L", "nonconvex", theory_fw.nonconvex_gap),
}


def norms(p: Params) -> list[str]:
    return [f"l{int(k)}" for k in p["balls"]]


def last(metric: str) -> Measure:
    return lambda t: np.asarray(t.metrics[metric][:, -1])


def over(metric: str) -> Measure:
    """Per seed the mean over the evaluated rounds, without the start that all runs have."""
    return lambda t: np.asarray(t.metrics[metric][:, 1:].mean(1))


def early(trace: Trace) -> Array:
    """On the counterexample, the distance from the minimizer after a tenth of the rounds."""
    at = np.searchsorted(trace.rounds, 0.1 * trace.rounds[-1])
    return np.asarray(np.abs(1 - trace.metrics["x"][:, at]))


def late(trace: Trace) -> Array:
    return np.abs(1 - last("x")(trace))


def power(rounds: Array | NDArray[np.int64], values: Array) -> Array:
    """Per seed the exponent k of values that go like t^k, t = round + 1, over the late rounds.

    Least squares of the logarithms, from `WINDOW` of the rounds on, each round weighed by 1 / t so
    that every part of the logarithmic axis counts alike.
    """
    late = rounds >= max(1, WINDOW * rounds[-1])
    t = np.asarray(rounds[late], float) + 1
    x, weight = np.log(t), np.sqrt(1 / t)
    y = np.log(np.maximum(values[:, late], 1e-15))
    return np.array([np.polyfit(x, row, 1, w=weight)[0] for row in y])


def least_gaps(trace: Trace) -> Array:
    return np.asarray(trace.of_rounds("fw_gap").min(1))


def early_gap(trace: Trace) -> Array:
    """Per seed the mean of (11) at the server's model over the first rounds."""
    some = (trace.rounds > 0) & (trace.rounds <= EARLY)
    return np.asarray(trace.metrics["gap"][:, some].mean(1))


def early_surrogate(trace: Trace) -> Array:
    """Per seed the mean of sum_i <g_i, x_i - s_i> over the first rounds."""
    return np.asarray(trace.info["gap"][:, 1 : EARLY + 1].mean(1))


TO_THE_LEAST = {
    "excess": last("excess"),
    "slope": lambda t: power(t.rounds, t.metrics["excess"]),
}
#: The measures of a run by the first word of its name.
MEASURES: dict[str, dict[str, Any]] = {
    "pair": {
        "x": last("x"),
        "farthest": lambda t: exact(np.abs(last("x")(t)).max()),
        "early": early,
        "late": late,
        "nearer": lambda t: early(t) - late(t),
    },
    "convex": TO_THE_LEAST,
    "sto": TO_THE_LEAST,
    "wrong": {},
    "nonconvex": {"least_gap": least_gaps},
    "nuclear": {"late_gap": lambda t: t.late("fw_gap")},
    "share": {"mean_loss": over("loss")},
    "penalty": {"early_gap": early_gap, "early_surrogate": early_surrogate},
}


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Where runs end, how fast they get there, and how far below the bounds they are.

    Keys are `run.measure`. A number whose runs are missing is missing too.
    """
    found: dict[str, Number] = {}
    for name, trace in traces.items():
        if name.endswith("_reference"):
            found |= {f"{name}.{k}": mean(v[:, 0]) for k, v in trace.metrics.items()}
        else:
            found |= measured({name: trace}, MEASURES[name.partition("_")[0]])
    return found | beside_bounds(traces, p) | trends(traces, p) | errors(traces)


def bounds(bound: Bound, reference: Trace, lam: float, rounds: Any, batch: int = 1) -> Array:
    """A theorem's bound for the model after each number of rounds, `[S, T]`; t counts from 1."""
    rows = []
    for j in range(len(reference.seeds)):
        known = {k: float(v[j, 0]) for k, v in reference.metrics.items()}
        c = Constants(
            L=known["smooth"],
            D=DIAMETER,
            N=CLIENTS,
            lam0=lam,
            dual=known["dual"],
            slope=known["slope"],
            spread=known.get("spread", 0.0),
            sigma=float(np.sqrt(known["noise"] / batch)),
            first=known["first"],
        )
        rows.append([bound(c, int(t) + 1) for t in rounds])
    return np.array(rows)


def beside_bounds(traces: Traces, p: Params) -> dict[str, Number]:
    """The largest excess by its bound, (38) or (68), and the smallest gap by (62).

    `by_most` is the bound at its lowest, by the largest value that a model in the set can have. Of
    a theorem, such as `convex.ratio`: of its runs the lowest such bound, and the largest share.
    """
    found: dict[str, Number] = {}
    for kind, (form, task, bound) in THEOREMS.items():
        by_most, shares = [], []
        for norm in norms(p):
            known = traces[f"{task}_{norm}_reference"]
            for run in (n for n in traces if n.startswith(form.format(norm))):
                trace, lam = traces[run], float(run.partition("_L")[2].partition("_")[0])
                rounds, values = trace.rounds[1:], trace.metrics.get("excess")
                if values is None:
                    rounds, values = trace.rounds[-1:] - 1, least_gaps(trace)[:, None]
                above = bounds(bound, known, lam, rounds, p["batch"])
                by_most.append(above.min(1) / MOST[task][norm])
                shares.append((values[:, -len(rounds) :] / above).max(1))
                found[f"{run}.by_most"], found[f"{run}.ratio"] = mean(by_most[-1]), mean(shares[-1])
        found[f"{kind}.by_most"] = mean(np.min(by_most, axis=0))
        found[f"{kind}.ratio"] = mean(np.max(shares, axis=0))
    return found


def trends(traces: Traces, p: Params) -> dict[str, Number]:
    """Per seed the slope over a whole sweep, by least squares.

    Of losses by p (`trend`), and between logarithms of gaps by lambda_0 (`trend_gap`) and of
    Theorem 2's smallest gap by T (`slope`). Keys are what the names of the runs have in common,
    such as `share_fedfw.trend`.
    """
    by_share: dict[str, Measure] = {"trend": over("loss"), "trend_last": last("loss")}
    by_penalty: dict[str, Measure] = {"trend_gap": early_gap, "trend_surrogate": early_surrogate}
    sweeps: list[tuple[str, dict[str, Measure], bool]] = [
        *((f"share_mclr_L{lam:g}_p", by_share, False) for lam in p["share_penalties"]),
        *((f"share_{method}_p", by_share, False) for method in ("fedfw", "plus")),
    ]
    for norm in norms(p):
        sweeps += [(f"penalty_{model}_{norm}_L", by_penalty, True) for model in ("mclr", "net")]
        starts = [f"nonconvex_{norm}_L{lam:g}_T" for lam in p["nonconvex_penalties"]]
        sweeps += [(start, {"slope": least_gaps}, True) for start in starts]
    found: dict[str, Number] = {}
    for start, measures, logs in sweeps:
        runs = swept(traces, start)
        x = np.array([*runs])
        if len(x) > 1:
            for k, of in measures.items():
                y = np.array([*map(of, runs.values())])
                a, b = (np.log(x), np.log(np.maximum(y, 1e-15))) if logs else (x, y)
                found[f"{start.rpartition('_')[0]}.{k}"] = mean(np.polyfit(a, b, 1)[0])
    return found


def errors(traces: Traces) -> dict[str, Number]:
    found: dict[str, Number] = {}
    for name, trace in traces.items():
        if name.startswith("wrong_"):
            own, exact = map(last("excess"), (trace, traces[f"{name.rpartition('_')[0]}_exact"]))
            found |= {f"{name}.times": ratio(own, exact), f"{name}.more": mean(own - exact)}
    gaps = {k: trace.late("fw_gap") for k, trace in swept(traces, "nuclear_k").items()}
    return found | {f"nuclear_k{k:g}.times": ratio(x, gaps[max(gaps)]) for k, x in gaps.items()}


GREY = "#888888"
STYLES = ("-", "--", "-.")
TITLES = {"l1": "l1 ball", "l2": "l2 ball"}
LABELS = {"loss": "training loss", "gap": "Frank-Wolfe gap", "accuracy": "test accuracy"}
Figure = Callable[[Traces], plot.Drawing]


def counterexample(traces: Traces) -> plot.Drawing:
    """X by rounds on the problem of appendix A, a panel for each method."""

    def curves(ax: plot.Axes, kind: str) -> None:
        if kind == "fedfw":
            for step, style in zip(("falling", "constant"), STYLES, strict=False):
                trace = traces[f"pair_naive_{step}"]
                band(ax, trace, "x", GREY, f"naive, {step} step", style)
        for i, (lam, trace) in enumerate(swept(traces, f"pair_{kind}_L").items()):
            band(ax, trace, "x", plot.COLORS[i], f"λ₀ = {lam:g}", STYLES[i % len(STYLES)])
        plot.level(ax, 1, "")

    titles = {"fedfw": "FedFW", "plus": "FedFW+", "code": "variant of the published code"}
    frame: dict[str, Any] = {"xscale": "log", "xlabel": "round", "legend": True}
    first, *rest = (panel(on(curves, kind), title=title, **frame) for kind, title in titles.items())
    return row(panel(first, ylabel="x (minimizer: 1)"), *rest, sharey=True)


def band(ax: plot.Axes, trace: Trace, metric: str, color: str, label: str, style: str) -> None:
    """Mean and standard deviation over seeds, of logarithms on a logarithmic axis; no start."""
    x = np.maximum(trace.metrics[metric][:, 1:], 1e-15)
    look: Any = {"linestyle": style, "label": label, "linewidth": 1.4, "shade": 0.15}
    plot.band(ax, trace.rounds[1:], x, color=color, **look)


def theorem_1(traces: Traces) -> plot.Drawing:
    """F - F* by rounds, a panel for each set, the bound (38) dotted, and its power in grey."""

    def curves(ax: plot.Axes, norm: str) -> None:
        runs = swept(traces, f"convex_{norm}_fedfw_L")
        for (lam, trace), color in zip(runs.items(), plot.COLORS, strict=False):
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
    found = {float(n.split("_")[0]) for n in after(traces, "share_mclr_L")}
    titles = {
        f"share_mclr_L{x:g}_p": f"regression, λ₀ = {x:g}" for x in sorted(found, reverse=True)
    }
    return by_share(traces, titles)


def figure_3(traces: Traces) -> plot.Drawing:
    """Participation: the network on the l2 ball with a fixed penalty, FedFW and FedFW+."""
    return by_share(traces, {"share_fedfw_p": "network, FedFW", "share_plus_p": "network, FedFW+"})


def by_share(traces: Traces, titles: Mapping[str, str]) -> plot.Drawing:
    """Loss above accuracy, a column a setting, a curve for each p."""

    def line(metric: str, **frame: Any) -> list[Layer]:
        def fill(ax: plot.Axes, start: str) -> None:
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
        for x, t in swept(traces, start).items()
    }


def figure_4(traces: Traces) -> plot.Drawing:
    """Loss, gap and accuracy by lambda_0, a row for each model and set."""
    rows = {
        f"penalty_{model}_{norm}_L": f"{text}, {norm}"
        for model, text in (("mclr", "regression"), ("net", "network"))
        for norm in NORMS
        if after(traces, f"penalty_{model}_{norm}_L")
    }

    def curves(ax: plot.Axes, start: str, metric: str) -> None:
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
