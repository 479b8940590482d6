"""The claim about FedFW's Table 3, its rules, and the values that the table prints."""

from __future__ import annotations

from functools import partial

from papers.fedfw.cells import (
    COLUMNS,
    DEFAULTS,
    METHODS_3,
    PRINTED_AT,
    as_coded,
    column_text,
    labels_of_cell,
    printed_gap,
    run_as_traced,
)
from papers.fedfw.stochastic.runs import (
    CIFAR_LAMBDAS,
    CIFAR_RATES,
    LAMBDAS,
    RATES,
    SEEDS,
    SYNTHETIC_RATES,
)
from papers.fedfw.tables.claims import NOTHING
from papers.fedfw.tables.quantities import gap_of
from papers.kit.claims import Claim, PaperValue, Reading
from papers.kit.health import Needs
from papers.kit.quantities import Query, name_of, names_of
from papers.kit.rules import Rule, Size, of

#: The columns whose data are the paper's; MNIST only stands in for EMNIST-10.
JUDGED = ("mclr_synthetic_iid", "mclr_synthetic_labels", "mclr_cifar10_iid", "mclr_cifar10_labels")
#: Those whose rows are the authors' too; R17 judges the generated ones on their program's rows.
TRACED = tuple(column for column in JUDGED if COLUMNS[column].data != "synthetic")
STAND_IN = ("mclr_pictures_iid", "mclr_pictures_labels")
#: lambda_0 and FedDR's step sizes of the full profile, by data.
GRIDS = {
    "pictures": (LAMBDAS, RATES),
    "synthetic": (LAMBDAS, SYNTHETIC_RATES),
    "cifar10": (CIFAR_LAMBDAS, CIFAR_RATES),
}

SHORT = (
    "The four columns on EMNIST are not judged, nor is MNIST, which replaces EMNIST-10. The paper "
    "uses all rows; the full profile uses 10,000 of 50,000 rows of CIFAR-10 and at most 600 "
    "generated rows per client."
)


GENERATED = "R17 judges the generated columns, on the rows of the authors' program."


def rule(protocol: str, columns: tuple[str, ...], note: str) -> Rule:
    """FedFW-sto above FedDR, column by column."""
    read = as_coded if protocol == "code" else str
    conditions = {}
    sizes = []
    for column in columns:
        text = column_text(read(column), "mnist")
        gap = gap_of(protocol, column, "", "sto")
        conditions[text] = of(gap) > 0
        value, spread = printed_gap(column, "", "sto")
        sizes.append(Size(gap, value, f"Table 3, {text}", spread))
    return Rule(
        {"FedFW-sto's accuracy exceeds FedDR's": conditions},
        note=note,
        control=NOTHING,
        sizes=tuple(sizes),
    )


def text_runs(column: str) -> tuple[str, ...]:
    """The runs of a column by the protocol of the text."""
    lambdas, rates = GRIDS[COLUMNS[column].data]
    run = partial(names_of, DEFAULTS, **labels_of_cell(column))
    names: list[str] = []
    for seed in SEEDS:
        names += run(method="sto", lam=lambdas, only_seed=seed)
        names += run(method="feddr", lr=rates, only_seed=seed)
    return tuple(names)


def code_runs(column: str) -> tuple[str, ...]:
    """The runs of a column by the protocol behind the printed values."""
    names = []
    for seed in SEEDS:
        for method in METHODS_3:
            run = run_as_traced(as_coded(column), "", method)
            names.append(name_of({**run, "only_seed": seed}, DEFAULTS))
    return tuple(names)


TEXT_RUNS: tuple[str, ...] = ()
CODE_RUNS: tuple[str, ...] = ()
for judged_column in JUDGED:
    TEXT_RUNS += text_runs(judged_column)
for traced_column in TRACED:
    CODE_RUNS += code_runs(traced_column)

CLAIMS = (
    Claim(
        id="fedfw/C9",
        paper="D",
        place="Table 3",
        wording="FedFW-sto is ahead of FedDR in all eight columns.",
        rule=rule("text", JUDGED, SHORT),
        runs=TEXT_RUNS,
        needs=Needs(
            parameters=("lambdas", "cifar_lambdas", "cifar_rates", "synthetic_rates"),
            paper={"rounds": 300},
        ),
        reading="as written: after 300 rounds",
        readings=(
            Reading(
                "best of the rounds, with the lambda_0 of the authors' files",
                rule("code", TRACED, f"{SHORT} {GENERATED}"),
                CODE_RUNS,
                Needs(paper={"rounds": 300}),
            ),
        ),
    ),
)


def printed_value(column: str, method: str) -> PaperValue:
    """The value that Table 3 prints for a method, beside ours by the text's protocol."""
    printed = PRINTED_AT[column, "", method]
    label = f"{column_text(column, 'mnist')}, {METHODS_3[method]}"
    return PaperValue(
        f"{label} (paper: EMNIST-10)" if column in STAND_IN else label,
        Query.of("accuracy", **labels_of_cell(column), method=method),
        printed.value,
        f"{printed.text} %",
        "D, Table 3",
        rtol=0.03,
        spread=printed.points,
    )


PAPER_VALUES = tuple(
    printed_value(column, method) for column in STAND_IN + JUDGED for method in METHODS_3
)
