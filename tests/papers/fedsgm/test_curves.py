"""What is read off the curves of a constrained run, on curves written down by hand."""

import numpy as np

import fedlib as fl
from papers.fedsgm.curves import band, oscillation


def trace(f, g):
    """Rounds 0 .. T of some seeds; the last column is the final model."""
    curves = {"f": np.array(f, float), "g": np.array(g, float)}
    seeds, rounds = curves["f"].shape
    return fl.Trace(curves, {}, np.arange(rounds), tuple(range(seeds)), {})


def test_the_band_is_the_distance_from_the_median_curve():
    curves = [[1, 1, 0], [2, 4, 0], [4, 5, 0]]
    np.testing.assert_allclose(band(trace(curves, curves), "f"), [2000, 0, 1500])


def test_oscillation_of_either_curve():
    zigzag, line = [[0, 1, 0, 1, 0, 1, 9]], [[3, 3, 3, 3, 3, 3, 9]]
    assert oscillation(trace(zigzag, line), "f") == [1000]
    assert oscillation(trace(zigzag, line)) == [0]
