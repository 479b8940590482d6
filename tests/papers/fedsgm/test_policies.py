"""Heads of a policy network against torch's distributions, quadrature and derivatives."""

from functools import partial

import pytest
import torch
from randoms import uniform
from torch.func import grad, jacrev, vmap

from papers.fedsgm.cartpole.trpo import LOG_STD, Gaussian, Head, Logits

HEADS = {"gaussian": Gaussian(), "logits": Logits()}
heads = pytest.mark.parametrize("name", HEADS)


def hessian(f):
    return jacrev(jacrev(f))


def torch_distribution(name, outputs):
    if name == "logits":
        return torch.distributions.Categorical(logits=outputs)
    return torch.distributions.Normal(outputs[..., 0], outputs[..., 1].clamp(*LOG_STD).exp())


def outputs_of(*shape, seed=0):
    return 2 * uniform(*shape, 2, seed=seed) - 1.5  # log deviations within the range


class TestHeads:
    @heads
    def test_log_prob_and_kl_are_those_of_torch(self, name):
        head, old, new = HEADS[name], outputs_of(50), outputs_of(50, seed=1)
        action = head.sample(old, uniform(50, seed=2))
        p, q = torch_distribution(name, old), torch_distribution(name, new)
        assert torch.allclose(head.log_prob(old, action), p.log_prob(action), rtol=1e-10)
        assert torch.allclose(
            head.kl(old, new), torch.distributions.kl_divergence(p, q), rtol=1e-8, atol=1e-14
        )
        assert (head.kl(old, old).abs() < 1e-14).all()
        assert isinstance(head, Head)

    @heads
    def test_probabilities_sum_to_one(self, name):
        outputs = outputs_of(7)
        if name == "logits":
            total = sum(HEADS[name].log_prob(outputs, torch.tensor(a)).exp() for a in (0.0, 1.0))
        else:
            x = torch.linspace(-40, 40, 80001, dtype=torch.float64)
            density = HEADS[name].log_prob(outputs[:, None], x[None]).exp()
            total = torch.trapezoid(density, x, dim=1)
        assert torch.allclose(total, torch.ones(7, dtype=torch.float64), atol=1e-10)

    @heads
    def test_quantiles_are_samples(self, name):
        head, outputs = HEADS[name], outputs_of(5)
        u = (torch.arange(20000, dtype=torch.float64) + 0.5) / 20000
        action = head.sample(outputs[:, None].expand(5, 20000, 2), u.expand(5, 20000))
        p = torch_distribution(name, outputs)
        mean = torch.softmax(outputs, -1)[:, 1] if name == "logits" else p.mean
        assert torch.allclose(action.mean(1), mean, atol=1e-4)
        if name == "gaussian":
            assert torch.allclose(p.cdf(action.T).T, u.expand(5, 20000), atol=1e-9)

    @heads
    def test_fisher_is_minus_the_expected_hessian(self, name):
        head = HEADS[name]
        for outputs in outputs_of(4):
            if name == "logits":
                actions = torch.tensor([0.0, 1.0], dtype=torch.float64)
                weights = head.log_prob(outputs, actions).exp()
            else:
                actions = torch.linspace(-30, 30, 6001, dtype=torch.float64)
                weights = 0.01 * head.log_prob(outputs, actions).exp()
            curvature = vmap(hessian(head.log_prob), in_dims=(None, 0))(outputs, actions)
            expected = -(weights[:, None, None] * curvature).sum(0)
            matrix = vmap(partial(head.fisher, outputs))(torch.eye(2, dtype=torch.float64))
            assert torch.allclose(matrix, expected, atol=1e-9)
            assert torch.allclose(matrix, hessian(partial(head.kl, outputs))(outputs), atol=1e-9)

    @pytest.mark.parametrize("raw", [LOG_STD[0] - 0.1, LOG_STD[1] + 0.1])
    def test_a_clamped_deviation_does_not_move(self, raw):
        outputs = torch.tensor([0.3, raw], dtype=torch.float64)
        one = torch.tensor([0.0, 1.0], dtype=torch.float64)
        assert torch.equal(Gaussian().fisher(outputs, one), torch.zeros_like(one))
        slope = grad(Gaussian().log_prob)(outputs, torch.tensor(1.0, dtype=torch.float64))
        assert slope[1] == 0
        assert slope[0] != 0


def test_an_action_of_probability_zero_is_never_taken_and_one_of_probability_one_always():
    never, always = torch.tensor([1e9, -1e9]), torch.tensor([-1e9, 1e9])
    for u in (0.0, 0.5, 1 - 2**-24):
        assert HEADS["logits"].sample(never, torch.tensor(u)) == 0
        assert HEADS["logits"].sample(always, torch.tensor(u)) == 1
