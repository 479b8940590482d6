"""What FedFW's Figure 1 says, and what judges it."""

from __future__ import annotations

from papers.fedfw.leakage.runs import DEFAULTS
from papers.kit.claims import Claim, Reading
from papers.kit.health import Needs
from papers.kit.quantities import Labels, Query, names_of
from papers.kit.rules import Condition, Control, Rule, of

PLACES: dict[str, Labels] = {
    f"{title}, {kind}": {"draw": "fresh", "data": data, "network": network}
    for data, title in (("mnist", "MNIST"), ("cifar10", "CIFAR-10"))
    for network, kind in (("mlp", "one hidden layer"), ("lenet", "LeNet"))
}


def order(l2: str, note: str) -> Rule:
    """The order of Figure 1 at each place, with one of the two forms of the l2 ball's oracle."""

    def above(measure: str) -> dict[str, Condition]:
        return {text: of(measure, **place) > 0 for text, place in PLACES.items()}

    pairs = (f"gradient_minus_{l2}", f"{l2}_minus_l1")
    nothing = {
        Query.of(measure, **place): Query.of("nothing", **place)
        for measure in pairs
        for place in PLACES.values()
    }
    return Rule(
        {
            "the PSNR is higher from gradients than from answers of the l2 oracle": above(pairs[0]),
            "the PSNR is higher from answers of the l2 oracle than of the l1 oracle": above(
                pairs[1]
            ),
        },
        note=note,
        control=Control("gradients of two disjoint halves of the seeds instead of both", nothing),
    )


PICTURES = (
    "The paper's two pictures are of CIFAR-100, that of the code is of MNIST. The PSNR is bounded "
    "by 60 and 0 dB, so two attacks that both reach 60 dB differ by 0. 52 seeds. The rule that was "
    "fixed before they were drawn judged the mean of the four places, without the lower bound; by "
    "it both parts held in both readings. One place carried it, by searches that diverged."
)
C12 = order("l2", f"{PICTURES} The l2 oracle only rescales the gradient, and hides nothing.")
C12_CODE = order(
    "tensors", "The l1 ball is one for all tensors, as in the text; the code has one for each."
)
RUNS = names_of(
    DEFAULTS,
    draw="fresh",
    data=("mnist", "cifar10"),
    network=("mlp", "lenet"),
    signal=("gradient", "l2", "tensors", "l1", "soft"),
)
#: The code's steps of L-BFGS. How far an attack gets is measured, also where that is nowhere.
NEEDS = Needs(paper={"rounds": 300}, dead=RUNS)

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
        reading="one ball, as the text",
        readings=(Reading("an l2 ball for each tensor", C12_CODE, RUNS, NEEDS),),
    ),
)
