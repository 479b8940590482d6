"""The measures of study `cmoo_mixed`."""

from __future__ import annotations

import numpy as np

from papers.fedcmoo.common import final
from papers.fedcmoo.pairs.runs import MIXED
from papers.kit.numbers import Number, mean
from papers.kit.study import Params, Traces


def derive(traces: Traces, p: Params) -> dict[str, Number]:  # noqa: ARG001 - as every study
    """Final accuracies of both digits in %, the first minus the second, and the worse one."""
    found: dict[str, Number] = {}
    for name in MIXED:
        one, two = (100 * final(traces[name], f"accuracy_{k}") for k in (1, 2))
        found[f"{name}.accuracy_1"] = mean(one, "%")
        found[f"{name}.accuracy_2"] = mean(two, "%")
        found[f"{name}.gap"] = mean(one - two, "points")
        found[f"{name}.worst"] = mean(np.minimum(one, two), "%")
    return found
