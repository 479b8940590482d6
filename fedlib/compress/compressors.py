"""Compressors and their wire formats.

A compressor is a frozen dataclass. Called on a vector `[d]`, it returns the vector `[d]` that the
receiver will hold. It also defines the message: `encode` returns the numbers and positions on the
wire, `decode` rebuilds the vector, and `layout(d)` says how many bits each part of the message has;
their sum is `bits(d)`. `draw` draws the randomness beforehand. Sender and receiver share it through
a common seed, so positions that both can derive are not sent.

A compressor is contractive if `E |C(x) - x|^2 <= (1 - q) |x|^2` with `q` in (0, 1]. It is unbiased
if `E C(x) = x` and `E |C(x) - x|^2 <= q_u |x|^2`.

To add a compressor, derive a class from `Compressor` as those below do, name it in
`fedlib/compress/__init__.py`, and give it a line in `fedlib.testing.examples.wire_formats`.
"""

from dataclasses import dataclass, field
from typing import Annotated, Protocol, runtime_checkable

import torch
from jaxtyping import Int
from torch import Tensor

from fedlib import checks
from fedlib.checks import Rng, Share
from fedlib.compress.selection import largest_positions
from fedlib.compress.wire import (
    EXPONENT_BITS,
    FLOAT_BITS,
    Field,
    Layout,
    Message,
    Noise,
    index_bits,
    total_bits,
)
from fedlib.shapes import AnyTensor, Vector

#: The integer type with the bits of a float type, and the digits of the float's significand.
SIGNIFICAND = {
    torch.bfloat16: (torch.int16, 7),
    torch.float16: (torch.int16, 10),
    torch.float32: (torch.int32, 23),
    torch.float64: (torch.int64, 52),
}


@runtime_checkable
class Compressor(Protocol):
    """A compressor of vectors and its wire format; the bodies here are defaults to inherit."""

    def __call__(self, x: Vector, noise: Noise = ()) -> Vector:
        """The vector that the receiver will hold."""
        return self.decode(self.encode(x, noise), x, noise)

    def draw(self, count: int, dim: int, rng: Rng) -> Noise:
        """The randomness of `count` messages of length `dim`, on a leading axis; `()` if none."""
        return ()

    def encode(self, x: Vector, noise: Noise = ()) -> Message:
        """Make the message for a vector that is already compressed."""

    def decode(
        self,
        message: Message,
        like: Vector,
        noise: Noise = (),
    ) -> Vector:
        """Rebuild the vector from a message; `like` has its length, dtype and device."""

    def layout(self, dim: int) -> Layout:
        """The fields of one message for a vector of `dim` numbers, in their order on the wire."""

    def bits(self, dim: int) -> int:
        """The number of bits in one message for a vector of `dim` numbers."""
        return total_bits(self.layout(dim))

    def contraction(self, dim: int) -> float | None:
        """The largest `q` with `E |C(x) - x|^2 <= (1 - q) |x|^2`; None if not contractive."""
        return None

    def variance(self, dim: int) -> float | None:
        """The smallest `q_u` with `E |C(x) - x|^2 <= q_u |x|^2`; None if biased."""
        return None


@dataclass(frozen=True)
class Identity(Compressor):
    """No compression of a vector: the message holds all d entries as float32 numbers.

    >>> Identity().bits(100)
    3200
    """

    def encode(self, x: Vector, noise: Noise = ()) -> Message:
        """Send all entries."""
        checks.vector("Identity", "x", x)
        return Message(x)

    def decode(
        self,
        message: Message,
        like: Vector,
        noise: Noise = (),
    ) -> Vector:
        """Return all entries."""
        return message.values

    def layout(self, dim: int) -> Layout:
        """A number for each entry."""
        return (Field("number", dim, FLOAT_BITS),)

    def contraction(self, dim: int) -> float | None:
        """The compressor is exact: `q = 1`."""
        return 1.0

    def variance(self, dim: int) -> float | None:
        """The compressor is exact: `q_u = 0`."""
        return 0.0


@dataclass(frozen=True)
class TopK(checks.Checked, Compressor):
    """Keep the K entries of largest magnitude, `K = max(1, round(fraction * d))`.

    TopK is deterministic and contractive with `q = K / d`, which equal entries attain. Exactly K
    entries survive, also among equal magnitudes. The message has K float32 numbers, K positions.

    >>> TopK(0.5)(torch.tensor([3.0, -5.0, 1.0, 0.5]))
    tensor([ 3., -5.,  0.,  0.])

    Parameters
    ----------
    fraction : float
        Share of the entries to keep, in (0, 1].
    """

    fraction: Share = field(metadata={"shape": True})

    def encode(self, x: Vector, noise: Noise = ()) -> Message:
        """Send the K largest entries and their positions."""
        checks.vector("TopK", "x", x)
        count = count_entries(self.fraction, x.shape[-1])
        positions = largest_positions(x, count)
        return Message(x.gather(-1, positions), positions)

    def decode(
        self,
        message: Message,
        like: Vector,
        noise: Noise = (),
    ) -> Vector:
        """Put the entries at their positions."""
        assert isinstance(message.positions, Tensor)
        return torch.zeros_like(like).scatter(-1, message.positions, message.values)

    def layout(self, dim: int) -> Layout:
        """K numbers, then K positions of `ceil(log2 d)` bits."""
        count = count_entries(self.fraction, dim)
        return (
            Field("number", count, FLOAT_BITS),
            Field("position", count, index_bits(dim)),
        )

    def contraction(self, dim: int) -> float | None:
        """`K / d`, attained by a vector of equal entries."""
        return count_entries(self.fraction, dim) / dim

    def variance(self, dim: int) -> float | None:
        """TopK is biased, unless it sends everything."""
        if count_entries(self.fraction, dim) == dim:
            return 0.0
        return None


@dataclass(frozen=True)
class RandK(checks.Checked, Compressor):
    """Keep K entries that are drawn uniformly, `K = max(1, round(fraction * d))`.

    Scaled, it is unbiased with `q_u = d / K - 1`, and not contractive for `K < d / 2`. Unscaled, it
    is contractive in expectation with `q = K / d`. The message has K float32 numbers; their
    positions follow from the common seed.

    Parameters
    ----------
    fraction : float
        Share of the entries to keep, in (0, 1].
    scaled : bool
        Whether they are multiplied by `d / K`, which makes the compressor unbiased; else it is
        contractive in expectation.

    >>> rand = RandK(0.5)
    >>> noise = rand.draw(1, 4, torch.Generator().manual_seed(0))[0]
    >>> (rand(torch.ones(4), noise) > 0).sum()
    tensor(2)
    >>> rand.bits(100), TopK(0.5).bits(100)
    (1600, 1950)
    """

    fraction: Share = field(metadata={"shape": True})
    scaled: bool = True

    def __call__(self, x: Vector, noise: Noise = ()) -> Vector:
        """Keep the entries at the K drawn positions, scaled if asked; the others become 0."""
        checks.vector("RandK", "x", x)
        factor = 1.0
        if self.scaled:
            dim = x.shape[-1]
            factor = dim / count_entries(self.fraction, dim)
        message = self.encode(x * factor, noise)
        return self.decode(message, x, noise)

    def draw(
        self,
        count: int,
        dim: int,
        rng: Rng,
    ) -> Int[Tensor, "count K"]:
        """Draw K distinct positions for each of `count` messages."""
        ranks = torch.rand(count, dim, generator=rng, dtype=torch.float32)
        return ranks.topk(count_entries(self.fraction, dim)).indices

    def encode(self, x: Vector, noise: Noise = ()) -> Message:
        """Send the entries at the drawn positions."""
        return Message(x.gather(-1, require_noise("RandK", noise)))

    def decode(
        self,
        message: Message,
        like: Vector,
        noise: Noise = (),
    ) -> Vector:
        """Put the entries at the drawn positions."""
        positions = require_noise("RandK", noise)
        return torch.zeros_like(like).scatter(-1, positions, message.values)

    def layout(self, dim: int) -> Layout:
        """K numbers."""
        return (Field("number", count_entries(self.fraction, dim), FLOAT_BITS),)

    def contraction(self, dim: int) -> float | None:
        """`K / d` in expectation if unscaled; None if scaled with `K < d / 2`."""
        q = count_entries(self.fraction, dim) / dim
        if not self.scaled:
            return q
        if q > 0.5:
            return 2 - 1 / q
        return None

    def variance(self, dim: int) -> float | None:
        """`d / K - 1` if scaled, else None."""
        count = count_entries(self.fraction, dim)
        if self.scaled or count == dim:
            return dim / count - 1
        return None


@dataclass(frozen=True)
class Rounding(checks.Checked, Compressor):
    """Round each entry to `mantissa_bits` = p binary digits after the leading digit, ties to even.

    This is the FedSGM paper's quantization with a float32's exponent. 10 digits ("float16"), 3
    ("float8", E4M3) or 1 ("float4", E2M1) need `1 + 8 + p` bits on the wire (19, 12, 10), more than
    the formats' names suggest. It is contractive and deterministic, `1 - q <= 4^-(p + 1)`.

    >>> Rounding(1)(torch.tensor([1.1, 1.3, 5.0, 0.0]))
    tensor([1.0000, 1.5000, 4.0000, 0.0000])

    Parameters
    ----------
    mantissa_bits : int
        p, the number of binary digits after the leading digit, 1 to 22.
    """

    mantissa_bits: Annotated[int, checks.counted(1, 22, "Digits")]

    def encode(self, x: Vector, noise: Noise = ()) -> Message:
        """Send sign, exponent and leading digits of every entry, as integers."""
        checks.vector("Rounding", "x", x)
        integer, digits = SIGNIFICAND[x.dtype]
        dropped = digits - self.mantissa_bits
        code = x.view(integer)
        if dropped <= 0:  # short floats have no more digits
            return Message(code)
        # Add half a unit minus one, plus the last digit that stays: ties go to the even neighbour.
        # A carry into the exponent is correct, since it rounds up to a power of two.
        below_half = (1 << (dropped - 1)) - 1
        last_digit = (code >> dropped) & 1
        rounded = code + below_half + last_digit
        return Message(rounded >> dropped)

    def decode(
        self,
        message: Message,
        like: Vector,
        noise: Noise = (),
    ) -> Vector:
        """Convert the integers back to entries."""
        _, digits = SIGNIFICAND[like.dtype]
        dropped = max(0, digits - self.mantissa_bits)
        return (message.values << dropped).view(like.dtype)

    def layout(self, dim: int) -> Layout:
        """For each entry a sign bit, eight bits of exponent and the digits."""
        return (Field("digits", dim, 1 + EXPONENT_BITS + self.mantissa_bits),)

    def contraction(self, dim: int) -> float | None:
        """The relative error of an entry is at most `2^-(p + 1)`."""
        return 1 - 4.0 ** -(self.mantissa_bits + 1)


def check_compressors(
    caller: str,
    uplink: Compressor,
    downlink: Compressor,
    error_feedback: bool,
    dim: int,
) -> None:
    """Raise ValueError unless FedSGM's residuals shrink: error feedback up, primal EF21 down."""
    if error_feedback:
        shrinks = uplink.contraction(dim) is not None
        rule = "be contractive under error feedback"
        remedy = "pass error_feedback=False or scaled=False"
        checks.require(shrinks, caller, "uplink", rule, uplink, remedy)
    shrinks = downlink.contraction(dim) is not None
    remedy = "take TopK, Rounding or RandK(..., scaled=False)"
    checks.require(shrinks, caller, "downlink", "be contractive (primal EF21)", downlink, remedy)


def count_entries(fraction: float, dim: int) -> int:
    """K, the number of entries that a fraction of `dim` keeps, at least one."""
    return max(1, round(fraction * dim))


def require_noise(caller: str, noise: Noise) -> AnyTensor:
    """Return the drawn randomness; raise ValueError if there is none."""
    if not isinstance(noise, Tensor):
        raise ValueError(checks.sentence(caller, "noise", "be a result of draw()", noise))
    return noise
