"""What FedFW's Figure 1 is said to show, and the rule that judges it."""

from __future__ import annotations

from papers.fedfw.leakage.numbers import SIGNALS
from papers.kit.claims import Claim, Reading
from papers.kit.needs import Needs
from papers.kit.rules import EXCHANGED, Rule, of, stat, stat_value

PLACES = {
    place: place.replace("_", " ")
    for place in ("mnist_mlp", "mnist_lenet", "cifar10_mlp", "cifar10_lenet")
}


def order(l2: str, note: str) -> Rule:
    """The order of Figure 1, with one of the two forms of the l2 ball's oracle."""
    first, second = f"gradient_minus_{l2}", f"{l2}_minus_l1"
    return Rule(
        {
            "from gradients better than from the l2 oracle": of(f"places.{first}") > 0,
            "from the l2 oracle better than from the l1 oracle": of(f"places.{second}") > 0,
        },
        f"mean over data sets and networks, gradient minus l2 {stat(f'places.{first}', '.1f')}, l2 "
        f"minus l1 {stat(f'places.{second}', '.1f')}. Final PSNR in dB, gradient / l2 / l2 of each "
        "tensor / l1 / l1 softened: "
        + "; ".join(
            f"{words}: {' / '.join(stat_value(f'{place}_{s}.psnr') for s in SIGNALS)}"
            for place, words in PLACES.items()
        ),
        note,
        control=EXCHANGED,
    )


PICTURES = (
    "Any picture will do: the paper's two are of CIFAR-100, the code's of MNIST. The cap of 60 dB "
    "is ours; where both attacks reach it there is a tie, which counts 0."
)
C12 = order("l2", f"{PICTURES} This oracle only rescales the gradient, and hides nothing.")
C12_CODE = order("tensors", PICTURES)
RUNS = tuple(f"{place}_{s}" for place in PLACES for s in SIGNALS)
#: The code's steps of L-BFGS. How far an attack gets is measured, also where that is nowhere.
NEEDS = Needs(paper={"rounds": 300}, dead=RUNS)

CLAIMS = (
    Claim(
        id="fedfw/C12",
        paper="D",
        place="Figure 1",
        wording="From gradients a picture is recovered best, from answers of the l2 ball's oracle "
        "less well, from those of the l1 ball's least.",
        measure="Deep leakage with 100 steps of L-BFGS on one picture, ten seeds (picture, "
        "network, dummies), of MNIST and of CIFAR-10 cropped to 16 x 16, for a sigmoid network "
        "with one hidden layer (mlp) and a LeNet without pooling: final PSNR, where everything "
        "above 60 dB (an error of a thousandth of the range) counts as 60; differences paired by "
        "seed, means over the four (places), with l2 as one ball for the whole vector (l2: the "
        "algorithm of the paper) and as a ball for each tensor (tensors: the authors' code); l1 is "
        "for each seed the better of two attacks, on the exact answer and on a softened one.",
        rule=C12,
        runs=RUNS,
        figure="figure_1",
        needs=NEEDS,
        reading="one ball, as the text",
        readings=(Reading("an l2 ball for each tensor", C12_CODE, RUNS, NEEDS),),
    ),
)
