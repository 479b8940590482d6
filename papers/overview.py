"""Where the papers stand, in one picture: what each promises, the verdicts, the printed numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from papers import STUDIES
from papers.kit import store
from papers.kit.claims import PAPERS
from papers.kit.plot import COLORS
from papers.kit.rules import VERDICTS, Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Letter of a paper -> what it promises, in two lines of our words.
PROMISES = {
    "W": "a constraint is kept by switching gradients;\nsoft switching smooths",
    "F": "the same with sampled clients and messages\nof a few entries, at no loss",
    "C": "many objectives for one upload a round,\nand weights by preference",
    "Y": "non-convex losses and constraints by convex\nstand-ins, in fewer rounds than SGD",
    "D": "no projections: one corner of the set\na round, and less leaks",
}

ORDER: tuple[Verdict, ...] = (
    "proved",
    "counted",
    "reproduced",
    "partly",
    "undecided",
    "not reproduced",
    "not judged",
)
SHADES = dict(
    zip(
        ORDER,
        ("#20603a", COLORS[6], COLORS[2], COLORS[1], COLORS[0], COLORS[5], "#8c8c8c"),
        strict=True,
    )
)
REACH = 4.0  # ratios beyond it, or below its inverse, are drawn at the edge


class Standing(NamedTuple):
    """One paper: its letter, how many claims have which verdict, ours / printed of its numbers."""

    paper: str
    verdicts: dict[Verdict, int]
    ratios: tuple[float, ...]


def standings() -> list[Standing]:
    """Every paper's verdicts and ratios, from the stored numbers of the full profile."""
    if lacking := ({*PAPERS} - {"ours"}) ^ {*PROMISES}:
        odd = ", ".join(sorted(lacking))
        raise ValueError(
            f"overview: PROMISES must have a line for every paper of PAPERS, {odd} is in one "
            "of them alone; add what the paper promises."
        )
    counts = {paper: Counter[Verdict]() for paper in PROMISES}
    ratios: dict[str, list[float]] = {paper: [] for paper in PROMISES}
    for study in STUDIES.values():
        if not study.claims and not study.paper_values:
            continue
        numbers = store.read_numbers(study.name, "full")
        for claim in study.claims:
            verdict = study.evaluate(claim).verdict
            for paper in PROMISES:
                if paper in claim.paper and claim.paper != "ours":
                    counts[paper][verdict] += 1
        if study.paper in ratios:
            printed = [(v.paper, numbers[v.key].value) for v in study.paper_values]
            ratios[study.paper] += [ours / paper for paper, ours in printed if paper]
    return [
        Standing(paper, {v: counts[paper][v] for v in VERDICTS}, tuple(ratios[paper]))
        for paper in PROMISES
    ]


def draw(fig: Figure, found: Sequence[Standing] | None = None) -> None:
    """Three columns, a line for each paper; reads the stored numbers if it is given none."""
    found = standings() if found is None else found
    words, bars, strip = fig.subplots(1, 3, sharey=True, width_ratios=(1.2, 0.9, 1))
    rows = range(len(found))
    words.set_ylim(len(found) - 0.5, -0.5)
    words.set_axis_off()
    words.set_title("What it promises", loc="left")
    for row, standing in enumerate(found):
        words.text(0, row - 0.28, PAPERS[standing.paper], weight="bold", va="center")
        words.text(0, row + 0.14, PROMISES[standing.paper], va="center", fontsize=8)
    draw_verdicts(bars, found)
    draw_ratios(strip, found)
    for ax in (bars, strip):
        ax.set_yticks(rows, [])
        ax.tick_params(axis="y", length=0)
        ax.grid(visible=False, axis="y")
        ax.spines["left"].set_visible(False)


def draw_verdicts(ax: Axes, found: Sequence[Standing]) -> None:
    """A bar for each paper, cut by verdict, with the counts in it."""
    left = [0] * len(found)
    for verdict in ORDER:
        lengths = [standing.verdicts.get(verdict, 0) for standing in found]
        if not any(lengths):
            continue
        made: Any = ax.barh(range(len(found)), lengths, 0.5, left=left, color=SHADES[verdict])
        made.set_label(verdict)
        ax.bar_label(made, [str(n or "") for n in lengths], label_type="center", color="white")
        left = [a + b for a, b in zip(left, lengths, strict=True)]
    ax.set_title("Its claims, by verdict", loc="left")
    ax.set_xlabel("claims")
    ax.grid(visible=False)
    ax.legend(loc="upper center", bbox_to_anchor=(0.45, -0.16), ncols=3, columnspacing=1.0,
              handlelength=1.0, handletextpad=0.4)  # fmt: skip


def draw_ratios(ax: Axes, found: Sequence[Standing]) -> None:
    """A dot for each printed number, at our value over it, on a logarithmic axis."""
    ax.axvspan(1 / 1.1, 1.1, color=COLORS[2], alpha=0.18, lw=0, label="within 10 %")
    for row, standing in enumerate(found):
        if not standing.ratios:
            ax.text(1, row, "prints curves only", ha="center", va="center", fontsize=8)
            continue
        x = [min(max(r, 1 / REACH), REACH) for r in standing.ratios]
        y = [row + 0.22 * (k % 5 - 2) / 2 for k in range(len(x))]
        inside = [1 / REACH < r < REACH for r in standing.ratios]
        for here, marker in ((True, "o"), (False, "D")):
            chosen = [k for k, is_inside in enumerate(inside) if is_inside == here]
            ax.scatter([x[k] for k in chosen], [y[k] for k in chosen], s=11, marker=marker,
                       color=COLORS[0], alpha=0.75, lw=0)  # fmt: skip
    ax.set_xscale("log")
    ax.set_xlim(1 / REACH / 1.1, REACH * 1.1)
    ax.set_xticks([0.25, 0.5, 1, 2, 4], ["≤ ¼", "½", "1", "2", "≥ 4"])
    ax.minorticks_off()
    ax.set_title("Ours / printed, its numbers", loc="left")
    ax.set_xlabel("ratio (logarithmic)")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16))
