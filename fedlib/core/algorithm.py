"""What `run` asks of an algorithm."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import torch

from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info, Problem


@runtime_checkable
class Algorithm(Protocol):
    """A frozen dataclass of hyperparameters with three methods; a round is pure given its draw.

    Two class variables, where an algorithm has them, tell a real federation what it must know:

    - `client_state`, a tuple of names: the fields of the state that live at the clients, a row
      each; the server has none of them, a client its own row;
    - `needs_all_clients`: True if a round cannot be done without one of them.
    """

    def init(self, problem: Problem) -> Any:
        """Check the parameters against the problem; the state before round 0 (first field `w`)."""

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """All randomness of one round."""

    def round(self, fed: Federation, state: Any, draw: Draw) -> tuple[Any, Info]:
        """One communication round at the server."""
