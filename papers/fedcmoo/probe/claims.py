"""The claims about Gram estimates and local progress, and the rules that judge them."""

from __future__ import annotations

from papers.fedcmoo.common import GREY, cmoo
from papers.fedcmoo.probe.numbers import WAYS
from papers.kit.claims import PaperValue
from papers.kit.rules import Condition, Rule, rises, told_value, value

__all__ = ["C7", "C13", "CLAIMS", "PAIRS", "PAPER_VALUES", "TABLE_3"]

MOSTLY = 0.9  # of the rounds, or of the running means
PAIRS = {**GREY, "cifar10_mnist": "CIFAR10+MNIST"}
ALL = {**PAIRS, "attributes": "forty attributes"}
KINDS = ("largest16", "block", "masked")
ONE_SEED = "One seed, so no interval over seeds."


def smallest_or_ordered(data: str, way: str) -> Condition:
    """Low rank smallest for the forty attributes, between the others for two tasks; mostly."""
    run = f"gram_{data}.{way}"
    if data != "attributes":
        ordered = rises(*(f"{run}_{k}" for k in KINDS))
        return ordered & (value(f"{run}_order") >= MOSTLY)
    largest, low, masked = (value(f"{run}_{k}") for k in KINDS)
    return (low < largest) & (low < masked) & (value(f"{run}_best") >= MOSTLY)


C7 = Rule(
    {
        f"{what} on {title}": (value(f"progress_{data}.{what}_alone") > 0)
        & (value(f"progress_{data}.{what}_alone_ahead") >= MOSTLY)
        for data, title in GREY.items()
        for what in ("loss", "accuracy")
    },
    "gains of FedCMOO against FSMGDA, one seed: "
    + "; ".join(
        f"{what} on {title} {told_value(f'progress_{data}.method_{what}')} against "
        f"{told_value(f'progress_{data}.alone_{what}')}"
        for data, title in GREY.items()
        for what in ("loss", "accuracy")
    ),
    note=f"Each method has the step sizes that the paper gives it. {ONE_SEED}",
)
C13 = Rule(
    {
        f"{title}, {text}": smallest_or_ordered(data, way)
        for data, title in ALL.items()
        for way, text in WAYS.items()
    },
    "largest, low rank, masked in %, one seed: "
    + "; ".join(
        f"{title} {text} " + ", ".join(told_value(f"gram_{data}.{way}_{k}") for k in KINDS)
        for data, title in ALL.items()
        for way, text in WAYS.items()
    ),
    note=ONE_SEED,
)

CLAIMS = (
    cmoo(
        id="fedcmoo/C7",
        place="Figure 11",
        wording="In a round, local training of FedCMOO lowers the clients' own losses and raises "
        "their own accuracies more than FSMGDA's local training from the same models.",
        measure="Along a FedCMOO run, 40 rounds, one seed: mean over participants and objectives "
        "of loss before minus loss after local training on the client's own rows, of FedCMOO's "
        "model and of the model that FSMGDA trains for that objective alone; accuracy after minus "
        "before. The first minus the second (alone), and the share of its running means over 10 "
        "rounds that are positive (ahead).",
        rule=C7,
        runs=tuple(f"progress_{data}" for data in GREY),
        figure="figure_11",
    ),
    cmoo(
        id="fedcmoo/C13",
        place="Table 3",
        wording="At the same upload the error of the Gram matrix grows from the largest entries "
        "over the randomized SVD to random entries for two tasks; for forty the SVD's is the "
        "smallest.",
        measure="nRMSE (Frobenius) along FedCMOO-Pref with uniform preference, mean over the "
        "measured rounds, one seed: largest entries with numbers of 16 bits (largest16), low rank "
        "in block order (block), random entries scaled to be unbiased (masked); two-way and "
        "one-way. The shares of rounds in which largest < low rank < random (order) and in which "
        "low rank is below both (best). For CelebA's forty attributes stand forty attributes of a "
        "digit and an item.",
        rule=C13,
        runs=tuple(f"gram_{data}" for data in ALL),
        figure="errors",
    ),
)

#: Table 3 of the paper: our name of an estimate -> its words, and the columns in `COLUMNS`' order.
TABLE_3 = {
    "own_grams_scaled": ("sum of client Gram matrices", (50.95, 11.51, 20.61, 14.56)),
    "two_way_block": ("two-way, randomized SVD", (10.15, 1.38, 2.04, 1.76)),
    "two_way_masked": ("two-way, random masking", (51.25, 10.26, 17.40, 12.98)),
    "two_way_largest16": ("two-way, top-k", (17.15, 0.15, 0.04, 0.15)),
    "one_way_block": ("one-way, randomized SVD", (10.87, 1.68, 1.79, 1.96)),
    "one_way_masked": ("one-way, random masking", (76.54, 4.23, 6.29, 5.70)),
    "one_way_largest16": ("one-way, top-k", (24.13, 0.04, 0.01, 0.10)),
}
COLUMNS = {
    "gram_attributes": "CelebA (here forty attributes of digit and item)",
    "gram_cifar10_mnist": "CIFAR10+MNIST",
    "gram_mnist_fashion": "MNIST+FMNIST",
    "gram_multi_mnist": "MultiMNIST",
}

PAPER_VALUES = tuple(
    PaperValue(f"{title}: {words}", f"{run}.{key}", value, f"{value:.2f} %", "Table 3")
    for i, (run, title) in enumerate(COLUMNS.items())
    for key, (words, values) in TABLE_3.items()
    for value in (values[i],)
)
