"""Products of sets: every oracle is that of the parts; a set for each client."""

import math

import pytest
import torch
from torch.func import vmap

import fedlib as fl
from fedlib.sets.vertices import gauge_of, wire_of

PARTS = (fl.L1Ball(2.0), fl.Ball(3.0), fl.Box(-1.0, 2.0), fl.NuclearBall(1.0, 2, 3), fl.Simplex())
SIZES = (5, 4, 3, 6, 2)
BLOCKS = fl.Blocks(PARTS, SIZES)
DIM = sum(SIZES)


def points(count=40, seed=0):
    g = torch.Generator().manual_seed(seed)
    scale = 10.0 ** torch.randint(-3, 4, (count, 1), generator=g).double()
    return scale * torch.randn(count, DIM, generator=g, dtype=torch.float64)


def test_every_oracle_acts_part_by_part():
    for x in points():
        for name in ("project", "lmo"):
            whole = getattr(BLOCKS, name)(x)
            own = [getattr(s, name)(part) for s, part in zip(PARTS, x.split(SIZES), strict=True)]
            assert torch.equal(whole, torch.cat(own))
            assert BLOCKS.contains(whole)
    inside = BLOCKS.lmo(x)
    for place in range(len(SIZES)):
        outside = inside.clone()
        outside.split(SIZES)[place].mul_(3)
        assert not BLOCKS.contains(outside)


def test_diameter_gauge_and_vmap():
    each = (4.0, 6.0, 3 * math.sqrt(3), 2.0, math.sqrt(2))
    assert BLOCKS.diameter(DIM) == pytest.approx(math.hypot(*each))
    x = points(10)
    for method in (BLOCKS.project, BLOCKS.lmo, BLOCKS.gauge):
        torch.testing.assert_close(vmap(method)(x), torch.stack([method(v) for v in x]))
    one = torch.zeros(DIM, dtype=torch.float64)
    one[5] = 6.0
    assert gauge_of(BLOCKS, one) == 2.0  # twice the radius of the Ball
    assert gauge_of(fl.Box(-1.0, 2.0), torch.tensor([2.0, 3.5])) == 2.0


def test_messages_are_those_of_the_parts():
    wire = wire_of(BLOCKS, DIM)
    assert wire.bits(DIM) == (3 + 1) + 4 * 32 + 3 + 32 * 5 + 1
    for g in points():
        s = BLOCKS.lmo(g)
        message = wire.encode(s)
        assert (len(message.values), len(message.positions)) == (14, 2)
        torch.testing.assert_close(wire.decode(message, g), s, atol=1e-14, rtol=0)
    dense = wire_of(fl.Blocks((fl.Ball(1.0),), (3,)), 3)
    assert dense.encode(torch.ones(3)).positions == ()
    inner = fl.Blocks((BLOCKS, fl.L1Ball(1.0)), (DIM, 4))  # a product within a product
    s = inner.lmo(torch.cat([g, g[:4]]))
    torch.testing.assert_close(inner.wire(DIM + 4).decode(inner.wire(DIM + 4).encode(s), s), s)
    assert inner.wire(DIM + 4).bits(DIM + 4) == wire.bits(DIM) + 3


def test_a_network_tensor_by_tensor():
    module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
    shapes = [p.shape for p in module.parameters()]
    same = fl.Blocks.of_shapes(shapes, fl.L1Ball(10.0))
    assert same.sizes == (12, 3, 6, 2)
    assert set(same.sets) == {fl.L1Ball(10.0)}
    other = fl.Blocks.of_shapes(shapes, [fl.NuclearBall(1.0, 3, 4), *[fl.Ball(1.0)] * 3])
    assert other.sets[0] == fl.NuclearBall(1.0, 3, 4)
    assert int((same.lmo(torch.randn(23, generator=torch.Generator())) != 0).sum()) == 4


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
