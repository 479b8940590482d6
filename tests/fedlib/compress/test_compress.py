"""Every compressor has the property that names it, and a wire format that round-trips."""

import inspect
from dataclasses import is_dataclass
from importlib import import_module
from pkgutil import iter_modules

import pytest
import torch

from fedlib import compress
from fedlib.compress import Identity, LowRank, RandK, Rounding, TopK
from fedlib.compress.compressors import Compressor
from fedlib.compress.sketches import Columns, Largest, Masked, Sketch, Wire
from fedlib.compress.wire import Field, Message
from fedlib.core.sampling import seeded
from fedlib.sets.vertices import Corner, OneEntry, RankOne
from fedlib.testing.examples import WIRE_DIM, wire_formats
from tests.helpers.expect import refuses

DRAWS = 20_000  # messages over which the mean and the error of a random compressor are taken
each_format = pytest.mark.parametrize("example", wire_formats(), ids=lambda e: str(e.wire))


def classes_of_the_folder():
    for file in iter_modules(compress.__path__):
        module = import_module(f"fedlib.compress.{file.name}")
        for thing in vars(module).values():
            if inspect.isclass(thing) and thing.__module__ == module.__name__:
                yield thing


def test_every_compressor_of_the_folder_is_public_and_has_an_example():
    compressors = {c.__name__ for c in classes_of_the_folder() if is_dataclass(c)}
    public = {*compress.__all__, Columns.__name__, Wire.__name__}
    assert compressors == public
    shown = " ".join(str(example.wire) for example in wire_formats())
    for name in compressors:
        assert f"{name}(" in shown, f"give {name} a line in fedlib.testing.examples.wire_formats"


@each_format
def test_a_message_has_as_many_bits_as_its_layout(example):
    layout = example.wire.layout(WIRE_DIM)
    assert example.wire.bits(WIRE_DIM) == sum(field.length for field in layout) > 0


@each_format
def test_draws_do_not_depend_on_the_default_dtype(example):
    draws = example.wire.draw(2, WIRE_DIM, seeded(0, "rounds"))
    torch.set_default_dtype(torch.float64)
    try:
        again = example.wire.draw(2, WIRE_DIM, seeded(0, "rounds"))
    finally:
        torch.set_default_dtype(torch.float32)
    if isinstance(draws, torch.Tensor):
        assert torch.equal(draws, again)
    else:
        assert draws == again == ()


@each_format
def test_a_compressor_contracts_and_is_unbiased_as_it_says(example):
    """On a normal vector, by the mean over many draws; the bounds hold up to sampling error."""
    wire, x = example
    if x is None:
        x = torch.randn(WIRE_DIM, generator=seeded(1, "rounds"), dtype=torch.float64)
    draws = wire.draw(DRAWS, WIRE_DIM, seeded(0, "rounds"))
    if isinstance(draws, torch.Tensor):
        sent = torch.func.vmap(wire, in_dims=(None, 0))(x, draws)
    else:
        sent = wire(x).unsqueeze(0)
    error = (sent - x).square().sum(1).mean() / x.square().sum()
    contraction = wire.contraction(WIRE_DIM)
    variance = wire.variance(WIRE_DIM)
    if contraction is not None:
        assert 0 < contraction <= 1
        assert error <= (1 - contraction) * 1.03
    if variance is not None:
        assert error <= variance * 1.03
        bias = (sent.mean(0) - x).norm() / x.norm()
        assert bias <= 4 * (variance / len(sent)) ** 0.5


def test_the_contraction_of_top_k_is_tight_for_equal_entries():
    x = torch.ones(30, dtype=torch.float64)
    assert ((TopK(0.1)(x) - x) ** 2).sum() == pytest.approx(0.9 * 30)


def test_rounding_is_round_to_nearest_even_in_binary():
    x = torch.tensor([1.25, 1.75, -1.25, 1.0, 3.5, 0.0, 1e-30], dtype=torch.float64)
    assert Rounding(1)(x).tolist()[:6] == [1.0, 2.0, -1.0, 1.0, 4.0, 0.0]
    x = torch.randn(2000, generator=torch.Generator().manual_seed(0))
    half = x.half()  # within float16's normal range
    assert torch.equal(Rounding(10)(x), half.float())
    assert torch.equal(Rounding(10)(half), half)


def test_exactly_k_survive_ties_and_k_is_at_least_one():
    assert int((TopK(0.1)(torch.ones(30)) != 0).sum()) == 3
    assert int((TopK(0.001)(torch.ones(30)) != 0).sum()) == 1


def test_what_is_refused():
    refuses("RandK: fraction must *got 1.5", RandK, 1.5)
    words = "RandK: noise must be a result of draw(), got ()."
    refuses(words, RandK(0.5), torch.ones(4))
    refuses(words, RandK(0.5).decode, Message(torch.ones(2)), torch.ones(4))


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


def test_the_largest_entries_are_listed_or_mapped_whichever_is_shorter():
    assert Largest(budget=1e-3).count_entries(2, 8) == 1
    number, places = Largest(budget=150 / 256).layout(2, 8)  # a list as long as the map: 4 times 4
    assert (number, places) == (Field("number", 4, 32), Field("position", 4, 4))
    number, places = Largest(budget=1.0).layout(2, 8)
    assert (number, places) == (Field("number", 7, 32), Field("map", 7, 16))
    assert Largest(budget=1.0, value_bits=16).layout(2, 8)[0].length == 7 * 16


def test_an_unscaled_mask_keeps_entries_as_they_are():
    x = torch.arange(1.0, 9.0).view(2, 4)
    for scaled, factor in ((False, 1), (True, 2)):
        mask = Masked(scaled=scaled)
        kept = mask(x, mask.draw(1, 2, 4, seeded(0, "rounds"))[0])
        assert kept.count_nonzero() == 4
        assert torch.equal(kept[kept != 0], factor * x[kept != 0])


def test_the_noise_of_a_wired_sketch_is_the_sketch_s():
    drawn = Wire(Masked(), 2).draw(3, 8, seeded(0, "rounds"))
    assert torch.equal(drawn, Masked().draw(3, 2, 4, seeded(0, "rounds")))


class Shifted:
    """Adds its noise at the sender and takes it away at the receiver."""

    def encode(self, x, noise=()):
        return Message((x + noise).flatten())

    def decode(self, message, like, noise=()):
        return message.values.view(like.shape) - noise


class ShiftedVector(Shifted, Compressor):
    """A compressor with the call that `Compressor` defines."""


class ShiftedRows(Shifted, Sketch):
    """A sketch with the call that `Sketch` defines."""


@pytest.mark.parametrize(("wire", "shape"), [(ShiftedVector(), [6]), (ShiftedRows(), [2, 3])])
def test_both_sides_of_a_message_have_its_noise(wire, shape):
    x = torch.ones(shape)
    noise = torch.full(shape, 0.5)
    assert torch.equal(wire(x, noise), x)


@pytest.mark.parametrize(
    ("wire", "layout"),
    [
        (Identity(), [("number", 100, 32)]),
        (TopK(0.1), [("number", 10, 32), ("position", 10, 7)]),
        (RandK(0.1), [("number", 10, 32)]),
        (Rounding(7), [("digits", 100, 16)]),
        (Wire(LowRank(), 2), [("number", 2 * (10 + 10), 32)]),
        (OneEntry(2.0), [("sign", 1, 1), ("position", 1, 7)]),
        (OneEntry(2.0, signed=False), [("sign", 1, 0), ("position", 1, 7)]),
        (Corner(-1.0, 1.0), [("flag", 100, 1)]),
        (RankOne(20, 5), [("number", 25, 32)]),
    ],
    ids=str,
)
def test_the_fields_of_a_message(wire, layout):
    assert [tuple(field) for field in wire.layout(100)] == layout


def test_a_corner_of_a_box_far_from_zero_and_the_point_zero_come_back():
    for low, high in ((2.0, 3.0), (1e38, 3e38), (1 + 2.0**-23, 1 + 2.0**-22)):
        corner = torch.tensor([low, high, low])
        assert torch.equal(Corner(low, high)(corner), corner)
        message = Corner(low, high).encode(corner)
        assert torch.equal(Corner(low, high).decode(message, corner), corner)
    zero = torch.zeros(3)
    assert torch.equal(OneEntry(2.0).decode(OneEntry(2.0).encode(zero), zero), zero)
