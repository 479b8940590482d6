"""Tail bounds by hand, and their reductions."""

import math
from itertools import product
from math import log, sqrt

import pytest

from papers.fedsgm import concentration as c
from papers.fedsgm.gamma import gamma_feedback, gamma_local, gamma_partial_direct
from papers.fedsgm.theory import Setting, theorem_1_partial, theorem_4, theorem_9

CASE = Setting(D=2.0, G=3.0, E=5, T=100, N=8, n=4, sigma=0.5, delta=0.1)


def test_lemma_4_is_its_printed_formula_and_twice_hoeffdings():
    printed = 4 * 0.1 * 5 * 3 * 2 * sqrt(200 / 4 * log(10))
    assert c.sampling_walk(CASE, 0.1) == pytest.approx(printed)
    assert c.sampling_walk(CASE, 0.1, proxy=4) == pytest.approx(printed / 2)


def test_theorems_4_and_9_are_made_of_the_lemmas():
    third = Setting(**{**vars(CASE), "delta": CASE.delta / 3})
    rate = theorem_4(CASE, "corrected")
    walk = c.sampling_walk(third, rate.lr) / (rate.lr * CASE.E * CASE.T)
    base = sqrt(4 * 4 * 9 * 5 / 100)
    expected = base + walk + c.estimate_error(third)
    assert rate.tolerance == pytest.approx(expected)
    seventh = Setting(**{**vars(CASE), "delta": CASE.delta / 7})
    rate = theorem_9(CASE, 1.5, 0.7, 6, "corrected")
    scale = rate.lr * CASE.E * CASE.T
    sampling = c.sampling_walk(seventh, rate.lr)
    walks = (sampling + c.noise_walk(seventh, rate.lr, 1.5)) / scale
    error = c.estimate_error(seventh, 0.7, 6)
    drift = 2 * c.drift_bound(seventh, 1.0, 1.5) - 2 * 125 * 2 / 3 * 9
    square = c.square_bound(seventh, 1.0, 1.5)
    gamma = 3 * 25 + (drift + square) / (2 * 5 * 9)  # 3 E^2 holds the parts without noise
    assert rate.gamma == pytest.approx(gamma)
    root = sqrt(2 * 4 * 9 * rate.gamma / 500)
    expected = root + walks + 2 * error
    assert rate.accuracy == pytest.approx(expected, rel=1e-12)


def test_lemma_3_by_hand():
    s = Setting(D=1.0, G=1.0, E=2, T=1, N=1, delta=2 / math.e)
    expected = 2 * (2 / 3 + 9 * 2)
    assert c.drift_bound(s, 0.5, 3.0) == pytest.approx(expected)
    expected = 2 * (2 / 3 + 6 * 2)
    assert c.drift_bound(s, 0.5, 3.0, "direct") == pytest.approx(expected)


def test_lemma_6_proved_is_above_printed_by_a_known_factor():
    printed = c.square_bound(CASE, 0.1, 2.0, "printed")
    proved = c.square_bound(CASE, 0.1, 2.0, "proved")
    assert 1.3 < proved / printed < 1.6
    only = Setting(**{**vars(CASE), "G": 1e-9})
    ratio = c.square_bound(only, 0.1, 2.0, "proved") / c.square_bound(only, 0.1, 2.0)
    assert ratio == pytest.approx(1.5)


def test_residual_versions():
    assert c.residual_bound(5, 1.0, 0.1, 2.0) == pytest.approx(189.7, abs=0.05)
    assert c.residual_bound(1, 1.0, 0.3, 1.0, "printed") == c.residual_bound(1, 1.0, 0.3, 1.0)
    for q in (0.01, 0.5, 1.0):
        direct = c.residual_bound(2, 3.0, q, 2.0, "direct")
        corrected = c.residual_bound(2, 3.0, q, 2.0, "corrected")
        assert corrected / 2 <= direct <= corrected


def test_direct_residual_is_the_fixed_point_of_its_recursion():
    q = 0.19  # r = 0.9
    x = c.residual_bound(1, 1.0, q, 1.0, "direct")
    assert x == pytest.approx(9.0)
    assert x == pytest.approx(0.9 * (x + 1))


@pytest.mark.parametrize("E", [1, 2, 5, 50])
def test_gamma_sampled_reduces_and_is_below_the_others(E):
    assert c.gamma_sampled(E, 1.0, 1.0, 3.0) == gamma_local(E, "direct")
    for q, q0, ratio in product((0.01, 0.1, 0.5, 0.9, 1.0), (0.01, 0.5, 1.0), (1.0, 2.0, 20.0)):
        ours = c.gamma_sampled(E, q, q0, ratio)
        assert ours <= gamma_partial_direct(E, q, q0, ratio)
    assert c.gamma_sampled(5, 0.1, 1.0, 1.0) > gamma_feedback(5, 0.1, 1.0)  # 1/q^2, not 1/q


def test_sampled_rate_by_hand_and_below_the_printed_ones():
    s = Setting(D=1.0, G=1.0, E=1, T=100, N=8, n=2, sigma=0.3, delta=0.1)
    rate = c.sampled_rate(s)
    once = c.sampled_rate(s, one_sample=True)
    error = 0.3 * sqrt(log(6000))
    expected = 0.1 + 2 * sqrt(0.01 * log(30)) + error
    assert rate.tolerance == pytest.approx(expected)
    assert rate.accuracy - rate.tolerance == pytest.approx(error)
    expected = 0.1 + 1.3 * sqrt(log(4000))
    assert once.tolerance == pytest.approx(expected)
    assert rate.accuracy < theorem_4(s, "corrected").accuracy
    packed = Setting(**{**vars(s), "q": 0.5, "q0": 0.5})
    assert c.sampled_rate(packed).accuracy < theorem_1_partial(packed).accuracy


def test_gamma_noisy_reduces_and_is_at_most_the_printed_one():
    for E in (1, 3, 10):
        s = Setting(D=1.0, G=2.0, E=E, T=50, N=8, n=2, delta=0.1)
        assert c.gamma_noisy(s, 0.0) == pytest.approx(1.5 * E - 1)
        for sigma in (0.1, 1.0, 10.0, 1000.0):
            assert c.gamma_noisy(s, sigma) <= theorem_9(s, sigma, 0.0, 1).gamma


def test_noisy_rate_by_hand():
    s = Setting(D=1.0, G=1.0, E=1, T=100, N=8, n=2, sigma=0.3, delta=0.7)
    mean = sqrt(1.5 * log(2000)) * 2
    rate = c.noisy_rate(s, 2.0, 0.8, 4)
    assert rate.gamma == pytest.approx((1 + mean) ** 2 / 2)
    error = sqrt((0.09 + 0.16) * log(2000))
    walks = 2 * sqrt(0.01 * log(10)) + 4 * sqrt(3 / 200 * log(10))
    tolerance = (1 + mean) / 10 + walks + error
    assert rate.tolerance == pytest.approx(tolerance)
    assert rate.accuracy == pytest.approx(tolerance + error)
