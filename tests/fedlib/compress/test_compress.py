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
from fedlib.compress.sketches import Columns, Sketch, Wire
from fedlib.compress.wire import Message
from fedlib.core.sampling import seeded
from fedlib.sets.vertices import Corner, OneEntry
from fedlib.testing.examples import WIRE_DIM, wire_formats
from tests.helpers.expect import refuses
from tests.helpers.randoms import normal, numbers

DRAWS = 20_000  # messages over which the mean and the error of a random compressor are taken
each_format = pytest.mark.parametrize("example", wire_formats(), ids=lambda e: str(e.wire))


def compressors_of_the_folder():
    """The names of the dataclasses that its files define."""
    for file in iter_modules(compress.__path__):
        module = import_module(f"fedlib.compress.{file.name}")
        for name, thing in vars(module).items():
            is_own = inspect.isclass(thing) and thing.__module__ == module.__name__
            if is_own and is_dataclass(thing):
                yield name


def test_every_compressor_of_the_folder_is_public_and_has_an_example():
    names = set(compressors_of_the_folder())
    assert names == {*compress.__all__, Columns.__name__, Wire.__name__}
    shown = " ".join(str(example.wire) for example in wire_formats())
    for name in names:
        assert f"{name}(" in shown, f"give {name} a line in fedlib.testing.examples.wire_formats"


@each_format
def test_a_message_has_as_many_bits_as_its_layout(example):
    layout = example.wire.layout(WIRE_DIM)
    assert example.wire.bits(WIRE_DIM) == sum(field.length for field in layout) > 0


@each_format
def test_a_compressor_contracts_and_is_unbiased_as_it_says(example):
    """On a normal vector, by the mean over many draws; the bounds hold up to sampling error."""
    wire, x = example
    if x is None:
        x = normal(WIRE_DIM, seed=1)
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


@pytest.mark.parametrize(
    ("wire", "contraction", "variance"),
    [
        (TopK(0.5), 1 / 2, None),
        (TopK(1.0), 1.0, 0.0),
        # E|C(x) - x|^2 is (d / K - 1) |x|^2: a scaled RandK contracts from one half on
        (RandK(0.5), None, 1.0),
        (RandK(0.75), 1 - 1 / 3, 1 / 3),
        (RandK(1.0), 1.0, 0.0),
        (RandK(0.5, scaled=False), 1 / 2, None),
        (RandK(1.0, scaled=False), 1.0, 0.0),
        (Rounding(3), 1 - 4.0**-4, None),
    ],
)
def test_contraction_and_variance_by_hand(wire, contraction, variance):
    assert wire.contraction(12) == (None if contraction is None else pytest.approx(contraction))
    assert wire.variance(12) == (None if variance is None else pytest.approx(variance))


def test_rounding_is_round_to_nearest_even_in_binary():
    x = torch.tensor([1.25, 1.75, -1.25, 1.0, 3.5, 0.0])
    assert Rounding(1)(x).tolist() == [1.0, 2.0, -1.0, 1.0, 4.0, 0.0]


def test_rounding_to_ten_digits_is_half_precision():
    x = numbers(2000)
    half = x.half()  # within float16's normal range
    assert torch.equal(Rounding(10)(x), half.float())
    assert torch.equal(Rounding(10)(half), half)


@pytest.mark.parametrize(
    ("fraction", "dim", "k"),
    [
        (0.25, 10, 2),
        (0.26, 10, 3),
        (0.35, 10, 4),
        (0.14, 10, 1),
        (0.16, 10, 2),
        (1.0, 7, 7),
        (0.001, 30, 1),
    ],
)
def test_k_is_the_nearest_number_and_a_half_goes_to_the_even_one(fraction, dim, k):
    assert RandK(fraction).draw(3, dim, seeded(0, "rounds")).shape == (3, k)
    assert RandK(fraction).bits(dim) == 32 * k
    assert TopK(fraction).contraction(dim) == k / dim
    assert TopK(fraction)(torch.ones(dim)).count_nonzero() == k  # among ties


def test_noise_is_required_on_both_sides():
    words = "RandK: noise must be a result of draw(), got ()."
    refuses(words, RandK(0.5), torch.ones(4))
    refuses(words, RandK(0.5).decode, Message(torch.ones(2)), torch.ones(4))


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


@pytest.mark.parametrize(
    ("wire", "shape"),
    [(ShiftedVector(), [6]), (ShiftedRows(), [2, 3])],
)
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
        (OneEntry(2.0, signed=False), [("sign", 1, 0), ("position", 1, 7)]),
    ],
    ids=str,
)
def test_the_fields_of_a_message(wire, layout):
    assert [tuple(field) for field in wire.layout(100)] == layout


@pytest.mark.parametrize(
    ("wire", "point"),
    [
        (Corner(2.0, 3.0), [2.0, 3.0, 2.0]),
        (Corner(1e38, 3e38), [1e38, 3e38, 1e38]),
        (Corner(1 + 2.0**-23, 1 + 2.0**-22), [1 + 2.0**-23, 1 + 2.0**-22]),
        (OneEntry(2.0), [0.0, 0.0, 0.0]),
    ],
)
def test_a_corner_of_a_box_far_from_zero_and_the_point_zero_come_back(wire, point):
    x = torch.tensor(point)
    assert torch.equal(wire(x), x)
    assert torch.equal(wire.decode(wire.encode(x), x), x)
