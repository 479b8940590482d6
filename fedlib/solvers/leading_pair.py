"""The leading singular vectors of a matrix, by Lanczos steps."""

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib.shapes import Vector

GOLDEN = (5**0.5 - 1) / 2
STALLED = 1000  # units of rounding; a direction whose new part is shorter is noise


def leading_pair(
    A: Float[Tensor, "m n"], steps: int = 40
) -> tuple[Float[Tensor, " m"], Float[Tensor, " n"]]:
    """Unit vectors u, v with u'Av close to the largest singular value of A; zeros for A = 0.

    The method is Lanczos on A'A with full reorthogonalization. `steps` products with A (finite, of
    any scale) build an orthonormal basis Q of a Krylov space. The best v in it comes from the SVD
    of the small triangular factor of AQ. The start is A'h with a fixed irregular h, so the result
    is a function of A. Where the space is complete, A maps the rest of R^n to a space of its own;
    the row of A with the largest part in the rest then goes on. The result is exact up to rounding
    if rows or columns do not exceed `steps`.
    """
    largest = A.abs().amax()
    divisor = torch.where(largest == 0, 1, largest)
    A = A / divisor
    if A.shape[0] < A.shape[1]:
        v, u = tall_pair(A.mT, steps)
        return u, v
    return tall_pair(A, steps)


def tall_pair(A: Float[Tensor, "m n"], steps: int) -> tuple[Tensor, Tensor]:
    """The leading pair of a matrix that has no more columns than rows."""
    n = A.shape[1]
    if n <= steps:
        W = A
        Q = torch.eye(n, dtype=A.dtype, device=A.device)
    else:
        W, Q = krylov_basis(A, steps)
    triangular = torch.linalg.qr(W).R
    leading = torch.linalg.svd(triangular).Vh[0]
    v = unit(Q @ leading)
    u = unit(A @ v)
    is_zero = (u == 0).all()
    return u, torch.where(is_zero, 0, v)


def krylov_basis(A: Float[Tensor, "m n"], steps: int) -> tuple[Tensor, Tensor]:
    """A Krylov space of A'A: an orthonormal basis Q `[n, steps]`, and W = AQ `[m, steps]`."""
    noise = STALLED * torch.finfo(A.dtype).eps
    m = A.shape[0]
    number = torch.arange(1, m + 1, dtype=A.dtype, device=A.device)
    multiples = number * GOLDEN
    irregular = multiples.frac() - 0.5
    start = irregular @ A
    is_zero = (start == 0).all()
    squares = A * A
    outside = squares.sum(1)  # of every row, the squared length of its part outside the space
    row = largest_row(A, outside)
    q = unit(torch.where(is_zero, row, start))
    basis = [q]
    images = [A @ q]
    for _ in range(steps - 1):
        Q = torch.stack(basis)  # [k, n]
        image = images[-1]
        outside = outside - image**2
        direction = unit(image @ A)
        candidate = orthogonal_part(direction, Q)
        row = unit(largest_row(A, outside))
        row_part = orthogonal_part(row, Q)
        is_complete = torch.linalg.vector_norm(candidate) <= noise
        candidate = torch.where(is_complete, row_part, candidate)
        is_new = torch.linalg.vector_norm(candidate) > noise
        q = torch.where(is_new, unit(candidate), 0)  # 0 if no row has another part
        q = unit(orthogonal_part(q, Q))  # two orthogonalizations are enough
        basis.append(q)
        images.append(A @ q)
    return torch.stack(images, 1), torch.stack(basis, 1)


def orthogonal_part(x: Vector, Q: Float[Tensor, "k n"]) -> Vector:
    """The part of a vector that is orthogonal to the rows of Q, which are orthonormal."""
    inside = (Q @ x) @ Q
    return x - inside


def largest_row(
    A: Float[Tensor, "m n"],
    size: Float[Tensor, " m"],
) -> Float[Tensor, " n"]:
    """The row of A whose size is largest."""
    number = size.argmax().unsqueeze(0)
    return A.index_select(0, number).squeeze(0)


def unit(x: Vector) -> Vector:
    """The vector divided by its norm, or 0."""
    norm = torch.linalg.vector_norm(x)
    divisor = torch.where(norm == 0, 1, norm)
    return x / divisor
