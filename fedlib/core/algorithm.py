"""The interface of an algorithm."""

from typing import Any, Protocol, runtime_checkable

import torch

from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info, Problem


@runtime_checkable
class Algorithm(Protocol):
    """A frozen dataclass of hyperparameters with three methods; a round is pure given its draw.

    Making one raises ValueError or TypeError for a parameter out of range, `init` for one, or for a
    problem, that does not fit. Where clients remember something, the class variable `client_state`
    names the fields of the state that live at the clients, a row each, its own at every client.
    """

    def init(self, problem: Problem) -> Any:
        """Check the parameters against the problem; the state before round 0 (first field `w`)."""

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """All randomness of one round."""

    def round(self, fed: Federation, state: Any, draw: Draw) -> tuple[Any, Info]:
        """One communication round at the server."""
