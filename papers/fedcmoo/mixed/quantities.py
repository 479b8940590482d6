"""The quantities of study `cmoo_mixed`."""

from __future__ import annotations

import numpy as np

from fedlib.core import Trace
from papers.fedcmoo.common import final
from papers.fedcmoo.mixed.runs import DEFAULTS
from papers.kit import quantities as kit
from papers.kit.numbers import Number, exact, mean
from papers.kit.quantities import Quantities
from papers.kit.study import Params, Traces


def derive(traces: Traces, p: Params) -> Quantities:
    """The table of quantities."""
    del p
    return Quantities.of([kit.of_runs(traces, measures)], DEFAULTS)


def measures(trace: Trace) -> dict[str, Number]:
    """Final accuracies of both digits in %, their difference, the worse one; the rounds."""
    digit_1 = 100 * final(trace, "accuracy_1")
    digit_2 = 100 * final(trace, "accuracy_2")
    return {
        "accuracy_1": mean(digit_1, "%"),
        "accuracy_2": mean(digit_2, "%"),
        "gap": mean(digit_1 - digit_2, "points"),
        "worst": mean(np.minimum(digit_1, digit_2), "%"),
        "rounds": exact(float(trace.rounds[-1]), "rounds"),
    }
