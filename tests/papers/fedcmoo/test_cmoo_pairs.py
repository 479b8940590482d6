"""The study of two tasks in one picture: final values, and the paper's own arithmetic."""

import numpy as np
import pytest

from fedlib.core import Trace
from papers.fedcmoo.common import METHODS, final
from papers.fedcmoo.pairs.claims import TABLE_1, TABLE_4
from papers.fedcmoo.pairs.quantities import decline

LONG = range(0, 101, 5)
RAMP = np.arange(21.0)


def final_accuracy(curve, rounds, **options):
    """The final value of a run of one seed."""
    trace = Trace({"accuracy": np.array([curve])}, {}, np.array(rounds), (0,), {})
    (value,) = final(trace, "accuracy", **options)
    return value


def test_final_values_are_of_the_last_tenth_with_the_final_model():
    assert final_accuracy(RAMP, LONG) == pytest.approx(19.5)  # rounds 95 and 100
    assert final_accuracy([1.0, 2.0, 3.0, 7.0], [0, 5, 10, 12]) == pytest.approx(7)
    assert final_accuracy([0.1, 0.4, 0.2], [0, 1, 2]) == pytest.approx(0.2)
    assert final_accuracy(RAMP, LONG, end=60) == pytest.approx(11.5)  # rounds 55 and 60


def test_table_4_follows_from_table_1():
    for data, rows in TABLE_1.items():
        for method in METHODS:
            expected = pytest.approx(TABLE_4[data][method], abs=0.0051)
            assert decline(rows[method], rows["single"]) == expected
    assert decline((90.0, 45.0), (100.0, 50.0)) == pytest.approx(10)
    assert decline((110.0, 50.0), (100.0, 50.0)) == pytest.approx(-5)
    of_seeds = [np.array([90.0, 100.0]), np.array([45.0, 50.0])]
    assert decline(of_seeds, (100.0, 50.0)) == pytest.approx([10, 0])
