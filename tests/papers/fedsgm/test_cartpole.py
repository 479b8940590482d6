"""Constrained cartpole: physics against Gymnasium's, costs at hand-made states, episodes."""

import math

import gymnasium
import numpy as np
import pytest
import torch

from fedlib.core.problem import Batch
from papers.fedsgm.cartpole import simulator as cart
from papers.fedsgm.cartpole.simulator import CartPole, cartpole, ends, forbidden, step
from tests.helpers.controllers import BALANCE, linear_policy
from tests.helpers.expect import close
from tests.helpers.randoms import generator, uniform

SAFE = 6 * math.pi / 180
LIMIT = cart.MAX_ANGLE
both_sides = pytest.mark.parametrize("sign", [1, -1])


def state_at(x=0.0, angle=0.0, dtype=torch.float64):
    return torch.tensor([x, 0.0, angle, 0.0], dtype=dtype)


def balanced(state):
    """Whether to push to the right, so that the pole stands."""
    gains = torch.tensor(BALANCE, dtype=torch.float64)
    return float(state @ gains) > 0


def steps_beside_gymnasium(start, is_to_the_right):
    """An episode in both simulators: how many steps, the largest error, whether the pole fell."""
    theirs = gymnasium.make("CartPole-v1").unwrapped
    theirs.reset(seed=0)
    theirs.state = start.numpy()
    state = start
    error = 0.0
    for count in range(1, cart.HORIZON + 1):
        right = is_to_the_right(state)
        force = torch.tensor(10.0 if right else -10.0, dtype=torch.float64)
        state = step(state, force)
        is_over = theirs.step(int(right))[2]
        error = max(error, np.abs(state.numpy() - theirs.state).max())
        assert is_over == any(map(bool, ends(state)))
        if is_over:
            return count, error, True
    return cart.HORIZON, error, False


def test_a_balanced_pole_is_gymnasiums():
    for start in 0.1 * uniform(20, 4) - 0.05:
        count, error, has_fallen = steps_beside_gymnasium(start, balanced)
        assert count == 200
        assert not has_fallen
        assert error < 1e-9  # errors grow, the pole is unstable


def test_a_pole_that_falls_is_gymnasiums():
    rng = generator(1)

    def by_chance(_state):
        return float(torch.rand((), generator=rng)) < 0.5

    for start in 0.1 * uniform(20, 4) - 0.05:
        _, error, has_fallen = steps_beside_gymnasium(start, by_chance)
        assert has_fallen
        assert error < 1e-13


@both_sides
@pytest.mark.parametrize(
    ("x", "angle", "expected"),
    [
        (2.4, 0, (False, False)),
        (2.4 + 1e-9, 0, (True, False)),
        (0, LIMIT, (False, False)),
        (0, LIMIT + 1e-9, (False, True)),
        (3, 1, (True, True)),
    ],
)
def test_where_an_episode_ends(sign, x, angle, expected):
    state = state_at(sign * x, sign * angle)
    assert tuple(map(bool, ends(state))) == expected


@both_sides
@pytest.mark.parametrize(("dtype", "ulp"), [(torch.float64, 0.0), (torch.float32, 2.4e-7)])
def test_forbidden_intervals_have_their_end_points(sign, dtype, ulp):
    for x in (0, 0.05, 0.1, 1.1 + ulp, 1.2, 1.3 - ulp, 2.2 + ulp, 2.3, 2.4 - ulp):
        assert forbidden(state_at(sign * x, dtype=dtype)), x
    for x in (0.1001, 0.6, 1.0999, 1.3001, 1.7, 2.1999, 2.4001, 2.5):
        assert not forbidden(state_at(sign * x, dtype=dtype)), x


@both_sides
def test_the_pole_beyond_six_degrees_is_forbidden(sign):
    assert not forbidden(state_at(0.6, sign * SAFE))
    assert forbidden(state_at(0.6, sign * (SAFE + 1e-9)))


def test_a_balanced_pole_stands_to_the_horizon():
    sim = CartPole(steps=400, environments=3)
    chance = sim.chance(1, generator())[0]
    episodes = sim.episodes(linear_policy(), chance)
    assert episodes.states.shape == (401, 3, 5)
    assert (episodes.ended[[199, 399]] == 1).all()
    assert episodes.ended.sum() == 2 * 3
    assert episodes.per_episode(episodes.reward) == 200
    assert 160 < episodes.per_episode(episodes.cost) < 190


def test_restarts_come_from_the_chance_of_their_step():
    sim = CartPole(environments=4)
    chance = sim.chance(1, generator())[0]
    starts = 0.1 * chance[..., :4] - 0.05
    policy = linear_policy(push=1.0, log_std=0.0)
    episodes = sim.episodes(policy, chance)
    close(episodes.states[0, :, :4], starts[0], 1e-7)
    ended = episodes.ended[:-1].bool()
    assert 40 < ended.sum() < 120
    fresh = episodes.states[1:-1][ended]
    close(fresh[:, :4], starts[1:][ended], 1e-7)
    assert not fresh[:, 4].any()


def test_states_costs_and_ends_are_those_of_the_step_function():
    sim = CartPole(environments=4)
    chance = uniform(200, 4, 5)
    w = linear_policy((0, 0, 1.0, 0.2), log_std=-0.5, dtype=torch.float64)
    episodes = sim.episodes(w, chance)
    state = episodes.states[:-1, :, :4]
    time = episodes.states[:-1, :, 4]
    reached = step(state, 10 * episodes.action.clamp(-1, 1))
    outside, fallen = ends(reached)
    ended = outside | fallen | (time == 199)
    assert torch.equal(episodes.ended.bool(), ended)
    assert torch.equal(episodes.cost.bool(), forbidden(reached))
    following = episodes.states[1:, :, :4]
    assert torch.equal(following[~ended], reached[~ended])
    drawn = sim.head.sample(sim.policy(w, state), chance[..., 4])
    close(episodes.action, drawn, 1e-9)


def test_budgets_of_the_clients():
    problem = cartpole(3, clients=5, environments=2, evaluation=20)
    assert problem.dim == 17410
    assert problem.data[0].tolist() == [25.0, 27.5, 30, 32.5, 35]
    assert cartpole(3, clients=1).data[0].tolist() == [30.0]
    assert {*problem.metrics(problem.w0, problem)} == {"reward", "cost"}


def test_losses_are_those_of_an_episode():
    problem = cartpole(3, clients=5, environments=2, evaluation=20)
    chance = problem.simulator.chance(1, generator())[0]
    batch = Batch((torch.tensor([25.0]), chance), torch.ones(1))
    objective, constraint = problem.losses(problem.w0, batch)
    episodes = problem.simulator.episodes(problem.w0, chance)
    assert objective == -episodes.per_episode(episodes.reward)
    assert constraint == episodes.per_episode(episodes.cost) - 25
