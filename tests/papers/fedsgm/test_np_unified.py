"""The full paper's Neyman-Pearson study: its null data, and values that a reader chooses."""

import numpy as np
import pandas as pd
import pytest

from papers.fedsgm.np_unified import STUDY, quantities


def test_null_data_are_disjoint_sets_of_splits_of_equal_size():
    seeds = pd.MultiIndex.from_product([["hard"], range(11)], names=["run", "seed"])
    names = ("f", "g", "merit", "early", "oscillation", "scatter")
    by_run = pd.DataFrame({name: np.arange(11.0) for name in names}, index=seeds)
    null = [row for row in quantities.null_data(by_run) if row.measure == "merit"]
    assert [row.labels["part"] for row in null] == [0, 1, 2, 3, 4]
    assert [row.number.value for row in null] == [0.5, 2.5, 4.5, 6.5, 8.5]


@pytest.mark.parametrize(
    "changes", [{"participants": 20}, {"local_steps": 10}, {"beta": 20.0}, {"fraction": 1.0}]
)
def test_a_reader_may_choose_a_value_of_a_sweep(changes):
    p = STUDY.resolve("quick", **changes)
    specs = STUDY.specs(p)
    assert {"hard", "soft"} <= specs.keys()
    ((label, value),) = changes.items()
    assert specs["soft"].labels[label] == value
