"""The study of two tasks in one picture: final values, and the paper's own arithmetic."""

import numpy as np
import pytest

from papers.fedcmoo.common import METHODS
from papers.fedcmoo.pairs.claims import TABLE_1, TABLE_4
from papers.fedcmoo.pairs.quantities import decline
from tests.helpers.expect import near


def test_table_4_follows_from_table_1():
    for data, rows in TABLE_1.items():
        for method in METHODS:
            expected = pytest.approx(TABLE_4[data][method], abs=0.0051)
            assert decline(rows[method], rows["single"]) == expected
    near(decline((90.0, 45.0), (100.0, 50.0)), 10)
    near(decline((110.0, 50.0), (100.0, 50.0)), -5)
    of_seeds = [np.array([90.0, 100.0]), np.array([45.0, 50.0])]
    near(decline(of_seeds, (100.0, 50.0)), [10, 0])
