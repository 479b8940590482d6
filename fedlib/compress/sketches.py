"""Sketches: compressors of Jacobians, which fit `[M, d]` numbers into about `d` on the wire.

A sketch is a frozen dataclass that maps a Jacobian `[M, d]` to the Jacobian that the receiver will
hold. Like a `Compressor` of vectors, it draws its randomness beforehand and defines its message;
`Wire` turns it into a `Compressor` for `fed.ask` and `fed.broadcast`. Its budget counts multiples
of `d` float32 numbers. FedCMOO's own sketch is `LowRank`: a rank-one component costs `M + d`
numbers in the Jacobian itself, and `2 sqrt(d M)` in a nearly square matrix with the same entries.
"""

from dataclasses import dataclass, field
from math import ceil, isqrt
from typing import Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import vmap
from torch.nn.functional import pad

from fedlib import checks
from fedlib.checks import Count, Positive, Whole
from fedlib.compress.compressors import (
    FLOAT_BITS,
    Compressor,
    Identity,
    Message,
    Noise,
    RandK,
    Vector,
    index_bits,
    require_noise,
)

Matrix = Float[Tensor, "r c"]

Jacobian = Float[Tensor, "M d"]
Order = Literal["block", "row", "column"]


@runtime_checkable
class Sketch(Protocol):
    """A compressor of Jacobians and its wire format; the bodies here are defaults to inherit."""

    def __call__(self, x: Jacobian, noise: Noise = ()) -> Jacobian:
        """The Jacobian that the receiver will hold."""
        return self.decode(self.encode(x, noise), x, noise)

    def draw(self, count: int, tasks: int, dim: int, rng: torch.Generator) -> Noise:
        """The randomness of `count` messages, on a leading axis; `()` if none."""
        return ()

    def encode(self, x: Jacobian, noise: Noise = ()) -> Message:
        """Make the message for a Jacobian that is already compressed."""

    def decode(self, message: Message, like: Jacobian, noise: Noise = ()) -> Jacobian:
        """Rebuild the Jacobian from a message."""

    def bits(self, tasks: int, dim: int) -> int:
        """The number of bits in one message."""


class Flat(Sketch, Protocol):
    """Base of the sketches that compress the flattened Jacobian as one vector."""

    def rule(self, tasks: int) -> Compressor:
        """The compressor of the flattened Jacobian."""

    def __call__(self, x: Jacobian, noise: Noise = ()) -> Jacobian:
        """Return the compressed vector in the Jacobian's shape."""
        checks.matrix(type(self).__name__, "x", x)
        return self.rule(len(x))(x.flatten(), noise).view(x.shape)

    def draw(self, count: int, tasks: int, dim: int, rng: torch.Generator) -> Noise:
        """The compressor's randomness for `count` vectors of `tasks dim` numbers."""
        return self.rule(tasks).draw(count, tasks * dim, rng)

    def encode(self, x: Jacobian, noise: Noise = ()) -> Message:
        """Make the compressor's message."""
        return self.rule(len(x)).encode(x.flatten(), noise)

    def decode(self, message: Message, like: Jacobian, noise: Noise = ()) -> Jacobian:
        """Return the vector of a message in the Jacobian's shape."""
        return self.rule(len(like)).decode(message, like.flatten(), noise).view(like.shape)

    def bits(self, tasks: int, dim: int) -> int:
        """The length of the compressor's message."""
        return self.rule(tasks).bits(tasks * dim)


@dataclass(frozen=True)
class Exact(Flat):
    """No compression of a Jacobian: the message holds all `M d` entries as float32 numbers.

    >>> Exact().bits(tasks=2, dim=100)
    6400
    """

    def rule(self, tasks: int) -> Identity:
        """No compression."""
        return Identity()


@dataclass(frozen=True)
class Masked(checks.Checked, Flat):
    """Keep `budget d` of the `M d` entries, at random positions that both sides know.

    The positions follow from the common seed and are not sent.

    Parameters
    ----------
    budget : the number of entries to keep, in multiples of d.
    scaled : whether they are multiplied by `M / budget`, which makes the sketch unbiased.

    >>> masked = Masked()
    >>> noise = masked.draw(1, 2, 4, torch.Generator().manual_seed(0))[0]
    >>> masked(torch.ones(2, 4), noise).count_nonzero()
    tensor(4)
    """

    budget: Positive = field(default=1.0, metadata={"shape": True})
    scaled: bool = True

    def rule(self, tasks: int) -> RandK:
        """Keep random entries of the flattened Jacobian, a share `budget / M` of them."""
        return RandK(min(self.budget / tasks, 1.0), scaled=self.scaled)


@dataclass(frozen=True)
class Largest(checks.Checked, Sketch):
    """Keep the entries of a Jacobian of largest magnitude, as many as fit the budget.

    The positions are either a list, at `ceil(log2(d M))` bits each, or a map with one bit for every
    entry of the Jacobian, whichever allows more entries.

    Parameters
    ----------
    budget : the length of a message, positions included, in multiples of d numbers.
    value_bits : the bits of one number, in `budget` and in the message; 16 in the authors' code.

    >>> Largest(budget=0.5)(torch.tensor([[3.0, 1.0, 0.0, 2.0], [0.0, -5.0, 0.0, 0.0]]))
    tensor([[ 0.,  0.,  0.,  0.],
            [ 0., -5.,  0.,  0.]])
    """

    budget: Positive = field(default=1.0, metadata={"shape": True})
    value_bits: Count = FLOAT_BITS

    def count_entries(self, tasks: int, dim: int) -> int:
        """The number of entries that are sent: at least one, at most all."""
        room, entries = int(self.value_bits * self.budget * dim), tasks * dim
        listed = room // (self.value_bits + index_bits(entries))
        mapped = (room - entries) // self.value_bits
        return min(max(1, listed, mapped), entries)

    def encode(self, x: Jacobian, noise: Noise = ()) -> Message:
        """Send the k largest entries and their positions."""
        checks.matrix("Largest", "x", x)
        flat = x.flatten()
        positions = flat.abs().topk(self.count_entries(*x.shape)).indices
        return Message(flat.gather(0, positions), positions)

    def decode(self, message: Message, like: Jacobian, noise: Noise = ()) -> Jacobian:
        """Put the entries at their positions."""
        assert isinstance(message.positions, Tensor)
        flat = torch.zeros_like(like).flatten()
        return flat.scatter(0, message.positions, message.values).view(like.shape)

    def bits(self, tasks: int, dim: int) -> int:
        """Count the numbers, and the list or the map, whichever is cheaper."""
        count, entries = self.count_entries(tasks, dim), tasks * dim
        return self.value_bits * count + min(count * index_bits(entries), entries)


@dataclass(frozen=True)
class Columns(checks.Checked, Sketch):
    """Apply a compressor to each of the M gradients separately, as the theory assumes.

    >>> from fedlib import TopK
    >>> Columns(TopK(0.5))(torch.tensor([[3.0, 1.0], [0.0, -5.0]]))
    tensor([[ 3.,  0.],
            [ 0., -5.]])
    """

    compressor: Compressor = Identity()

    def __call__(self, x: Jacobian, noise: Noise = ()) -> Jacobian:
        """Compress every gradient."""
        checks.matrix("Columns", "x", x)
        return vmap(self.compressor)(x, noise)

    def draw(self, count: int, tasks: int, dim: int, rng: torch.Generator) -> Noise:
        """Draw the compressor's randomness for `count` times `tasks` vectors."""
        noise = self.compressor.draw(count * tasks, dim, rng)
        return noise.view(count, tasks, -1) if isinstance(noise, Tensor) else ()

    def encode(self, x: Jacobian, noise: Noise = ()) -> Message:
        """Make the messages of all gradients."""
        return vmap(self.compressor.encode)(x, noise)

    def decode(self, message: Message, like: Jacobian, noise: Noise = ()) -> Jacobian:
        """Rebuild all gradients."""
        return vmap(self.compressor.decode)(message, like, noise)

    def bits(self, tasks: int, dim: int) -> int:
        """The length of `tasks` messages of the compressor."""
        return tasks * self.compressor.bits(dim)


@dataclass(frozen=True)
class Wire(checks.Checked, Compressor):
    """A sketch of `[tasks, d]` as the wire format of the flattened Jacobian.

    A client sketches its Jacobian before it sends it, so `fed.ask` does not call the format. The
    server sends a sum of sketches, and `fed.broadcast` does call it.

    >>> Wire(Exact(), tasks=2).bits(200)
    6400
    """

    sketch: Sketch
    tasks: Count

    def __call__(self, x: Vector, noise: Noise = ()) -> Vector:
        """The sketch, flattened."""
        return self.sketch(x.view(self.tasks, -1), noise).flatten()

    def draw(self, count: int, dim: int, rng: torch.Generator) -> Noise:
        """The sketch's randomness."""
        return self.sketch.draw(count, self.tasks, dim // self.tasks, rng)

    def encode(self, x: Vector, noise: Noise = ()) -> Message:
        """The sketch's message."""
        return self.sketch.encode(x.view(self.tasks, -1), noise)

    def decode(self, message: Message, like: Vector, noise: Noise = ()) -> Vector:
        """The flattened Jacobian of a message."""
        return self.sketch.decode(message, like.view(self.tasks, -1), noise).flatten()

    def bits(self, dim: int) -> int:
        """The length of the sketch's message."""
        return self.sketch.bits(self.tasks, dim // self.tasks)


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


def fold(x: Float[Tensor, "M d"], order: str = "block") -> Matrix:
    """Put the entries of a Jacobian into a nearly square matrix, padded with zeros.

    `"block"` cuts the `d x M` matrix into blocks of `r = floor(sqrt(d M))` rows and puts them side
    by side. `"row"` and `"column"` fill a square row after row with its entries, read along its
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


def unfold(matrix: Matrix, tasks: int, dim: int, order: str = "block") -> Float[Tensor, "M d"]:
    """The Jacobian `[tasks, dim]` whose folded form is `matrix`; padding is dropped."""
    rows, columns = matrix.shape
    if order == "block":
        cube = matrix.view(rows, columns // tasks, tasks)
        return cube.permute(2, 1, 0).reshape(tasks, -1)[:, :dim]
    flat = matrix.flatten()[: tasks * dim]
    return flat.view(tasks, dim) if order == "column" else flat.view(dim, tasks).mT


def randomized_svd(
    matrix: Matrix, test: Float[Tensor, "c k"], rank: int, iterations: int
) -> tuple[Float[Tensor, "r p"], Float[Tensor, "p c"]]:
    """Two factors of rank p = `rank` whose product is close to the matrix.

    Halko, Martinsson, Tropp (2011), algorithm 5.1: `Q` spans the matrix times the Gaussian `test`,
    after `iterations` subspace iterations with a QR after each half step. The SVD of `Q' A` is then
    cut at `rank`. A matrix that is not finite yields NaN.
    """
    finite = torch.isfinite(matrix).all()
    A = torch.where(finite, matrix, torch.zeros_like(matrix))  # LAPACK raises on NaN
    Q = torch.linalg.qr(A @ test).Q
    for _ in range(iterations):
        Q = torch.linalg.qr(A @ torch.linalg.qr(A.mT @ Q).Q).Q
    U, S, Vh = torch.linalg.svd(Q.mT @ A, full_matrices=False)
    left = Q @ (U * S)[:, :rank]
    return torch.where(finite, left, torch.full_like(left, torch.nan)), Vh[:rank]


def completed(matrix: Matrix, tasks: int, dim: int, order: str, rank: int) -> Matrix:
    """Fill the padding of a folded matrix so that it has the rank of the sketched matrix.

    Unfolding drops the padding, so a product of factors need not be zero there. The columns (for
    `"block"`, else rows) without padding span the factor; the other columns are continued in it.
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
    budget : D / d, where D is how many numbers a message may hold.
    order : how the entries fill the matrix. `"block"` puts blocks of rows of the transposed
        Jacobian, d x M, side by side, as the authors' code does; `"row"` and `"column"` read the
        transposed Jacobian along its rows or down its columns.
    iterations : the number of subspace iterations.

    The oversampling is r / 10, rounded down, as in the authors' code.
    """

    budget: Positive = field(default=1.0, metadata={"shape": True})
    order: Order = "block"
    iterations: Whole = 2

    def rank(self, tasks: int, dim: int) -> int:
        """The number of components that the budget allows: at least one, at most all."""
        bought = int(self.budget * dim / (2 * (dim * tasks) ** 0.5))
        return min(max(1, bought), *folded_shape(tasks, dim, self.order))

    def __call__(self, x: Jacobian, noise: Noise = ()) -> Jacobian:
        """The best rank-r approximation within the drawn subspace."""
        checks.matrix("LowRank", "x", x)
        tasks, dim = x.shape
        matrix, test = fold(x, self.order), require_noise("LowRank", noise).to(x)
        left, right = randomized_svd(matrix, test, self.rank(tasks, dim), self.iterations)
        return unfold(left @ right, tasks, dim, self.order)

    def draw(self, count: int, tasks: int, dim: int, rng: torch.Generator) -> Noise:
        """Draw a Gaussian test matrix for each message, `[count, columns, r + r / 10]`."""
        rank, (rows, columns) = self.rank(tasks, dim), folded_shape(tasks, dim, self.order)
        width = min(rank + rank // 10, rows, columns)
        return torch.randn(count, columns, width, generator=rng)

    def encode(self, x: Jacobian, noise: Noise = ()) -> Message:
        """Send the two factors of a folded matrix of rank r, one after the other."""
        tasks, dim = x.shape
        rank = self.rank(tasks, dim)
        matrix = completed(fold(x, self.order), tasks, dim, self.order, rank)
        U, S, Vh = torch.linalg.svd(matrix, full_matrices=False)
        return Message(torch.cat([(U * S)[:, :rank].flatten(), Vh[:rank].flatten()]))

    def decode(self, message: Message, like: Jacobian, noise: Noise = ()) -> Jacobian:
        """Multiply the factors and unfold the product."""
        tasks, dim = like.shape
        rank, (rows, columns) = self.rank(tasks, dim), folded_shape(tasks, dim, self.order)
        left = message.values[: rows * rank].view(rows, rank)
        right = message.values[rows * rank :].view(rank, columns)
        return unfold(left @ right, tasks, dim, self.order)

    def bits(self, tasks: int, dim: int) -> int:
        """Each entry of the factors needs 32 bits: `32 r (rows + columns)`."""
        return FLOAT_BITS * self.rank(tasks, dim) * sum(folded_shape(tasks, dim, self.order))
