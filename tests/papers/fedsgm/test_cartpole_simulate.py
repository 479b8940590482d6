"""The batched simulation of cartpole for all ways of mapping it, and the policy network in it."""

import math
from itertools import product

import pytest
import torch
from torch import nn
from torch.func import jvp, vmap
from torch.testing import assert_close

from fedlib import models
from papers.fedsgm.cartpole import simulator as physics
from papers.fedsgm.cartpole.simulator import CartPole, simulate
from tests.helpers.controllers import linear_policy
from tests.helpers.expect import close
from tests.helpers.randoms import generator, normal, uniform

PUSHES = (1.0, -1.0, 0.5, -0.5, 0.8, 0.0, -0.8, 1.2)
POLICIES = torch.stack(
    [linear_policy(push=push, log_std=-1.0, dtype=torch.float64) for push in PUSHES]
)
LEVELS = ((0, 0), (0, None), (None, 0))  # what is mapped: policies and chance, or one of them
#: torch's forward mode warns of itself when it is first used
FORWARD_MODE = pytest.mark.filterwarnings("ignore:`torch.jit.script` is dep:DeprecationWarning")


def simulated(w, chance):
    """One policy in the environments of one client."""
    return simulate(w[None], chance[None, None])[0, 0]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_every_nesting_is_the_loop(depth):
    for levels in product(LEVELS, repeat=depth):
        of_policies = [i for i, (mapped, _) in enumerate(levels) if mapped == 0]
        of_chance = [i for i, (_, mapped) in enumerate(levels) if mapped == 0]
        w = POLICIES[: 2 ** len(of_policies)].view(*[2] * len(of_policies), -1)
        chance = uniform(*[2] * len(of_chance), 14, 2, 5, seed=depth)
        nested = simulated
        for level in reversed(levels):
            nested = vmap(nested, in_dims=level)
        together = nested(w, chance)
        assert together.shape == (*[2] * depth, 15, 2, 8)
        assert (together[..., 7] > 0).any()  # some episodes ended and were started again
        for index in product(range(2), repeat=depth):
            policy = w[tuple(index[i] for i in of_policies)]
            alone = simulated(policy, chance[tuple(index[i] for i in of_chance)])
            close(together[index], alone, 1e-10)


def test_the_operation_is_one_that_torch_knows():
    torch.library.opcheck(
        simulate,
        (POLICIES[:2], uniform(2, 1, 3, 2, 5)),
        test_utils=("test_schema", "test_faketensor"),
    )


def test_a_policy_has_17410_parameters_and_starts_as_documented():
    w = physics.parameters(generator())
    assert w.shape == (17410,)
    *matrices, last, bias = torch.split(w, [*physics.SIZES])
    for tensor, inputs in zip(matrices, (4, 4, 128, 128), strict=True):
        bound = 1 / math.sqrt(inputs)
        assert 0.95 * bound < tensor.abs().max() <= bound
    assert 0.94 < 100 * math.sqrt(128) * last.abs().max() <= 1
    assert bias.tolist() == [0.0, -0.5]


@pytest.fixture
def w():
    return physics.parameters(generator()).double()


@pytest.fixture
def states():
    return uniform(6, 3, 5) - 0.5


def test_a_policy_is_the_network_with_the_same_vector(w, states):
    _, network = models.ravel(models.mlp((4, 128, 128, 2), nn.Tanh).double())
    scaled = states[..., :4] * torch.tensor([1.0, 1, 5, 1])
    outputs = network(w, scaled)
    assert outputs.abs().max() > 0.1
    close(CartPole().policy(w, states), outputs, 1e-14)


@FORWARD_MODE
def test_its_change_is_the_jacobian_times_the_direction(w, states):
    sim = CartPole()
    v = normal(17410)
    _, expected = jvp(lambda u: sim.policy(u, states), (w,), (v,))
    assert_close(sim.policy_change(w, v, states), expected, rtol=1e-12, atol=1e-12)
