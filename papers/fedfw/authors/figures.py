"""The figure of the study of the authors' rows and loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from papers.fedfw.authors.numbers import STEPS, waterfall
from papers.fedfw.cells import TABLES
from papers.kit import plot
from papers.kit.study import Traces

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEXT_ROUNDS = 100
FEDDR, FEDFW, _ = TABLES["mclr_synthetic_iid", "l2"]
PRINTED_GAP = FEDFW - FEDDR


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


FIGURES = {"waterfall": steps}
