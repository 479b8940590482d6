"""Cartpole by Gymnasium's interface: its checker, its registry, and the batched simulator."""

import warnings

import gymnasium
import numpy as np
import pytest
import torch
from controllers import linear_policy
from expect import refuses
from gymnasium.utils.env_checker import check_env
from process import python

from papers.fedsgm.cartpole import cart
from papers.fedsgm.cartpole import environment as envs
from papers.fedsgm.cartpole.cart import forbidden
from papers.fedsgm.cartpole.simulator import CartPole

OPTIONS = ({}, {"discrete": True}, {"render_mode": "rgb_array"})


def make(**options):
    return gymnasium.make(envs.ID, **options)


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_the_checker_of_gymnasium_has_nothing_to_say(options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make(**options).unwrapped)


def test_the_checker_can_fail():
    env = make().unwrapped
    env.observation_space = gymnasium.spaces.Box(-0.001, 0.001, (4,), np.float32)
    refuses("not within the observation space", check_env, env, error=AssertionError)


MODULE = "papers.fedsgm.cartpole.environment"


@pytest.mark.parametrize(
    "first", [f"import {MODULE}; name = ''", f"name = '{MODULE}:'"], ids=["import", "by name"]
)
def test_is_made_by_its_name(first):
    code = (
        f"import gymnasium; {first}; "
        "env = gymnasium.make(name + 'fedlib/ConstrainedCartPole-v0'); "
        "print(env.spec.max_episode_steps, env.unwrapped.__class__.__module__)"
    )
    done = python("-W", "error", "-c", code)
    assert done.stdout.split() == ["200", MODULE], done.stderr[-2000:]


def test_without_gymnasium_a_sentence_says_what_to_do():
    code = (
        "import sys; sys.modules['gymnasium'] = None\n"
        "import papers.fedsgm.cartpole\n"
        f"try:\n    import {MODULE}\nexcept ImportError as error:\n    print(error)"
    )
    done = python("-c", code)
    assert done.stdout.strip() == (
        f"{MODULE}: gymnasium must be installed for this module, and for no other; "
        "pip install 'fedlib[rl]'."
    ), done.stderr[-2000:]


@pytest.mark.parametrize("head", ["gaussian", "logits"])
def test_is_the_batched_simulator_step_by_step(head):
    """Three policies, each over all its episodes of 200 steps: falling, wandering, balancing."""
    sim = CartPole(environments=2, head_name=head)
    chance = torch.rand(200, 2, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    env = make(discrete=head == "logits")
    ends = []
    for gains, push in (((0, 0, 0, 0), 1.0), ((0, 0, 2.0, 0.4), 0.0), ((0.1, 0.2, 3.5, 0.6), 0.0)):
        w = linear_policy(gains, push=-push if head == "logits" else push, dtype=torch.float64)
        if head == "logits":  # odds = -(gains . state), as the second output is -3
            w = torch.cat([-20 * w[:-2], torch.zeros(2, dtype=w.dtype)])
        log = sim.episodes(w, chance)
        for e in range(2):
            fresh = True
            for t in range(200):
                if fresh:
                    env.reset(options={"state": log.states[t, e, :4].numpy()})
                action = float(log.action[t, e])
                given = int(action) if head == "logits" else np.array([action])
                seen, reward, terminated, truncated, info = env.step(given)
                assert reward == 1.0
                assert info == {"cost": float(log.cost[t, e])}
                fresh = bool(log.ended[t, e])
                assert (terminated or truncated) == fresh
                if fresh:
                    ends.append("time" if truncated else "failure")
                    continue
                after = log.states[t + 1, e]
                assert torch.equal(env.unwrapped.state, after[:4])
                assert env.unwrapped.time == after[4]
                assert np.array_equal(seen, after[:4].numpy().astype(np.float32))
    assert set(ends) == {"time", "failure"}


def test_a_controller_keeps_the_pole_up_for_200_steps():
    env, gains = make(), np.array([0.8, 0.9, 7.0, 1.2])
    seen, _ = env.reset(seed=0)
    cost, truncated = 0.0, False
    for _ in range(200):
        assert not truncated
        action = np.clip([(seen - [0.5, 0, 0, 0]) @ gains], -1, 1).astype(np.float32)
        seen, _, terminated, truncated, info = env.step(action)
        cost += info["cost"]
        assert not terminated
    assert truncated
    assert 20 < cost < 50


def test_cost_is_that_of_the_state_that_the_step_leads_to():
    env = make()
    for x, speed, expected in ((0.09, 1.0, 0), (0.11, -1.0, 1), (0.6, 0.0, 0), (1.05, 3.0, 1)):
        env.reset(options={"state": [x, speed, 0.0, 0.0]})
        cost = env.step(np.zeros(1, np.float32))[4]["cost"]
        assert cost == expected == float(forbidden(env.unwrapped.state))


def test_seeds():
    env, other = make(), make()
    first, _ = env.reset(seed=5)
    assert np.array_equal(first, other.reset(seed=5)[0])
    second, _ = env.reset()
    assert not np.array_equal(first, second)
    assert np.array_equal(second, other.reset()[0])
    starts = np.stack([env.reset()[0] for _ in range(500)])
    assert np.abs(starts).max() <= 0.05
    assert np.allclose(starts.mean(0), 0, atol=4 * 0.1 / np.sqrt(12 * 500))
    assert np.allclose(starts.std(0), 0.1 / np.sqrt(12), rtol=0.1)


def test_actions_are_clipped():
    results = []
    for action in (1.0, 7.0):
        env = envs.ConstrainedCartPole()
        env.reset(options={"state": [0.0, 0.0, 0.0, 0.0]})
        results.append(env.step(np.array([action]))[0])
    assert np.array_equal(*results)
    right = envs.ConstrainedCartPole(discrete=True)
    right.reset(options={"state": [0.0, 0.0, 0.0, 0.0]})
    assert np.array_equal(right.step(1)[0], results[0])


def test_no_episode_leaves_the_observation_space():
    """By induction over 200 steps, from the largest acceleration that a state of them can have."""
    x, v, angle, spin = envs.LIMITS
    sin = np.sin(cart.MAX_ANGLE)
    mass, lever = cart.CART + cart.POLE, cart.POLE * cart.HALF_LENGTH

    def accelerations(spin):  # cos between 0 and 1
        push = (cart.FORCE + lever * spin**2 * sin) / mass
        turn = (cart.GRAVITY * sin + push) / (cart.HALF_LENGTH * (4 / 3 - cart.POLE / mass))
        return push + lever / mass * turn, turn

    most = 2 * cart.MAX_ANGLE / cart.TAU  # a faster pole falls with the next step
    last = most
    for _ in range(2):  # the step after which it is that fast, and the one with which it falls
        last += cart.TAU * accelerations(last)[1]
    fastest = 0.05 + cart.HORIZON * cart.TAU * accelerations(last)[0]
    assert last < spin < 2 * last
    assert fastest < v < 2 * fastest
    assert cart.MAX_ANGLE + cart.TAU * last < angle
    assert cart.MAX_X + cart.TAU * fastest < x


def test_errors_are_sentences():
    env = envs.ConstrainedCartPole()
    with pytest.raises(gymnasium.error.ResetNeeded, match=r"ConstrainedCartPole: step must follow"):
        env.step(np.zeros(1, np.float32))
    env.reset(options={"state": [2.39, 3.0, 0.0, 0.0]})
    assert env.step(np.zeros(1, np.float32))[2]
    with pytest.raises(gymnasium.error.ResetNeeded, match=r"call reset\(\) first"):
        env.step(np.zeros(1, np.float32))
    env.reset(seed=0)
    for action in (np.zeros(2), np.array([np.nan])):
        refuses("ConstrainedCartPole: action must be one number, got", env.step, action)
    both = envs.ConstrainedCartPole(discrete=True)
    both.reset(seed=0)
    for action in (2, 0.5, np.zeros(3)):
        refuses("ConstrainedCartPole: action must be 0 or 1, got", both.step, action)
    for start in ([0.0] * 3, [0.0, 0, 0, np.nan]):
        with pytest.raises(ValueError, match="ConstrainedCartPole: state must be four finite num"):
            env.reset(options={"state": start})
    with pytest.raises(ValueError, match="render_mode must be one of None, 'rgb_array', got 'hum"):
        envs.ConstrainedCartPole(render_mode="human")


def test_pictures():
    env = make(render_mode="rgb_array").unwrapped
    env.reset(options={"state": [0.6, 0.0, 0.0, 0.0]})
    safe = env.render()
    assert (safe.shape, safe.dtype) == ((220, 600, 3), np.uint8)
    env.reset(options={"state": [0.0, 0.0, 0.0, 0.0]})
    costly = env.render()
    red = (costly == envs.WARNING).all(-1)
    assert red.any()
    assert abs(np.argwhere(red)[:, 1].mean() - 300) < 2  # the cart stands in the middle
    assert not (safe == envs.WARNING).all(-1).any()
    blue = (safe == envs.PLAIN).all(-1)
    assert abs(np.argwhere(blue)[:, 1].mean() - 366) < 2  # 0.6 m to the right
    plain = make().unwrapped
    plain.reset(seed=0)
    assert plain.render() is None
