"""Rules about FedFW's tables on generated data, which study `fw_common` judges."""

from __future__ import annotations

from papers.fedfw.authors.quantities import difference
from papers.fedfw.authors.runs import DEFAULTS, Labels, pairs
from papers.fedfw.cells import PrintedGap, printed_gap
from papers.kit.quantities import Query, name_of
from papers.kit.rules import Condition, Control, Rule, Size, of

NET = {"mclr": "logistic regression", "dnn": "60-20-10"}
SPLIT = {"iid": "IID", "classes": "three classes"}
ROUNDS = "{0} has {1} rounds, FedDR all. A round of {0} is an epoch, one of FedDR a minibatch."


def differences(norm: str) -> dict[str, Labels]:
    """The labels of FedFW minus FedDR in Tables 1 and 2, by the cell in words."""
    cells = {}
    for run, _ in pairs():
        if run.get("norm") == norm:
            cells[f"{NET[str(run['net'])]}, {SPLIT[str(run['split'])]}"] = difference(run)
    return cells


def many() -> dict[str, Labels]:
    """The same of Table 3."""
    runs = [run for run, _ in pairs() if "users" in run]
    return {SPLIT[str(run["split"])]: difference(run) for run in runs}


def printed(labels: Labels) -> PrintedGap:
    """What the tables have between FedFW, or FedFW-sto, and FedDR."""
    if "users" in labels:
        return printed_gap(f"mclr_synthetic_{labels['split']}", "", "sto")
    column = f"{labels['net']}_synthetic_{labels['split']}"
    return printed_gap(column, str(labels["norm"]), "fedfw")


def as_printed(labels: Labels) -> Condition:
    """Whether a difference has the sign of the printed one."""
    gap = of("best", **labels)
    return gap > 0 if printed(labels).value > 0 else gap < 0


def size(labels: Labels, table: str) -> Size:
    """The printed size of a difference."""
    value, spread = printed(labels)
    return Size(Query.of("best", **labels), value, table, spread)


def order(
    statement: str, cells: dict[str, Labels], table: str, note: str, control: Control
) -> Rule:
    """The order of both methods by the best of the rounds, cell by cell."""
    return Rule(
        {statement: {text: as_printed(labels) for text, labels in cells.items()}},
        note=note,
        control=control,
        sizes=tuple(size(labels, f"{table}, {text}") for text, labels in cells.items()),
    )


def tables(norm: str, statement: str, control: Control, note: str = "") -> Rule:
    """The order of FedFW and FedDR in Tables 1 and 2."""
    rounds = ROUNDS.format("FedFW", "340 of the 1000")
    return order(statement, differences(norm), "Tables 1, 2", f"{rounds}{note}", control)


def table_3(control: Control, note: str = "") -> Rule:
    """The order of FedFW-sto and FedDR in Table 3."""
    rounds = ROUNDS.format("FedFW-sto", "150 of the 300")
    return order("FedFW-sto above FedDR", many(), "Table 3", f"{rounds}{note}", control)


def runs_of(norm: str = "") -> tuple[str, ...]:
    """The runs behind the cells of a norm; without a norm of Table 3."""
    names = []
    for run, rival in pairs():
        if run.get("norm", "") == norm:
            names += [name_of(run, DEFAULTS), name_of(rival, DEFAULTS)]
    return tuple(names)
