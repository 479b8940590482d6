"""A method that rests once it has diverged, so that a large step size ends as a bad one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, get_type_hints

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils import _pytree as pytree

from fedlib.core import Problem
from fedlib.core.algorithm import Algorithm
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info

FAR = 1e4  # a model with a larger entry has diverged


class State(NamedTuple):
    """What a run carries."""

    w: Float[Tensor, "d"]  # the method's model
    inner: tuple[Any, ...]  # the method's state, its parts alone: a checkpoint holds no classes


@dataclass(frozen=True)
class Stopped:
    """A method up to the round in which its model would not be finite, or large.

        1  a round of the method: its state
        2  if an entry of the model is not finite or above 10,000: the state before, from here on

    Parameters
    ----------
    method : any algorithm.
    """

    method: Algorithm

    def init(self, problem: Problem) -> State:
        """The method's start."""
        inner = self.method.init(problem)
        return State(inner.w, tuple(inner))

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """The method's."""
        return self.method.draw(problem, rng)

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        """The method's round, unless it diverges."""
        before = get_type_hints(type(self.method).init)["return"](*state.inner)
        after, info = self.method.round(fed, before, draw)  # 1
        diverged = ~(after.w.abs().amax() <= FAR)
        inner = pytree.tree_map(
            lambda old, new: torch.where(diverged, old, new), before, after
        )  # 2
        return State(inner.w, tuple(inner)), info
