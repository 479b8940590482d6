"""What `run` asks of an algorithm."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import torch

from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info, Problem


@runtime_checkable
class Algorithm(Protocol):
    """A frozen dataclass of hyperparameters with three methods; a round is pure given its draw.

    Where clients remember something, the class variable `client_state` names the fields of the
    state that live at the clients, a row each; the server has none of them, a client its own row.
    """

    def init(self, problem: Problem) -> Any:
        """Check the parameters against the problem; the state before round 0 (first field `w`)."""

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """All randomness of one round."""

    def round(self, fed: Federation, state: Any, draw: Draw) -> tuple[Any, Info]:
        """One communication round at the server."""
