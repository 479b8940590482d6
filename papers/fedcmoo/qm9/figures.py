"""Figures of the QM9 study: losses against rounds and uploads, a radial plot, counted uploads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlib.core import Trace
from papers.fedcmoo.data.molecules import TARGETS
from papers.fedcmoo.qm9.numbers import (
    METHODS,
    TASKS,
    common_round,
    common_upload,
    upload,
    uploaded,
    within,
)
from papers.kit import plot
from papers.kit.numbers import Number
from papers.kit.panels import Layer, on, panel, row
from papers.kit.study import Traces

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

NAMES = {"fsmgda": "FSMGDA", "fedcmoo": "FedCMOO", "pref": "FedCMOO-Pref"}
MARKS = {"fsmgda": "o", "fedcmoo": "s", "pref": "^"}
COLOR = dict(zip(METHODS, plot.COLORS, strict=False))

ANGLES = 2 * np.pi * np.arange(len(TASKS)) / len(TASKS)  # of the spokes of a radial plot

#: Symbols of the targets, in the order of the tasks.
SYMBOLS = {
    "mu": r"$\mu$",
    "alpha": r"$\alpha$",
    "homo": r"$\epsilon_{HOMO}$",
    "lumo": r"$\epsilon_{LUMO}$",
    "r2": r"$\langle R^2\rangle$",
    "zpve": "ZPVE",
    "u0": r"$U_0$",
    "u298": r"$U$",
    "h298": r"$H$",
    "g298": r"$G$",
    "cv": r"$c_v$",
}


def target_names(traces: Traces) -> list[str]:
    return list(traces["qm9_fedcmoo"].config["problem"].get("tasks", TARGETS))


def style(method: str) -> dict[str, Any]:
    look = {"color": COLOR[method], "marker": MARKS[method], "label": NAMES[method]}
    return {**look, "markersize": 3}


def main_runs(traces: Traces) -> dict[str, Trace]:
    return {m: traces[f"qm9_{m}"] for m in METHODS}


def figure_3(traces: Traces) -> plot.Drawing:
    runs = main_runs(traces)

    def against(x: Callable[[Trace], Any], **frame: Any) -> Layer:
        curves = (on(plot.band, x(t), t.metrics["loss"], **style(m)) for m, t in runs.items())
        return panel(*curves, **frame)

    label = "mean test loss of 11 targets"
    return row(
        against(lambda t: t.rounds, xlabel="round", ylabel=label, legend=True),
        against(uploaded, xlabel="uploaded (model size x clients of a round)"),
        sharey=True,
    )


def figure_12(traces: Traces) -> plot.Drawing:
    """Radial plots of the test loss of every target: at equal rounds, and at equal upload."""
    runs = main_runs(traces)
    rounds = common_round(runs)
    room = common_upload(runs)
    names = [SYMBOLS.get(name, name) for name in target_names(traces)]

    def radial(column: Callable[[Trace], int], text: str, **more: Any) -> Layer:
        lines = [on(spokes, trace, column(trace), m) for m, trace in runs.items()]
        return panel(*lines, on(around, names, text), **more)

    each = "one round" if rounds == 1 else f"{rounds} rounds"
    beside = {"loc": "upper left", "bbox_to_anchor": (1.12, 1.1)}
    return row(
        radial(lambda t: int(np.flatnonzero(t.rounds == rounds)[0]), f"after {each} each"),
        radial(lambda t: within(t, room), f"after uploads of {room:.0f} d a client", legend=beside),
        subplot_kw={"projection": "polar"},
    )


def around(ax: Axes, names: list[str], title: str) -> None:
    ax.set_xticks(ANGLES, names)
    circles = ax.get_yticks()
    ax.set_yticks(circles if len(circles) <= 6 else circles[1::2])
    ax.set_title(title, pad=14)


def spokes(ax: Any, trace: Trace, column: int, method: str) -> None:
    """One closed line through the losses of all targets, a spoke each."""
    loss = np.array([trace.metrics[f"loss_{k}"][:, column].mean() for k in TASKS])
    closed = np.append(ANGLES, ANGLES[0]), np.append(loss, loss[0])
    ax.plot(*closed, **style(method))
    ax.set_rlim(bottom=0)
    ax.set_rlabel_position(180 / len(TASKS))  # between two spokes


def uploads(traces: Traces) -> plot.Drawing:
    names = [n for n in traces if n.startswith("count_fsmgda_")]
    tasks = sorted(int(n.rpartition("_")[2]) for n in names)

    def draw(ax: Axes) -> None:
        for m in METHODS:
            y = [upload(traces[f"count_{m}_{k}"]) for k in tasks]
            line = "--" if m == "pref" else "-"  # it lies on FedCMOO's
            ax.plot(tasks, y, line, color=COLOR[m], marker=MARKS[m], label=NAMES[m])
            ring: dict[str, Any] = {"facecolors": "none", "edgecolors": COLOR[m], "s": 110}
            sent = [upload(traces[f"qm9_{m}"])]
            ax.scatter([len(TASKS)], sent, label=f"{NAMES[m]} on QM9", **ring)
        ax.set_yscale("log")
        ax.set_yticks([2, 5, 10, 20, 40], ["2", "5", "10", "20", "40"])
        plot.log_ticks(ax, tasks)

    label = "upload of a client and round (d)"
    return row(panel(draw, xlabel="objectives M", ylabel=label, legend=True))


KINDS = {"rounds": "equal rounds", "upload": "equal upload"}


def uploads_of(numbers: Mapping[str, Number]) -> pd.DataFrame:
    import pandas as pd

    rows = {}
    for m, name in NAMES.items():
        line = {"upload of a client and round (d)": f"{numbers[f'{m}.upload'].value:.4g}"}
        for kind, text in KINDS.items():
            number = numbers[f"upload.{m}.at" if kind == "upload" else "rounds.at"].value
            line[f"rounds, {text}"] = f"{number:g}"
            line[f"loss, {text}"] = f"{numbers[f'{kind}.{m}.loss'].value:.3f}"
            lower = numbers.get(f"{kind}.{m}_vs_fsmgda.lower")
            line[f"targets lower, {text}"] = "" if lower is None else f"{lower.value:g} of 11"
        rows[name] = line
    return pd.DataFrame.from_dict(rows, orient="index")


FIGURES = {"figure_3": figure_3, "figure_12": figure_12, "uploads": uploads}
