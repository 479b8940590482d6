"""Figures of the study of Federated Frank-Wolfe's rates: the theorems and the wrong oracles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedlib import plot, theory_fw
from fedlib.numbers import Number, mean, ratio
from fedlib.studies.fw_rates_curves import figure_2, figure_3, figure_4
from fedlib.studies.fw_rates_numbers import along, bounds, gap_bound, horizons, least_gaps
from fedlib.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FIGURES"]

Traces = Mapping[str, Trace]
Array = NDArray[np.float64]
GREY = "#888888"
TITLES = {"l1": "l1 ball", "l2": "l2 ball"}


def counterexample(traces: Traces) -> plot.Drawing:
    """Rounds and x: the naive scheme and FedFW, FedFW+, the published code's variant."""

    def draw(fig: Figure) -> None:
        axes = fig.subplots(1, 3, sharey=True)
        naive = {"falling": "naive, falling step", "constant": "naive, constant step"}
        for i, (step, label) in enumerate(naive.items()):
            line(axes[0], traces[f"pair_naive_{step}"], "x", GREY, label, ("-", "--")[i])
        titles = {"fedfw": "FedFW", "plus": "FedFW+", "code": "variant of the published code"}
        for ax, (kind, title) in zip(axes, titles.items(), strict=True):
            for i, lam in enumerate(along(traces, f"pair_{kind}_L")):
                trace = traces[f"pair_{kind}_L{lam:g}"]
                line(ax, trace, "x", plot.COLORS[i], f"λ₀ = {lam:g}", STYLES[i % len(STYLES)])
            ax.axhline(1, color="#d62728", linestyle=":", linewidth=1.2)
            ax.set_title(title)
            ax.set_xscale("log")
            ax.set_xlabel("round")
            ax.legend()
        axes[0].set_ylabel("x (minimizer: 1)")

    return draw


def shown(traces: Traces) -> list[str]:
    """The sets that there are runs on."""
    return [norm for norm in TITLES if f"convex_{norm}_reference" in traces]


def panels(fig: Figure, norms: list[str]) -> Any:
    """A panel for every set."""
    return fig.subplots(1, len(norms), sharey=True, squeeze=False)[0]


STYLES = ("-", "--", "-.")


def line(ax: Axes, trace: Trace, metric: str, color: str, label: str, style: str = "-") -> None:
    """Mean over seeds after the first round on, with a band of one standard deviation."""
    t, x = trace.rounds[1:], trace.metrics[metric][:, 1:]
    band(ax, t, x, color, label, style)


def band(
    ax: Axes, t: Any, x: Array, color: str, label: str, style: str = "-", log: bool = False
) -> None:
    """Mean and standard deviation over seeds; of the logarithms if the axis is logarithmic."""
    y = np.log(np.maximum(x, 1e-15)) if log else x
    centre, width = y.mean(0), y.std(0)
    ends = [centre, centre - width, centre + width]
    middle, low, high = (np.exp(e) for e in ends) if log else ends
    ax.plot(t, middle, style, color=color, label=label, linewidth=1.4)
    ax.fill_between(t, low, high, color=color, alpha=0.15, linewidth=0)


def theorem_1(traces: Traces) -> plot.Drawing:
    """F - F* by rounds for FedFW and FedFW+, and (38)."""

    def draw(fig: Figure) -> None:
        axes = panels(fig, norms := shown(traces))
        for ax, norm in zip(axes, norms, strict=True):
            for i, lam in enumerate(along(traces, f"convex_{norm}_fedfw_L")):
                for kind, style in (("fedfw", "-"), ("plus", "--")):
                    trace = traces[f"convex_{norm}_{kind}_L{lam:g}"]
                    label = f"λ₀ = {lam:g}" if kind == "fedfw" else ""
                    excess = trace.metrics["excess"][:, 1:]
                    band(ax, trace.rounds[1:], excess, plot.COLORS[i], label, style, log=True)
                known = traces[f"convex_{norm}_reference"]
                promise(ax, theory_fw.convex_excess, known, lam, trace, plot.COLORS[i])
            finish(ax, norm, -1 / 2, "t^(-1/2)", trace.rounds)
        labelled(axes)

    return draw


def promise(
    ax: Axes, bound: Any, known: Trace, lam: float, trace: Trace, color: str, batch: int = 1
) -> None:
    """A bound by rounds, dotted."""
    some = np.unique(np.geomspace(1, trace.rounds[-1], 40).astype(int))
    ax.plot(some, bounds(bound, known, lam, some, batch).mean(0), ":", color=color, linewidth=1.2)


def finish(ax: Axes, norm: str, power: float, text: str, rounds: Any) -> None:
    """Logarithmic axes, title, and a grey line with the theorem's power."""
    t = np.array([max(0.05 * rounds[-1], rounds[0]), rounds[-1]])
    low = min(np.nanmin(np.asarray(x.get_ydata(), float)) for x in ax.lines)
    ax.plot(t, 3 * low * (t / t[-1]) ** power, color=GREY, linewidth=2, label=text)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_title(TITLES[norm])
    ax.set_xlabel("round")


def labelled(axes: Any) -> None:
    """The vertical axis of the first panel, and its legend with the line styles."""
    axes[0].set_ylabel("F − F*")
    axes[-1].legend()


def theorem_2(traces: Traces) -> plot.Drawing:
    """The smallest gap of T rounds by T, and (62)."""

    def draw(fig: Figure) -> None:
        axes = panels(fig, norms := shown(traces))
        for ax, norm in zip(axes, norms, strict=True):
            start = f"nonconvex_{norm}_L"
            penalties = sorted({float(n.removeprefix(start).split("_")[0]) for n in traces
                                if n.startswith(start)})  # fmt: skip
            for i, lam in enumerate(penalties):
                runs = horizons(traces, norm, lam)
                gaps = [mean(least_gaps(traces[n])) for n in runs.values()]
                intervals(ax, list(runs), gaps, plot.COLORS[i], f"λ₀ = {lam:g}")
                known, T = traces[f"nonconvex_{norm}_reference"], np.array([*runs])
                above = bounds(gap_bound, known, lam, T - 1).mean(0)
                ax.plot(T, above, ":", color=plot.COLORS[i], linewidth=1.2)
            finish(ax, norm, -1 / 3, "T^(-1/3)", T)
            ax.set_xlabel("rounds T")
        axes[0].set_ylabel("smallest Frank-Wolfe gap")
        axes[-1].legend()

    return draw


def intervals(ax: Axes, x: Any, numbers: list[Number], color: str, label: str) -> None:
    """Means with their 95 % intervals, joined."""
    value = np.array([n.value for n in numbers])
    ends = np.array([[n.value - n.low, n.high - n.value] for n in numbers]).T
    ax.errorbar(
        x, value, np.maximum(ends, 0), color=color, label=label, marker="o", markersize=4, capsize=3
    )


def theorem_3(traces: Traces) -> plot.Drawing:
    """F - F* of FedFW-sto by rounds, and (68)."""

    def draw(fig: Figure) -> None:
        axes = panels(fig, norms := shown(traces))
        for ax, norm in zip(axes, norms, strict=True):
            for i, lam in enumerate(along(traces, f"sto_{norm}_L")):
                trace = traces[f"sto_{norm}_L{lam:g}"]
                excess = trace.metrics["excess"][:, 1:]
                color, label = plot.COLORS[i], f"λ₀ = {lam:g}"
                band(ax, trace.rounds[1:], excess, color, label, log=True)
                known = traces[f"convex_{norm}_reference"]
                batch = int(trace.config["algorithm"]["batch_size"])
                promise(ax, theory_fw.stochastic_excess, known, lam, trace, color, batch)
            finish(ax, norm, -1 / 3, "t^(-1/3)", trace.rounds)
        labelled(axes)

    return draw


def oracles(traces: Traces) -> plot.Drawing:
    """What wrong oracles cost: by the share of the gap, by the error, by the Lanczos steps."""

    def draw(fig: Figure) -> None:
        axes = fig.subplots(1, 3)
        for i, norm in enumerate(shown(traces)):
            start, color = f"wrong_{norm}_", plot.COLORS[i]
            exact = traces[f"{start}exact"].metrics["excess"][:, -1]
            shares = along(traces, f"{start}quality")
            times = [ratio(last(traces[f"{start}quality{m:g}"]), exact) for m in shares]
            intervals(axes[0], [*shares, 1.0], [*times, ratio(exact, exact)], color, TITLES[norm])
            for kind, style in (("slip", "-"), ("falling", "--")):
                sizes = along(traces, f"{start}{kind}")
                each = np.array([last(traces[f"{start}{kind}{x:g}"]) for x in sizes])
                label = TITLES[norm] if kind == "slip" else ""
                axes[1].plot(sizes, each.mean(1), style, color=color, marker="o", label=label)
            axes[1].axhline(exact.mean(), color=color, linestyle=":", linewidth=1.2)
        m = np.linspace(min(shares), 1, 50)
        axes[0].plot(m, m**-2.0, color=GREY, linestyle=":", label="1 / m²")
        axes[0].set_xlabel("share m of the gap")
        axes[0].set_ylabel("excess by that of the exact oracle")
        axes[1].set_xlabel("additive error e")
        axes[1].set_ylabel("F − F* at the end")
        axes[1].set_xscale("log")
        axes[1].set_yscale("log")
        steps = [int(k) for k in along(traces, "nuclear_k")]
        gaps = [mean(traces[f"nuclear_k{k}"].late("fw_gap")) for k in steps]
        intervals(axes[2], steps, gaps, plot.COLORS[2], "nuclear ball")
        axes[2].set_xscale("log")
        axes[2].set_xticks(steps, [str(k) for k in steps])
        axes[2].minorticks_off()
        axes[2].set_ylim(0, None)
        axes[2].set_xlabel("steps of Lanczos")
        axes[2].set_ylabel("late Frank-Wolfe gap")
        for ax in axes:
            ax.legend()

    return draw


def last(trace: Trace) -> Array:
    """The excess of the final models."""
    return np.asarray(trace.metrics["excess"][:, -1])


FIGURES = {
    "counterexample": counterexample,
    "theorem_1": theorem_1,
    "theorem_2": theorem_2,
    "theorem_3": theorem_3,
    "figure_2": figure_2,
    "figure_3": figure_3,
    "figure_4": figure_4,
    "oracles": oracles,
}
