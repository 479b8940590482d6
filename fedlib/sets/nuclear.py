"""The nuclear ball: matrices whose singular values have a bounded sum."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count, Positive
from fedlib.sets.balls import NormBall, onto_simplex
from fedlib.sets.rounding import check_bound, widened
from fedlib.sets.vertices import RankOne
from fedlib.shapes import Scalar, Vector
from fedlib.solvers.leading_pair import leading_pair

ORDINARY = (1e-15, 1e15)  # largest entries for which a decomposition needs no scaling


@dataclass(frozen=True)
class NuclearBall(NormBall):
    """The matrices whose singular values sum to at most `radius`, as vectors of their rows.

    >>> ball = NuclearBall(1.0, rows=2, columns=2)
    >>> ball.project(torch.tensor([3.0, 0.0, 0.0, 0.0]))
    tensor([1., 0., 0., 0.])
    >>> ball.contains(torch.tensor([0.5, 0.0, 0.0, 0.4]))
    tensor(True)

    Parameters
    ----------
    radius : float
        The largest sum of the singular values, positive.
    rows, columns : int
        The shape of the matrix; d = rows * columns.
    steps : int
        Number of Lanczos steps in `lmo`, each with two products of the matrix and a vector. `lmo`
        is exact up to rounding if `steps` is at least min(rows, columns).
    """

    radius: Positive
    rows: Count
    columns: Count
    steps: Count = 40

    @property
    def rank(self) -> int:
        """The largest rank of a matrix."""
        return min(self.rows, self.columns)

    def project(self, x: Vector) -> Vector:
        """The nearest point of the set: x itself, or its singular values projected to the simplex.

        It needs a full singular value decomposition.
        """
        A, finite = self._matrix(x)
        scale = unusual_scale(A)
        scaled = A / scale
        U, S, Vh = torch.linalg.svd(scaled, full_matrices=False)
        inside, values = self._rescaled(S, scale)
        left = U * values
        nearest = left @ Vh
        flat = nearest.flatten().to(x.dtype)
        point = torch.where(inside, x, flat)
        return torch.where(finite, point, torch.nan)

    def size(self, x: Vector) -> Scalar:
        """The nuclear norm, the sum of the singular values."""
        A, finite = self._matrix(x)
        scale = unusual_scale(A)
        S = torch.linalg.svdvals(A / scale)
        total = S.sum() * scale
        norm = torch.where(finite, total, torch.nan)
        return norm.to(x.dtype)

    def lmo(self, direction: Vector) -> Vector:
        """A minimizer of <direction, s>: -radius u v' with the leading singular vectors u and v.

        For direction 0 the centre is returned. The vectors are exact up to rounding if `steps` is
        at least min(rows, columns), and else those of a Krylov space (see `leading_pair`).
        """
        A, finite = self._matrix(direction, "direction")
        u, v = leading_pair(A, self.steps)
        product = torch.outer(u, v).flatten()
        vertex = -self.radius * product.to(direction.dtype)
        return torch.where(finite, vertex, torch.nan)

    def wire(self, dim: int) -> RankOne:
        """The message of a vertex is two vectors, `32 (rows + columns)` bits."""
        return RankOne(self.rows, self.columns)

    def _rescaled(
        self,
        S: Float[Tensor, " k"],
        scale: Scalar,
    ) -> tuple[Tensor, Tensor]:
        """Whether S * scale sums to at most the radius, and its projection, without overflow."""
        exact = S
        if S.device.type != "mps":  # that device has no float64
            exact = S.double()
        largest = torch.finfo(exact.dtype).max
        values = (exact * scale).clamp(max=largest)
        projected = onto_simplex(values, self.radius)
        inside = values.sum() <= self.radius
        return inside, projected.to(S.dtype)

    def _matrix(self, x: Tensor, name: str = "x") -> tuple[Tensor, Tensor]:
        """The matrix, with 0 for NaN and infinity (LAPACK fails on them); whether it had none."""
        checks.vector("NuclearBall", name, x, self.rows * self.columns)
        check_bound("NuclearBall", "radius", self.radius, x)
        finite = torch.isfinite(x).all()
        clean = torch.where(finite, x, 0)
        wide = widened(clean)
        return wide.view(self.rows, self.columns), finite


def unusual_scale(A: Float[Tensor, "m n"]) -> Scalar:
    """The largest entry of a matrix if it is far from 1, or else 1."""
    top = A.abs().amax()
    low, high = ORDINARY
    near_one = (top >= low) & (top <= high)
    is_ordinary = near_one | (top == 0)
    return torch.where(is_ordinary, 1, top)
