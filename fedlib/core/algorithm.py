"""What `run` asks of an algorithm."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import torch

from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info, Problem

#: Fields of a state that live at the clients, a row each: in a federation the server has none of
#: them, and a client its own row. All else in a state follows from what crosses the line.
AT_CLIENTS = ("residual", "memory", "extra")
#: Methods whose mean is over all N clients whatever happens: no round is done without one of them.
NEEDS_ALL = ("NaiveFW",)


@runtime_checkable
class Algorithm(Protocol):
    """A frozen dataclass of hyperparameters with three methods; a round is pure given its draw."""

    def init(self, problem: Problem) -> Any:
        """Check the parameters against the problem; the state before round 0 (first field `w`)."""
        ...

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """All randomness of one round."""
        ...

    def round(self, fed: Federation, state: Any, draw: Draw) -> tuple[Any, Info]:
        """One communication round at the server."""
        ...
