"""The l1 ball and the simplex: known points, ties, digits of large points, wire formats."""

import pytest
import torch
from torch.func import vmap

from fedlib.sets import Ball, Box, L1Ball, Simplex
from fedlib.sets.vertices import wire_of

SETS = {
    "l1 ball": L1Ball(2.0),
    "small l1 ball": L1Ball(1e-3),
    "simplex": Simplex(),
    "large simplex": Simplex(30.0),
}
every_set = pytest.mark.parametrize("convex_set", SETS.values(), ids=SETS)
L1 = L1Ball(2.0)
SIMPLEX = Simplex(1.5)


def inputs(dim, count=300, seed=0, dtype=torch.float64):
    """Vectors of scales 1e-12 to 1e12, some sparse, some with ties, and the zero vector."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(count, dim, generator=g, dtype=dtype)
    x[::3] = x[::3].sign() * torch.randint(0, 3, (len(x[::3]), dim), generator=g).to(dtype)
    scale = 10.0 ** torch.randint(-12, 13, (count, 1), generator=g).to(dtype)
    sparse = torch.rand(count, dim, generator=g) < torch.tensor([1.0, 0.5])[
        torch.arange(count) % 2
    ].unsqueeze(1)
    return torch.cat([x * scale * sparse, torch.zeros(1, dim, dtype=dtype)])


@every_set
def test_large_points_keep_their_digits(convex_set):
    """Two entries that differ by half a radius at a height of 1e8: the sum is still right."""
    r = convex_set.radius
    x = torch.tensor([1e8, 1e8 + r / 2, 1.0], dtype=torch.float64)
    gap = float(x[1] - x[0])
    expected = [(r - gap) / 2, (r + gap) / 2, 0.0]
    assert convex_set.project(x).tolist() == pytest.approx(expected, rel=1e-12)


def test_known_points():
    assert L1.project(torch.tensor([3.0, -1.0, 0.5])).tolist() == [2.0, 0.0, 0.0]
    assert L1.project(torch.tensor([2.0, -2.0])).tolist() == [1.0, -1.0]
    assert L1.lmo(torch.tensor([1.0, -3.0])).tolist() == [0.0, 2.0]
    assert SIMPLEX.lmo(torch.tensor([1.0, -3.0])).tolist() == [0.0, 1.5]
    assert not SIMPLEX.contains(torch.tensor([2.0, -0.5]))
    assert (L1.diameter(1), SIMPLEX.diameter(1)) == (4.0, 0.0)
    assert Simplex(3.0).diameter(2) == pytest.approx(3 * 2**0.5)
    assert SIMPLEX.project(torch.tensor([0.0, 0.0, 0.0])).tolist() == [0.5, 0.5, 0.5]


def test_of_equal_entries_the_first_counts():
    assert L1.lmo(torch.tensor([0.0, -1.0, 1.0])).tolist() == [0.0, 2.0, 0.0]
    assert L1.lmo(torch.zeros(3)).tolist() == [-2.0, 0.0, 0.0]
    assert SIMPLEX.lmo(torch.ones(2)).tolist() == [1.5, 0.0]


def test_radii_may_be_stacked_under_vmap():
    x = torch.tensor([3.0, 0.0])
    radii = torch.tensor([1.0, 5.0])
    assert vmap(lambda r: L1Ball(r).project(x))(radii).tolist() == [[1.0, 0.0], [3.0, 0.0]]
    assert vmap(lambda r: Simplex(r).project(x))(radii).tolist() == [[1.0, 0.0], [4.0, 1.0]]
    assert vmap(lambda r: L1Ball(r).lmo(x))(radii).tolist() == [[-1.0, 0.0], [-5.0, 0.0]]
    assert vmap(lambda r: Simplex(r).lmo(x))(radii).tolist() == [[0.0, 1.0], [0.0, 5.0]]


@pytest.mark.parametrize(
    ("convex_set", "dim", "bits"),
    [
        (L1, 7850, 13 + 1),
        (L1, 8, 3 + 1),
        (L1, 1, 1),
        (SIMPLEX, 8, 3),
        (SIMPLEX, 9, 4),
        (Box(1.0), 100, 100),
        (Ball(1.0), 100, 3200),
    ],
)
def test_the_wire_carries_extreme_points_in_so_many_bits(convex_set, dim, bits):
    wire = wire_of(convex_set, dim)
    assert wire.bits(dim) == bits
    assert wire.draw(2, dim, torch.Generator()) == ()
    assert (wire.contraction(dim), wire.variance(dim)) == (1.0, 0.0)
    for g in inputs(dim, 4):
        s = convex_set.lmo(g)
        assert torch.equal(wire(s), s)
        assert torch.equal(wire.decode(wire.encode(s), g), s)
    if not isinstance(convex_set, Ball) and dim > 2:  # it cannot carry anything else
        flat = torch.full((dim,), 0.3, dtype=torch.float64)
        assert not torch.allclose(wire.decode(wire.encode(flat), flat), flat)
