"""The theorems' constants against numbers worked out by hand, identities and reductions."""

import itertools
import math

import pytest

from papers.fedsgm import gamma, theory
from papers.fedsgm.theory import Setting

GRID = [(1, 1), (2, 50), (5, 100), (10, 1000)]


def by_hand_gamma_partial(third):
    """50 + second + third + 20E/q^2 + fifth at E=5, q=q0=0.1, N/n=2, from pencil and paper."""
    second = 160 * math.sqrt(8.1) / 0.001  # 16 * 5 * 2 = 160, sqrt(10 * 0.9 * 0.9)
    return 50 + second + third + 10_000 + 12_000


def test_gammas_of_the_paper_setting():
    printed = gamma.gamma_partial(5, 0.1, 0.1, 2.0)
    assert printed == pytest.approx(by_hand_gamma_partial(12_000))
    assert printed == pytest.approx(4.89e5, rel=1e-3)
    corrected = gamma.gamma_partial(5, 0.1, 0.1, 2.0, "corrected")
    expected = by_hand_gamma_partial(400_000 * math.sqrt(0.9))
    assert corrected == pytest.approx(expected)
    assert corrected == pytest.approx(8.57e5, rel=1e-3)
    direct = gamma.gamma_partial_direct(5, 0.1, 0.1, 2.0)
    assert direct == pytest.approx(50 + 6000 + 10_000 + 12_000)
    feedback = gamma.gamma_feedback(5, 0.1, 0.1)
    expected = 50 + 100 * math.sqrt(0.9) + 6000
    assert feedback == pytest.approx(expected)
    assert gamma.gamma_unbiased(5, 9.0, 10) == pytest.approx(52.25)


def test_theorem_3_is_its_printed_formula():
    rate = theory.theorem_3(Setting(D=2.0, G=3.0, E=4, T=100))
    expected = math.sqrt(4 * 4 * 9 * 4 / 100)
    assert rate.tolerance == pytest.approx(expected)
    expected = math.sqrt(4 / (4 * 9 * 64 * 100))
    assert rate.lr == pytest.approx(expected)
    assert rate.beta == math.inf
    assert rate.accuracy == rate.tolerance


@pytest.mark.parametrize(("E", "T"), GRID)
def test_bound_is_the_regret_at_the_best_step_size(E, T):
    for D, G, g in itertools.product((0.5, 3.0), (1.0, 7.0), (0.5, 50.0)):
        best = theory.bound(D, G, E, T, g)
        lr = theory.step_size(D, G, E, T, g)
        assert gamma.regret_bound(D, G, E, T, g, lr) == pytest.approx(best, rel=1e-12)
        assert lr * G**2 * g == pytest.approx(best / 2, rel=1e-12)  # the two terms balance
        for factor in (0.9, 1.1):
            assert gamma.regret_bound(D, G, E, T, g, lr * factor) > best


@pytest.mark.parametrize("E", [1, 2, 5, 10, 100])
def test_the_three_gammas_without_compression_are_ordered(E):
    direct = gamma.gamma_local(E, "direct")
    proved = gamma.gamma_local(E, "proved")
    assert 0 < direct <= proved <= gamma.gamma_local(E, "stated")


def test_the_direct_gamma_has_no_root_of_e():
    assert theory.bound(
        2.0,
        3.0,
        1,
        100,
        gamma.gamma_local(1, "direct"),
    ) == pytest.approx(0.6)
    for E in (1, 10, 1000):
        accuracy = theory.bound(1.0, 1.0, E, 1, gamma.gamma_local(E, "direct"))
        assert accuracy == pytest.approx(math.sqrt(3 - 2 / E))


@pytest.mark.parametrize("q", [0.01, 0.1, 0.5, 0.9, 1.0])
def test_residual_limit_is_the_fixed_point_of_the_recursion(q):
    x = gamma.residual_limit(q)
    following = 0.0
    if q < 1:
        young = q / (2 * (1 - q))
        following = (1 - q) * ((1 + young) * x + 1 + 1 / young)
    assert x == pytest.approx(following, rel=1e-12, abs=1e-15)
    assert x <= 4 * (1 - q) / q**2 + 1e-15
    assert gamma.residual_limit(0.1) == pytest.approx(342.0)


def test_reductions_without_compression():
    plain = Setting(D=1.0, G=2.0, E=3, T=50)
    assert theory.theorem_6(plain) == theory.theorem_3(plain)
    assert theory.workshop_theorem_1(plain) == theory.theorem_3(plain)
    for version in ("printed", "corrected"):
        assert theory.theorem_2(plain, version) == theory.theorem_5(plain, version)


def test_partial_gamma_does_not_reduce():
    """At q = q0 = 1 the term 20 E stays, at n = N Theorem 6's is not reached."""
    for version in ("printed", "corrected"):
        assert gamma.gamma_partial(4, 1.0, 1.0, 1.0, version) == 32 + 20 * 4
        compressed = gamma.gamma_partial(4, 0.5, 0.5, 1.0, version)
        assert compressed > gamma.gamma_feedback(4, 0.5, 0.5)


@pytest.mark.parametrize("q", [0.01, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("q0", [0.01, 0.1, 0.5, 1.0])
def test_the_direct_partial_gamma_is_below_the_printed_one(q, q0):
    for E, ratio in itertools.product((1, 5), (1.0, 2.0, 10.0)):
        direct = gamma.gamma_partial_direct(E, q, q0, ratio)
        printed = gamma.gamma_partial(E, q, q0, ratio)
        corrected = gamma.gamma_partial(E, q, q0, ratio, "corrected")
        assert direct <= printed <= corrected * (1 + 1e-12)


def test_soft_switching_needs_a_tolerance_above_the_bound():
    s = Setting(D=1.0, G=1.0, E=5, T=1000)
    b = theory.bound(1.0, 1.0, 5, 1000, gamma.gamma_local(5))
    assert gamma.soft_beta(theory.theorem_5(s).tolerance, b) == math.inf
    corrected = theory.theorem_5(s, "corrected")
    assert corrected.tolerance == pytest.approx(2 * b)
    assert corrected.beta == pytest.approx(1 / b)
    assert gamma.soft_beta(corrected.tolerance, b) == pytest.approx(1 / b)


@pytest.mark.parametrize(("E", "factor"), [(1, 24.0), (5, 2.62)])
def test_the_printed_soft_tolerance_needs_a_sharper_beta(E, factor):
    """Erratum E1, second repair: keep tolerance and step, use the proof's own Gamma_0."""
    rate = theory.theorem_5(Setting(D=1.0, G=1.0, E=E, T=100))
    regret = gamma.regret_bound(
        1.0,
        1.0,
        E,
        100,
        gamma.gamma_local(E, "proved"),
        rate.lr,
    )
    beta = gamma.soft_beta(rate.tolerance, regret)
    assert beta * rate.tolerance == pytest.approx(factor, rel=2e-3)


def test_sampling_terms_by_hand():
    s = Setting(D=2.0, G=1.0, E=1, T=100, N=8, n=4, sigma=0.5, delta=3 / math.e**2)
    root, walk = math.sqrt(4 * 4 / 100), 8 / 20 * 2  # log(3/delta) = 2, sqrt(2 * 2) = 2
    error = 0.5 * math.sqrt(0.5 * (2 + math.log(200)))  # 6T/delta = 200 * 3/delta
    printed = theory.theorem_4(s)
    corrected = theory.theorem_4(s, "corrected")
    expected = root + walk + 2 * error
    assert printed.tolerance == pytest.approx(expected)
    assert printed.accuracy == printed.tolerance
    assert corrected.tolerance == pytest.approx(root + walk + error)
    assert corrected.accuracy == pytest.approx(printed.accuracy)


def test_theorem_1_partial_reports_its_own_excess():
    s = Setting(D=1.0, G=1.0, E=1, T=100, N=4, n=2, q=0.5, sigma=1.0, delta=0.1)
    rate = theory.theorem_1_partial(s)
    expected = math.sqrt(1.5 * math.log(1000))
    assert rate.accuracy - rate.tolerance == pytest.approx(expected)
    boundary = 2 * 2 * math.sqrt(0.5) / (0.5 * 100)
    walk = 4 / math.sqrt(200) * math.sqrt(2 * math.log(30))
    error = math.sqrt(math.log(6000))
    base = theory.bound(1.0, 1.0, 1, 100, rate.gamma)
    expected = base + boundary + walk + 2 * error
    assert rate.tolerance == pytest.approx(expected)
    assert theory.theorem_1_partial(s, "corrected").accuracy < rate.accuracy


def test_theorem_9_by_hand_and_without_noise():
    s = Setting(D=1.0, G=2.0, E=2, T=50, N=4, n=2, delta=0.1)
    rate = theory.theorem_9(s, sigma_xi=1.0, sigma_b=3.0, value_batch=9)
    effective = 3 * 4 * 4 + 4 * (1 + math.log(28_000)) + 2 * (8 + 1) * math.log(14_000)
    assert rate.gamma * 4 == pytest.approx(effective)
    expected = math.sqrt(1 / (2 * effective * 100))
    assert rate.lr == pytest.approx(expected)
    walk = 8 * math.sqrt(0.02 * math.log(70)) + 2 * math.sqrt(0.01 * math.log(70))
    error = 2 * math.sqrt(math.log(7000))
    expected = math.sqrt(2 * effective / 100) + walk + error
    assert rate.tolerance == pytest.approx(expected)
    assert theory.theorem_9(s, 0.0, 0.0, 1).gamma > 3 * 4


def test_theorem_10_adds_the_curvature():
    s = Setting(D=2.0, G=1.0, E=2, T=50, N=4, n=4, sigma=0.3)
    flat = theory.theorem_10(s, 0.0, multiplier=1.0)
    bent = theory.theorem_10(s, 2.0, multiplier=1.0)
    expected = 4 * 2 / (8 * 2 * 50)
    assert bent.tolerance - flat.tolerance == pytest.approx(expected)
    error = 0.3 * math.sqrt(0.5 * math.log(8000)) * 2
    walk = 8 / math.sqrt(200) * math.sqrt(2 * math.log(80))
    root = math.sqrt(4 * 4 * 2 / 50)
    expected = root + walk + 2 * error
    assert flat.accuracy == pytest.approx(expected)
    corrected = theory.theorem_10(s, 0.0, 1.0, "corrected")
    assert corrected.tolerance == pytest.approx(flat.accuracy - error)
