"""LowRank, FedCMOO's sketch: a truncated SVD of the Jacobian in a nearly square matrix.

A rank-one component of the Jacobian itself costs `M + d` numbers; in a nearly square matrix with
the same entries it costs `2 sqrt(d M)`. Askin, Sharma, Joshi, Joe-Wong, *Federated
Communication-Efficient Multi-Objective Optimization*, AISTATS 2025, Algorithm 3.
"""

from dataclasses import dataclass, field
from math import ceil, isqrt
from typing import Literal

import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.nn.functional import pad

from fedlib import checks
from fedlib.checks import Positive, Rng, Whole
from fedlib.compress.compressors import require_noise
from fedlib.compress.sketches import Sketch
from fedlib.compress.wire import FLOAT_BITS, Field, Layout, Message, Noise
from fedlib.shapes import Jacobian

Matrix = Float[Tensor, "r c"]
Factors = tuple[Float[Tensor, "r p"], Float[Tensor, "p c"]]
Order = Literal["block", "row", "column"]


def folded_shape(tasks: int, dim: int, order: str = "block") -> tuple[int, int]:
    """Rows and columns of a folded Jacobian `[tasks, dim]`.

    >>> folded_shape(2, 28515)
    (238, 240)
    """
    size = tasks * dim
    if order == "block":
        rows = min(isqrt(size), dim)
        blocks = ceil(dim / rows)
        return rows, tasks * blocks
    side = isqrt(size - 1) + 1
    return side, side


def fold(x: Jacobian, order: str = "block") -> Matrix:
    """Put the entries of a Jacobian into a nearly square matrix, padded with zeros.

    `"block"` cuts the `d x M` matrix into blocks of `r = floor(sqrt(d M))` rows and puts them side
    by side. `"row"` and `"column"` fill a square row after row with its entries, read along its
    rows or down its columns.
    """
    tasks, dim = x.shape
    rows, columns = folded_shape(tasks, dim, order)
    if order == "block":
        blocks = columns // tasks
        padding = blocks * rows - dim
        padded = pad(x, (0, padding))
        cube = padded.view(tasks, blocks, rows)
        transposed = cube.permute(2, 1, 0)
        return transposed.reshape(rows, columns)
    if order == "row":
        x = x.mT
    flat = x.flatten()
    padding = rows * columns - len(flat)
    return pad(flat, (0, padding)).view(rows, columns)


def unfold(
    matrix: Matrix,
    tasks: int,
    dim: int,
    order: str = "block",
) -> Jacobian:
    """The Jacobian `[tasks, dim]` whose folded form is `matrix`; padding is dropped."""
    rows, columns = matrix.shape
    if order == "block":
        blocks = columns // tasks
        cube = matrix.view(rows, blocks, tasks)
        transposed = cube.permute(2, 1, 0)
        padded = transposed.reshape(tasks, -1)
        return padded[:, :dim]
    flat = matrix.flatten()[: tasks * dim]
    if order == "column":
        return flat.view(tasks, dim)
    return flat.view(dim, tasks).mT


def at_least_float32(x: Shaped[Tensor, "*b"]) -> Shaped[Tensor, "*b"]:
    """The same numbers, in float32 if their dtype is shorter: LAPACK has no short floats."""
    if x.dtype.itemsize < 4:
        return x.float()
    return x


def truncated_svd(matrix: Matrix, rank: int) -> Factors:
    """The best two factors of rank p = `rank`, of which the left one has the singular values."""
    U, S, Vh = torch.linalg.svd(matrix, full_matrices=False)
    left = U * S
    return left[:, :rank], Vh[:rank]


def randomized_svd(
    matrix: Matrix,
    test: Float[Tensor, "c k"],
    rank: int,
    iterations: int,
) -> Factors:
    """Two factors of rank p = `rank` whose product is close to the matrix.

    Halko, Martinsson, Tropp (2011): `Q` spans the matrix times the Gaussian `test`, after
    `iterations` subspace iterations with a QR after each half step (algorithm 4.4). The SVD of
    `Q' A` (algorithm 5.1) is then cut at `rank`. A matrix that is not finite yields NaN.
    """
    finite = torch.isfinite(matrix).all()
    clean = torch.where(finite, matrix, 0)  # LAPACK raises on NaN
    A = at_least_float32(clean)
    samples = A @ test.to(A.dtype)
    Q = torch.linalg.qr(samples).Q
    for _ in range(iterations):
        P = torch.linalg.qr(A.mT @ Q).Q
        Q = torch.linalg.qr(A @ P).Q
    small = Q.mT @ A
    left, right = truncated_svd(small, rank)
    left = Q @ left
    left = torch.where(finite, left, torch.nan)
    return left.to(matrix.dtype), right.to(matrix.dtype)


def completed(
    matrix: Matrix,
    tasks: int,
    dim: int,
    order: str,
    rank: int,
) -> Matrix:
    """Fill the padding of a folded matrix so that it has the rank of the sketched matrix.

    Unfolding drops the padding, so a product of factors need not be zero there. The columns (for
    `"block"`, else rows) without padding span the factor; the other columns are continued in it.
    """
    rows, columns = matrix.shape
    if order == "block":
        full = columns - tasks
        blocks = columns // tasks - 1
        known = dim - blocks * rows
        return _continued(matrix, full, known, rank)
    full, known = divmod(tasks * dim, columns)
    transposed = _continued(matrix.mT, full, known, rank)
    return transposed.mT


def _continued(matrix: Matrix, full: int, known: int, rank: int) -> Matrix:
    """Continue the columns from `full` on, of which `known` rows are known, in the others' span.

    The known rows stay as they are: where the span lacks them, the columns add to it. A matrix of
    full rank needs no continuation.
    """
    if rank == len(matrix):
        return matrix
    complete = matrix[:, :full]
    given = matrix[:known, full:]
    eps = torch.finfo(matrix.dtype).eps
    U, S, _ = torch.linalg.svd(complete, full_matrices=False)
    is_spanned = S[:rank] > len(matrix) * eps * matrix.norm()
    basis = U[:, :rank] * is_spanned
    inverse = torch.linalg.pinv(basis[:known], atol=eps**0.5)
    continued = basis[known:] @ (inverse @ given)
    rest = torch.cat([given, continued])
    return torch.cat([complete, rest], 1)


@dataclass(frozen=True)
class LowRank(checks.Checked, Sketch):
    r"""A randomized truncated SVD of the Jacobian, folded to a nearly square matrix.

    The rank is $r = \max(1, \lfloor D / (2 \sqrt{d M}) \rfloor)$ for a budget of $D$ numbers. The
    message holds both factors, with the singular values multiplied into one of them. The folded
    matrix is not exactly $\sqrt{d M}$ square, so the message may exceed the budget slightly (by
    one rank for d = 1,685,888 and M = 2).

    >>> sketch, rows = LowRank(), torch.outer(torch.tensor([1.0, 2.0]), torch.ones(8))
    >>> noise = sketch.draw(1, 2, 8, torch.Generator().manual_seed(0))[0]
    >>> torch.allclose(sketch(rows, noise), rows, atol=1e-5)
    True
    >>> sketch.bits(2, 8), 32 * rows.numel()
    (256, 512)

    Parameters
    ----------
    budget : float
        D / d, where D is how many numbers a message may hold.
    order : "block" or "row" or "column"
        How the entries fill the matrix. `"block"` puts blocks of rows of the transposed Jacobian,
        d x M, side by side, as the authors' code does; `"row"` and `"column"` read the transposed
        Jacobian along its rows or down its columns.
    iterations : int
        Number of subspace iterations.

    The oversampling is r / 10, rounded down, as in the authors' code.
    """

    budget: Positive = field(default=1.0, metadata={"shape": True})
    order: Order = "block"
    iterations: Whole = 2

    def rank(self, tasks: int, dim: int) -> int:
        """The number of components that the budget allows: at least one, at most all."""
        component = 2 * (dim * tasks) ** 0.5
        affordable = int(self.budget * dim / component)
        rows, _ = folded_shape(tasks, dim, self.order)  # there are at least as many columns
        return min(max(1, affordable), rows)

    def __call__(self, x: Jacobian, noise: Noise = ()) -> Jacobian:
        """The best rank-r approximation within the drawn subspace."""
        checks.matrix("LowRank", "x", x)
        tasks, dim = x.shape
        matrix = fold(x, self.order)
        test = require_noise("LowRank", noise)
        rank = self.rank(tasks, dim)
        left, right = randomized_svd(matrix, test, rank, self.iterations)
        return unfold(left @ right, tasks, dim, self.order)

    def draw(
        self,
        count: int,
        tasks: int,
        dim: int,
        rng: Rng,
    ) -> Noise:
        """Draw a Gaussian test matrix for each message, `[count, columns, r + r / 10]`."""
        rank = self.rank(tasks, dim)
        rows, columns = folded_shape(tasks, dim, self.order)
        oversampled = rank + rank // 10
        width = min(oversampled, rows)
        return torch.randn(count, columns, width, generator=rng, dtype=torch.float32)

    def encode(self, x: Jacobian, noise: Noise = ()) -> Message:
        """Send the two factors of a folded matrix of rank r, one after the other."""
        tasks, dim = x.shape
        rank = self.rank(tasks, dim)
        folded = fold(at_least_float32(x), self.order)
        matrix = completed(folded, tasks, dim, self.order, rank)
        left, right = truncated_svd(matrix, rank)
        factors = torch.cat([left.flatten(), right.flatten()])
        return Message(factors.to(x.dtype))

    def decode(
        self,
        message: Message,
        like: Jacobian,
        noise: Noise = (),
    ) -> Jacobian:
        """Multiply the factors and unfold the product."""
        tasks, dim = like.shape
        rank = self.rank(tasks, dim)
        rows, columns = folded_shape(tasks, dim, self.order)
        sizes = [rows * rank, rank * columns]
        left, right = torch.split(message.values, sizes)
        matrix = left.view(rows, rank) @ right.view(rank, columns)
        return unfold(matrix, tasks, dim, self.order)

    def layout(self, tasks: int, dim: int) -> Layout:
        """The numbers of both factors, `r (rows + columns)`."""
        rows, columns = folded_shape(tasks, dim, self.order)
        count = self.rank(tasks, dim) * (rows + columns)
        return (Field("number", count, FLOAT_BITS),)
