"""What FedFW's tables say of generated data, judged by the authors' own rows and loop."""

from __future__ import annotations

from functools import partial

from papers.fedfw.authors.cells import lambdas
from papers.fedfw.cells import TABLE_3, TABLES
from papers.kit.claims import Claim
from papers.kit.needs import Needs
from papers.kit.rules import EXCHANGED, Rule, Size, of, stat

NET = {"mclr": "logistic regression", "dnn": "60-20-10"}
SPLIT = {"iid": "IID", "classes": "three classes"}
CELLS = {(n, s): f"{NET[n]}, {SPLIT[s]}" for n in NET for s in SPLIT}
MANY = {"iid": "IID", "classes": "three classes"}


def pair(net: str, split: str, norm: str) -> str:
    return f"{net}_{split}_{norm}_fw_vs_feddr"


def ahead(net: str, split: str, norm: str) -> str:
    return f"{pair(net, split, norm)}.best"


def printed(net: str, split: str) -> float:
    """What the tables have between FedFW and FedDR, l2 ball."""
    theirs, ours = TABLES[f"{net}_synthetic_{split}", "l2"][:2]
    return round(ours - theirs, 2)


C16 = Rule(
    {"FedFW above FedDR": {text: of(ahead(*cell, "l2")) > 0 for cell, text in CELLS.items()}},
    "best of the rounds, FedFW minus FedDR, points: "
    + "; ".join(f"{text} {stat(ahead(*cell, 'l2'), '+.1f')}" for cell, text in CELLS.items()),
    "FedFW has 340 of the 1000 rounds, FedDR all. A round of FedFW is an epoch, one of FedDR a "
    "minibatch.",
    control=EXCHANGED,
    sizes=tuple(Size(ahead(*c, "l2"), printed(*c), f"Tables 1, 2, {t}") for c, t in CELLS.items()),
)
C17 = Rule(
    {
        "FedFW-sto above FedDR": {
            text: of(f"many_{split}_sto_vs_feddr.best") > 0 for split, text in MANY.items()
        }
    },
    "best of the rounds, FedFW-sto minus FedDR, points: "
    + "; ".join(
        f"{text} {stat(f'many_{split}_sto_vs_feddr.best', '+.1f')}" for split, text in MANY.items()
    ),
    "FedFW-sto has 150 of the 300 rounds, FedDR all. A round of FedFW-sto is an epoch, one of "
    "FedDR a minibatch.",
    control=EXCHANGED,
    sizes=tuple(
        Size(
            f"many_{split}_sto_vs_feddr.best",
            round(TABLE_3[column][1] - TABLE_3[column][0], 2),
            f"Table 3, {text}",
        )
        for (split, text), column in zip(
            MANY.items(), ("mclr_synthetic_iid", "mclr_synthetic_classes"), strict=True
        )
    ),
)
LOOP = (
    "Test accuracy in points, paired by split (vs): the authors' rows, drawn again from their "
    "generator, with three splits of ours; their loop, as traced: clients start from the server's "
    "model, an epoch of minibatches, a ball of radius 10 for every tensor; FedDR a minibatch "
    "a round, and one ball. Best over all rounds, lambda_0 of the authors' files."
)
paper = partial(Claim, paper="D", measure=LOOP)
CLAIMS = (
    paper(
        id="fedfw/C16",
        place="Tables 1, 2",
        wording="With the l2 ball FedFW is ahead of FedDR on generated data, IID and non-IID.",
        rule=C16,
        runs=tuple(
            run
            for net, split in CELLS
            for run in (
                f"{net}_{split}_l2_fw_{lambdas(net, split, 'l2')[0]:g}",
                f"{net}_{split}_l2_feddr",
            )
        ),
        figure="waterfall",
        needs=Needs(paper={"rounds": 1000}),
    ),
    paper(
        id="fedfw/C17",
        place="Table 3",
        wording="FedFW-sto is ahead of FedDR on generated data, IID and non-IID.",
        rule=C17,
        runs=tuple(f"many_{split}_{m}" for split in MANY for m in ("sto", "feddr")),
        needs=Needs(paper={"rounds": 300}),
    ),
)
