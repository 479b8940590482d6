"""A method and, beside its model, averages of its iterates; what diverges is stopped.

The averages change nothing of what the method does. The common one, for all methods, weights an
iterate by the number of its round, so that it forgets the start and needs no end to be known:
O. Shamir, T. Zhang, *Stochastic Gradient Descent for Non-smooth Optimization*, ICML 2013 (section
4, eta = 1). The other is the method's own output, which its theorem is about, where it has one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, get_type_hints

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.utils import _pytree as pytree

from fedlib import checks
from fedlib.core import Problem
from fedlib.core.algorithm import Algorithm
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info

FAR = 1e4  # a model with a larger entry has diverged


class State(NamedTuple):
    """What a run carries."""

    w: Float[Tensor, "kd"]  # the last iterate, the average, and the method's own output
    inner: tuple[Any, ...]  # the method's state, its parts alone: a checkpoint holds no classes
    t: Float[Tensor, ""]  # rounds done


@dataclass(frozen=True)
class Followed:
    r"""A method whose model is followed by averages: `w = (last, mean[, own])`, one after another.

        1  a round of the method: its model w_t
        2  mean <- mean + 2 / (t + 1) (w_t - mean), the average with weights 1, 2, ..., t
        3  own = the method's output (w_t where it has none yet)

    From the round on that would give a model with an entry that is not a number or larger than
    10,000, the method rests, so that a step size that is too large ends as a bad one.

    Parameters
    ----------
    method : any algorithm.
    own : whether to follow its output too.
    """

    method: Algorithm
    own: bool = False

    def __post_init__(self) -> None:
        checks.fields(self)

    def init(self, problem: Problem) -> State:
        """The method's start, three times if its output is followed, else twice."""
        inner = self.method.init(problem)
        return State(inner.w.repeat(2 + self.own), tuple(inner), inner.w.new_zeros(()))

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """The method's."""
        return self.method.draw(problem, rng)

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        """The method's round, then the averages."""
        own_state = get_type_hints(type(self.method).init)["return"]
        before = own_state(*state.inner)
        after, info = self.method.round(fed, before, draw)  # 1
        rests, t = diverged(after.w), state.t + 1
        inner = pytree.tree_map(lambda old, new: torch.where(rests, old, new), before, after)
        last, mean = inner.w, state.w.view(2 + self.own, -1)[1]
        mean = torch.lerp(mean, last, 2 / (t + 1))  # 2
        parts = [last, mean]
        if self.own:
            found = self.method.output(inner)  # type: ignore[attr-defined]
            parts.append(torch.where(torch.isfinite(found).all(), found, last))  # 3
        return State(torch.cat(parts), tuple(inner), t), info


def diverged(w: Float[Tensor, "d"]) -> Bool[Tensor, ""]:
    """Whether an entry is not a number or larger than `FAR`."""
    return ~(w.abs().amax() <= FAR)
