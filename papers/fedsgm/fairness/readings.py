"""Which readings of the printed step size can be meant: under which of them the figure happens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from papers.fedsgm.curves import FEASIBLE
from papers.kit.numbers import Number
from papers.kit.study import Params

if TYPE_CHECKING:
    import pandas as pd

ABOVE = 0.02  # of the test rows, by which a network that has learned beats the larger class
MODES = ("hard", "soft")


def meant_table(
    numbers: Mapping[str, Number], readings: Mapping[str, str], p: Params
) -> pd.DataFrame:
    """For each reading (its words -> the end of its runs' names) what Figure 7 would need.

    Learned: the mean late test accuracy is `ABOVE` that of the larger class. The level is kept if
    both modes' mean late gap exceeds it by a twentieth at most.
    """
    import pandas as pd

    least = numbers["majority"].value + ABOVE
    found = {}
    for words, end in readings.items():
        learned = {
            run: numbers[f"{run}_{end}.test_accuracy"].value >= least for run in ("fedavg", *MODES)
        }
        needs = {
            "learns without constraint": learned["fedavg"],
            "hard learns": learned["hard"],
            "soft learns": learned["soft"],
            "both keep the level": all(
                numbers[f"{m}_{end}.g"].value <= FEASIBLE * p["tolerance"] for m in MODES
            ),
        }
        answers = {**needs, "can be meant": all(needs.values())}
        found[words] = {need: "yes" if answer else "no" for need, answer in answers.items()}
    return pd.DataFrame.from_dict(found, orient="index")
