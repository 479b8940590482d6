"""Constrained cartpole: physics against Gymnasium's, costs at hand-made states, episodes."""

import math

import gymnasium
import numpy as np
import pytest
import torch

from fedlib.core.problem import Batch
from fedlib.core.sampling import seeded
from papers.fedsgm.cartpole import simulator as cart
from papers.fedsgm.cartpole import simulator as physics
from papers.fedsgm.cartpole.simulator import CartPole, cartpole, ends, forbidden, step
from papers.fedsgm.cartpole.trpo import Episodes
from tests.helpers.controllers import BALANCE, linear_policy
from tests.helpers.randoms import generator, uniform

SAFE = 6 * math.pi / 180


def state_at(x=0.0, angle=0.0, dtype=torch.float64):
    return torch.tensor([x, 0.0, angle, 0.0], dtype=dtype)


def episode(controller, starts, generator=None):
    """Steps of many environments until each has ended: state before, after, and who was running."""
    state, running, log = starts, torch.ones(len(starts), dtype=torch.bool), []
    for _ in range(cart.HORIZON):
        after = step(state, 10 * controller(state, generator).clamp(-1, 1))
        log.append((state, after, running))
        out, fallen = ends(after)
        running = running & ~(out | fallen)
        state = after
    return [torch.stack(part) for part in zip(*log, strict=True)]


def rewards_and_costs(controller, episodes, seed=0):
    rng = generator(seed)
    starts = 0.1 * torch.rand(episodes, 4, generator=rng, dtype=torch.float64) - 0.05
    _, after, running = episode(controller, starts, rng)
    rows = (running, running & forbidden(after))
    return [row.double().sum(0) for row in rows]


class TestPhysics:
    @pytest.mark.parametrize("kind", ["random", "balanced"])
    def test_is_the_cartpole_of_gymnasium_step_by_step(self, kind):
        starts = 0.1 * uniform(20, 4) - 0.05
        rng, worst, worst_step, steps, fallen = generator(1), 0.0, 0.0, 0, 0
        for start in starts:
            theirs, ours = gymnasium.make("CartPole-v1").unwrapped, start
            theirs.reset(seed=0)
            theirs.state = start.numpy()
            for _ in range(cart.HORIZON):
                balance = float(ours @ torch.tensor(BALANCE, dtype=torch.float64)) > 0
                coin = bool(torch.rand((), generator=rng) < 0.5)
                action = int(balance if kind == "balanced" else coin)
                force = torch.tensor(20.0 * action - 10, dtype=torch.float64)
                one = step(torch.tensor(theirs.state), force)
                ours = step(ours, force)
                over = theirs.step(action)[2]
                worst = max(worst, float(np.abs(ours.numpy() - theirs.state).max()))
                worst_step = max(worst_step, float(np.abs(one.numpy() - theirs.state).max()))
                assert over == bool(torch.stack(ends(ours)).any())
                steps += 1
                if over:
                    fallen += 1
                    break
        far = {"random": 1e-13, "balanced": 1e-9}[kind]  # errors grow, the pole is unstable
        assert worst < far
        assert (steps, fallen) == (4000, 0) if kind == "balanced" else fallen == 20

    def test_the_constants_are_those_of_gymnasium(self):
        theirs = gymnasium.make("CartPole-v1").unwrapped
        assert theirs.gravity == cart.GRAVITY
        assert (theirs.masscart, theirs.masspole) == (cart.CART, cart.POLE)
        assert (theirs.length, theirs.force_mag) == (cart.HALF_LENGTH, cart.FORCE)
        assert (theirs.tau, theirs.x_threshold) == (cart.TAU, cart.MAX_X)
        assert theirs.theta_threshold_radians == pytest.approx(cart.MAX_ANGLE, rel=1e-15)

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
            inside = (0, 0.05, 0.1, 1.1 + ulp, 1.2, 1.3 - ulp, 2.2 + ulp, 2.3, 2.4 - ulp)
            outside = (0.1001, 0.6, 1.0999, 1.3001, 1.7, 2.1999, 2.4001, 2.5)
            assert all(forbidden(state_at(sign * x, dtype=dtype)) for x in inside)
            assert not any(forbidden(state_at(sign * x, dtype=dtype)) for x in outside)

    @pytest.mark.parametrize("sign", [1, -1])
    def test_the_pole_beyond_six_degrees(self, sign):
        assert not forbidden(state_at(0.6, sign * SAFE))
        assert forbidden(state_at(0.6, sign * (SAFE + 1e-9)))
        assert not forbidden(state_at(0.6, sign * 0.999 * SAFE))


class TestEpisodes:
    def test_horizon_and_what_a_balanced_pole_gets(self):
        sim = CartPole(steps=400, environments=3)
        w = linear_policy()
        episodes = sim.episodes(w, sim.chance(1, generator())[0])
        assert episodes.states.shape == (401, 3, 5)
        assert torch.equal(episodes.ended.nonzero()[:, 0].unique(), torch.tensor([199, 399]))
        assert torch.equal(episodes.states[:-1, 0, 4], torch.arange(400.0) % 200)
        assert torch.equal(episodes.first.sum(0), torch.full((3,), 200.0))
        assert episodes.per_episode(episodes.reward) == 200
        assert 160 < episodes.per_episode(episodes.cost) < 190
        away = linear_policy((0.8, 0.9, 7.0, 1.2), at=0.5)
        parked = sim.episodes(away, sim.chance(1, generator())[0])
        assert parked.per_episode(parked.reward) == 200
        assert 25 < parked.per_episode(parked.cost) < 45

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
        w = linear_policy((0, 0, 1.0, 0.2), log_std=-0.5, dtype=torch.float64)
        episodes = sim.episodes(w, chance)
        state, time = episodes.states[:-1, :, :4], episodes.states[:-1, :, 4]
        after = step(state, 10 * episodes.action.clamp(-1, 1))
        out, fallen = ends(after)
        assert torch.equal(episodes.ended.bool(), out | fallen | (time == 199))
        assert torch.equal(episodes.cost.bool(), forbidden(after))
        going = ~episodes.ended.bool()
        assert torch.equal(episodes.states[1:, :, :4][going], after[going])
        outputs = sim.policy(w, state)
        drawn = sim.head.sample(outputs, chance[..., 4])
        assert torch.allclose(episodes.action, drawn, atol=1e-9)

    def test_first_episodes_are_unbiased_and_completed_ones_are_not(self):
        gains, clients, each = (0.0, 0.0, 1.2, 0.25), 800, 5
        sim = CartPole(environments=clients * each)
        episodes = sim.episodes(linear_policy(gains, log_std=-0.5), sim.chance(1, generator())[0])

        def act(state, rng):
            noise = torch.randn(len(state), generator=rng, dtype=torch.float64)
            return state @ torch.tensor(gains, dtype=torch.float64) + math.exp(-0.5) * noise

        truth = rewards_and_costs(act, 4000, seed=5)
        for amount, exact in zip((episodes.reward, episodes.cost), truth, strict=True):
            total = (amount * episodes.first).sum(0)
            error = math.hypot(float(total.std()), float(exact.std())) / math.sqrt(4000)
            assert float(episodes.per_episode(amount)) == pytest.approx(float(total.mean()))
            assert abs(float(total.mean() - exact.mean())) < 3 * error
            completed = per_client_of_completed(amount, episodes.ended, each)
            bias = float(completed.mean() - exact.mean())
            assert bias < -10 * float(completed.std()) / math.sqrt(clients)
            assert bias < -0.08 * float(exact.mean())


def per_client_of_completed(amount, ended, each):
    """Each client's mean over all episodes that its environments completed."""
    before = torch.cat([torch.zeros_like(ended[:1]), ended[:-1]]).cumsum(0)
    complete = before < ended.sum(0)
    total, count = (amount * complete).sum(0), ended.sum(0)
    return total.view(-1, each).sum(1) / count.view(-1, each).sum(1)


class TestProblem:
    def test_budgets_losses_and_metrics(self):
        problem = cartpole(3, clients=5, environments=2, evaluation=20)
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
        found = problem.metrics(problem.w0, problem)
        assert set(found) == {"reward", "cost"}

    def test_a_seed_fixes_start_and_evaluation(self):
        a, b, c = cartpole(0), cartpole(0), cartpole(1)
        assert torch.equal(a.w0, b.w0)
        assert torch.equal(a.heldout[0], b.heldout[0])
        assert not torch.equal(a.w0, c.w0)
        assert not torch.equal(a.heldout[0], c.heldout[0])
        assert torch.equal(a.w0, physics.parameters(seeded(0, "split")))
        w0 = cartpole(3).w0
        assert float(torch.arange(len(w0)).cos() @ w0) == pytest.approx(-1.04036832, rel=1e-5)
