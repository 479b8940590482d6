"""Sets: the projection's variational inequality, optimality of the LMO, on hard random inputs."""

import math

import pytest
import torch
from randoms import generator
from torch.func import vmap

from fedlib.sets import Ball, Box, L1Ball, Simplex

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
}


def inputs(seed=0, dtype=torch.float64):
    """300 vectors of scales 1e-12 to 1e12, some sparse, and the zero vector."""
    g = generator(seed)
    x = torch.randn(300, DIM, generator=g, dtype=dtype)
    scale = 10.0 ** torch.randint(-12, 13, (300, 1), generator=g).to(dtype)
    sparse = torch.rand(300, DIM, generator=g) < torch.tensor([1.0, 0.5, 0.2]).repeat(100)[:, None]
    return torch.cat([x * scale * sparse, torch.zeros(1, DIM, dtype=dtype)])


def feasible(convex_set, seed=1):
    """400 points of the set, found without `project` and `lmo`; half on the boundary."""
    g = generator(seed)
    if isinstance(convex_set, Ball):
        x = torch.randn(400, DIM, generator=g, dtype=torch.float64)
        length = torch.rand(400, 1, generator=g, dtype=torch.float64) ** (1 / DIM)
        length[:200] = 1
        return convex_set.radius * length * x / x.norm(dim=1, keepdim=True)
    u = torch.rand(400, DIM, generator=g, dtype=torch.float64)
    if not isinstance(convex_set, Box):
        z = convex_set.radius * u / u.sum(1, keepdim=True)
        if isinstance(convex_set, L1Ball):
            z = z * torch.randn(400, DIM, generator=g).sign()
            z[200:] *= torch.rand(200, 1, generator=g, dtype=torch.float64)
        return z
    u[:200] = (u[:200] > 0.5).double()
    return convex_set.low + u * (convex_set.high - convex_set.low)


@pytest.mark.parametrize("convex_set", SETS.values(), ids=SETS)
class TestEverySet:
    def test_projection_leaves_the_set_alone_and_is_nonexpansive(self, convex_set):
        z = feasible(convex_set)
        p = vmap(convex_set.project)(z)
        assert torch.allclose(p, z, rtol=1e-14, atol=1e-15 * convex_set.diameter(DIM))
        if isinstance(convex_set, (Ball, Box)):
            inside = z * (1 - 1e-9) if isinstance(convex_set, Ball) else z
            assert torch.equal(vmap(convex_set.project)(inside), inside)
        x, y = inputs(2), inputs(3)
        moved = (vmap(convex_set.project)(x) - vmap(convex_set.project)(y)).norm(dim=1)
        slack = 1e-15 + 1e-14 * convex_set.diameter(DIM)
        assert (moved <= (x - y).norm(dim=1) * (1 + 1e-12) + slack).all()

    def test_contains_has_a_tolerance(self, convex_set):
        z = feasible(convex_set)[:200]  # boundary, away from it by a factor about the middle
        box, below = isinstance(convex_set, Box), not isinstance(convex_set, Simplex)
        middle = (convex_set.low + convex_set.high) / 2 if box else 0.0
        for factor, tol, answer in ((1.01, 1e-6, False), (1.01, 0.1, True), (0.99, 1e-6, below)):
            moved = middle + factor * (z - middle)
            assert (vmap(lambda x, t=tol: convex_set.contains(x, t))(moved) == answer).all()

    def test_diameter_bounds_all_distances_and_is_attained(self, convex_set):
        z, diameter = feasible(convex_set), convex_set.diameter(DIM)
        assert torch.cdist(z, z).max() <= diameter * (1 + 1e-12)
        ones = torch.ones(DIM, dtype=torch.float64)
        ones[0] = 2 if isinstance(convex_set, (L1Ball, Simplex)) else 1
        ends = convex_set.lmo(ones) - convex_set.lmo(-ones)
        assert float(ends.norm()) == pytest.approx(diameter, rel=1e-6 if ones[0] == 2 else 1e-12)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_dtype_stays_and_vmap_is_the_loop(self, convex_set, dtype):
        x = inputs(dtype=dtype)[:50]
        gauge = (convex_set.gauge,) if hasattr(convex_set, "gauge") else ()
        for method in (convex_set.project, convex_set.lmo, *gauge):
            together = vmap(method)(x)
            assert together.dtype == dtype
            assert torch.allclose(together, torch.stack([method(v) for v in x]), rtol=1e-6)
        assert vmap(convex_set.contains)(x).dtype == torch.bool

    def test_float32_does_not_overflow(self, convex_set):
        x = torch.tensor([3e38, -3e38, 0, 1e-45, 3e30, 1.0])
        p = convex_set.project(x)
        assert convex_set.contains(p)
        assert p.isfinite().all()
        assert torch.allclose(p.double(), convex_set.project(x.double()), rtol=1e-6, atol=1e-7)
        tiny = torch.tensor([1e-44, 0, 0, 0, 0, 0])
        assert convex_set.lmo(tiny)[0] < convex_set.lmo(-tiny)[0]

    def test_nan_is_not_hidden(self, convex_set):
        x = torch.tensor([1.0, math.nan, 0.0])
        assert convex_set.project(x).isnan().any()
        assert convex_set.lmo(x).isnan().any()
        assert not convex_set.contains(x)


def test_known_projections():
    assert Ball(1.0).project(torch.tensor([3.0, 4.0])).tolist() == pytest.approx([0.6, 0.8])
    assert Box(-1.0, 2.0).project(torch.tensor([-5.0, 0.5, 5.0])).tolist() == [-1.0, 0.5, 2.0]
    assert Ball(2.0).lmo(torch.tensor([0.0, 3.0])).tolist() == [0.0, -2.0]
    assert Box(1.0).lmo(torch.tensor([2.0, -0.1])).tolist() == [-1.0, 1.0]


def test_a_radius_makes_a_box():
    assert Box(2.0) == Box(-2.0, 2.0)
    assert Box(0, 1).diameter(4) == 2.0


def test_bounds_may_be_stacked_under_vmap():
    x = torch.tensor([3.0, 4.0])
    radii = torch.tensor([1.0, 10.0])
    assert vmap(lambda r: Ball(r).project(x))(radii).tolist() == [
        pytest.approx([0.6, 0.8]),
        [3.0, 4.0],
    ]
    boxed = vmap(lambda r: Box(r).project(x))(torch.tensor([1.0, 3.5]))
    assert boxed.tolist() == [[1.0, 1.0], [3.0, 3.5]]
