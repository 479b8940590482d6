"""The verdicts on the claims of each paper, in one picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from papers import all_claims
from papers.kit import plot
from papers.kit.claims import PAPERS
from papers.kit.rules import Verdict

#: Colours of the parts of a bar, from left to right.
SHADES: dict[Verdict, str] = {
    "proved": "#20603a",
    "counted": plot.COLORS[6],
    "reproduced": plot.COLORS[2],
    "mixed": plot.COLORS[1],
    "open": plot.COLORS[0],
    "not reproduced": plot.COLORS[5],
    "not judged": "#8c8c8c",
}


def standings() -> dict[str, Counter[Verdict]]:
    """How many claims of every paper, and of this book, have which verdict."""
    counts = {paper: Counter[Verdict]() for paper in PAPERS}
    for study, claim in all_claims():
        counts[claim.paper][study.evaluate(claim).verdict] += 1
    return counts


def draw(fig: plot.Figure, counts: Mapping[str, Counter[Verdict]]) -> None:
    """A bar for each paper, with a part for each verdict."""
    bars = fig.subplots()
    left = [0] * len(counts)
    for verdict, shade in SHADES.items():
        lengths = [verdicts[verdict] for verdicts in counts.values()]
        if not any(lengths):
            continue
        container: Any = bars.barh(
            range(len(counts)),
            lengths,
            0.6,
            left=left,
            color=shade,
        )
        container.set_label(verdict)
        bars.bar_label(
            container, [str(n or "") for n in lengths], label_type="center", color="white"
        )
        left = [a + b for a, b in zip(left, lengths, strict=True)]
    bars.set_xlabel("claims")
    bars.set_yticks(range(len(counts)), [PAPERS[paper] for paper in counts])
    bars.invert_yaxis()
    bars.tick_params(axis="y", length=0)
    bars.grid(visible=False)
    bars.spines["left"].set_visible(False)
    bars.legend(loc="upper center", bbox_to_anchor=(0.35, -0.2), ncols=2)
