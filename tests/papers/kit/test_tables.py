"""Curves as one long table: digits, rows, and what pandas sees."""

import numpy as np
import pytest

from papers.kit import tables
from papers.kit.numbers import significant


@pytest.mark.parametrize("exponents", [(-30, 30), (-300, 300), (-6, 7)])
def test_six_digits_are_kept_by_single_precision_to_the_last_bit(exponents):
    rng = np.random.default_rng(0)
    raw = rng.normal(size=3000) * 10.0 ** rng.integers(*exponents, 3000)
    raw = np.concatenate([raw, 10.0 ** np.arange(*exponents), [0.0, 1.0, -1.0, 999999.0, 0.1]])
    rounded = np.array([significant(float(value)) for value in raw])
    stored = tables.compact(rounded)
    assert stored.dtype == (np.float64 if exponents[0] == -300 else np.float32)
    np.testing.assert_array_equal(tables.six_digits(stored), rounded)


def test_what_is_not_finite_stays():
    values = np.array([[np.nan, np.inf, -np.inf, 0.0]])
    np.testing.assert_array_equal(tables.six_digits(values), values)


def test_a_fingerprint_is_of_names_shapes_and_values():
    x = np.array([[1.0, np.nan], [0.5, 2.0]])
    known = tables.fingerprint({"f": x, "g": x})
    assert known == tables.fingerprint({"g": x, "f": x.copy()})
    for curves in ({"f": x}, {"f": x, "h": x}, {"f": x, "g": x.T}, {"f": x, "g": x[:, :1]}):
        assert tables.fingerprint(curves) != known
