"""The distribution of an action against torch's, quadrature and derivatives."""

from functools import partial

import pytest
import torch
from torch.func import grad, jacrev, vmap

from papers.fedsgm.cartpole.trpo import LOG_STD, Gaussian
from tests.helpers.problems import double
from tests.helpers.randoms import uniform

HEAD = Gaussian()


def hessian(f):
    return jacrev(jacrev(f))


def normal(outputs):
    return torch.distributions.Normal(outputs[..., 0], outputs[..., 1].clamp(*LOG_STD).exp())


def outputs_of(*shape, seed=0):
    return 2 * uniform(*shape, 2, seed=seed) - 1.5  # log deviations within the range


def test_log_prob_and_kl_are_those_of_torch():
    old = outputs_of(50)
    new = outputs_of(50, seed=1)
    action = HEAD.sample(old, uniform(50, seed=2))
    p = normal(old)
    q = normal(new)
    assert torch.allclose(HEAD.log_prob(old, action), p.log_prob(action), rtol=1e-10)
    divergence = torch.distributions.kl_divergence(p, q)
    assert torch.allclose(HEAD.kl(old, new), divergence, rtol=1e-8, atol=1e-14)
    assert (HEAD.kl(old, old).abs() < 1e-14).all()


def test_quantiles_are_samples():
    outputs = outputs_of(5)
    u = ((torch.arange(2000, dtype=torch.float64) + 0.5) / 2000).expand(5, 2000)
    action = HEAD.sample(outputs[:, None].expand(5, 2000, 2), u)
    assert torch.allclose(normal(outputs).cdf(action.T).T, u, atol=1e-9)


def test_fisher_is_minus_the_expected_hessian():
    for outputs in outputs_of(4):
        actions = torch.linspace(-30, 30, 6001, dtype=torch.float64)
        weights = 0.01 * HEAD.log_prob(outputs, actions).exp()
        curvature = vmap(hessian(HEAD.log_prob), in_dims=(None, 0))(outputs, actions)
        expected = -(weights[:, None, None] * curvature).sum(0)
        matrix = vmap(partial(HEAD.fisher, outputs))(torch.eye(2, dtype=torch.float64))
        assert torch.allclose(matrix, expected, atol=1e-9)
        assert torch.allclose(
            matrix,
            hessian(partial(HEAD.kl, outputs))(outputs),
            atol=1e-9,
        )


@pytest.mark.parametrize("raw", [LOG_STD[0] - 0.1, LOG_STD[1] + 0.1])
def test_a_clamped_deviation_does_not_move(raw):
    outputs = double(0.3, raw)
    direction = double(0.0, 1.0)
    assert not HEAD.fisher(outputs, direction).any()
    slope = grad(HEAD.log_prob)(outputs, torch.tensor(1.0, dtype=torch.float64))
    assert slope[1] == 0
    assert slope[0] != 0
