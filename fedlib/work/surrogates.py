r"""Averaged quadratics, the surrogates of successive convex approximation.

A running average of quadratics around the iterates replaces every loss $F_m$:
$\bar F_m(w) = A_m + B_m^\top w + \tau \|w\|^2$ (equations (3), (8), (10), (12) of Ye and Cui; the
vertical (13), (18), (20), (23) are the same). `Surrogate` is that average, and `SurrogateState` the
state of a method that carries it.

Paper's symbol -> here: $\hat f_{m,1}$ and the pair (B, C) -> a row of `linear`, $\hat f_{m,0}$, A
-> an entry of `constant`, $\kappa_t = 1 - \prod_{s \le t} (1 - \rho^{(s)})$ -> 1 - `left`.
"""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from fedlib.core.problem import Problem
from fedlib.shapes import PerLoss, Scalar, Vector
from fedlib.solvers.interior_point import inner_products

Number = float | Tensor


class Surrogate(NamedTuple):
    """The averaged quadratics of K losses, all with the curvature tau, which is not stored."""

    linear: Float[Tensor, "K d"]
    constant: PerLoss
    left: Scalar  # prod (1 - rho), the weight of the zero start

    @classmethod
    def zero(cls, w: Vector, losses: int) -> "Surrogate":
        """The start of the average: the zero function for each of K `losses`."""
        return cls(
            linear=w.new_zeros(losses, w.shape[-1]),
            constant=w.new_zeros(losses),
            left=w.new_ones(()),
        )

    def averaged(
        self,
        w: Vector,
        gradients: Float[Tensor, "K d"],
        values: PerLoss,
        *,
        rho: Number,
        tau: Number,
    ) -> "Surrogate":
        """The average after one round, which adds quadratics of curvature tau around `w`.

        `gradients` and `values` are estimates at `w`, one row for each loss. A value that is not
        needed may be 0. `rho` in (0, 1] is the weight of the new quadratics in the average.
        """
        at_zero = values - inner_products(gradients, w)
        constant = at_zero + tau * inner_products(w, w)
        return Surrogate(
            linear=(1 - rho) * self.linear + rho * (gradients - 2 * tau * w),
            constant=(1 - rho) * self.constant + rho * constant,
            left=(1 - rho) * self.left,
        )

    @property
    def kappa(self) -> Scalar:
        """The total weight of the quadratics in the average; the zero start has the rest."""
        return 1 - self.left

    def debiased(self) -> "Surrogate":
        """The average of the quadratics alone, whose minimizers are those of (3), (10)."""
        return Surrogate(
            self.linear / self.kappa,
            self.constant / self.kappa,
            self.left,
        )


class SurrogateState(NamedTuple):
    """The server's state in the SSCA methods."""

    w: Vector
    linear: Float[Tensor, "K d"]  # the averaged surrogates
    constant: PerLoss
    left: Scalar  # prod (1 - rho)
    factor: Scalar  # the product of all increases of the penalty
    t: Scalar  # the number of rounds done

    @classmethod
    def start(cls, problem: Problem, losses: int) -> "SurrogateState":
        """The problem's start with zero surrogates of `losses` losses, at round 0."""
        w = problem.w0
        zero = Surrogate.zero(w, losses)
        return cls(w, *zero, factor=w.new_ones(()), t=w.new_zeros(()))

    @property
    def surrogate(self) -> Surrogate:
        """The averaged surrogates."""
        return Surrogate(self.linear, self.constant, self.left)
