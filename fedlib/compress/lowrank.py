"""FedCMOO's sketch: a Jacobian folded to a nearly square matrix, and its randomized SVD.

A component of rank one of a Jacobian `[M, d]` costs `M + d` numbers, so that a budget of `d` does
not buy one. Folded to about `sqrt(d M)` rows and columns the same entries make a matrix whose
components cost `2 sqrt(d M)` each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, isqrt
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from fedlib import checks
from fedlib.checks import Positive, Whole
from fedlib.compress.compressors import FLOAT_BITS, Message, Noise, require_noise
from fedlib.compress.sketches import Jacobian, Sketch

Order = Literal["block", "row", "column"]


def folded_shape(tasks: int, dim: int, order: str = "block") -> tuple[int, int]:
    """Rows and columns of a folded Jacobian `[tasks, dim]`.

    >>> folded_shape(2, 28515)
    (238, 240)
    """
    if order == "block":
        rows = min(isqrt(tasks * dim), dim)
        return rows, tasks * ceil(dim / rows)
    side = isqrt(tasks * dim - 1) + 1
    return side, side


def fold(x: Float[Tensor, "M d"], order: str = "block") -> Float[Tensor, "r c"]:
    """The entries of a Jacobian in a nearly square matrix, zeros where none are left.

    `"block"`: the `d x M` matrix is cut into blocks of `r = floor(sqrt(d M))` rows, which are put
    side by side. `"row"` and `"column"`: its entries fill a square row after row, read along its
    rows or down its columns.
    """
    tasks, dim = x.shape
    rows, columns = folded_shape(tasks, dim, order)
    if order == "block":
        blocks = columns // tasks
        tall = pad(x, (0, blocks * rows - dim)).view(tasks, blocks, rows)
        return tall.permute(2, 1, 0).reshape(rows, columns)
    flat = x.flatten() if order == "column" else x.mT.flatten()
    return pad(flat, (0, rows * columns - tasks * dim)).view(rows, columns)


def unfold(
    matrix: Float[Tensor, "r c"], tasks: int, dim: int, order: str = "block"
) -> Float[Tensor, "M d"]:
    """The Jacobian `[tasks, dim]` whose folded form is `matrix`; what was padding is dropped."""
    rows, columns = matrix.shape
    if order == "block":
        cube = matrix.view(rows, columns // tasks, tasks)
        return cube.permute(2, 1, 0).reshape(tasks, -1)[:, :dim]
    flat = matrix.flatten()[: tasks * dim]
    return flat.view(tasks, dim) if order == "column" else flat.view(dim, tasks).mT


def randomized_svd(
    matrix: Float[Tensor, "r c"], test: Float[Tensor, "c k"], rank: int, iterations: int
) -> tuple[Float[Tensor, "r p"], Float[Tensor, "p c"]]:
    """Two factors of rank p = `rank` whose product is close to the matrix.

    Halko, Martinsson, Tropp (2011), algorithm 5.1: `Q` spans the matrix times the Gaussian `test`,
    after `iterations` subspace iterations with a QR after each half step; then the SVD of `Q' A`,
    cut at `rank`. A matrix that is not finite gives NaN.
    """
    finite = torch.isfinite(matrix).all()
    A = torch.where(finite, matrix, torch.zeros_like(matrix))  # LAPACK raises on NaN
    Q = torch.linalg.qr(A @ test).Q
    for _ in range(iterations):
        Q = torch.linalg.qr(A @ torch.linalg.qr(A.mT @ Q).Q).Q
    U, S, Vh = torch.linalg.svd(Q.mT @ A, full_matrices=False)
    left = Q @ (U * S)[:, :rank]
    return torch.where(finite, left, torch.full_like(left, torch.nan)), Vh[:rank]


def completed(
    matrix: Float[Tensor, "r c"], tasks: int, dim: int, order: str, rank: int
) -> Float[Tensor, "r c"]:
    """A folded matrix whose padding is filled so that its rank is that of what was sketched.

    Unfolding drops the padding, where a product of factors need not be zero. The columns (for
    `"block"`; rows otherwise) without padding span the factor; the others are continued in it.
    """
    rows, columns = matrix.shape
    if order == "block":
        full, known = columns - tasks, dim - (columns // tasks - 1) * rows
    else:
        full, known = divmod(tasks * dim, columns)
    tall = matrix if order == "block" else matrix.mT
    if full in (0, tall.shape[1]) or known == tall.shape[0]:
        return matrix
    basis = torch.linalg.svd(tall[:, :full], full_matrices=False).U[:, :rank]
    rest = basis @ (torch.linalg.pinv(basis[:known]) @ tall[:known, full:])
    whole = torch.cat([tall[:, :full], rest], 1)
    return whole if order == "block" else whole.mT


@dataclass(frozen=True)
class LowRank(checks.Checked, Sketch):
    r"""Randomized truncated SVD of the Jacobian, folded to a nearly square matrix.

    The rank is $r = \max(1, \lfloor D / (2 \sqrt{d M}) \rfloor)$ for a budget of $D$ numbers. On
    the wire: both factors, the singular values multiplied into one of them; the folded matrix is
    not quite $\sqrt{d M}$ square, so that they may be a little longer than the budget
    (one rank more than fits for d = 1,685,888 and M = 2).

    >>> sketch, rows = LowRank(), torch.outer(torch.tensor([1.0, 2.0]), torch.ones(8))
    >>> noise = sketch.draw(1, 2, 8, torch.Generator().manual_seed(0))[0]
    >>> torch.allclose(sketch(rows, noise), rows, atol=1e-5)
    True
    >>> sketch.bits(2, 8), 32 * rows.numel()
    (256, 512)

    Parameters
    ----------
    budget : D / d.
    order : how the entries fill the matrix, see `fold`; `"block"` is the authors' code's.
    iterations : subspace iterations.

    The oversampling is r / 10, rounded down, as in the code.
    """

    budget: Positive = field(default=1.0, metadata={"shape": True})
    order: Order = "block"
    iterations: Whole = 2

    def rank(self, tasks: int, dim: int) -> int:
        """How many components the budget buys: at least one, at most all."""
        bought = int(self.budget * dim / (2 * (dim * tasks) ** 0.5))
        return min(max(1, bought), *folded_shape(tasks, dim, self.order))

    def __call__(self, x: Jacobian, noise: Noise = ()) -> Jacobian:
        """The best rank-r matrix that the drawn subspace holds."""
        checks.matrix("LowRank", "x", x)
        tasks, dim = x.shape
        matrix, test = fold(x, self.order), require_noise("LowRank", noise).to(x)
        left, right = randomized_svd(matrix, test, self.rank(tasks, dim), self.iterations)
        return unfold(left @ right, tasks, dim, self.order)

    def draw(self, count: int, tasks: int, dim: int, rng: torch.Generator) -> Noise:
        """A Gaussian test matrix for each of `count` messages, `[count, columns, r + r / 10]`."""
        rank, (rows, columns) = self.rank(tasks, dim), folded_shape(tasks, dim, self.order)
        width = min(rank + rank // 10, rows, columns)
        return torch.randn(count, columns, width, generator=rng)

    def encode(self, x: Jacobian, noise: Noise = ()) -> Message:
        """The two factors of a folded matrix of rank r, one after the other."""
        tasks, dim = x.shape
        rank = self.rank(tasks, dim)
        matrix = completed(fold(x, self.order), tasks, dim, self.order, rank)
        U, S, Vh = torch.linalg.svd(matrix, full_matrices=False)
        return Message(torch.cat([(U * S)[:, :rank].flatten(), Vh[:rank].flatten()]))

    def decode(self, message: Message, like: Jacobian, noise: Noise = ()) -> Jacobian:
        """The product of the factors, unfolded."""
        tasks, dim = like.shape
        rank, (rows, columns) = self.rank(tasks, dim), folded_shape(tasks, dim, self.order)
        left = message.values[: rows * rank].view(rows, rank)
        right = message.values[rows * rank :].view(rank, columns)
        return unfold(left @ right, tasks, dim, self.order)

    def bits(self, tasks: int, dim: int) -> int:
        """32 bits an entry of the factors: `32 r (rows + columns)`."""
        return FLOAT_BITS * self.rank(tasks, dim) * sum(folded_shape(tasks, dim, self.order))
