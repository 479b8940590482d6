"""The batched simulation of cartpole for all ways of mapping it, and the policy network in it."""

import math
from itertools import product

import pytest
import torch
from torch import nn
from torch.func import jvp, vmap

from fedlib import models
from papers.fedsgm.cartpole import simulator as physics
from papers.fedsgm.cartpole.simulator import CartPole, simulate
from tests.helpers.controllers import linear_policy
from tests.helpers.randoms import generator, uniform

#: torch's forward mode warns of itself when it is first used
FORWARD_MODE = pytest.mark.filterwarnings("ignore:`torch.jit.script` is dep:DeprecationWarning")


class TestSimulate:
    """The custom operation, for all ways of batching it, against the loop."""

    policies = torch.stack([
        linear_policy(push=push, log_std=-1.0, dtype=torch.float64)
        for push in (1.0, -1.0, 0.5, -0.5, 0.8, 0.0, -0.8, 1.2)
    ])  # fmt: skip

    @staticmethod
    def one(w, chance):
        return simulate(w[None], chance[None, None])[0, 0]

    def looped(self, levels, w, chance):
        if not levels:
            return self.one(w, chance)
        w_in, chance_in = levels[0]
        size = len(w) if w_in is not None else len(chance)
        results = []
        for i in range(size):
            w_i = w if w_in is None else w[i]
            chance_i = chance if chance_in is None else chance[i]
            results.append(self.looped(levels[1:], w_i, chance_i))
        return torch.stack(results)

    @pytest.mark.parametrize("depth", [1, 2, 3])
    def test_every_nesting_is_the_loop(self, depth):
        for levels in product(((0, 0), (0, None), (None, 0)), repeat=depth):
            shape = [[2] * sum(level[k] is not None for level in levels) for k in (0, 1)]
            w = self.policies[: 2 ** len(shape[0])].view(*shape[0], -1)
            chance = uniform(*shape[1], 14, 2, 5, seed=depth)
            mapped = self.one
            for level in reversed(levels):
                mapped = vmap(mapped, in_dims=level)
            together = mapped(w, chance)
            alone = self.looped(levels, w, chance)
            assert together.shape == alone.shape == (*[2] * depth, 15, 2, 8)
            assert torch.allclose(
                together,
                alone,
                rtol=0,
                atol=1e-10,
            ), levels
            assert (alone[..., 7] > 0).any()  # some episodes ended and were started again

    def test_op_check(self):
        torch.library.opcheck(
            simulate,
            (self.policies[:2], uniform(2, 1, 3, 2, 5)),
            test_utils=("test_schema", "test_faketensor"),
        )


class TestPolicy:
    def network(self):
        return models.mlp((4, 128, 128, 2), nn.Tanh).double()

    def test_has_17410_parameters_and_starts_as_documented(self):
        w = physics.parameters(generator())
        assert w.shape == models.ravel(self.network())[0].shape == (17410,)
        assert torch.equal(w, physics.parameters(generator()))
        tensors = torch.split(w, list(physics.SIZES))
        for tensor, inputs in zip(tensors[:4], (4, 4, 128, 128), strict=True):
            bound = 1 / math.sqrt(inputs)
            assert 0.95 * bound < tensor.abs().max() <= bound
        assert 0.94 < 100 * math.sqrt(128) * tensors[4].abs().max() <= 1
        assert torch.equal(tensors[5], torch.tensor([0.0, -0.5]))

    def test_is_the_network_with_the_same_vector(self):
        w = physics.parameters(generator()).double()
        states = uniform(6, 3, 5) - 0.5
        seen = states[..., :4] * torch.tensor([1.0, 1, 5, 1])
        expected = models.ravel(self.network())[1](w, seen)
        assert torch.allclose(
            CartPole().policy(w, states),
            expected,
            rtol=0,
            atol=1e-14,
        )
        assert expected.abs().max() > 0.1

    @FORWARD_MODE
    def test_change_is_the_jacobian_times_the_direction(self):
        sim = CartPole()
        states = uniform(6, 3, 5) - 0.5
        w = physics.parameters(generator()).double()
        v = torch.randn(17410, generator=generator(1), dtype=torch.float64)
        expected = jvp(lambda u: sim.policy(u, states), (w,), (v,))[1]
        assert torch.allclose(
            sim.policy_change(w, v, states),
            expected,
            rtol=1e-12,
        )
