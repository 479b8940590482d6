"""Figures of the study of the authors' rows and loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from papers.fedfw.authors.cells import run_of
from papers.fedfw.authors.numbers import STEPS, waterfall
from papers.fedfw.cells import PRINTED
from papers.fedfw.tables.numbers import percent
from papers.kit import plot
from papers.kit.study import Traces

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEXT_ROUNDS = 100
PRINTED_GAP = 80.20 - 78.24


def steps(traces: Traces) -> plot.Drawing:
    """FedFW minus FedDR after each change, a bar from the one before, a dot a split."""

    def draw(fig: Figure) -> None:
        ax = fig.subplots()
        gaps = waterfall(traces, TEXT_ROUNDS)
        before = 0.0
        for i, gap in enumerate(gaps.values()):
            now = float(gap.mean())
            color = plot.COLORS[2] if i == 0 else plot.COLORS[0 if now > before else 1]
            ax.barh(-i, now - before, left=before, color=color, height=0.6)
            ax.plot(gap, np.full(len(gap), -i), ".", color="black", markersize=5)
            ax.plot(
                [now, now], [-i - 0.3, -i - 1.3 if i + 1 < len(gaps) else -i - 0.3], "k:", lw=0.8
            )
            before = now
        ax.axvline(0, color="black", lw=0.8)
        ax.axvline(PRINTED_GAP, color="#888888", ls="--", lw=1.2, label="printed")
        ax.set_yticks([-i for i in range(len(gaps))], [STEPS[step] for step in gaps])
        ax.set_xlabel("FedFW minus FedDR, test accuracy (points)")
        ax.legend(loc="lower right")

    return draw


def cells(traces: Traces) -> plot.Drawing:
    """Every printed value on generated data against ours, the diagonal, and a point beside it."""

    def draw(fig: Figure) -> None:
        axes = fig.subplots(1, 2)
        shown = [x for x in PRINTED if run_of(x) in traces]
        for ax, iid, (low, high) in zip(axes, (True, False), ((65, 84), (80, 98)), strict=True):
            ends = np.array([low, high])
            ax.plot(ends, ends, color="#888888", lw=0.8)
            ax.fill_between(ends, ends - 1, ends + 1, color="#888888", alpha=0.2, lw=0)
            for method, (text, mark, color) in MARKS.items():
                own = [x for x in shown if (x.method, x.column.endswith("_iid")) == (method, iid)]
                ours = [percent(traces[run_of(x)]).max(1).mean() for x in own]
                ax.plot([x.value for x in own], ours, mark, color=color, label=text)
            ax.set(xlim=(low, high), ylim=(low, high), xlabel="printed (%)")
        axes[0].set(title="IID", ylabel="the authors' rows and loop, best (%)")
        axes[1].set_title("three classes")
        axes[0].legend()

    return draw


MARKS = {
    "feddr": ("FedDR", "o", plot.COLORS[0]),
    "fedfw": ("FedFW", "s", plot.COLORS[1]),
    "plus": ("FedFW+ (the same code)", "x", plot.COLORS[2]),
    "sto": ("FedFW-sto", "^", plot.COLORS[3]),
}
FIGURES = {"waterfall": steps, "cells": cells}
