"""Messages as bytes: as long as the bits that are counted, and nothing is lost."""

import pytest
import torch

from fedlib.compress import Exact, Identity, Largest, LowRank, Masked, RandK, Rounding, TopK
from fedlib.compress.sketches import Columns, Wire
from fedlib.flower.packing import Garbled, layout, pack, receive, send, unpack
from fedlib.sets.vertices import Corner, OneEntry, RankOne, Several
from tests.helpers.expect import refuses

DIM = 30
TASKS = 3
AT = torch.eye(8, DIM)[7]
CORNER = torch.where(torch.arange(DIM) % 3 == 0, 1.0, -1.0)
RANKED = torch.outer(torch.arange(1.0, 6.0), torch.arange(6.0, 0.0, -1.0)).flatten()
#: format -> a vector that it can carry, None for what it makes of any
FORMATS = {
    Identity(): None, TopK(0.1): None, TopK(1.0): None, RandK(0.2): None, RandK(0.5, False): None,
    Rounding(1): None, Rounding(3): None, Rounding(22): None,
    Wire(Exact(), TASKS): None, Wire(LowRank(), TASKS): None, Wire(Masked(), TASKS): None,
    Wire(Largest(0.5), TASKS): None, Wire(Largest(2.0), TASKS): None,
    Wire(Columns(TopK(0.3)), TASKS): None, Wire(Columns(RandK(0.3)), TASKS): None,
    OneEntry(2.0): -2 * AT, OneEntry(2.0, signed=False): 2 * AT, Corner(-1.0, 1.0): CORNER,
    RankOne(5, 6): RANKED,
    Several((OneEntry(1.0), Corner(-1.0, 1.0)), (10, 20)): torch.cat([-AT[:10], CORNER[:20]]),
}  # fmt: skip


@pytest.fixture(params=FORMATS, ids=str)
def sent(request):
    """A format, its randomness, and a vector that has been through it, of float32 numbers."""
    wire, rng = request.param, torch.Generator().manual_seed(0)
    noise = wire.draw(1, DIM, rng)
    noise = noise[0] if isinstance(noise, torch.Tensor) else ()
    given = FORMATS[wire]
    x = wire(torch.randn(DIM, generator=rng), noise) if given is None else given
    return wire, noise, x


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bytes_are_the_counted_bits_and_bring_the_vector_back(sent, dtype):
    wire, noise, x = sent[0], sent[1], sent[2].to(dtype)
    message = wire.encode(x, noise)
    data = pack(wire, message, DIM)
    assert sum(field.length for field in layout(wire, DIM)) == wire.bits(DIM)
    assert len(data) == -(-wire.bits(DIM) // 8)
    back = unpack(wire, data, x)
    assert back.values.shape == message.values.shape
    assert back.values.dtype == message.values.dtype
    arrived = wire.decode(back, x, noise)
    if message.values.is_floating_point():  # a float32 at most is sent
        message = message._replace(values=message.values.float().to(dtype))
    assert torch.equal(arrived, wire.decode(message, x, noise))
    assert pack(wire, back, DIM) == data


def test_what_is_no_message_of_the_format_is_told(sent):
    wire, noise, x = sent
    data = send(wire, x, noise)
    for wrong in (data[:-1], data + b"12345678", b""):
        with pytest.raises(Garbled, match=r"has .* bytes, got"):
            receive(wire, wrong, x, noise)


def test_a_shape_is_kept_and_other_formats_say_their_own():
    x = torch.randn(2, 3, 3, generator=torch.Generator().manual_seed(1))
    assert torch.equal(receive(Identity(), send(Identity(), x), x), x)

    class Halves(Identity):
        def layout(self, dim):
            return layout(Identity(), dim)

    assert torch.equal(receive(Halves(), send(Halves(), x), x), x)
    refuses("wire must be a format of the library or have", layout, object(), 3)
    refuses(
        "value_bits must be 32 to be sent, got 16", layout, Wire(Largest(value_bits=16), TASKS), DIM
    )
