"""Policies on one flat vector: what a policy network's outputs mean, and what a simulator offers.

A head turns the two outputs of a network into a distribution over one action. `fisher` is the
Fisher matrix of that distribution in the outputs, so that the Fisher matrix of the policy is
J^T fisher J with J the derivative of the outputs by the parameters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

Outputs = Float[Tensor, "*b 2"]  # of the network
Values = Float[Tensor, "*b"]
LOG_STD = (-3.0, 0.7)  # the range of a Gaussian's log standard deviation


class Episodes(NamedTuple):
    """One client's simulation: T steps of e parallel environments that restart when they end."""

    states: Float[Tensor, "T+1 e s"]  # before each step, and after the last
    action: Float[Tensor, "T e"]
    reward: Float[Tensor, "T e"]
    cost: Float[Tensor, "T e"]
    ended: Float[Tensor, "T e"]  # 1 where the episode ended with this step
    first: Float[Tensor, "T e"]  # 1 while an environment is in its first episode

    def per_episode(self, amount: Float[Tensor, "T e"]) -> Float[Tensor, ""]:
        """Mean over the environments of the sum over their first episode.

        Unbiased if every first episode ends within the T steps; the mean over all completed
        episodes is not (short ones are completed more often).
        """
        return (amount * self.first).sum(0).mean()


@runtime_checkable
class Head(Protocol):
    """A distribution over one action, given two outputs of a network."""

    def sample(self, outputs: Outputs, u: Values) -> Values:
        """The action at quantile `u` in (0, 1)."""

    def log_prob(self, outputs: Outputs, action: Values) -> Values:
        """Log probability (density) of an action, `[*b]`."""

    def kl(self, old: Outputs, new: Outputs) -> Values:
        """Kullback-Leibler divergence of `new` from `old`, `[*b]`."""

    def fisher(self, outputs: Outputs, v: Outputs) -> Outputs:
        """The Fisher matrix in the outputs, times `v`, `[*b 2]`."""


@dataclass(frozen=True)
class Gaussian:
    """One real action; the outputs are its mean and its log standard deviation.

    The latter is clamped to [-3, 0.7]; gradient and Fisher matrix are zero outside.

    >>> Gaussian().sample(torch.tensor([2.0, 0.0]), torch.tensor(0.5))
    tensor(2.)
    """

    def sample(self, outputs: Outputs, u: Values) -> Values:
        """Mean plus standard deviation times the normal quantile."""
        mean, log_std = self._read(outputs)
        normal: Tensor = torch.special.ndtri(u)
        return mean + log_std.exp() * normal

    def log_prob(self, outputs: Outputs, action: Values) -> Values:
        """Log density of the action before it is clipped."""
        mean, log_std = self._read(outputs)
        z = (action - mean) * torch.exp(-log_std)
        return -0.5 * z * z - log_std - 0.5 * math.log(2 * math.pi)

    def kl(self, old: Outputs, new: Outputs) -> Values:
        """Of two normal distributions."""
        mean, log_std = self._read(old)
        mean2, log_std2 = self._read(new)
        gap = mean2 - mean
        spread = torch.exp(2 * (log_std - log_std2)) + gap * gap * torch.exp(-2 * log_std2)
        return log_std2 - log_std + 0.5 * (spread - 1)

    def fisher(self, outputs: Outputs, v: Outputs) -> Outputs:
        """Diagonal: 1 / variance for the mean, 2 for the log standard deviation."""
        raw = outputs[..., 1]
        inside = ((raw >= LOG_STD[0]) & (raw <= LOG_STD[1])).to(raw.dtype)
        precision = torch.exp(-2 * self._read(outputs)[1])
        return torch.stack([precision * v[..., 0], 2 * inside * v[..., 1]], -1)

    def _read(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        return outputs[..., 0], outputs[..., 1].clamp(*LOG_STD)


@dataclass(frozen=True)
class Logits:
    """Two actions, 0 and 1, whose log odds are the difference of the outputs.

    >>> Logits().sample(torch.tensor([0.0, 1.0]), torch.tensor(0.5))
    tensor(1.)
    """

    def sample(self, outputs: Outputs, u: Values) -> Values:
        """1 with its probability, else 0."""
        return (u < torch.sigmoid(self._odds(outputs))).to(u.dtype)

    def log_prob(self, outputs: Outputs, action: Values) -> Values:
        """Log probability of the action."""
        return torch.nn.functional.logsigmoid((2 * action - 1) * self._odds(outputs))

    def kl(self, old: Outputs, new: Outputs) -> Values:
        """Of two Bernoulli distributions."""
        a, b = self._odds(old), self._odds(new)
        p, log = torch.sigmoid(a), torch.nn.functional.logsigmoid
        return p * (log(a) - log(b)) + (1 - p) * (log(-a) - log(-b))

    def fisher(self, outputs: Outputs, v: Outputs) -> Outputs:
        """P (1 - p) [[1, -1], [-1, 1]]."""
        p = torch.sigmoid(self._odds(outputs))
        push = p * (1 - p) * (v[..., 1] - v[..., 0])
        return torch.stack([-push, push], -1)

    def _odds(self, outputs: Tensor) -> Tensor:
        return outputs[..., 1] - outputs[..., 0]


@runtime_checkable
class Simulator(Protocol):
    """Environments that a client runs, and the policy that acts in them."""

    head: Head

    def chance(self, clients: int, rng: torch.Generator) -> Float[Tensor, "n *chance"]:
        """All randomness of one round of some clients, `[n, ...]`."""

    def episodes(self, w: Float[Tensor, "d"], chance: Float[Tensor, "*chance"]) -> Episodes:
        """One client's steps with the policy `w`."""

    def policy(self, w: Float[Tensor, "d"], states: Float[Tensor, "*b s"]) -> Outputs:
        """The network's outputs."""

    def policy_change(
        self, w: Float[Tensor, "d"], v: Float[Tensor, "d"], states: Float[Tensor, "*b s"]
    ) -> Outputs:
        """The derivative of `policy` by `w` in the direction `v`."""

    def inputs(self, states: Float[Tensor, "*b s"]) -> Float[Tensor, "*b k"]:
        """What a critic sees of a state, each entry of order one."""
