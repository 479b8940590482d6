"""What FedFW's Figure 1 says, and what judges it."""

from __future__ import annotations

from functools import partial

from papers.fedfw.leakage.runs import DEFAULTS
from papers.kit.claims import Claim, Reading
from papers.kit.health import Needs
from papers.kit.quantities import names_of
from papers.kit.rules import EXCHANGED, Rule, of


def order(l2: str, note: str) -> Rule:
    """The order of Figure 1, with one of the two forms of the l2 ball's oracle."""
    apart = partial(of, draw="fresh", data="all")
    return Rule(
        {
            "the PSNR is higher from gradients than from answers of the l2 oracle": apart(
                f"gradient_minus_{l2}"
            )
            > 0,
            "the PSNR is higher from answers of the l2 oracle than of the l1 oracle": apart(
                f"{l2}_minus_l1"
            )
            > 0,
        },
        note=note,
        control=EXCHANGED,
    )


PICTURES = (
    "The paper's two pictures are of CIFAR-100, that of the code is of MNIST. The PSNR is capped "
    "at 60 dB, so two attacks that both reach it differ by 0. 52 fresh seeds, after ten earlier "
    "ones."
)
C12 = order("l2", f"{PICTURES} The l2 oracle only rescales the gradient, and hides nothing.")
C12_CODE = order("tensors", "")
RUNS = names_of(
    DEFAULTS,
    draw="fresh",
    data=("mnist", "cifar10"),
    network=("mlp", "lenet"),
    signal=("gradient", "l2", "tensors", "l1", "soft"),
)
#: The code's steps of L-BFGS. How far an attack gets is measured, also where that is nowhere.
NEEDS = Needs(paper={"rounds": 300}, dead=RUNS)
COMMIT = "64363e74"  # that fixed both rules

CLAIMS = (
    Claim(
        id="fedfw/C12",
        paper="D",
        place="Figure 1",
        wording="A picture is recovered best from gradients, less well from answers of the l2 "
        "ball's oracle, and least from those of the l1 ball's.",
        rule=C12,
        runs=RUNS,
        figure="figure_1",
        needs=NEEDS,
        rule_fixed=COMMIT,
        reading="one ball, as the text",
        readings=(Reading("an l2 ball for each tensor", C12_CODE, RUNS, NEEDS, COMMIT),),
    ),
)
