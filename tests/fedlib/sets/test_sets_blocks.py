"""Products of sets: every oracle is that of the parts; a set for each client."""

import math

import pytest
import torch
from torch.func import vmap

import fedlib as fl
from fedlib.sets.vertices import OneEntry, Several, gauge_of, wire_of
from tests.helpers.expect import refuses

PARTS = (fl.L1Ball(2.0), fl.Ball(3.0), fl.Box(-1.0, 2.0), fl.NuclearBall(1.0, 2, 3), fl.Simplex())
SIZES = (5, 4, 3, 6, 2)
BLOCKS = fl.Blocks(PARTS, SIZES)
DIM = sum(SIZES)


def points(count=40, seed=0):
    g = torch.Generator().manual_seed(seed)
    scale = 10.0 ** torch.randint(-3, 4, (count, 1), generator=g).double()
    return scale * torch.randn(count, DIM, generator=g, dtype=torch.float64)


@pytest.mark.parametrize("method", ["project", "lmo"])
def test_every_oracle_acts_part_by_part(method):
    for x in points():
        point = getattr(BLOCKS, method)(x)
        pieces = zip(PARTS, x.split(SIZES), strict=True)
        points_of_parts = [getattr(convex_set, method)(piece) for convex_set, piece in pieces]
        assert torch.equal(point, torch.cat(points_of_parts))
        assert BLOCKS.contains(point)


@pytest.mark.parametrize("block", range(len(SIZES)))
def test_a_point_that_leaves_one_part_is_outside(block):
    outside = BLOCKS.lmo(points()[-1])
    outside.split(SIZES)[block].mul_(3)
    assert not BLOCKS.contains(outside)


def test_diameter_gauge_and_vmap():
    diameters = (4.0, 6.0, 3 * math.sqrt(3), 2.0, math.sqrt(2))
    assert BLOCKS.diameter(DIM) == pytest.approx(math.hypot(*diameters))
    x = points(10)
    for method in (BLOCKS.project, BLOCKS.lmo, BLOCKS.gauge):
        torch.testing.assert_close(vmap(method)(x), torch.stack([method(v) for v in x]))
    single = torch.zeros(DIM, dtype=torch.float64)
    single[5] = 6.0
    assert gauge_of(BLOCKS, single) == 2.0  # twice the radius of the Ball
    assert gauge_of(fl.Box(-1.0, 2.0), torch.tensor([2.0, 3.5])) == 2.0


def assert_carried(wire, point):
    """A point comes back from its message."""
    arrived = wire.decode(wire.encode(point), point)
    torch.testing.assert_close(arrived, point, atol=1e-14, rtol=0)


def test_messages_are_those_of_the_parts():
    wire = wire_of(BLOCKS, DIM)
    assert wire.bits(DIM) == (3 + 1) + 4 * 32 + 3 + 32 * 5 + 1
    for g in points():
        s = BLOCKS.lmo(g)
        message = wire.encode(s)
        assert len(message.values) == 14
        assert len(message.positions) == 2
        assert_carried(wire, s)


def test_a_product_within_a_product_is_carried():
    nested = fl.Blocks((BLOCKS, fl.L1Ball(1.0)), (DIM, 4))
    x = points()[-1]
    wire = nested.wire(DIM + 4)
    assert wire.bits(DIM + 4) == wire_of(BLOCKS, DIM).bits(DIM) + 3
    assert_carried(wire, nested.lmo(torch.cat([x, x[:4]])))


def test_a_network_tensor_by_tensor():
    module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
    shapes = [p.shape for p in module.parameters()]
    same = fl.Blocks.of_shapes(shapes, fl.L1Ball(10.0))
    assert same.sizes == (12, 3, 6, 2)
    assert set(same.sets) == {fl.L1Ball(10.0)}
    point = same.lmo(torch.randn(23, generator=torch.Generator()))
    assert point.count_nonzero() == 4
    ball = fl.Ball(1.0)
    mixed = fl.Blocks.of_shapes(shapes, [fl.NuclearBall(1.0, 3, 4), ball, ball, ball])
    assert mixed.sets[0] == fl.NuclearBall(1.0, 3, 4)


def test_groups_of_clients():
    split = fl.PerClient((fl.Ball(2.0), fl.L1Ball(1.0)), (1, 0, 1))
    assert split.groups() == [(fl.Ball(2.0), [1]), (fl.L1Ball(1.0), [0, 2])]


def test_every_part_lies_in_its_set_up_to_the_tolerance():
    blocks = fl.Blocks((fl.Ball(1.0), fl.Box(-1.0, 1.0)), (2, 1))
    for outside in ([1.0 + 1e-3, 0.0, 0.0], [0.0, 0.0, 1.0 + 1e-3]):
        x = torch.tensor(outside, dtype=torch.float64)
        assert not blocks.contains(x)
        assert blocks.contains(x, tol=1e-2)


def test_a_message_without_positions_is_decoded():
    wire = wire_of(fl.Blocks((fl.Ball(1.0), fl.Box(-1.0, 1.0)), (2, 2)), 4)
    x = torch.tensor([0.6, -0.8, 1.0, -1.0], dtype=torch.float64)
    message = wire.encode(x)
    assert message.positions == ()
    assert torch.equal(wire.decode(message, x), x)


def test_a_set_without_a_gauge_has_none():
    size = gauge_of(object(), torch.ones(3, dtype=torch.float64))
    assert size.isnan()
    assert (size.shape, size.dtype) == ((), torch.float64)
    assert gauge_of(object(), torch.ones(1)).isnan()


def test_a_set_of_one_s_own_is_asked_for_its_format_in_so_many_dimensions():
    class Own:
        def wire(self, dim):
            return OneEntry(float(dim))

    assert wire_of(Own(), 7) == OneEntry(7.0)


def test_every_format_has_a_part_of_its_own():
    wire = Several((OneEntry(1.0),), (2, 2))
    for call in (lambda: wire.layout(4), lambda: wire.encode(torch.eye(2).flatten())):
        with pytest.raises(ValueError, match="longer"):
            call()


def test_a_product_has_a_part():
    refuses("Blocks: sets must have one set for each of (), got ().", fl.Blocks, (), ())
    assert fl.Blocks((fl.Ball(1.0),), (2,)).diameter(2) == 2.0
