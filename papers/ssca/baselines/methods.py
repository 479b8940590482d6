"""Mini-batch SGD with momentum, over samples and over features: what SSCA is, with free weights."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from fedlib.algorithms.minibatch_sgd import MiniBatchSGD, VerticalSGD
from fedlib.checks import Share
from fedlib.core import Problem
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info
from fedlib.shapes import Scalar, Vector
from fedlib.work.states import Iterate


class State(NamedTuple):
    """The model, the number of rounds done, and the velocity."""

    w: Vector
    t: Scalar
    v: Vector


def start(problem: Problem) -> State:
    """The problem's start, at rest."""
    begin = Iterate.start(problem)
    return State(begin.w, begin.t, torch.zeros_like(begin.w))


def pushed(
    fed: Federation,
    state: State,
    stepped: Iterate,
    beta: float,
) -> State:
    """The state after v <- beta v + (the step of SGD), w <- project(w - v)."""
    v = beta * state.v + (state.w - stepped.w)
    return State(fed.project(state.w - v), stepped.t, v)


@dataclass(frozen=True)
class MomentumSGD(MiniBatchSGD):
    """Mini-batch SGD whose server adds `beta` times the last change of the model.

    Parameters
    ----------
    beta : the weight of the last change; 0 is SGD.
    """

    beta: Share = 0.5

    def init(self, problem: Problem) -> Any:
        """Start at rest."""
        super().init(problem)
        return start(problem)

    def round(
        self,
        fed: Federation,
        state: Any,
        draw: Draw,
    ) -> tuple[Any, Info]:
        """Make a round of SGD, and go on with the last change."""
        stepped, info = super().round(fed, Iterate(state.w, state.t), draw)
        return pushed(fed, state, stepped, self.beta), info


@dataclass(frozen=True)
class VerticalMomentumSGD(VerticalSGD):
    """The same where features are split.

    Parameters
    ----------
    beta : the weight of the last change; 0 is SGD.
    """

    beta: Share = 0.5

    def init(self, problem: Problem) -> Any:
        """Start at rest."""
        super().init(problem)
        return start(problem)

    def round(
        self,
        fed: Federation,
        state: Any,
        draw: Draw,
    ) -> tuple[Any, Info]:
        """Make a round of SGD, and go on with the last change."""
        stepped, info = super().round(fed, Iterate(state.w, state.t), draw)
        return pushed(fed, state, stepped, self.beta), info
