"""The nuclear-norm ball of matrices, and the leading singular pair by Lanczos.

A point is the matrix read row by row, a vector [rows * columns]. A frozen record as those of
`fedlib.sets`: nothing branches on a tensor, NaN in gives NaN out.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count, Positive
from fedlib.sets.sparse import onto_simplex
from fedlib.sets.vertices import RankOne

GOLDEN = (5**0.5 - 1) / 2
STALLED = 1000  # units of rounding: a direction with less that is new is noise


@dataclass(frozen=True)
class NuclearBall(checks.Checked):
    """Matrices whose singular values sum to at most `radius`.

    >>> ball = NuclearBall(1.0, rows=2, columns=2)
    >>> ball.project(torch.tensor([3.0, 0.0, 0.0, 0.0]))
    tensor([1., 0., 0., 0.])
    >>> ball.contains(torch.tensor([0.5, 0.0, 0.0, 0.4]))
    tensor(True)

    Parameters
    ----------
    radius : of the ball.
    rows, columns : of the matrix; d = rows * columns.
    steps : of Lanczos in `lmo`, matrix-vector products in both directions each; exact up to
        rounding if rows or columns are no more.

    Raises
    ------
    ValueError, TypeError
        if the radius is not a positive finite number, or a count no whole number from 1 on.
    """

    radius: Positive
    rows: Count
    columns: Count
    steps: Count = 40

    def project(self, x: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
        """The nearest point of the set: x itself, or its singular values projected to the simplex.

        By a full singular value decomposition.
        """
        A, finite = self._matrix(x)
        U, S, Vh = torch.linalg.svd(A, full_matrices=False)
        nearest: Tensor = ((U * onto_simplex(S, self.radius)) @ Vh).flatten()
        inside = S.sum() <= self.radius
        return torch.where(finite, torch.where(inside, x, nearest), torch.full_like(x, torch.nan))

    def contains(self, x: Float[Tensor, " d"], tol: float = 1e-6) -> Bool[Tensor, ""]:
        """Whether the singular values sum to at most (1 + tol) radius; a 0-d bool tensor."""
        A, finite = self._matrix(x)
        within: Tensor = torch.linalg.svdvals(A).sum() <= (1 + tol) * self.radius
        return finite & within

    def lmo(self, direction: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
        """A minimizer of <direction, s>: -radius u v', u and v the leading singular vectors.

        For direction 0 the centre is returned.
        """
        A, finite = self._matrix(direction, "direction")
        u, v = leading_pair(A, self.steps)
        vertex: Tensor = -self.radius * torch.outer(u, v).flatten()
        return torch.where(finite, vertex, torch.full_like(vertex, torch.nan))

    def diameter(self, dim: int) -> float:
        """The largest distance of two points, 2 radius."""
        return 2 * self.radius

    def gauge(self, x: Float[Tensor, " d"]) -> Float[Tensor, ""]:
        """The nuclear norm over the radius."""
        A, finite = self._matrix(x)
        size = torch.linalg.svdvals(A).sum() / self.radius
        return torch.where(finite, size, torch.full_like(size, torch.nan))

    def wire(self, dim: int) -> RankOne:
        """A vertex travels as two vectors, `32 (rows + columns)` bits."""
        return RankOne(self.rows, self.columns)

    def _matrix(self, x: Tensor, name: str = "x") -> tuple[Tensor, Tensor]:
        """The matrix, with 0 for what is not finite (LAPACK raises on it), and whether all is."""
        checks.vector("NuclearBall", name, x, self.rows * self.columns)
        finite = torch.isfinite(x).all()
        clean = torch.where(finite, x, torch.zeros_like(x))
        return clean.view(self.rows, self.columns), finite


def leading_pair(
    A: Float[Tensor, "m n"], steps: int = 40
) -> tuple[Float[Tensor, " m"], Float[Tensor, " n"]]:
    r"""Unit vectors u, v with u'Av close to the largest singular value of A; zeros for A = 0.

    Lanczos on A'A, with full reorthogonalization: an orthonormal basis Q of the Krylov space of
    some start after `steps` steps, then the best v in it, from the SVD of the small triangular
    factor of AQ. The start is A'h with a fixed irregular h, so the result is a function of A. With
    `steps` not below rows or columns the space is everything, up to rounding.

    Parameters
    ----------
    A : the matrix, finite; its scale does not matter.
    steps : dimension of the Krylov space, the number of products with A.
    """
    top = A.abs().amax()
    A = A / torch.where(top == 0, torch.ones_like(top), top)
    if A.shape[0] < A.shape[1]:
        v, u = _tall_pair(A.mT, steps)
        return u, v
    return _tall_pair(A, steps)


def _tall_pair(A: Float[Tensor, "m n"], steps: int) -> tuple[Tensor, Tensor]:
    m, n = A.shape
    if n <= steps:
        W, Q = A, torch.eye(n, dtype=A.dtype, device=A.device)
    else:
        irregular = (torch.arange(1, m + 1, dtype=A.dtype, device=A.device) * GOLDEN).frac() - 0.5
        q = _unit(irregular @ A)
        basis, images = [q], [A @ q]
        for _ in range(steps - 1):
            q, Q = _unit(images[-1] @ A), torch.stack(basis)  # Q: [k, n]
            rest = q - (Q @ q) @ Q
            new = torch.linalg.vector_norm(rest) > STALLED * torch.finfo(A.dtype).eps
            q = torch.where(new, _unit(rest), torch.zeros_like(q))  # the space is complete: stop
            q = _unit(q - (Q @ q) @ Q)  # twice is enough
            basis.append(q)
            images.append(A @ q)
        W, Q = torch.stack(images, 1), torch.stack(basis, 1)
    z = torch.linalg.svd(torch.linalg.qr(W).R).Vh[0]
    v = _unit(Q @ z)
    u = _unit(A @ v)
    return u, torch.where((u == 0).all(), torch.zeros_like(v), v)


def _unit(x: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
    """The vector over its norm, or 0."""
    norm = torch.linalg.vector_norm(x)
    return x / torch.where(norm == 0, torch.ones_like(norm), norm)
