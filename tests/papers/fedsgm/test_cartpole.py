"""Constrained cartpole: physics against Gymnasium's, costs at hand-made states, episodes."""

import math

import gymnasium
import numpy as np
import pytest
import torch

from fedlib.core.problem import Batch
from papers.fedsgm.cartpole import simulator as cart
from papers.fedsgm.cartpole.simulator import CartPole, cartpole, ends, forbidden, step
from papers.fedsgm.cartpole.trpo import Episodes
from tests.helpers.controllers import BALANCE, linear_policy
from tests.helpers.randoms import generator, uniform

SAFE = 6 * math.pi / 180


def state_at(x=0.0, angle=0.0, dtype=torch.float64):
    return torch.tensor([x, 0.0, angle, 0.0], dtype=dtype)


class TestPhysics:
    @pytest.mark.parametrize("balanced", [False, True])
    def test_is_the_cartpole_of_gymnasium_step_by_step(self, balanced):
        rng = generator(1)
        theirs = gymnasium.make("CartPole-v1").unwrapped
        gains = torch.tensor(BALANCE, dtype=torch.float64)
        largest_error = 0.0
        steps = 0
        fallen = 0
        for start in 0.1 * uniform(20, 4) - 0.05:
            ours = start
            theirs.reset(seed=0)
            theirs.state = start.numpy()
            for _ in range(cart.HORIZON):
                coin = float(torch.rand((), generator=rng)) < 0.5
                right = float(ours @ gains) > 0 if balanced else coin
                ours = step(ours, torch.tensor(20.0 * right - 10, dtype=torch.float64))
                is_over = theirs.step(int(right))[2]
                error = np.abs(ours.numpy() - theirs.state).max()
                largest_error = max(largest_error, float(error))
                assert is_over == bool(torch.stack(ends(ours)).any())
                steps += 1
                if is_over:
                    fallen += 1
                    break
        if balanced:
            assert largest_error < 1e-9  # errors grow, the pole is unstable
            assert (steps, fallen) == (4000, 0)
        else:
            assert largest_error < 1e-13
            assert fallen == 20

    @pytest.mark.parametrize("sign", [1, -1])
    def test_ends(self, sign):
        limit = cart.MAX_ANGLE
        for x, angle, expected in (
            (2.4, 0, (False, False)),
            (2.4 + 1e-9, 0, (True, False)),
            (0, limit, (False, False)),
            (0, limit + 1e-9, (False, True)),
            (3, 1, (True, True)),
        ):
            assert tuple(map(bool, ends(state_at(sign * x, sign * angle)))) == expected


class TestCost:
    @pytest.mark.parametrize("sign", [1, -1])
    def test_intervals_with_their_end_points(self, sign):
        for dtype, ulp in ((torch.float64, 0.0), (torch.float32, 2.4e-7)):
            for x in (0, 0.05, 0.1, 1.1 + ulp, 1.2, 1.3 - ulp, 2.2 + ulp, 2.3, 2.4 - ulp):
                assert forbidden(state_at(sign * x, dtype=dtype)), x
            for x in (0.1001, 0.6, 1.0999, 1.3001, 1.7, 2.1999, 2.4001, 2.5):
                assert not forbidden(state_at(sign * x, dtype=dtype)), x

    @pytest.mark.parametrize("sign", [1, -1])
    def test_the_pole_beyond_six_degrees(self, sign):
        assert not forbidden(state_at(0.6, sign * SAFE))
        assert forbidden(state_at(0.6, sign * (SAFE + 1e-9)))
        assert not forbidden(state_at(0.6, sign * 0.999 * SAFE))


class TestEpisodes:
    def test_a_balanced_pole_stands_to_the_horizon(self):
        sim = CartPole(steps=400, environments=3)
        chance = sim.chance(1, generator())[0]
        episodes = sim.episodes(linear_policy(), chance)
        assert episodes.states.shape == (401, 3, 5)
        assert (episodes.ended[[199, 399]] == 1).all()
        assert episodes.ended.sum() == 2 * 3
        assert episodes.per_episode(episodes.reward) == 200
        assert 160 < episodes.per_episode(episodes.cost) < 190

    def test_restarts_come_from_the_chance_of_their_step(self):
        sim = CartPole(environments=4)
        chance = sim.chance(1, generator())[0]
        episodes = sim.episodes(linear_policy(push=1.0, log_std=0.0), chance)
        ended = episodes.ended.bool()
        assert 40 < ended.sum() < 120
        for t, e in ended[:-1].nonzero().tolist():
            fresh = episodes.states[t + 1, e]
            assert torch.allclose(fresh[:4], 0.1 * chance[t + 1, e, :4] - 0.05)
            assert fresh[4] == 0
        assert torch.allclose(episodes.states[0, :, :4], 0.1 * chance[0, :, :4] - 0.05)
        assert episodes.states[0, :, :4].abs().max() <= 0.05

    def test_states_costs_and_ends_are_those_of_the_step_function(self):
        sim = CartPole(environments=4)
        chance = uniform(200, 4, 5)
        w = linear_policy(
            (0, 0, 1.0, 0.2),
            log_std=-0.5,
            dtype=torch.float64,
        )
        episodes = sim.episodes(w, chance)
        state = episodes.states[:-1, :, :4]
        time = episodes.states[:-1, :, 4]
        reached = step(state, 10 * episodes.action.clamp(-1, 1))
        outside, fallen = ends(reached)
        ended = outside | fallen | (time == 199)
        assert torch.equal(episodes.ended.bool(), ended)
        assert torch.equal(episodes.cost.bool(), forbidden(reached))
        assert torch.equal(episodes.states[1:, :, :4][~ended], reached[~ended])
        outputs = sim.policy(w, state)
        drawn = sim.head.sample(outputs, chance[..., 4])
        assert torch.allclose(episodes.action, drawn, atol=1e-9)


class TestProblem:
    def test_budgets_losses_and_metrics(self):
        problem = cartpole(
            3,
            clients=5,
            environments=2,
            evaluation=20,
        )
        assert problem.dim == 17410
        assert torch.equal(problem.data[0], torch.tensor([25.0, 27.5, 30, 32.5, 35]))
        assert problem.data[0].mean() == 30
        assert torch.equal(cartpole(3, clients=1).data[0], torch.tensor([30.0]))
        chance = problem.simulator.chance(1, generator())[0]
        batch = Batch((torch.tensor([25.0]), chance), torch.ones(1))
        objective, constraint = problem.losses(problem.w0, batch)
        episodes = problem.simulator.episodes(problem.w0, chance)
        assert isinstance(episodes, Episodes)
        assert objective == -episodes.per_episode(episodes.reward)
        assert constraint == episodes.per_episode(episodes.cost) - 25
        assert set(problem.metrics(problem.w0, problem)) == {"reward", "cost"}
