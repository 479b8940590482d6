"""The FedFW bounds: values by hand, corrections, order in t, and measured runs below them."""

from math import log10, sqrt

import pytest

from papers.fedfw import theory
from papers.fedfw import theory_fw as th
from tests.helpers.expect import near

CASE = th.Constants(
    L=2.0,
    D=3.0,
    N=4,
    lam0=0.5,
    dual=1.0,
    slope=0.25,
    spread=1.5,
    sigma=1.0,
)


def test_values_by_hand():
    near(CASE.G, 3.25)
    surrogate = 2 * 4 * 9 * (0.5 / 4 + 0.5 / 2)
    near(th.convex_surrogate(CASE, 3), surrogate)
    root = 3 * sqrt(0.5 * (2 + 2))
    near(th.convex_distance(CASE, 3), 2 * (1 + root))
    later_root = 3 * sqrt(0.5 * (2 / 2 + 2))
    excess = surrogate + 2 * 3.25 * (1 + later_root)
    near(th.convex_excess(CASE, 4), excess)
    gap = (1.5 + 4 * 9 * 0.5 / 2) / 2 + 2 * 9 / 2 / 4
    near(th.nonconvex_surrogate(CASE, 8), gap)
    distance = 3.25 + sqrt(gap)
    near(th.nonconvex_distance(CASE, 8), distance)
    near(th.nonconvex_gap(CASE, 8), gap + (3.25 + 6) * distance)


def test_the_stochastic_bound_by_hand():
    Q = 16 / 4 + 81 * 4 * 9 / 4
    C = 81 / 2 * 4 * 9 * (0.5 + 0.5) + 9 * 2 * 3 * sqrt(Q)
    near(th.stochastic_surrogate(CASE, 1), (9 / 8) ** (1 / 3) * C)


def test_the_corrected_bound_for_some_clients_holds():
    """f(x) = x on [-1, 1] from 1, one client with p = 0.1: the first round mostly does nothing."""
    tiny = th.Constants(L=1e-9, D=2.0, N=1, lam0=1e-9)
    expected = 0.1 * 0 + 0.9 * 2  # of F - F* after the first round, whose step is 1
    assert theory.convex(tiny, 1, share=0.1, start=2.0) >= expected


@pytest.mark.parametrize(
    ("bound", "power"),
    [
        (th.convex_surrogate, 1 / 2),
        (th.convex_distance, 1 / 2),
        (th.convex_excess, 1 / 2),
        (th.nonconvex_surrogate, 1 / 3),
        (th.nonconvex_distance, 1 / 3),
        (th.nonconvex_gap, 1 / 3),
        (th.stochastic_surrogate, 1 / 3),
        (th.stochastic_excess, 1 / 3),
    ],
)
def test_rates(bound, power):
    ratio = bound(CASE, 10**9) / bound(CASE, 10**10)
    near(log10(ratio), power, abs=0.02)
