"""Balls, the box and the simplex: dtypes, maps, extreme scales, known points, wire formats."""

import math

import pytest
import torch
from torch.func import vmap

from fedlib.sets import Ball, Box, L1Ball, NuclearBall, Simplex
from fedlib.sets.vertices import wire_of
from tests.helpers.expect import close
from tests.helpers.problems import double
from tests.helpers.randoms import generator

DIM = 6
SETS = {
    "ball": Ball(2.0),
    "small ball": Ball(1e-3),
    "box": Box(-1.0, 3.0),
    "box off the origin": Box(0.5, 0.75),
    "box of a radius": Box(0.7),
    "l1 ball": L1Ball(2.0),
    "small l1 ball": L1Ball(1e-3),
    "simplex": Simplex(),
    "large simplex": Simplex(30.0),
    "nuclear ball": NuclearBall(1.0, 2, 3),
}
every_set = pytest.mark.parametrize("convex_set", SETS.values(), ids=SETS)
L1 = L1Ball(2.0)
SIMPLEX = Simplex(1.5)


def inputs(count, dim=DIM, dtype=torch.float64):
    """Vectors of scales 1e-12 to 1e12, some sparse, some with ties, and the zero vector."""
    g = generator()
    x = torch.randn(count, dim, generator=g, dtype=dtype)
    x[::3] = x[::3].round()
    x[::2] *= torch.rand(x[::2].shape, generator=g) < 0.5
    scale = 10.0 ** torch.randint(-12, 13, (count, 1), generator=g)
    zero = torch.zeros(1, dim, dtype=dtype)
    return torch.cat([x * scale.to(dtype), zero])


@every_set
@pytest.mark.parametrize(
    "dtype",
    [torch.float16, torch.bfloat16, torch.float32, torch.float64],
)
def test_the_dtype_stays(convex_set, dtype):
    x = torch.linspace(-2, 2, DIM, dtype=dtype)
    assert convex_set.project(x).dtype == dtype
    assert convex_set.lmo(x).dtype == dtype
    if hasattr(convex_set, "gauge"):
        assert convex_set.gauge(x).dtype == dtype


@every_set
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_vmap_is_the_loop(convex_set, dtype):
    x = inputs(50, dtype=dtype)
    for name in ("project", "lmo", "contains", "gauge"):
        method = getattr(convex_set, name, None)
        if method is not None:
            looped = torch.stack([method(v) for v in x])
            torch.testing.assert_close(vmap(method)(x), looped, rtol=1e-6, atol=1e-8)


@every_set
def test_float32_does_not_overflow(convex_set):
    x = torch.tensor([3e38, -3e38, 0, 1e-45, 3e30, 1.0])
    p = convex_set.project(x)
    assert convex_set.contains(p)
    exact = convex_set.project(x.double())
    torch.testing.assert_close(p.double(), exact, rtol=1e-6, atol=1e-7)
    tiny = torch.tensor([1e-44, 0, 0, 0, 0, 0])
    assert convex_set.lmo(tiny)[0] < convex_set.lmo(-tiny)[0]


@every_set
def test_nan_is_not_hidden(convex_set):
    x = torch.ones(DIM)
    x[1] = math.nan
    assert convex_set.project(x).isnan().any()
    assert convex_set.lmo(x).isnan().any()
    assert not convex_set.contains(x)


@pytest.mark.parametrize(
    ("convex_set", "x", "nearest"),
    [
        (Ball(1.0), [3.0, 4.0], [0.6, 0.8]),
        (Box(-1.0, 2.0), [-5.0, 0.5, 5.0], [-1.0, 0.5, 2.0]),
        (L1, [3.0, -1.0, 0.5], [2.0, 0.0, 0.0]),
        (L1, [2.0, -2.0], [1.0, -1.0]),
        (SIMPLEX, [0.0, 0.0, 0.0], [0.5, 0.5, 0.5]),
        (NuclearBall(1.0, 2, 2), [3.0, 0.0, 0.0, 2.5], [0.75, 0.0, 0.0, 0.25]),
        # points of the boundary
        (Ball(0.5), [0.4, 0.3], [0.4, 0.3]),
        (L1Ball(1.0), [0.1, 0.2, 0.7], [0.1, 0.2, 0.7]),
        (Box(-1.0, 0.3), [0.3, -1.0], [0.3, -1.0]),
    ],
)
def test_known_projections(convex_set, x, nearest):
    point = convex_set.project(double(*x))
    close(point, double(*nearest), 1e-15)
    assert convex_set.contains(point, tol=0.0)


@pytest.mark.parametrize(
    ("convex_set", "direction", "vertex"),
    [
        (Ball(2.0), [0.0, 3.0], [0.0, -2.0]),
        (Box(1.0), [2.0, -0.1], [-1.0, 1.0]),
        (Box(1.0), [0.0, 0.0], [1.0, 1.0]),
        (L1, [1.0, -3.0], [0.0, 2.0]),
        (L1, [0.0, -1.0, 1.0], [0.0, 2.0, 0.0]),  # of equal entries the first counts
        (L1, [0.0, 0.0, 0.0], [-2.0, 0.0, 0.0]),
        (SIMPLEX, [1.0, -3.0], [0.0, 1.5]),
        (SIMPLEX, [1.0, 1.0], [1.5, 0.0]),
        (NuclearBall(1.0, 2, 2), [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]),
        (NuclearBall(1.0, 2, 2), [0.0, 0.0, 0.0, -5.0], [0.0, 0.0, 0.0, 1.0]),
    ],
)
def test_known_vertices(convex_set, direction, vertex):
    close(convex_set.lmo(double(*direction)), double(*vertex))


@pytest.mark.parametrize(
    ("convex_set", "dim", "diameter"),
    [
        (L1, 1, 4.0),
        (SIMPLEX, 1, 0.0),
        (Simplex(3.0), 2, 3 * 2**0.5),
        (Box(0, 1), 4, 2.0),
        (Box(2.0), 1, 4.0),
        (Box(0.0, math.inf), 2, math.inf),
        (NuclearBall(1.5, 20, 30), 600, 3.0),
    ],
)
def test_diameters(convex_set, dim, diameter):
    assert convex_set.diameter(dim) == pytest.approx(diameter)


@pytest.mark.parametrize("radius", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("set_type", [L1Ball, Simplex])
def test_large_points_keep_their_digits(set_type, radius):
    """Two entries that differ by half a radius at a height of 1e8: the sum is still right."""
    x = double(1e8, 1e8 + radius / 2, 1.0)
    gap = float(x[1] - x[0])
    expected = [(radius - gap) / 2, (radius + gap) / 2, 0.0]
    assert set_type(radius).project(x).tolist() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("set_type", [Ball, Box, L1Ball, Simplex])
def test_bounds_may_be_stacked_under_vmap(set_type):
    x = torch.tensor([3.0, 4.0])
    radii = torch.tensor([1.0, 3.5, 10.0])
    for name in ("project", "lmo"):
        points = vmap(lambda radius, name=name: getattr(set_type(radius), name)(x))(radii)
        alone = [getattr(set_type(float(radius)), name)(x) for radius in radii]
        close(points, torch.stack(alone), 1e-6)


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
        (NuclearBall(1.5, 20, 30), 600, 32 * 50),
    ],
)
def test_the_wire_carries_extreme_points_in_so_many_bits(convex_set, dim, bits):
    wire = wire_of(convex_set, dim)
    assert wire.bits(dim) == bits
    assert wire.contraction(dim) == 1.0
    assert wire.variance(dim) == 0.0
    for direction in inputs(4, dim):
        s = convex_set.lmo(direction)
        assert torch.equal(wire(s), s)
        close(wire.decode(wire.encode(s), s), s, 1e-14)


@pytest.mark.parametrize("convex_set", [L1, SIMPLEX, Box(1.0), NuclearBall(1.0, 2, 3)])
def test_the_wire_of_extreme_points_carries_nothing_else(convex_set):
    wire = convex_set.wire(DIM)
    x = double(
        0.1,
        0.2,
        0.3,
        0.3,
        0.2,
        0.1,
    )
    assert not torch.allclose(wire.decode(wire.encode(x), x), x)
