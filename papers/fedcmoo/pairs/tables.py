"""Tables of the study of two tasks in one picture."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from papers.fedcmoo.common import METHODS
from papers.fedcmoo.pairs.claims import FIRST, TABLE_1, minus
from papers.fedcmoo.pairs.quantities import END, PUBLIC, SOURCE
from papers.fedcmoo.pairs.runs import DATA, STEP_SIZES, STEPPED, stepped
from papers.kit.quantities import Query
from papers.kit.rules import Numbers

if TYPE_CHECKING:
    import pandas as pd


def authors_table(numbers: Numbers) -> pd.DataFrame:
    """Mean accuracy of both tasks: the paper, its authors' code, the stored runs with dropout.

    Empty where no run is as long as the authors'.
    """
    import pandas as pd

    rows = {}
    for data, theirs in PUBLIC.items():
        for m, text in METHODS.items():
            read = partial(Query.of, data=data, method=m, dropout=True)
            if read(f"accuracy_{END}") not in numbers:
                continue
            apart = f"{numbers[read('from_authors')].value:.1f}" if m in theirs else ""
            rows[f"{DATA[data]}, {text}"] = {
                "the paper's Table 1": f"{np.mean(TABLE_1[data][m]):.1f}",
                "the authors' code": f"{theirs[m][-1]:.1f} ({SOURCE[data]})"
                if m in theirs
                else "nothing public",
                f"ours, {END} rounds": numbers[read(f"accuracy_{END}")].text(".1f"),
                "farthest apart": apart,
                "ours at the end": numbers[read("accuracy")].text(".1f"),
            }
    return pd.DataFrame.from_dict(rows, orient="index")


def step_table(numbers: Numbers) -> pd.DataFrame:
    """Final mean accuracy of each method at the step sizes of each; empty without such runs."""
    import pandas as pd

    data = "mnist_fashion"
    rows = {}
    for server_lr, lr in STEP_SIZES:
        lead = minus(
            "accuracy",
            data,
            FIRST,
            dropout=True,
            lr=lr,
        )
        if lead not in numbers:
            continue
        cells = {}
        for method, text in STEPPED.items():
            cells[text] = numbers[Query.of("accuracy", **stepped(method, data, lr))].text(".1f")
        over_average = minus(
            "accuracy",
            data,
            ("fedcmoo", "scalarized"),
            dropout=True,
            lr=lr,
        )
        cells["FedCMOO - FSMGDA"] = numbers[lead].text(".1f")
        cells["FedCMOO - plain average"] = numbers[over_average].text(".1f")
        rows[f"server {server_lr:g}, clients {lr:g}"] = cells
    return pd.DataFrame.from_dict(rows, orient="index")
