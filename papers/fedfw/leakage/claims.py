"""What FedFW's Figure 1 is said to show, and the rule that judges it."""

from __future__ import annotations

from papers.fedfw.leakage.numbers import SIGNALS
from papers.kit.claims import Claim, Numbers, Outcome, judge

__all__ = ["CLAIMS", "PLACES", "c12"]

PLACES = ("mnist_mlp", "mnist_lenet", "cifar10_mlp", "cifar10_lenet")
#: What is compared, first minus second.
ORDER = {
    "gradient above l2 (whole vector)": "gradient_minus_l2",
    "gradient above l2 (each tensor)": "gradient_minus_tensors",
    "l2 (whole vector) above l1": "l2_minus_l1",
    "l2 (each tensor) above l1": "tensors_minus_l1",
}


def c12(n: Numbers) -> Outcome:
    """Four differences at every place, each with its whole interval above 0."""
    n["whole.pictures"]
    parts, said = {}, []
    for place in PLACES:
        for text, pair in ORDER.items():
            parts[f"{text}, {place.replace('_', ' ')}"] = n[f"{place}.{pair}"].low > 0
        ends = " / ".join(f"{n[f'{place}_{s}.psnr'].value:.3g}" for s in SIGNALS)
        said.append(f"{place.replace('_', ' ')}: {ends}")
    which = "gradient / l2 / l2 of each tensor / l1 / l1 softened"
    return judge(parts, f"final PSNR in dB, {which}: {'; '.join(said)}")


CLAIMS = (
    Claim(
        "fedfw/C12",
        "D",
        "Figure 1",
        "From gradients a picture is recovered best, from answers of the l2 ball's oracle less "
        "well, from those of the l1 ball's least.",
        "Deep leakage with 100 steps of L-BFGS on one picture, ten seeds (picture, network, "
        "dummies), of MNIST and of CIFAR-10 cropped to 16 x 16, for a sigmoid network with one "
        "hidden layer and a LeNet without pooling: final PSNR, where everything above 60 dB (an "
        "error of a thousandth of the range) counts as 60.",
        "For each data set and network: the interval of the difference, paired by seed, lies above "
        "0 for gradient minus l2 and for l2 minus l1, with l2 as one ball for the whole vector "
        "(the algorithm of the paper) and as a ball for each tensor (the authors' code); l1 is for "
        "each seed the better of two attacks, on the exact answer and on a softened one.",
        tuple(f"{place}_{s}" for place in PLACES for s in SIGNALS),
        c12,
        figure="psnr",
    ),
)
