"""The claim about FedFW's Table 3, its rule, and the values that the table prints."""

from __future__ import annotations

from papers.fedfw.cells import column_text
from papers.fedfw.stochastic.numbers import METHODS_3, TABLE_3
from papers.fedfw.tables.claims import listed
from papers.kit.claims import Claim, PaperValue
from papers.kit.needs import Needs
from papers.kit.rules import Condition, Rule, of

JUDGED = tuple(c for c in TABLE_3 if not c.endswith("_classes"))
# Grids of the full profile.
SEEDS = (0, 1, 2)
LAMBDAS, CIFAR_LAMBDAS = (1e-4, 1e-3, 1e-2), (1e-4, 1e-3)
RATES, CIFAR_RATES, SYNTHETIC_RATES = (0.01, 0.05, 0.2), (0.01, 0.05), (0.05, 0.2, 1.0)
GRIDS = {
    "pictures": (LAMBDAS, RATES),
    "synthetic": (LAMBDAS, SYNTHETIC_RATES),
    "cifar10": (CIFAR_LAMBDAS, CIFAR_RATES),
}

KEYS = {column_text(c, "mnist"): f"{c}_sto_vs_feddr.accuracy" for c in JUDGED}
C9 = Rule(
    {f"FedFW-sto above FedDR, {text}": of(key) > 0 for text, key in KEYS.items()}
    | {
        "the two columns of EMNIST-62 were not run, and MNIST stands in for EMNIST-10": Condition(
            "the same for EMNIST, which was not run", (), lambda _: False
        )
    },
    f"final accuracy of FedFW-sto minus FedDR, points: {listed(KEYS)}",
    "So the verdict is partly at most.",
)


def runs(column: str) -> tuple[str, ...]:
    lambdas, rates = GRIDS[column.split("_")[1]]
    names = [f"sto_{x:g}" for x in lambdas] + [f"feddr_{x:g}" for x in rates]
    return tuple(f"{column}_{name}_seed{s}" for s in SEEDS for name in names)


CLAIMS = (
    Claim(
        id="fedfw/C9",
        paper="D",
        place="Table 3",
        wording="FedFW-sto is ahead of FedDR in all eight columns.",
        measure="Test accuracy of the model after 300 rounds, logistic regression, 100 clients, "
        "one minibatch of 64 a client and round for both methods, l2 ball of radius 10 around the "
        "whole vector: FedFW-sto's minus FedDR's in points, paired by seed (vs). lambda_0 and "
        "FedDR's step size have the lowest mean training loss of three values each (CIFAR-10: "
        "two). 20,000 rows of MNIST in place of EMNIST-10, 10,000 of CIFAR-10, three seeds; "
        "non-IID: three of ten labels a client.",
        rule=C9,
        runs=tuple(run for column in JUDGED for run in runs(column)),
        figure="table_3",
        needs=Needs(
            parameters=("lambdas", "rates", "cifar_lambdas", "cifar_rates", "synthetic_rates")
        ),
    ),
)

PAPER_VALUES = tuple(
    PaperValue(
        f"{column_text(column, 'mnist')}, {text}"
        + (" (paper: EMNIST-10)" if "pictures" in column else ""),
        f"{column}_{m}.accuracy",
        x,
        f"{x:.2f} %",
        "D, Table 3",
        rtol=0.03,
    )
    for column in JUDGED
    for (m, text), x in zip(METHODS_3.items(), TABLE_3[column], strict=True)
)
