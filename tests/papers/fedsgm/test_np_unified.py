"""The full paper's Neyman-Pearson study, with values that a reader chooses."""

import pytest

from papers.fedsgm.np_unified import STUDY


@pytest.mark.parametrize(
    "changes", [{"participants": 20}, {"local_steps": 10}, {"beta": 20.0}, {"fraction": 1.0}]
)
def test_a_reader_may_choose_a_value_of_a_sweep(changes):
    p = STUDY.resolve("quick", **changes)
    specs = STUDY.specs(p)
    assert {"hard", "soft"} <= specs.keys()
    ((label, value),) = changes.items()
    assert specs["soft"].labels[label] == value
