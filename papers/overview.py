"""Where the papers stand, in one picture: what each promises, and the verdicts on its claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from papers import all_claims
from papers.kit.claims import PAPERS
from papers.kit.plot import COLORS
from papers.kit.rules import Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Letter of a paper -> what it promises, in two lines of our words.
PROMISES = {
    "W": "a constraint is kept by switching gradients;\nsoft switching smooths",
    "F": "the same with sampled clients and messages\nof a few entries, at no loss",
    "C": "many objectives for one upload a round,\nand weights by preference",
    "Y": "non-convex losses and constraints by convex\nstand-ins, in fewer rounds than SGD",
    "D": "no projections: one corner of the set\na round, and less leaks",
}

#: Colours of the parts of a bar, from left to right.
SHADES: dict[Verdict, str] = {
    "proved": "#20603a",
    "counted": COLORS[6],
    "reproduced": COLORS[2],
    "partly": COLORS[1],
    "undecided": COLORS[0],
    "not reproduced": COLORS[5],
    "not judged": "#8c8c8c",
}


def standings() -> dict[str, Counter[Verdict]]:
    """How many claims of every paper have which verdict, from the stored numbers."""
    found = {paper: Counter[Verdict]() for paper in PAPERS if paper != "ours"}
    for study, claim in all_claims():
        verdict = study.evaluate(claim).verdict
        for paper in {*found} & {*claim.paper}:
            found[paper][verdict] += 1
    return found


def draw(fig: Figure, found: Mapping[str, Counter[Verdict]]) -> None:
    """Two columns, a line for each paper."""
    words, bars = fig.subplots(1, 2, sharey=True)
    words.set_ylim(len(found) - 0.5, -0.5)
    words.set_axis_off()
    words.set_title("What it promises", loc="left")
    for row, paper in enumerate(found):
        words.text(0, row - 0.28, PAPERS[paper], weight="bold", va="center")
        words.text(0, row + 0.14, PROMISES[paper], va="center", fontsize=8)
    left = [0] * len(found)
    for verdict, shade in SHADES.items():
        lengths = [verdicts[verdict] for verdicts in found.values()]
        if not any(lengths):
            continue
        made: Any = bars.barh(range(len(found)), lengths, 0.5, left=left, color=shade)
        made.set_label(verdict)
        bars.bar_label(made, [str(n or "") for n in lengths], label_type="center", color="white")
        left = [a + b for a, b in zip(left, lengths, strict=True)]
    bars.set_title("Its claims, by verdict", loc="left")
    bars.set_xlabel("claims")
    bars.set_yticks(range(len(found)), [])
    bars.tick_params(axis="y", length=0)
    bars.grid(visible=False)
    bars.spines["left"].set_visible(False)
    bars.legend(loc="upper center", bbox_to_anchor=(0.45, -0.16), ncols=4)
