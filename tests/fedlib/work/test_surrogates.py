"""The averaged quadratics of successive convex approximation."""

import pytest
import torch

from fedlib.work.surrogates import Surrogate
from tests.helpers.expect import close

DIM = 5


def normal(rng, *shape):
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def test_the_average_is_the_sum_of_its_quadratics():
    rng = torch.Generator().manual_seed(0)
    K = 2
    tau = 0.3
    rhos = (0.4, 0.7, 0.2)
    surrogate = Surrogate.zero(normal(rng, DIM), K)
    weights = []
    seen = []
    for rho in rhos:
        w = normal(rng, DIM)
        g = normal(rng, K, DIM)
        v = normal(rng, K)
        surrogate = surrogate.averaged(w, g, v, rho=rho, tau=tau)
        weights = [(1 - rho) * x for x in weights] + [rho]
        seen.append((w, g, v))
    assert (
        surrogate.kappa.item() == pytest.approx(sum(weights)) == pytest.approx(1 - 0.6 * 0.3 * 0.8)
    )
    at = normal(rng, DIM)
    expected = sum(
        c * (v + g @ (at - w) + tau * (at - w) @ (at - w))
        for c, (w, g, v) in zip(weights, seen, strict=True)
    )
    kept = surrogate.constant + surrogate.linear @ at + surrogate.kappa * tau * at @ at
    close(kept, expected)
    exact = surrogate.debiased()
    close(exact.constant + exact.linear @ at + tau * at @ at, expected / surrogate.kappa)
