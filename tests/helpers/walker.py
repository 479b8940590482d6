"""A small constrained Markov decision process, for policy methods: a walker on a line."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count
from fedlib.core.describe import describe
from fedlib.core.problem import Batch, Problem
from fedlib.core.sampling import seeded
from fedlib.shapes import Vector
from papers.fedsgm.cartpole.trpo import Episodes, Gaussian


@dataclass(frozen=True)
class Walker:
    """Walkers that start within [-1, 1]: a step x <- x + a / 4, reward 1 - x^2, cost |a|.

    The policy is linear, d = 3: a is normal with mean w_0 x + w_1 and log deviation w_2. Every
    episode ends after `steps` steps. A state is the position and the time.
    """

    steps: Count = 25
    environments: Count = 4

    def __post_init__(self) -> None:
        checks.fields(self)

    @property
    def head(self) -> Gaussian:
        """The distribution over actions."""
        return Gaussian()

    def chance(self, clients: int, rng: torch.Generator) -> Float[Tensor, "n T e 2"]:
        """Per step: where an episode would start, and the quantile of the action."""
        size = (clients, self.steps, self.environments, 2)
        return torch.rand(size, generator=rng, dtype=torch.float64)

    def episodes(self, w: Vector, chance: Float[Tensor, "T e 2"]) -> Episodes:
        """One client's steps: one episode of each environment."""
        x = 2 * chance[0, :, 0] - 1
        states = []
        actions = []
        for t, quantile in enumerate(chance[..., 1].clamp(1e-6, 1 - 1e-6)):
            state = torch.stack([x, torch.full_like(x, t)], -1)
            action = self.head.sample(self.policy(w, state), quantile)
            states.append(state)
            actions.append(action)
            x = x + action / 4
        states.append(torch.stack([x, torch.zeros_like(x)], -1))
        state = torch.stack(states)
        action = torch.stack(actions)
        ended = torch.cat([torch.zeros_like(action[1:]), torch.ones_like(action[:1])])
        reward = 1 - state[1:, :, 0].square()
        return Episodes(
            state,
            action,
            reward,
            action.abs(),
            ended,
            torch.ones_like(ended),
        )

    def losses(self, w: Vector, batch: Batch) -> Float[Tensor, "2"]:
        """Minus the mean reward of an episode, and its mean cost beyond the client's budget."""
        budget, chance = batch.data
        episodes = self.episodes(w, chance)
        reward = episodes.per_episode(episodes.reward)
        cost = episodes.per_episode(episodes.cost)
        return torch.stack([-reward, cost - budget[0]])

    def policy(self, w: Vector, states: Float[Tensor, "*b s"]) -> Float[Tensor, "*b 2"]:
        """Mean and log deviation of the action."""
        mean = w[0] * states[..., 0] + w[1]
        return torch.stack([mean, torch.zeros_like(mean) + w[2]], -1)

    def policy_change(
        self, w: Vector, v: Vector, states: Float[Tensor, "*b s"]
    ) -> Float[Tensor, "*b 2"]:
        """The derivative of `policy` by `w` along `v`; it is linear."""
        del w
        return self.policy(v, states)

    def inputs(self, states: Float[Tensor, "*b s"]) -> Float[Tensor, "*b 2"]:
        """Position and time, scaled to order one."""
        x, time = states.unbind(-1)
        return torch.stack([x, time / self.steps], -1)


def walkers(clients: Count) -> Problem:
    """Clients whose walkers may spend unequal sums of |a| an episode, from 3 to 6; in float64."""
    checks.arguments(walkers, locals())
    simulator = Walker()
    return Problem(
        name="walkers",
        data=(
            torch.linspace(
                3,
                6,
                clients,
                dtype=torch.float64,
            ),
        ),
        rows=torch.arange(clients).unsqueeze(1),
        sizes=(1,) * clients,
        losses=simulator.losses,
        num_objectives=1,
        num_constraints=1,
        w0=torch.tensor([0.0, 0.0, -0.5], dtype=torch.float64),
        metrics=_metrics,
        heldout=(simulator.chance(1, seeded(0, "split"))[0],),
        simulator=simulator,
        config={"name": "walkers", "clients": clients, "simulator": describe(simulator)},
    )


def _metrics(w: Vector, problem: Problem) -> dict[str, Tensor]:
    episodes: Episodes = problem.simulator.episodes(w, problem.heldout[0])
    amounts = {"reward": episodes.reward, "cost": episodes.cost}
    return {name: episodes.per_episode(amount) for name, amount in amounts.items()}
