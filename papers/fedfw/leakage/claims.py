"""What FedFW's Figure 1 is said to show, and the rule that judges it."""

from __future__ import annotations

from papers.fedfw.leakage.numbers import SIGNALS
from papers.kit.claims import Claim
from papers.kit.rules import Rule, of, told_value

PLACES = {
    place: place.replace("_", " ")
    for place in ("mnist_mlp", "mnist_lenet", "cifar10_mlp", "cifar10_lenet")
}
#: What is compared, first minus second.
ORDER = {
    "gradient above l2 (whole vector)": "gradient_minus_l2",
    "gradient above l2 (each tensor)": "gradient_minus_tensors",
    "l2 (whole vector) above l1": "l2_minus_l1",
    "l2 (each tensor) above l1": "tensors_minus_l1",
}

C12 = Rule(
    {
        f"{text}, {words}": of(f"{place}.{pair}") > 0
        for place, words in PLACES.items()
        for text, pair in ORDER.items()
    },
    "final PSNR in dB, gradient / l2 / l2 of each tensor / l1 / l1 softened: "
    + "; ".join(
        f"{words}: {' / '.join(told_value(f'{place}_{s}.psnr') for s in SIGNALS)}"
        for place, words in PLACES.items()
    ),
)

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
        "seed, with l2 as one ball for the whole vector (l2: the algorithm of the paper) and as a "
        "ball for each tensor (tensors: the authors' code); l1 is for each seed the better of two "
        "attacks, on the exact answer and on a softened one.",
        rule=C12,
        runs=tuple(f"{place}_{s}" for place in PLACES for s in SIGNALS),
        figure="psnr",
    ),
)
