"""The interface of an algorithm: the three methods that `run` calls."""

from typing import Any, Protocol, runtime_checkable

import torch

from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info, Problem


@runtime_checkable
class Algorithm(Protocol):
    """A frozen dataclass of hyperparameters, whose rounds have no randomness but their draw.

    The constructor raises ValueError or TypeError for a parameter out of range; `init` raises them
    if the parameters do not fit the problem. If clients keep a memory, the class variable
    `client_state` names the fields of the state that hold it, with one row for each client.

    `init` and `draw` may use any field, also one in which the points of a grid differ. A method
    that draws by `draw_round` may derive from `fedlib.core.sampling.Sampled` and define `sampling`
    in place of `draw`; on other classes that name has no meaning.
    """

    def init(self, problem: Problem) -> Any:
        """Check the parameters against the problem; return the first state (first field `w`)."""

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """Draw all randomness of one round."""

    def round(
        self,
        fed: Federation,
        state: Any,
        draw: Draw,
    ) -> tuple[Any, Info]:
        """Run one communication round at the server."""
