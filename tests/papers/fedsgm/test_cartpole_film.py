"""Episodes of cartpole as a picture in time, and as a moving one."""

import re
from xml.etree import ElementTree

import pytest
import torch
from controllers import linear_policy
from expect import refuses
from planted import drawn
from randoms import generator

from papers.fedsgm.cartpole import cart
from papers.fedsgm.cartpole import simulator as physics
from papers.fedsgm.cartpole.animation import animation
from papers.fedsgm.cartpole.cart import forbidden, step
from papers.fedsgm.cartpole.film import COSTLY, SIZE, Rollout, ending, film, rollout_states
from papers.fedsgm.cartpole.simulator import CartPole
from papers.kit import plot

SVG = "{http://www.w3.org/2000/svg}"
PARKED = linear_policy((0.8, 0.9, 7.0, 1.2), at=0.5)


@pytest.fixture(scope="module")
def rollouts():
    return {
        "parked at 0.5 m": rollout_states(PARKED),
        "a < b & c": rollout_states(linear_policy()),
        "untrained": rollout_states(physics.parameters(generator())),
    }


class TestRollout:
    @pytest.mark.parametrize("push", [1.0, -0.4, 0.0])
    def test_follows_the_physics_to_the_end(self, push):
        w = linear_policy((0, 0, 2.0, 0.4), push=push, log_std=-1.0).double()
        states, costs = rollout = rollout_states(w, seed=1)
        length = len(costs)
        assert states.shape == (length + 1, 5)
        assert torch.equal(states[:, 4], torch.arange(length + 1, dtype=states.dtype))
        assert torch.equal(costs.bool(), forbidden(states[1:, :4]))
        over = torch.stack(cart.ends(states[:, :4])).any(0)
        assert not over[:-1].any()
        assert bool(over[-1]) == (length < 200)
        accelerations = (states[1:, 1] - states[:-1, 1]) / cart.TAU
        pushed = step(states[:-1, :4], torch.full((length,), 10.0, dtype=states.dtype))
        most = (pushed[:, 1] - states[:-1, 1]) / cart.TAU
        assert (accelerations <= most + 1e-9).all()
        words = ending(rollout)
        assert words.endswith(f"at step {length}") or words == "stands after 200 steps"

    def test_is_what_the_simulator_counts(self):
        sim = CartPole(environments=1)
        chance = sim.chance(1, generator(4))[0]
        episodes = sim.episodes(PARKED, chance)
        rollout = rollout_states(PARKED, seed=4)
        assert len(rollout.costs) == episodes.per_episode(episodes.reward)
        assert rollout.costs.sum() == episodes.per_episode(episodes.cost)

    def test_the_last_state_is_where_the_last_step_leads(self):
        """Also where an episode follows within the simulation, which starts elsewhere."""
        for head in ("gaussian", "logits"):
            w = linear_policy((0, 0, 0, 0), push=1.0, log_std=9.0).double()  # always to the right
            states, _ = rollout_states(w, head=head, noise=False)
            right = torch.tensor(10.0, dtype=states.dtype)
            assert torch.allclose(states[-1, :4], step(states[-2, :4], right))
            assert "falls" in ending(rollout_states(w, head=head, noise=False))

    def test_seed_and_noise(self):
        w = linear_policy(log_std=-1.0)
        a, b, c = (rollout_states(w, seed=s).states for s in (0, 0, 1))
        assert torch.equal(a, b)
        assert not torch.equal(a[0], c[0])
        quiet = rollout_states(w, noise=False).states
        assert torch.equal(a[0], quiet[0])
        assert not torch.equal(a[:9], quiet[:9])
        mean = CartPole().policy(w, quiet[0])[0].clamp(-1, 1)
        assert torch.allclose(quiet[1, :4], step(quiet[0, :4], 10 * mean), atol=1e-6)

    def test_leaving_the_track_has_its_word(self):
        away = rollout_states(linear_policy((0, 0, 5.0, 1.0), push=0.6, log_std=-3.0))
        assert ending(away) == f"leaves the track at step {len(away.costs)}"

    def test_errors(self):
        refuses("rollout_states: w must have shape [17410], got", rollout_states, torch.zeros(3))
        refuses("rollout_states: seed must be at least 0, got -1", rollout_states, PARKED, seed=-1)


class TestFilm:
    def test_says_rewards_costs_and_ends(self, rollouts):
        picture = plot.render(film(rollouts), "light", "svg", SIZE).decode()
        assert picture == plot.render(film(rollouts), "light", "svg", SIZE).decode()
        for name, rollout in rollouts.items():
            reward, cost = len(rollout.costs), int(rollout.costs.sum())
            assert f">reward {reward}, cost {cost}<" in picture
            assert f">{ending(rollout)}<" in picture
            assert name.replace("&", "&amp;").replace("<", "&lt;") in picture
        for words in ("time step", "forbidden", "path of the cart", "step that costs 1"):
            assert f">{words}<" in picture
        shown = re.findall(r">cost (\d+)<", picture)
        parked = rollouts["parked at 0.5 m"].costs.cumsum(0)
        expected = [0, *(int(parked[t - 1]) for t in (40, 80, 120, 160, 200))]
        assert [int(n) for n in shown[:6]] == expected
        assert len(shown) == 6 + 6 + 2  # the untrained policy falls before the second picture

    @pytest.mark.parametrize("frames", [2, 9])
    def test_other_numbers_of_pictures(self, rollouts, frames):
        picture = plot.render(film(rollouts, frames), "dark", "svg").decode()
        assert len(re.findall(r">cost \d+<", picture)) == 2 * frames + 2

    def test_a_step_that_costs_is_a_red_dot(self, rollouts):
        for ax, rollout in zip(drawn(film, rollouts), rollouts.values(), strict=True):
            (dots,) = (line for line in ax.lines if line.get_label() == "step that costs 1")
            assert dots.get_color() == COSTLY
            x = rollout.states[1:, 0][rollout.costs.bool()]
            assert torch.equal(torch.tensor(dots.get_xdata(), dtype=x.dtype), x)

    def test_errors(self, rollouts):
        refuses("film: rollouts must hold an episode, got none", film, {})
        refuses("film: frames must be at least 2, got 1", film, rollouts, frames=1)


def at_step(node, t):
    """The value that an animated attribute has from step t of the clock's 240 on."""
    times = [float(x) * 240 for x in node.get("keyTimes").split(";")]
    values = node.get("values").split(";")
    assert len(times) == len(values)
    assert times[0] == 0
    assert times == sorted(times)
    return [v for s, v in zip(times, values, strict=True) if s <= t + 0.1][-1]


def read(digits, t):
    """The number that a counter of three strips shows at step t."""
    shown = ""
    for strip in digits:
        shift = int(at_step(strip.find(f"{SVG}animateTransform"), t).split()[1])
        rows = {int(text.get("y")) - 12: text.text for text in strip.iter(f"{SVG}text")}
        shown += rows.get(-shift, "")
    return int(shown)


class TestAnimation:
    def test_counters_show_reward_and_cost_of_every_step(self, rollouts):
        root = ElementTree.fromstring(animation(rollouts))
        panels = root.findall(f"{SVG}g")
        for panel, rollout in zip(panels, rollouts.values(), strict=True):
            windows = [g for g in panel.iter(f"{SVG}g") if g.get("clip-path")]
            strips = [window.find(f"{SVG}g") for window in windows]
            assert len(strips) == 6
            length, spent = len(rollout.costs), [0, *rollout.costs.cumsum(0).int().tolist()]
            for t in range(0, 240, 7):
                assert read(strips[:3], t) == min(t, length)
                assert read(strips[3:], t) == spent[min(t, length)]

    def test_the_cart_moves_leans_and_blushes_with_the_episode(self, rollouts):
        root = ElementTree.fromstring(animation(rollouts))
        for panel, rollout in zip(root.findall(f"{SVG}g"), rollouts.values(), strict=True):
            cart = panel.find(f"{SVG}g")
            place = cart.find(f"{SVG}animateTransform")
            lean = cart.find(f"{SVG}g/{SVG}line/{SVG}animateTransform")
            colour = cart.find(f"{SVG}rect/{SVG}animate")
            for t in (0, 1, 10, 30, 100, 200, 239):
                now = min(t, len(rollout.costs))
                x, _, angle, *_ = rollout.states[now].tolist()
                assert float(at_step(place, t).split()[0]) == pytest.approx(125 + 48 * x, abs=0.06)
                assert float(at_step(lean, t)) == pytest.approx(angle * 57.29578, abs=0.06)
                costs = bool(now and rollout.costs[now - 1])
                assert (at_step(colour, t) == COSTLY) == costs

    def test_is_small_deterministic_and_needs_nothing(self, rollouts):
        text = animation(rollouts)
        assert text == animation(rollouts)
        assert len(text.encode()) < 60_000
        assert "script" not in text
        assert re.findall(r"https?://[^\"]+", text) == ["http://www.w3.org/2000/svg"]
        assert "a &lt; b &amp; c" in text

    def test_words_for_those_who_do_not_see_it(self, rollouts):
        root = ElementTree.fromstring(animation(rollouts))
        title = root.find(f"{SVG}title").text
        for name, rollout in rollouts.items():
            numbers = f"reward {len(rollout.costs)}, cost {int(rollout.costs.sum())}"
            assert f"{name}: {numbers}, {ending(rollout)}" in title
        assert root.get("role") == "img"

    def test_all_parts_run_by_one_clock(self, rollouts):
        root = ElementTree.fromstring(animation(rollouts, plays=2, id="here"))
        moving = [n for n in root.iter() if n.tag in (f"{SVG}animate", f"{SVG}animateTransform")]
        assert len(moving) == 3 * 10
        clocks = {
            tuple(node.get(k) for k in ("dur", "begin", "repeatCount", "fill", "calcMode"))
            for node in moving
        }
        assert clocks == {("9.6s", "0s;here.click", "2", "freeze", "discrete")}
        assert root.get("id") == "here"

    @pytest.mark.parametrize(
        ("change", "text"),
        [
            ({"plays": 0}, "animation: plays must be at least 1, got 0"),
            ({"id": "a-b"}, "animation: id must be letters and digits, got 'a-b'"),
            ({"rollouts": {}}, "animation: rollouts must hold an episode, got none"),
        ],
    )
    def test_errors(self, rollouts, change, text):
        with pytest.raises(ValueError, match=text):
            animation(**{"rollouts": rollouts, **change})


def test_a_rollout_is_a_pair(rollouts):
    states, costs = rollouts["untrained"]
    assert isinstance(rollouts["untrained"], Rollout)
    assert len(states) == len(costs) + 1
