"""What the long runs of SSCA measure that the network's own metrics do not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from fedlib.algorithms.constrained_ssca import ConstrainedSSCA
from fedlib.core import Problem
from fedlib.core.federation import Federation
from fedlib.core.problem import Batch, Draw, Info
from fedlib.work.surrogates import SurrogateState
from papers.ssca.common import RIDGE, constrained, digits_problem

CHUNK = 2000  # rows at a time


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
        self, fed: Federation, state: SurrogateState, draw: Draw
    ) -> tuple[SurrogateState, Info]:
        """The method's own round."""
        state, info = self.method.round(fed, state, draw)
        return state, {**info, **{k: info[k].reshape(()) for k in ("nu", "slack")}}


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
    problem_of_digits = digits_problem(seed, **sizes)

    def metrics(w: Tensor, problem: Problem) -> dict[str, Tensor]:
        rows = problem.rows.flatten()
        total = w.new_zeros(()) if also == "cost_all" else 2 * RIDGE * w
        for chunk in torch.split(rows, CHUNK):
            share = torch.full_like(chunk, 1 / len(rows), dtype=w.dtype)
            batch = Batch(tuple(x[chunk] for x in problem.data), share)
            if also == "cost_all":
                total = total + problem.losses(w, batch)[0]
            else:
                assert problem.gradient is not None
                total = total + problem.gradient(w, batch, w.new_ones(1))
        return {**problem_of_digits.metrics(w, problem), also: total.norm()}

    return replace(
        problem_of_digits, metrics=metrics, config={**problem_of_digits.config, "also": also}
    )
