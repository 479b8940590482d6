"""Study of FedFW's tables with the rows and the loop of its authors: where their values are from.

Fixed before the runs. Compared are the printed values of Tables 1 to 3 on generated data. What
stands beside a printed value is the best test accuracy over the rounds (evaluated after each), mean
over three splits; it counts as the same within one point, as near up to three, as apart beyond.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from fedlib.algorithms.feddr import FedDR
from papers.fedfw.authors.loop import NORMS, AuthorsFedDR, AuthorsFW
from papers.fedfw.authors.numbers import SPLITS, derive, lambdas
from papers.fedfw.authors.rows import NETS, authors_problem, our_problem
from papers.fedfw.cells import TABLE_3, TABLES
from papers.kit.claims import Claim
from papers.kit.health import Needs, learning
from papers.kit.parameters import parameters
from papers.kit.rules import EXCHANGED, Rule, Size, of, stat
from papers.kit.store import Spec
from papers.kit.study import Params, Study

NET = {"mclr": "logistic regression", "dnn": "60-20-10"}
SPLIT = {"iid": "IID", "classes": "three classes"}
CELLS = {(n, s): f"{NET[n]}, {SPLIT[s]}" for n in NET for s in SPLIT}


def ahead(net: str, split: str) -> str:
    return f"{net}_{split}_l2_fw_vs_feddr.best"


def printed(net: str, split: str) -> float:
    """What the tables have between FedFW and FedDR, l2 ball."""
    theirs, ours = TABLES[f"{net}_synthetic_{split}", "l2"][:2]
    return round(ours - theirs, 2)


C16 = Rule(
    {"FedFW above FedDR": {text: of(ahead(*cell)) > 0 for cell, text in CELLS.items()}},
    "best of the rounds, FedFW minus FedDR, points: "
    + "; ".join(f"{text} {stat(ahead(*cell), '+.1f')}" for cell, text in CELLS.items()),
    "FedFW has 340 of the 1000 rounds, FedDR all. A round of FedFW is an epoch, one of FedDR a "
    "minibatch.",
    control=EXCHANGED,
    sizes=tuple(Size(ahead(*c), printed(*c), f"Tables 1, 2, {t}") for c, t in CELLS.items()),
)
C17 = Rule(
    {
        "FedFW-sto above FedDR": {
            text: of(f"many_{split}_sto_vs_feddr.best") > 0 for split, text in SPLIT.items()
        }
    },
    "best of the rounds, FedFW-sto minus FedDR, points: "
    + "; ".join(
        f"{text} {stat(f'many_{split}_sto_vs_feddr.best', '+.1f')}" for split, text in SPLIT.items()
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
            SPLIT.items(), ("mclr_synthetic_iid", "mclr_synthetic_classes"), strict=True
        )
    ),
)
paper = partial(Claim, paper="D")
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
        runs=tuple(f"many_{split}_{m}" for split in SPLIT for m in ("sto", "feddr")),
        needs=Needs(paper={"rounds": 300}),
    ),
)


RADIUS = 10.0
KEEP = ("loss", "accuracy")
TEXT_EVERY = 10

PARAMETERS = parameters(
    seeds=("seeds; each fixes split and minibatches", (0, 1, 2), (0, 1)),
    splits=("columns: IID, and the three classes that are called non-IID", ("iid", "classes")),
    rounds=("rounds of FedFW in Tables 1 and 2, epochs", 340, 3),
    feddr_rounds=("rounds of FedDR there, single minibatches", 1000, 20),
    many_rounds=("rounds of FedFW-sto in Table 3, 100 users; 0: without", 150, 0),
    many_feddr_rounds=("rounds of FedDR there", 300, 20),
    text_rounds=("rounds of the paper's text", 100, 20),
    most=("most rows of a client of our own rows", 1000, 100),
    lambdas=("grid of lambda_0 for the protocol of the text", (1e-4, 1e-3, 1e-2, 1e-1), (1e-3,)),
    rates=("grid of FedDR's step sizes there", (0.5, 0.05), (0.5,)),
    etas=("grid of FedDR's eta there", (1.0, 10.0, 100.0), (10.0,)),
    chosen=("lambda_0 among which the best test accuracy chooses", (1e-3, 1e-2, 1e-1), (1e-3,)),
)


def specs(p: Params) -> dict[str, Spec]:
    """The tables' cells, `NET_SPLIT_NORM_METHOD`; Table 3, `many_`; what lies between, `step_`."""
    seeds = tuple(p["seeds"])
    found: dict[str, Spec] = {}
    for norm in NORMS:
        for net in NETS:
            for split in p["splits"]:
                cell, problem = f"{net}_{split}_{norm}", problem_of(net, split)
                for lam in lambdas(net, split, norm):
                    own: Any = AuthorsFW(lam, norm)
                    found[f"{cell}_fw_{lam:g}"] = Spec(own, problem, p["rounds"], seeds, 1, KEEP)
                other: Any = AuthorsFedDR(norm)
                found[f"{cell}_feddr"] = Spec(other, problem, p["feddr_rounds"], seeds, 1, KEEP)
    for split in p["splits"] if p["many_rounds"] else ():
        problem = problem_of("mclr", split, users=100)
        sto: Any = AuthorsFW(1e-3, averaged=True)
        found[f"many_{split}_sto"] = Spec(sto, problem, p["many_rounds"], seeds, 1, KEEP)
        other = AuthorsFedDR()
        rounds = p["many_feddr_rounds"]
        found[f"many_{split}_feddr"] = Spec(other, problem, rounds, seeds, 1, KEEP)
    for name, method, problem, rounds, every in between(p):
        found[name] = Spec(method, problem, rounds, seeds, every, KEEP)
    return found


def problem_of(net: str, split: str, **more: Any) -> Any:
    return partial(authors_problem, net=net, classes=SPLITS[split], **more)


def between(p: Params) -> Iterator[tuple[str, Any, Any, int, int]]:
    """From the text's protocol on our rows to the authors', logistic regression, l2, IID."""
    theirs = problem_of("mclr", "iid")
    rounds, kinds = p["text_rounds"], {"ours": partial(our_problem, most=p["most"])}
    kinds["rows"] = theirs
    for kind, problem in kinds.items():
        for lam in p["lambdas"]:
            plain = AuthorsFW(lam, reset=False, epoch=False, tensors=False)
            yield f"step_{kind}_fw_{lam:g}", plain, problem, rounds, TEXT_EVERY
        within = partial(problem.func, **problem.keywords, ball=RADIUS)
        for rate in p["rates"]:
            for eta in p["etas"]:
                method = FedDR(rate, 1, eta=eta)
                yield f"step_{kind}_feddr_{rate:g}_{eta:g}", method, within, rounds, TEXT_EVERY
    reset = AuthorsFW(1e-3, epoch=False, tensors=False)
    yield "step_reset_fw", reset, theirs, rounds, TEXT_EVERY
    yield "step_epoch_fw", AuthorsFW(1e-3, tensors=False), theirs, rounds, TEXT_EVERY
    for lam in p["chosen"]:
        if lam not in lambdas("mclr", "iid", "l2"):
            yield f"mclr_iid_l2_fw_{lam:g}", AuthorsFW(lam), theirs, p["rounds"], 1


STUDY = Study(
    name="fw_authors",
    title="FedFW's tables, the authors' rows and loop",
    paper="D",
    specs=specs,
    derive=derive,
    claims=CLAIMS,
    # Guessing is to answer the most frequent label: of ten users, and of a hundred.
    watch={
        "many_classes_*": learning(0.384),
        "many_iid_*": learning(0.421),
        "*_classes_*": learning(0.660),
        "*": learning(0.340),
    },
    **PARAMETERS,
)
