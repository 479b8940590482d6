"""Every compressor has the property that names it, and a wire format that round-trips."""

import math

import pytest
import torch
from expect import refuses

from fedlib.compress import Identity, RandK, Rounding, TopK
from fedlib.core.sampling import seeded

ALL = [
    Identity(), TopK(0.1), TopK(0.5), TopK(1.0), RandK(0.1), RandK(0.3, scaled=False),
    Rounding(10), Rounding(3), Rounding(1),
]  # fmt: skip
CONTRACTIVE = [c for c in ALL if not isinstance(c, RandK) and c.contraction(30)]


def hard_inputs(dim=30):
    rng = torch.Generator().manual_seed(5)
    for scale in (1e-12, 1.0, 1e12):
        for _ in range(30):
            yield scale * torch.randn(dim, generator=rng, dtype=torch.float64)
    yield torch.zeros(dim, dtype=torch.float64)
    yield torch.ones(dim, dtype=torch.float64)
    yield -torch.ones(dim, dtype=torch.float64)
    yield torch.eye(dim, dtype=torch.float64)[3]


@pytest.mark.parametrize("c", CONTRACTIVE, ids=repr)
def test_deterministic_compressors_contract_on_every_input(c):
    for x in hard_inputs():
        assert ((c(x) - x) ** 2).sum() <= (1 - c.contraction(30)) * (x**2).sum() * (1 + 1e-12)


def test_the_contraction_of_top_k_is_tight_for_equal_entries():
    x = torch.ones(30, dtype=torch.float64)
    assert ((TopK(0.1)(x) - x) ** 2).sum() == pytest.approx(0.9 * 30)


@pytest.mark.parametrize("fraction", [0.1, 0.5, 1 / 3])
def test_random_k_has_its_exact_mean_and_variance(fraction):
    x = torch.linspace(-1, 2, 12, dtype=torch.float64)
    k = max(1, round(fraction * 12))
    draws = RandK(fraction).draw(60_000, 12, seeded(0, "rounds"))
    scaled = torch.func.vmap(lambda i: RandK(fraction)(x, i))(draws)
    spread = ((scaled - x) ** 2).sum(1).mean() / (x**2).sum()
    assert torch.allclose(scaled.mean(0), x, atol=0.05)
    assert spread == pytest.approx(RandK(fraction).variance(12), rel=0.03)
    unscaled = torch.func.vmap(lambda i: RandK(fraction, scaled=False)(x, i))(draws)
    left = ((unscaled - x) ** 2).sum(1).mean() / (x**2).sum()
    assert left == pytest.approx(1 - k / 12, rel=0.03)
    assert RandK(fraction, scaled=False).contraction(12) == pytest.approx(k / 12)


def test_rounding_is_round_to_nearest_even_in_binary():
    x = torch.tensor([1.25, 1.75, -1.25, 1.0, 3.5, 0.0, 1e-30], dtype=torch.float64)
    assert Rounding(1)(x).tolist()[:6] == [1.0, 2.0, -1.0, 1.0, 4.0, 0.0]
    half = torch.randn(2000, generator=torch.Generator().manual_seed(0))
    assert torch.equal(Rounding(10)(half), half.half().float())  # within float16's normal range


@pytest.mark.parametrize("c", ALL, ids=repr)
@pytest.mark.parametrize("dim", [1, 2, 30, 1000])
def test_decode_undoes_encode_and_the_message_is_as_long_as_declared(c, dim):
    x = torch.randn(dim, generator=torch.Generator().manual_seed(dim))
    noise = c.draw(1, dim, seeded(1, "rounds"))
    noise = noise[0] if isinstance(noise, torch.Tensor) else ()
    y = c(x, noise)
    message = c.encode(y, noise)
    assert torch.equal(c.decode(message, y, noise), y)
    entry = 9 + c.mantissa_bits if isinstance(c, Rounding) else 32
    place = math.ceil(math.log2(dim)) if isinstance(message.positions, torch.Tensor) else 0
    assert c.bits(dim) == message.values.numel() * (entry + place)
    if isinstance(c, Rounding):  # the integers fit the declared width
        shortest = -(2 ** (entry - 1)), 2 ** (entry - 1) - 1
        assert shortest[0] <= int(message.values.min())
        assert int(message.values.max()) <= shortest[1]


def test_exactly_k_survive_ties_and_k_is_at_least_one():
    assert int((TopK(0.1)(torch.ones(30)) != 0).sum()) == 3
    assert int((TopK(0.001)(torch.ones(30)) != 0).sum()) == 1


def test_what_is_refused():
    refuses("RandK: fraction must *got 1.5", RandK, 1.5)
    refuses("RandK: noise must be what draw() gives", RandK(0.5), torch.ones(4))
    refuses("TopK: x must be a tensor of floats of shape [d]", TopK(0.5), torch.ones(2, 2))


@pytest.mark.parametrize(
    ("fraction", "dim", "k"),
    [(0.25, 10, 2), (0.26, 10, 3), (0.35, 10, 4), (0.14, 10, 1), (0.16, 10, 2), (1.0, 7, 7)],
)
def test_k_is_the_nearest_number_and_a_half_goes_to_the_even_one(fraction, dim, k):
    noise = RandK(fraction).draw(3, dim, seeded(0, "rounds"))
    assert noise.shape == (3, k)
    assert RandK(fraction).bits(dim) == 32 * k
    assert TopK(fraction).contraction(dim) == k / dim
    assert int((TopK(fraction)(torch.arange(1.0, dim + 1)) != 0).sum()) == k


def test_a_scaled_random_k_contracts_from_one_half_on():
    """E|C(x) - x|^2 is (d / K - 1) |x|^2: 1/3 of it at K = 9 of 12."""
    x = torch.linspace(-1, 2, 12, dtype=torch.float64)
    draws = RandK(0.75).draw(20_000, 12, seeded(0, "rounds"))
    left = ((torch.func.vmap(lambda i: RandK(0.75)(x, i))(draws) - x) ** 2).sum(1).mean()
    assert left / (x**2).sum() == pytest.approx(1 / 3, rel=0.03)
    assert RandK(0.75).contraction(12) == pytest.approx(1 - 1 / 3)
    assert RandK(1.0).contraction(12) == 1.0
    assert RandK(0.5).contraction(12) is None
    assert RandK(1.0, scaled=False).variance(12) == 0.0
    assert RandK(0.5, scaled=False).variance(12) is None
    assert [TopK(f).variance(12) for f in (0.5, 1.0)] == [None, 0.0]
    assert Rounding(3).contraction(12) == 1 - 4.0**-4
