"""Sets: dtypes, maps, extreme scales and known points; what they promise is in the properties."""

import math

import pytest
import torch
from torch.func import vmap

from fedlib.sets import Ball, Box, L1Ball, Simplex
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
}


def inputs(seed=0, dtype=torch.float64):
    """300 vectors of scales 1e-12 to 1e12, some sparse, and the zero vector."""
    g = generator(seed)
    x = torch.randn(300, DIM, generator=g, dtype=dtype)
    scale = 10.0 ** torch.randint(-12, 13, (300, 1), generator=g).to(dtype)
    sparse = torch.rand(300, DIM, generator=g) < torch.tensor([1.0, 0.5, 0.2]).repeat(100)[:, None]
    return torch.cat([x * scale * sparse, torch.zeros(1, DIM, dtype=dtype)])


@pytest.mark.parametrize("convex_set", SETS.values(), ids=SETS)
class TestEverySet:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_dtype_stays_and_vmap_is_the_loop(self, convex_set, dtype):
        x = inputs(dtype=dtype)[:50]
        gauge = (convex_set.gauge,) if hasattr(convex_set, "gauge") else ()
        for method in (convex_set.project, convex_set.lmo, *gauge):
            together = vmap(method)(x)
            assert together.dtype == dtype
            assert torch.allclose(together, torch.stack([method(v) for v in x]), rtol=1e-6)
        assert vmap(convex_set.contains)(x).dtype == torch.bool

    def test_points_stay_on_the_device(self, convex_set):
        meta = torch.device("meta")  # torch joins none of its tensors with one of the CPU
        x = torch.ones(DIM, device=meta)
        for method in (convex_set.project, convex_set.lmo, convex_set.contains):
            assert method(x).device == meta

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
    assert Box(1.0).lmo(torch.zeros(2)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("convex_set", "point"),
    [
        (Ball(0.5), [0.4, 0.3]),
        (L1Ball(1.0), [0.1, 0.2, 0.7]),
        (Box(-1.0, 0.3), [0.3, -1.0]),
    ],
)
def test_a_point_of_the_boundary_is_its_own_projection_bit_by_bit(convex_set, point):
    x = torch.tensor(point, dtype=torch.float64)
    assert torch.equal(convex_set.project(x), x)
    assert convex_set.contains(x, tol=0.0)


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
