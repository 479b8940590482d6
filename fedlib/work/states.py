"""States that several methods carry from round to round."""

from typing import NamedTuple

from fedlib.core.problem import Problem
from fedlib.shapes import Scalar, Vector


class Model(NamedTuple):
    """The state of methods that carry nothing but the model."""

    w: Vector


class Iterate(NamedTuple):
    """The state of methods with one common model and step sizes that depend on the round."""

    w: Vector
    t: Scalar  # the number of rounds done

    @classmethod
    def start(cls, problem: Problem) -> "Iterate":
        """The problem's start, at round 0."""
        return cls(problem.w0, problem.w0.new_zeros(()))
