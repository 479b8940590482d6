"""The theorems' constants against numbers worked out by hand, identities and reductions."""

import itertools
from math import e, inf, log, sqrt

import pytest

from papers.fedsgm import gamma, theory
from papers.fedsgm.theory import Setting
from tests.helpers.expect import near

GRID = [(1, 1), (2, 50), (5, 100), (10, 1000)]


def by_hand_gamma_partial(third):
    """50 + second + third + 20E/q^2 + fifth at E=5, q=q0=0.1, N/n=2, from pencil and paper."""
    second = 160 * sqrt(8.1) / 0.001  # 16 * 5 * 2 = 160, sqrt(10 * 0.9 * 0.9)
    return 50 + second + third + 10_000 + 12_000


def test_gammas_of_the_paper_setting():
    printed = gamma.gamma_partial(5, 0.1, 0.1, 2.0)
    near(printed, by_hand_gamma_partial(12_000))
    near(printed, 4.89e5, rel=1e-3)
    corrected = gamma.gamma_partial(5, 0.1, 0.1, 2.0, "corrected")
    expected = by_hand_gamma_partial(400_000 * sqrt(0.9))
    near(corrected, expected)
    near(corrected, 8.57e5, rel=1e-3)
    direct = gamma.gamma_partial_direct(5, 0.1, 0.1, 2.0)
    near(direct, 50 + 6000 + 10_000 + 12_000)
    feedback = gamma.gamma_feedback(5, 0.1, 0.1)
    expected = 50 + 100 * sqrt(0.9) + 6000
    near(feedback, expected)
    near(gamma.gamma_unbiased(5, 9.0, 10), 52.25)


def test_theorem_3_is_its_printed_formula():
    rate = theory.theorem_3(Setting(D=2.0, G=3.0, E=4, T=100))
    expected = sqrt(4 * 4 * 9 * 4 / 100)
    near(rate.tolerance, expected)
    expected = sqrt(4 / (4 * 9 * 64 * 100))
    near(rate.lr, expected)
    assert rate.beta == inf
    assert rate.accuracy == rate.tolerance


@pytest.mark.parametrize(("E", "T"), GRID)
def test_bound_is_the_regret_at_the_best_step_size(E, T):
    for D, G, g in itertools.product((0.5, 3.0), (1.0, 7.0), (0.5, 50.0)):
        best = theory.bound(D, G, E, T, g)
        lr = theory.step_size(D, G, E, T, g)
        near(gamma.regret_bound(D, G, E, T, g, lr), best, rel=1e-12)
        near(lr * G**2 * g, best / 2, rel=1e-12)  # the two terms balance
        for factor in (0.9, 1.1):
            regret = gamma.regret_bound(D, G, E, T, g, lr * factor)
            assert regret > best


def test_reductions_without_compression():
    plain = Setting(D=1.0, G=2.0, E=3, T=50)
    assert theory.theorem_6(plain) == theory.theorem_3(plain)
    assert theory.workshop_theorem_1(plain) == theory.theorem_3(plain)
    for version in ("printed", "corrected"):
        assert theory.theorem_2(plain, version) == theory.theorem_5(plain, version)


def test_soft_switching_needs_a_tolerance_above_the_bound():
    s = Setting(D=1.0, G=1.0, E=5, T=1000)
    b = theory.bound(
        1.0,
        1.0,
        5,
        1000,
        gamma.gamma_local(5),
    )
    assert gamma.soft_beta(theory.theorem_5(s).tolerance, b) == inf
    corrected = theory.theorem_5(s, "corrected")
    near(corrected.tolerance, 2 * b)
    near(corrected.beta, 1 / b)
    near(gamma.soft_beta(corrected.tolerance, b), 1 / b)


def test_sampling_terms_by_hand():
    s = Setting(
        D=2.0,
        G=1.0,
        E=1,
        T=100,
        N=8,
        n=4,
        sigma=0.5,
        delta=3 / e**2,
    )
    root = sqrt(4 * 4 / 100)
    walk = 8 / 20 * 2  # log(3/delta) = 2, sqrt(2 * 2) = 2
    error = 0.5 * sqrt(0.5 * (2 + log(200)))  # 6T/delta = 200 * 3/delta
    printed = theory.theorem_4(s)
    corrected = theory.theorem_4(s, "corrected")
    expected = root + walk + 2 * error
    near(printed.tolerance, expected)
    assert printed.accuracy == printed.tolerance
    near(corrected.tolerance, root + walk + error)
    near(corrected.accuracy, printed.accuracy)


def test_theorem_1_partial_reports_its_own_excess():
    s = Setting(
        D=1.0,
        G=1.0,
        E=1,
        T=100,
        N=4,
        n=2,
        q=0.5,
        sigma=1.0,
        delta=0.1,
    )
    rate = theory.theorem_1_partial(s)
    expected = sqrt(1.5 * log(1000))
    near(rate.accuracy - rate.tolerance, expected)
    boundary = 2 * 2 * sqrt(0.5) / (0.5 * 100)
    walk = 4 / sqrt(200) * sqrt(2 * log(30))
    error = sqrt(log(6000))
    base = theory.bound(1.0, 1.0, 1, 100, rate.gamma)
    expected = base + boundary + walk + 2 * error
    near(rate.tolerance, expected)
    assert theory.theorem_1_partial(s, "corrected").accuracy < rate.accuracy


def test_theorem_9_by_hand_and_without_noise():
    s = Setting(
        D=1.0,
        G=2.0,
        E=2,
        T=50,
        N=4,
        n=2,
        delta=0.1,
    )
    rate = theory.theorem_9(s, sigma_xi=1.0, sigma_b=3.0, value_batch=9)
    effective = 3 * 4 * 4 + 4 * (1 + log(28_000)) + 2 * (8 + 1) * log(14_000)
    near(rate.gamma * 4, effective)
    expected = sqrt(1 / (2 * effective * 100))
    near(rate.lr, expected)
    walk = 8 * sqrt(0.02 * log(70)) + 2 * sqrt(0.01 * log(70))
    error = 2 * sqrt(log(7000))
    expected = sqrt(2 * effective / 100) + walk + error
    near(rate.tolerance, expected)
    assert theory.theorem_9(s, 0.0, 0.0, 1).gamma > 3 * 4


def test_theorem_10_adds_the_curvature():
    s = Setting(
        D=2.0,
        G=1.0,
        E=2,
        T=50,
        N=4,
        n=4,
        sigma=0.3,
    )
    flat = theory.theorem_10(s, 0.0, multiplier=1.0)
    bent = theory.theorem_10(s, 2.0, multiplier=1.0)
    expected = 4 * 2 / (8 * 2 * 50)
    near(bent.tolerance - flat.tolerance, expected)
    error = 0.3 * sqrt(0.5 * log(8000)) * 2
    walk = 8 / sqrt(200) * sqrt(2 * log(80))
    root = sqrt(4 * 4 * 2 / 50)
    expected = root + walk + 2 * error
    near(flat.accuracy, expected)
    corrected = theory.theorem_10(s, 0.0, 1.0, "corrected")
    near(corrected.tolerance, flat.accuracy - error)
