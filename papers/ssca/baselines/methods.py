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


class Momentum:
    """The rounds of a form of SGD, whose server adds `beta` times the last change of the model."""

    beta: float

    def init(self, problem: Problem) -> Any:
        """Start at rest."""
        begin: Iterate = super().init(problem)  # type: ignore[misc]
        return State(begin.w, begin.t, torch.zeros_like(begin.w))

    def round(self, fed: Federation, state: Any, draw: Draw) -> tuple[Any, Info]:
        """Make a round of SGD; v <- beta v + (its step), w <- project(w - v)."""
        start = Iterate(state.w, state.t)
        stepped, info = super().round(fed, start, draw)  # type: ignore[misc]
        v = self.beta * state.v + (state.w - stepped.w)
        return State(fed.project(state.w - v), stepped.t, v), info


@dataclass(frozen=True)
class MomentumSGD(Momentum, MiniBatchSGD):
    """Mini-batch SGD with momentum.

    Parameters
    ----------
    beta : the weight of the last change; 0 is SGD.
    """

    beta: Share = 0.5


@dataclass(frozen=True)
class VerticalMomentumSGD(Momentum, VerticalSGD):
    """The same where features are split.

    Parameters
    ----------
    beta : the weight of the last change; 0 is SGD.
    """

    beta: Share = 0.5
