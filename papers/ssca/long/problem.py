"""What the long runs of SSCA measure that the network's own metrics do not."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from fedlib.algorithms.constrained_ssca import ConstrainedSSCA
from fedlib.core import Problem
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info
from fedlib.work.surrogates import SurrogateState
from papers.ssca.common import RIDGE, constrained, digits_problem, over_all


@dataclass(frozen=True)
class OneConstraint:
    """`ConstrainedSSCA` with one constraint, whose multiplier and slack it reports as numbers."""

    method: ConstrainedSSCA

    def init(self, problem: Problem) -> SurrogateState:
        """The method's own state."""
        return self.method.init(problem)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """The method's own draw."""
        return self.method.draw(problem, rng)

    def round(
        self,
        fed: Federation,
        state: SurrogateState,
        draw: Draw,
    ) -> tuple[SurrogateState, Info]:
        """The method's own round."""
        state, info = self.method.round(fed, state, draw)
        numbers = {name: info[name].reshape(()) for name in ("nu", "slack")}
        return state, {**info, **numbers}


def one_constraint(batch: int, level: float, **changes: Any) -> OneConstraint:
    """Algorithm 2, with numbers for its multiplier and its slack."""
    method = constrained("samples", batch, level, **changes)
    assert isinstance(method, ConstrainedSSCA)
    return OneConstraint(method)


@lru_cache(maxsize=64)
def long_problem(seed: int, *, also: str, **sizes: Any) -> Problem:
    r"""`digits_problem` with one more metric, over all training pictures of all clients.

    `also` is `"cost_all"`, the cost F, or `"gradient"`, $|\nabla F + 2 \lambda w|$ with the lambda
    of all these studies.
    """
    plain = digits_problem(seed, **sizes)

    def metrics(w: Tensor, problem: Problem) -> dict[str, Tensor]:
        gradient = problem.gradient
        assert gradient is not None
        if also == "cost_all":
            value = over_all(problem, lambda rows: problem.losses(w, rows)[0], w.new_zeros(()))
        else:
            whole_weight = w.new_ones(1)
            value = over_all(problem, lambda rows: gradient(w, rows, whole_weight), 2 * RIDGE * w)
        return {**plain.metrics(w, problem), also: value.norm()}

    return replace(plain, metrics=metrics, config={**plain.config, "also": also})
