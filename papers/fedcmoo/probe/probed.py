"""What the probes ask of the algorithms that they follow."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib.algorithms.fedcmoo import State
from fedlib.core import Problem
from fedlib.core.client import Client
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info
from fedlib.weights import Least
from fedlib.weights.rules import Weights


class Drawn(Protocol):
    """An algorithm for several objectives, as far as its draws go."""

    @property
    def shared(self) -> int | None: ...

    def init(self, problem: Problem) -> State: ...

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw: ...


class Stepped(Protocol):
    """Local steps."""

    @property
    def lr(self) -> float: ...

    @property
    def local_steps(self) -> int: ...


@runtime_checkable
class Probed(Drawn, Protocol):
    """A whole algorithm whose clients send Jacobians, as `FedCMOO` and `FedCMOOPref`."""

    @property
    def participants(self) -> int: ...

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]: ...

    def task_gradients(self, client: Client) -> Float[Tensor, "M d"]: ...


@runtime_checkable
class Trained(Probed, Stepped, Protocol):
    """With one local training a client, on weighted objectives."""

    def local_update(self, client: Client, lam: Float[Tensor, "M"]) -> Float[Tensor, "d"]: ...


@runtime_checkable
class Alone(Drawn, Stepped, Protocol):
    """With a local training for every objective, as `FSMGDA`."""

    @property
    def weights(self) -> Weights: ...

    @property
    def least(self) -> Least | None: ...

    def local_updates(self, client: Client) -> Float[Tensor, "Md"]: ...
