"""Messages as bytes: as long as the bits that are counted, and nothing is lost."""

import pytest
import torch

from fedlib.compress import Identity, Largest
from fedlib.compress.sketches import Wire
from fedlib.flower.packing import Garbled, pack, receive, send, unpack
from fedlib.testing.examples import TASKS, WIRE_DIM, wire_formats
from tests.helpers.expect import refuses


@pytest.fixture(params=wire_formats(), ids=lambda example: str(example.wire))
def sent(request):
    """A format, its randomness, and a vector that has been through it, of float32 numbers."""
    wire, x = request.param
    rng = torch.Generator().manual_seed(0)
    noise = wire.draw(1, WIRE_DIM, rng)
    noise = noise[0] if isinstance(noise, torch.Tensor) else ()
    if x is None:
        x = wire(torch.randn(WIRE_DIM, generator=rng), noise)
    return wire, noise, x


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bytes_are_the_counted_bits_and_bring_the_vector_back(sent, dtype):
    wire, noise, x = sent
    x = x.to(dtype)
    message = wire.encode(x, noise)
    data = pack(wire, message, WIRE_DIM)
    assert len(data) == -(-wire.bits(WIRE_DIM) // 8)
    back = unpack(wire, data, x)
    assert back.values.shape == message.values.shape
    assert back.values.dtype == message.values.dtype
    arrived = wire.decode(back, x, noise)
    if message.values.is_floating_point():  # a float32 at most is sent
        message = message._replace(values=message.values.float().to(dtype))
    assert torch.equal(arrived, wire.decode(message, x, noise))
    assert pack(wire, back, WIRE_DIM) == data


def test_what_is_no_message_of_the_format_is_told(sent):
    wire, noise, x = sent
    data = send(wire, x, noise)
    for wrong in (data[:-1], data + b"12345678", b""):
        with pytest.raises(Garbled, match=r"has .* bytes, got"):
            receive(wire, wrong, x, noise)


def test_the_shape_of_a_tensor_is_kept():
    x = torch.randn(2, 3, 3, generator=torch.Generator().manual_seed(1))
    assert torch.equal(receive(Identity(), send(Identity(), x), x), x)


def test_numbers_of_a_length_that_is_only_counted_are_refused():
    wire = Wire(Largest(value_bits=16), TASKS)
    x = torch.randn(WIRE_DIM, generator=torch.Generator().manual_seed(1))
    refuses("numbers of 32 bits to be sent, got 16", send, wire, x)
