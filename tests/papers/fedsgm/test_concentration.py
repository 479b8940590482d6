"""Tail bounds by hand, and their reductions."""

import math
from math import log, sqrt

from papers.fedsgm import concentration as c
from papers.fedsgm.theory import Setting, theorem_1_partial, theorem_4, theorem_9
from tests.helpers.expect import near

CASE = Setting(
    D=2.0,
    G=3.0,
    E=5,
    T=100,
    N=8,
    n=4,
    sigma=0.5,
    delta=0.1,
)


def test_lemma_4_is_its_printed_formula_and_twice_hoeffdings():
    printed = 4 * 0.1 * 5 * 3 * 2 * sqrt(200 / 4 * log(10))
    near(c.sampling_walk(CASE, 0.1), printed)
    near(c.sampling_walk(CASE, 0.1, proxy=4), printed / 2)


def test_theorems_4_and_9_are_made_of_the_lemmas():
    third = Setting(**{**vars(CASE), "delta": CASE.delta / 3})
    rate = theorem_4(CASE, "corrected")
    walk = c.sampling_walk(third, rate.lr) / (rate.lr * CASE.E * CASE.T)
    base = sqrt(4 * 4 * 9 * 5 / 100)
    expected = base + walk + c.estimate_error(third)
    near(rate.tolerance, expected)
    seventh = Setting(**{**vars(CASE), "delta": CASE.delta / 7})
    rate = theorem_9(CASE, 1.5, 0.7, 6, "corrected")
    scale = rate.lr * CASE.E * CASE.T
    sampling = c.sampling_walk(seventh, rate.lr)
    walks = (sampling + c.noise_walk(seventh, rate.lr, 1.5)) / scale
    error = c.estimate_error(seventh, 0.7, 6)
    drift = 2 * c.drift_bound(seventh, 1.0, 1.5) - 2 * 125 * 2 / 3 * 9
    square = c.square_bound(seventh, 1.0, 1.5)
    gamma = 3 * 25 + (drift + square) / (2 * 5 * 9)  # 3 E^2 holds the parts without noise
    near(rate.gamma, gamma)
    root = sqrt(2 * 4 * 9 * rate.gamma / 500)
    expected = root + walks + 2 * error
    near(rate.accuracy, expected, rel=1e-12)


def test_lemma_3_by_hand():
    s = Setting(
        D=1.0,
        G=1.0,
        E=2,
        T=1,
        N=1,
        delta=2 / math.e,
    )
    expected = 2 * (2 / 3 + 9 * 2)
    near(c.drift_bound(s, 0.5, 3.0), expected)
    expected = 2 * (2 / 3 + 6 * 2)
    near(c.drift_bound(s, 0.5, 3.0, "direct"), expected)


def setting_of_two_clients(delta):
    """One local step of 2 of 8 clients with noisy constraints, in 100 rounds."""
    return Setting(
        D=1.0,
        G=1.0,
        E=1,
        T=100,
        N=8,
        n=2,
        sigma=0.3,
        delta=delta,
    )


def test_sampled_rate_by_hand_and_below_the_printed_ones():
    s = setting_of_two_clients(delta=0.1)
    rate = c.sampled_rate(s)
    once = c.sampled_rate(s, one_sample=True)
    error = 0.3 * sqrt(log(6000))
    expected = 0.1 + 2 * sqrt(0.01 * log(30)) + error
    near(rate.tolerance, expected)
    near(rate.accuracy - rate.tolerance, error)
    expected = 0.1 + 1.3 * sqrt(log(4000))
    near(once.tolerance, expected)
    assert rate.accuracy < theorem_4(s, "corrected").accuracy
    packed = Setting(**{**vars(s), "q": 0.5, "q0": 0.5})
    assert c.sampled_rate(packed).accuracy < theorem_1_partial(packed).accuracy


def test_noisy_rate_by_hand():
    s = setting_of_two_clients(delta=0.7)
    mean = sqrt(1.5 * log(2000)) * 2
    rate = c.noisy_rate(s, 2.0, 0.8, 4)
    near(rate.gamma, (1 + mean) ** 2 / 2)
    error = sqrt((0.09 + 0.16) * log(2000))
    walks = 2 * sqrt(0.01 * log(10)) + 4 * sqrt(3 / 200 * log(10))
    tolerance = (1 + mean) / 10 + walks + error
    near(rate.tolerance, tolerance)
    near(rate.accuracy, tolerance + error)
