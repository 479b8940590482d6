"""Products of sets: every oracle is that of the parts; a set for each client."""

import math

import pytest
import torch
from torch.func import vmap

import fedlib as fl
from fedlib.sets.vertices import OneEntry, Several, gauge_of, wire_of
from tests.helpers.expect import close, refuses
from tests.helpers.problems import double
from tests.helpers.randoms import normal, numbers

PARTS = (
    fl.L1Ball(2.0),
    fl.Ball(3.0),
    fl.Box(-1.0, 2.0),
    fl.NuclearBall(1.0, 2, 3),
    fl.Simplex(),
)
SIZES = (5, 4, 3, 6, 2)
BLOCKS = fl.Blocks(PARTS, SIZES)
DIM = sum(SIZES)
POINTS = normal(20, DIM) * 10.0 ** torch.arange(20).remainder(7).sub(3).double()[:, None]


@pytest.mark.parametrize("method", ["project", "lmo"])
def test_every_oracle_acts_part_by_part(method):
    for x in POINTS:
        point = getattr(BLOCKS, method)(x)
        pieces = zip(PARTS, x.split(SIZES), strict=True)
        expected = [getattr(convex_set, method)(piece) for convex_set, piece in pieces]
        assert torch.equal(point, torch.cat(expected))
        assert BLOCKS.contains(point)


@pytest.mark.parametrize("block", range(len(SIZES)))
def test_a_point_that_leaves_one_part_is_outside(block):
    point = BLOCKS.lmo(POINTS[-1])
    point.split(SIZES)[block].mul_(1 + 1e-3)
    assert not BLOCKS.contains(point)
    assert BLOCKS.contains(point, tol=1e-2)


@pytest.mark.parametrize("method", ["project", "lmo", "gauge"])
def test_vmap_is_the_loop(method):
    oracle = getattr(BLOCKS, method)
    looped = torch.stack([oracle(x) for x in POINTS])
    torch.testing.assert_close(vmap(oracle)(POINTS), looped)


def test_the_diameter():
    diameters = (4.0, 6.0, 3 * math.sqrt(3), 2.0, math.sqrt(2))
    assert BLOCKS.diameter(DIM) == pytest.approx(math.hypot(*diameters))


def test_the_gauge_is_the_largest_of_the_parts():
    x = torch.zeros(DIM).double()
    x[5] = 6.0
    assert gauge_of(BLOCKS, x) == 2.0  # twice the radius of the Ball
    assert gauge_of(fl.Box(-1.0, 2.0), double(2.0, 3.5)) == 2.0
    nothing = gauge_of(object(), x)  # a set without a gauge
    assert nothing.isnan()
    assert nothing.dtype == torch.float64
    assert nothing.shape == ()


def assert_carried(wire, point):
    """A point comes back from its message."""
    message = wire.encode(point)
    close(wire.decode(message, point), point, 1e-14)
    return message


def test_messages_are_those_of_the_parts():
    wire = wire_of(BLOCKS, DIM)
    assert wire.bits(DIM) == (3 + 1) + 4 * 32 + 3 + 32 * 5 + 1
    for direction in POINTS:
        message = assert_carried(wire, BLOCKS.lmo(direction))
        assert len(message.values) == 14
        assert len(message.positions) == 2


def test_a_product_within_a_product_is_carried():
    nested = fl.Blocks((BLOCKS, fl.L1Ball(1.0)), (DIM, 4))
    wire = nested.wire(DIM + 4)
    assert wire.bits(DIM + 4) == wire_of(BLOCKS, DIM).bits(DIM) + 3
    assert_carried(wire, nested.lmo(normal(DIM + 4)))


def test_a_message_without_positions_is_carried():
    blocks = fl.Blocks((fl.Ball(1.0), fl.Box(-1.0, 1.0)), (2, 2))
    message = assert_carried(blocks.wire(4), double(0.6, -0.8, 1.0, -1.0))
    assert message.positions == ()


def test_every_format_has_a_part_of_its_own():
    wire = Several((OneEntry(1.0),), (2, 2))
    with pytest.raises(ValueError, match="longer"):
        wire.layout(4)
    with pytest.raises(ValueError, match="longer"):
        wire.encode(torch.eye(2).flatten())


def test_a_network_tensor_by_tensor():
    shapes = [(3, 4), (3,), (2, 3), (2,)]
    same = fl.Blocks.of_shapes(shapes, fl.L1Ball(10.0))
    assert same == fl.Blocks((fl.L1Ball(10.0),) * 4, (12, 3, 6, 2))
    assert same.lmo(numbers(23)).count_nonzero() == 4
    ball = fl.Ball(1.0)
    different = [fl.NuclearBall(1.0, 3, 4), ball, ball, ball]
    assert fl.Blocks.of_shapes(shapes, different).sets == tuple(different)


def test_groups_of_clients():
    split = fl.PerClient((fl.Ball(2.0), fl.L1Ball(1.0)), (1, 0, 1))
    assert split.groups() == [(fl.Ball(2.0), [1]), (fl.L1Ball(1.0), [0, 2])]


def test_a_set_of_one_s_own_is_asked_for_its_format_in_so_many_dimensions():
    class Own:
        def wire(self, dim):
            return OneEntry(float(dim))

    assert wire_of(Own(), 7) == OneEntry(7.0)


def test_a_product_has_a_part():
    refuses("Blocks: sets must have one set for each of (), got ().", fl.Blocks, (), ())
