"""What the probes ask of the algorithms that they follow."""

from __future__ import annotations

from typing import Protocol

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib.algorithms._multi import State
from fedlib.core import Problem
from fedlib.core.client import Client
from fedlib.core.federation import Federation
from fedlib.core.types import Draw, Info
from fedlib.weights import Least
from fedlib.weights.rules import Weights

__all__ = ["Alone", "Probed", "Trained"]


class Drawn(Protocol):
    """An algorithm for several objectives, as far as its draws go."""

    @property
    def shared(self) -> int | None:
        """The first parameters, which enter the Gram matrix; None for all."""
        ...

    def init(self, problem: Problem) -> State:
        """The state before round 0."""
        ...

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """All randomness of one round."""
        ...


class Stepped(Protocol):
    """Local steps."""

    @property
    def lr(self) -> float:
        """The clients' step size."""
        ...

    @property
    def local_steps(self) -> int:
        """E."""
        ...


class Probed(Drawn, Protocol):
    """A whole algorithm whose clients send Jacobians, as `FedCMOO` and `FedCMOOPref`."""

    @property
    def participants(self) -> int:
        """Clients a round."""
        ...

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        """One round."""
        ...

    def task_gradients(self, client: Client) -> Float[Tensor, "M d"]:
        """At the client: its Jacobian `[M, d]`."""
        ...


class Trained(Probed, Stepped, Protocol):
    """With one local training a client, on weighted objectives."""

    def local_update(self, client: Client, lam: Float[Tensor, "M"]) -> Float[Tensor, "d"]:
        """At the client: the update `[d]`, (start - end) / (E lr)."""
        ...


class Alone(Drawn, Stepped, Protocol):
    """With a local training for every objective, as `FSMGDA`."""

    @property
    def weights(self) -> Weights:
        """The rule for the weights."""
        ...

    @property
    def least(self) -> Least | None:
        """The smallest weight."""
        ...

    def local_updates(self, client: Client) -> Float[Tensor, "Md"]:
        """At the client: the M updates, one after another `[M d]`."""
        ...
