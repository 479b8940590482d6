"""The claims about Gram estimates and local progress, and the rules that judge them."""

from __future__ import annotations

from papers.kit.claims import Claim, Numbers, Outcome, PaperValue, judge

__all__ = ["CLAIMS", "PAPER_VALUES", "c7", "c13"]

MOSTLY = 0.9  # of the rounds, or of the running means
GREY = {"multi_mnist": "MultiMNIST", "mnist_fashion": "MNIST+FMNIST"}
PAIRS = {**GREY, "cifar10_mnist": "CIFAR10+MNIST"}
WAYS = {"two_way": "two-way", "one_way": "one-way"}
FORTY = "forty attributes"


def c7(n: Numbers) -> Outcome:
    """Four parts: loss and accuracy on both data sets."""
    parts, texts = {}, []
    for data, title in GREY.items():
        run = f"progress_{data}"
        for what in ("loss", "accuracy"):
            lead, ahead = n[f"{run}.{what}_alone"], n[f"{run}.{what}_alone_ahead"]
            parts[f"{what} on {title}"] = lead.value > 0 and ahead.value >= MOSTLY
            both = [n[f"{run}.{who}_{what}"].value for who in ("method", "alone")]
            texts.append(f"{what} on {title} {both[0]:.3g} against {both[1]:.3g}")
    return judge(parts, "gains of FedCMOO against FSMGDA, one seed: " + "; ".join(texts))


def c13(n: Numbers) -> Outcome:
    """Eight parts: three pairs of tasks and the forty attributes, two-way and one-way."""
    parts, texts = {}, []
    for data, title in {**PAIRS, "attributes": FORTY}.items():
        for way, text in WAYS.items():
            run = f"gram_{data}"
            largest, low, masked = (
                n[f"{run}.{way}_{k}"].value for k in ("largest16", "block", "masked")
            )
            if data == "attributes":
                holds = low < min(largest, masked)
                often = n[f"{run}.{way}_best"].value
            else:
                holds = largest < low < masked
                often = n[f"{run}.{way}_order"].value
            parts[f"{title}, {text}"] = holds and often >= MOSTLY
            texts.append(f"{title} {text} {largest:.3g}, {low:.3g}, {masked:.3g}")
    return judge(parts, "largest, low rank, masked in %, one seed: " + "; ".join(texts))


CLAIMS = (
    Claim(
        "fedcmoo/C7",
        "C",
        "Figure 11",
        "In a round, local training of FedCMOO lowers the clients' own losses and raises their own "
        "accuracies more than FSMGDA's local training from the same models.",
        "Along a FedCMOO run, 40 rounds, one seed: mean over participants and objectives of loss "
        "before minus loss after local training on the client's own rows, of FedCMOO's model and "
        "of the model that FSMGDA trains for that objective alone; accuracy after minus before.",
        "One seed, so no interval over seeds. For loss and for accuracy, on MultiMNIST and on "
        "MNIST+FMNIST: (1) the mean of FedCMOO's gain minus FSMGDA's over all rounds is positive, "
        "and (2) so are at least 90 % of its running means over 10 rounds. Each method has the "
        "step sizes that the paper gives it.",
        tuple(f"progress_{data}" for data in GREY),
        c7,
        figure="figure_11",
    ),
    Claim(
        "fedcmoo/C13",
        "C",
        "Table 3",
        "At the same upload the error of the Gram matrix grows from the largest entries over the "
        "randomized SVD to random entries for two tasks; for forty the SVD's is the smallest.",
        "nRMSE (Frobenius) along FedCMOO-Pref with uniform preference, mean over the measured "
        "rounds, one seed: largest entries with numbers of 16 bits, low rank in block order, "
        "random entries scaled to be unbiased; two-way and one-way. For CelebA's forty attributes "
        "stand forty attributes of a digit and an item.",
        "One seed, so no interval over seeds. For each of MultiMNIST, MNIST+FMNIST, CIFAR10+MNIST "
        "and each way: the means are ordered largest < low rank < random, and so they are in at "
        "least 90 % of the rounds. For forty attributes and each way: low rank below both others "
        "in the mean and in at least 90 % of the rounds.",
        tuple(f"gram_{data}" for data in (*PAIRS, "attributes")),
        c13,
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
