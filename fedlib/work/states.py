"""States that several methods carry from round to round."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from fedlib.core.problem import Problem


class Model(NamedTuple):
    """The state of methods that carry nothing but the model."""

    w: Float[Tensor, "d"]


class Iterate(NamedTuple):
    """The state of methods with one common model and step sizes that depend on the round."""

    w: Float[Tensor, "d"]
    t: Float[Tensor, ""]  # the number of rounds done

    @classmethod
    def start(cls, problem: Problem) -> "Iterate":
        """The problem's start, at round 0."""
        return cls(problem.w0, problem.w0.new_zeros(()))
