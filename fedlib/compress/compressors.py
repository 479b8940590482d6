"""Compressors and their wire formats.

A compressor is a frozen dataclass that is called on a vector `[d]` and returns what the receiver
will hold, `[d]`. It also says how the message travels: `encode` gives the numbers and positions on
the wire, `decode` rebuilds the vector, `bits(d)` is the length of the message. Randomness is drawn
beforehand by `draw`, and is shared by sender and receiver (a common seed), so that positions which
both can derive are not sent.

Two classes of the literature: contractive, `E |C(x) - x|^2 <= (1 - q) |x|^2`, `q` in (0, 1], and
unbiased, `E C(x) = x`, `E |C(x) - x|^2 <= q_u |x|^2`.
"""

from dataclasses import dataclass, field
from math import ceil, log2
from typing import Annotated, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from fedlib import checks
from fedlib.checks import Share

FLOAT_BITS = 32  # a number on the wire is a float32, whatever the dtype of the simulation
EXPONENT_BITS = 8  # of a float32
SIGNIFICAND = {torch.float32: (torch.int32, 23), torch.float64: (torch.int64, 52)}

Vector = Float[Tensor, "d"]
Noise = Tensor | tuple[()]


class Message(NamedTuple):
    """A message on the wire: numbers, and their positions if those travel too."""

    values: Shaped[Tensor, "..."]
    positions: Int[Tensor, "..."] | tuple[()] = ()


@runtime_checkable
class Compressor(Protocol):
    """Compressor of vectors and its wire format; bodies here are defaults to inherit."""

    def __call__(self, x: Vector, noise: Noise = ()) -> Vector:
        """The vector that the receiver will hold."""
        return self.decode(self.encode(x, noise), x, noise)

    def draw(self, count: int, dim: int, rng: torch.Generator) -> Noise:
        """The randomness of `count` messages of length `dim`, on a leading axis; `()` if none."""
        return ()

    def encode(self, x: Vector, noise: Noise = ()) -> Message:
        """The message for a vector that is already compressed."""

    def decode(self, message: Message, like: Vector, noise: Noise = ()) -> Vector:
        """The vector of a message; `like` gives its length, dtype and device."""

    def bits(self, dim: int) -> int:
        """The length of one message for a vector of `dim` numbers, in bits."""

    def contraction(self, dim: int) -> float | None:
        """The largest valid `q`, or None if the compressor is not contractive."""
        return None

    def variance(self, dim: int) -> float | None:
        """The smallest valid `q_u`, or None if the compressor is biased."""
        return None


@dataclass(frozen=True)
class Identity(Compressor):
    """No compression: d float32 numbers; `q = 1`, `q_u = 0`.

    >>> Identity().bits(100)
    3200
    """

    def encode(self, x: Vector, noise: Noise = ()) -> Message:
        """All entries."""
        checks.vector("Identity", "x", x)
        return Message(x)

    def decode(self, message: Message, like: Vector, noise: Noise = ()) -> Vector:
        """All entries."""
        return message.values

    def bits(self, dim: int) -> int:
        """32 bits an entry."""
        return FLOAT_BITS * dim

    def contraction(self, dim: int) -> float | None:
        """Exact: `q = 1`."""
        return 1.0

    def variance(self, dim: int) -> float | None:
        """Exact: `q_u = 0`."""
        return 0.0


@dataclass(frozen=True)
class TopK(checks.Checked, Compressor):
    """Keep the K entries of largest magnitude, `K = max(1, round(fraction * d))`.

    Contractive and deterministic with `q = K / d`, tight for a vector of equal entries. Of equal
    magnitudes exactly K survive. On the wire: K float32 numbers and K positions.

    >>> TopK(0.5)(torch.tensor([3.0, -5.0, 1.0, 0.5]))
    tensor([ 3., -5.,  0.,  0.])
    """

    fraction: Share = field(metadata={"shape": True})

    def encode(self, x: Vector, noise: Noise = ()) -> Message:
        """The K largest entries and where they stand."""
        checks.vector("TopK", "x", x)
        positions = x.abs().topk(count_entries(self.fraction, x.shape[-1])).indices
        return Message(x.gather(-1, positions), positions)

    def decode(self, message: Message, like: Vector, noise: Noise = ()) -> Vector:
        """The entries at their positions."""
        assert isinstance(message.positions, Tensor)
        return torch.zeros_like(like).scatter(-1, message.positions, message.values)

    def bits(self, dim: int) -> int:
        """K times 32 bits for the number and `ceil(log2 d)` for its position."""
        return count_entries(self.fraction, dim) * (FLOAT_BITS + index_bits(dim))

    def contraction(self, dim: int) -> float | None:
        """`K / d`, attained by a vector of equal entries."""
        return count_entries(self.fraction, dim) / dim

    def variance(self, dim: int) -> float | None:
        """Biased, unless everything is sent."""
        return 0.0 if count_entries(self.fraction, dim) == dim else None


@dataclass(frozen=True)
class RandK(checks.Checked, Compressor):
    """Keep K entries chosen uniformly, `K = max(1, round(fraction * d))`.

    With `scaled` these entries are multiplied by `d / K`: unbiased with `q_u = d / K - 1`, not
    contractive for `K < d / 2`. Without: contractive in expectation with `q = K / d`. On the wire:
    K float32 numbers; their positions follow from the common seed.

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
        """K entries at the drawn positions, scaled if asked, zeros elsewhere."""
        checks.vector("RandK", "x", x)
        factor = x.shape[-1] / count_entries(self.fraction, x.shape[-1]) if self.scaled else 1.0
        return self.decode(self.encode(x * factor, noise), x, noise)

    def draw(self, count: int, dim: int, rng: torch.Generator) -> Int[Tensor, "count K"]:
        """K distinct positions for each of `count` messages."""
        return torch.rand(count, dim, generator=rng).topk(count_entries(self.fraction, dim)).indices

    def encode(self, x: Vector, noise: Noise = ()) -> Message:
        """The entries at the drawn positions."""
        return Message(x.gather(-1, require_noise("RandK", noise)))

    def decode(self, message: Message, like: Vector, noise: Noise = ()) -> Vector:
        """The entries at the drawn positions."""
        return torch.zeros_like(like).scatter(-1, require_noise("RandK", noise), message.values)

    def bits(self, dim: int) -> int:
        """K times 32 bits."""
        return FLOAT_BITS * count_entries(self.fraction, dim)

    def contraction(self, dim: int) -> float | None:
        """`K / d` in expectation if unscaled; none if scaled with `K < d / 2`."""
        q = count_entries(self.fraction, dim) / dim
        if not self.scaled:
            return q
        return 2 - 1 / q if q > 0.5 else None

    def variance(self, dim: int) -> float | None:
        """`d / K - 1` if scaled."""
        k = count_entries(self.fraction, dim)
        return dim / k - 1 if self.scaled or k == dim else None


@dataclass(frozen=True)
class Rounding(checks.Checked, Compressor):
    """Round every entry to `mantissa_bits` = p binary digits after the leading one, ties to even.

    The FedSGM paper's quantization with a float32's exponent: 10 digits ("float16"), 3 ("float8",
    E4M3) or 1 ("float4", E2M1) need `1 + 8 + p` bits on the wire (19, 12, 10), more than the names
    of the formats say. Contractive and deterministic, `1 - q <= 4^-(p + 1)`.

    >>> Rounding(1)(torch.tensor([1.1, 1.3, 5.0, 0.0]))
    tensor([1.0000, 1.5000, 4.0000, 0.0000])
    """

    mantissa_bits: Annotated[int, checks.counted(1, 22, "Digits")]

    def encode(self, x: Vector, noise: Noise = ()) -> Message:
        """Sign, exponent and leading digits of every entry, as integers."""
        checks.vector("Rounding", "x", x)
        integer, digits = SIGNIFICAND[x.dtype]
        drop = digits - self.mantissa_bits
        code = x.view(integer)
        # Adding half a unit less one, plus the last digit that stays, rounds ties to the even
        # neighbour; a carry runs into the exponent: that is rounding up to a power of two.
        rounded = code + ((1 << (drop - 1)) - 1) + ((code >> drop) & 1)
        return Message(rounded >> drop)

    def decode(self, message: Message, like: Vector, noise: Noise = ()) -> Vector:
        """The entries that the integers stand for."""
        _, digits = SIGNIFICAND[like.dtype]
        return (message.values << (digits - self.mantissa_bits)).view(like.dtype)

    def bits(self, dim: int) -> int:
        """Sign, eight bits of exponent and the digits, for every entry."""
        return dim * (1 + EXPONENT_BITS + self.mantissa_bits)

    def contraction(self, dim: int) -> float | None:
        """Every entry is off by at most `2^-(p + 1)` of itself."""
        return 1 - 4.0 ** -(self.mantissa_bits + 1)


def check_compressors(
    who: str, uplink: Compressor, downlink: Compressor, error_feedback: bool, dim: int
) -> None:
    """Raise ValueError unless the residuals of FedSGM shrink: error feedback up, EF21 down."""
    fits, rule = not error_feedback or uplink.contraction(dim) is not None, "be contractive"
    remedy = "pass error_feedback=False or scaled=False"
    checks.require(fits, who, "uplink", f"{rule} under error feedback", uplink, remedy)
    remedy = "take TopK, Rounding or RandK(..., scaled=False)"
    fits = downlink.contraction(dim) is not None
    checks.require(fits, who, "downlink", f"{rule} (primal EF21)", downlink, remedy)


def count_entries(fraction: float, dim: int) -> int:
    """K, the number of entries that a fraction of `dim` keeps: at least one."""
    return max(1, round(fraction * dim))


def require_noise(who: str, noise: Noise) -> Shaped[Tensor, "..."]:
    """The drawn randomness, or ValueError where there is none."""
    if not isinstance(noise, Tensor):
        raise ValueError(checks.sentence(who, "noise", "be what draw() gives", noise))
    return noise


def index_bits(entries: int) -> int:
    """Bits of one position among `entries`."""
    return ceil(log2(entries)) if entries > 1 else 0
