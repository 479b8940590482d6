"""What FedFW's tables say of generated data, judged with FedDR's clients at one common start.

The rules were fixed, and committed, before any of the splits that judge them was drawn.
"""

from __future__ import annotations

from functools import partial

from papers.fedfw.authors import CELLS, SPLIT
from papers.fedfw.authors.numbers import lambdas
from papers.fedfw.cells import TABLE_3, TABLES
from papers.kit.claims import Claim
from papers.kit.health import Needs
from papers.kit.rules import Condition, Control, Rule, Size, of, stat

Cell = tuple[str, str]  # network and split
COLUMNS_3 = {"iid": "mclr_synthetic_iid", "classes": "mclr_synthetic_classes"}
FROZEN = (
    "All of FedDR's clients start at one random model, and minibatches have a fixed order, as in "
    "the published code. Rule and control were committed before the splits were drawn."
)


def pair(cell: Cell, norm: str) -> str:
    """The name of the difference of both methods in a cell."""
    return f"{cell[0]}_{cell[1]}_{norm}_fw_vs_feddr"


def printed(cell: Cell, norm: str) -> float:
    """What the tables have between FedFW and FedDR."""
    theirs, ours = TABLES[f"{cell[0]}_synthetic_{cell[1]}", norm][:2]
    return round(ours - theirs, 2)


def as_printed(cell: Cell, norm: str) -> Condition:
    """Whether the difference has the sign of the printed one."""
    gap = of(f"{pair(cell, norm)}.best")
    return gap > 0 if printed(cell, norm) > 0 else gap < 0


def without_effect(pairs: list[str]) -> Control:
    """FedDR on disjoint halves of the splits in place of both methods."""
    return Control(
        "FedDR on two disjoint halves of the splits instead of both methods",
        {f"{name}.best": f"{name}.null" for name in pairs},
    )


def tables(norm: str, said: str) -> Rule:
    """The order of both methods on generated data, cell by cell."""
    pairs = {text: pair(cell, norm) for cell, text in CELLS.items()}
    return Rule(
        {said: {text: as_printed(cell, norm) for cell, text in CELLS.items()}},
        "best of the rounds, FedFW minus FedDR, points (printed): "
        + "; ".join(
            f"{text} {stat(f'{pair(cell, norm)}.best', '+.1f')} ({printed(cell, norm):+.2f})"
            for cell, text in CELLS.items()
        ),
        "FedFW has 340 of the 1000 rounds, FedDR all. A round of FedFW is an epoch, one of FedDR a "
        f"minibatch. {FROZEN}",
        control=without_effect([*pairs.values()]),
        sizes=tuple(
            Size(f"{pair(cell, norm)}.best", printed(cell, norm), f"Tables 1, 2, {text}")
            for cell, text in CELLS.items()
        ),
    )


def many(split: str) -> str:
    """The name of Table 3's difference."""
    return f"many_{split}_sto_vs_feddr"


R17 = Rule(
    {
        "FedFW-sto above FedDR": {
            text: of(f"{many(split)}.best") > 0 for split, text in SPLIT.items()
        }
    },
    "best of the rounds, FedFW-sto minus FedDR, points: "
    + "; ".join(f"{text} {stat(f'{many(s)}.best', '+.1f')}" for s, text in SPLIT.items()),
    "FedFW-sto has 150 of the 300 rounds, FedDR all. A round of FedFW-sto is an epoch, one of "
    f"FedDR a minibatch. {FROZEN}",
    control=without_effect([many(split) for split in SPLIT]),
    sizes=tuple(
        Size(
            f"{many(split)}.best",
            round(TABLE_3[column][1] - TABLE_3[column][0], 2),
            f"Table 3, {SPLIT[split]}",
        )
        for split, column in COLUMNS_3.items()
    ),
)


def runs_of(norm: str) -> tuple[str, ...]:
    """The runs behind the cells of a norm."""
    found = []
    for net, split in CELLS:
        cell = f"{net}_{split}_{norm}"
        found += [f"{cell}_fw_{lambdas(net, split, norm)[0]:g}", f"{cell}_feddr"]
    return tuple(found)


paper = partial(Claim, paper="D", rule_fixed="e538465a")
CLAIMS = (
    paper(
        id="fedfw/R16",
        place="Tables 1, 2",
        wording="With the l2 ball FedFW is ahead of FedDR on generated data, IID and non-IID.",
        rule=tables("l2", "FedFW above FedDR"),
        runs=runs_of("l2"),
        needs=Needs(paper={"rounds": 1000}),
    ),
    paper(
        id="fedfw/R17",
        place="Table 3",
        wording="FedFW-sto is ahead of FedDR on generated data, IID and non-IID.",
        rule=R17,
        runs=tuple(f"many_{split}_{m}" for split in SPLIT for m in ("sto", "feddr")),
        needs=Needs(paper={"rounds": 300}),
    ),
    paper(
        id="fedfw/C18",
        place="Tables 1, 2",
        wording="With the l1 ball and generated data, FedFW is ahead of FedDR for IID logistic "
        "regression and behind it in the three other cells.",
        rule=tables("l1", "the difference has the printed sign"),
        runs=runs_of("l1"),
        # The best round is compared, and the authors' own FedDR falls back to guessing after it.
        needs=Needs(paper={"rounds": 1000}, dead=("*_l1_feddr",)),
    ),
)
