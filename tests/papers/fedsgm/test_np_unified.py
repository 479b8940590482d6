"""The full paper's Neyman-Pearson study: its null data, and values that a reader chooses."""

import numpy as np
import pytest

from fedlib.core import Trace
from papers.fedsgm.np_unified import STUDY, quantities


def test_null_data_are_disjoint_sets_of_splits_of_equal_size():
    levels = np.arange(11.0)[:, None] * np.ones(41)
    trace = Trace(
        metrics={"f": levels, "g": levels},
        info={},
        rounds=np.arange(41),
        seeds=tuple(range(11)),
        config={},
        provenance={},
        state=None,
    )
    null = [*quantities.null_data(trace, tolerance=20.0)]
    for measure in ("f", "g", "merit", "early"):
        rows = [row for row in null if row.measure == measure]
        assert [row.labels["part"] for row in rows] == [0, 1, 2, 3, 4]
        assert [row.number.value for row in rows] == [0.5, 2.5, 4.5, 6.5, 8.5]


@pytest.mark.parametrize(
    "changes", [{"participants": 20}, {"local_steps": 10}, {"beta": 20.0}, {"fraction": 1.0}]
)
def test_a_reader_may_choose_a_value_of_a_sweep(changes):
    p = STUDY.resolve("quick", **changes)
    specs = STUDY.specs(p)
    assert {"hard", "soft"} <= specs.keys()
    ((label, value),) = changes.items()
    assert specs["soft"].labels[label] == value
