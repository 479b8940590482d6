"""Sets at their edges: no oracle or projection gives a point that `contains` refuses."""

import json
import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.func import vmap

import fedlib as fl
from fedlib import problems
from fedlib.sets import Ball, Blocks, Box, L1Ball, NuclearBall, Simplex
from fedlib.sets.vertices import Corner
from fedlib.solvers.leading_pair import leading_pair
from tests.helpers.expect import refuses
from tests.helpers.randoms import generator

HALF = (torch.float16, torch.bfloat16)
#: The smallest and the largest power of ten of each dtype; the smallest have few digits.
POWERS = {
    torch.float16: (-7, 4),
    torch.bfloat16: (-40, 37),
    torch.float32: (-44, 37),
    torch.float64: (-320, 307),
}


@st.composite
def vectors(draw, dim, dtype):
    """A vector of any scale that the dtype has: zeros, ties, single entries or normal ones."""
    power = draw(st.integers(*POWERS[dtype]))
    ties = st.lists(st.integers(-2, 2).map(float), min_size=dim, max_size=dim)
    normal = st.integers(0, 999).map(lambda s: torch.randn(dim, generator=generator(s)).tolist())
    single = st.integers(0, dim - 1).map(lambda k: [float(i == k) for i in range(dim)])
    entries = torch.tensor(draw(st.one_of(ties, normal, single)), dtype=torch.float64)
    return (entries * 10.0**power).clamp(-1e308, 1e308).to(dtype)


def in_range(number, dtype):
    largest = torch.finfo(dtype).max
    return max(-largest, min(number, largest))


@st.composite
def cases(draw):
    """A set with a bound of any scale, a dimension and a dtype."""
    dtype = draw(st.sampled_from([*POWERS]))
    power = draw(st.integers(*POWERS[dtype]))
    radius = in_range(draw(st.sampled_from([1.0, 1 / 3, 7.7])) * 10.0**power, dtype)
    dim = draw(st.integers(1, 7))
    set_type = draw(st.sampled_from([Ball, Box, L1Ball, Simplex, NuclearBall, Blocks]))
    if set_type is NuclearBall:
        return NuclearBall(radius, dim, 3, draw(st.integers(1, 4))), 3 * dim, dtype
    if set_type is Blocks:
        return Blocks((L1Ball(radius), Box(-radius, 0.1)), (dim, 2)), dim + 2, dtype
    if set_type is Box:
        low = draw(st.sampled_from([-radius, 0.0, 0.1 * radius]))
        return Box(low, radius), dim, dtype
    return set_type(radius), dim, dtype


@given(cases(), st.data())
def test_no_point_is_refused_by_its_own_set(case, data):
    convex_set, dim, dtype = case
    x = data.draw(vectors(dim, dtype))
    for point in (convex_set.project(x), convex_set.lmo(x)):
        assert point.dtype == dtype
        assert point.isfinite().all()
        assert convex_set.contains(point)
    again = convex_set.project(convex_set.project(x))
    assert convex_set.contains(again)


@given(cases(), st.data())
def test_points_of_a_set_are_their_own_nearest_points(case, data):
    convex_set, dim, dtype = case
    x = data.draw(vectors(dim, dtype))
    inside = convex_set.contains(x, tol=0.0)
    point = convex_set.project(x).double()
    size = float(x.double().abs().amax())
    unit = 64 * dim * torch.finfo(dtype).eps
    if inside:
        low = dim * 4 * torch.finfo(dtype).tiny * torch.finfo(dtype).eps
        torch.testing.assert_close(point, x.double(), rtol=0, atol=unit * size + low)


@given(st.sampled_from(HALF), st.integers(0, 999), st.sampled_from([Ball, L1Ball, Simplex]))
def test_short_floats_are_as_near_as_they_can_be(dtype, seed, set_type):
    x = 10 * torch.randn(5, generator=generator(seed)).to(dtype)
    exact = set_type(2.0).project(x.double())
    unit = torch.finfo(dtype).eps
    torch.testing.assert_close(set_type(2.0).project(x).double(), exact, rtol=unit, atol=unit)


INFINITE = {
    "nonnegative": Box(0.0, math.inf),
    "nonpositive": Box(-math.inf, 0.0),
    "from a number on": Box(0.1, math.inf),
    "everything": Box(-math.inf, math.inf),
    "beyond float32": Box(0.0, 1e300),
}


@pytest.mark.parametrize("box", INFINITE.values(), ids=INFINITE)
@pytest.mark.parametrize("dtype", [*POWERS])
def test_a_box_with_infinite_sides_projects(box, dtype):
    x = torch.tensor([-2.0, -0.0, 0.05, 3.0], dtype=dtype)
    p = box.project(x)
    assert p.dtype == dtype
    assert box.contains(p)
    low = max(box.low, -1e300)
    expected = x.double().clamp(min=low, max=box.high)
    torch.testing.assert_close(p.double(), expected.to(dtype).double())
    if box.low > -1e300 and (dtype is not torch.float64 or math.isinf(box.high)):
        assert not box.contains(p - 1)
    if dtype is not torch.float64 or math.isinf(box.high - box.low):
        refuses("Box: * must be finite in torch.", box.lmo, x)


def test_methods_that_project_run_on_boxes_with_infinite_sides():
    centres = torch.tensor([[1.0, -2.0], [3.0, -4.0]]).view(2, 1, 1, 2)
    unconstrained = problems.pareto(centres)
    problem = unconstrained.within(Box(0.0, math.inf))
    options = {"rounds": 60, "progress": False}
    lowest = fl.run(fl.FedAvg(0.5, 1, 2), unconstrained, **options).model()
    assert (lowest < -0.1).any()
    expected = lowest.clamp(min=0)  # the objective is a sum over entries
    grid = [fl.FedAvg(lr, 1, 2) for lr in (0.5, 0.25)]
    for trace in fl.run(grid, problem, seeds=(0, 1), **options):
        torch.testing.assert_close(trace.model(1), expected, atol=1e-5, rtol=0)
    json.dumps(trace.config)
    refuses(
        "Box: high must be finite in torch.float32*such a box is for methods that project",
        fl.run,
        fl.FedFW(1.0),
        problem,
        rounds=1,
        progress=False,
    )


def test_boxes_without_a_point_and_bounds_that_no_number_reaches():
    refuses("Box: high must be above low, got (inf, inf)", Box, math.inf, math.inf)
    refuses("Box: high must be above low", Box, 0.0, -math.inf)
    refuses("Box: high must be a finite number, got nan", Box, 0.0, math.nan)
    refuses("Box: radius must be positive", Box, math.inf)
    x = torch.ones(2)
    words = "Box: the box must hold numbers of torch.float32, got Box(low=1e+300, high=inf)."
    refuses(words, Box(1e300, math.inf).project, x)
    words = (
        "Box: low must be finite in torch.float32, at most 3.4e+38, got -inf; such a box is for "
        "methods that project, and has no minimizers of directions."
    )
    refuses(words, Box(-math.inf, 0.0).lmo, x)
    words = "radius must be finite in torch.float32, at most 3.4e+38, got 1e+300."
    for set_type in (Ball, L1Ball, Simplex):
        for method in (set_type(1e300).project, set_type(1e300).lmo, set_type(1e300).contains):
            refuses(f"{set_type.__name__}: {words}", method, x)
        assert set_type(1e300).project(x.double()).isfinite().all()
    refuses("NuclearBall: radius must be finite", NuclearBall(1e300, 1, 2).lmo, x)
    largest = torch.finfo(torch.float32).max
    assert Box(-largest, largest).project(torch.tensor([math.inf])).tolist() == [largest]
    assert Box(0.0, 1e300).wire(2) == Corner(0.0, 1e300)
    assert Box(0.0, math.inf).gauge(x).isnan()
    assert Box(0.0, math.inf).diameter(2) == math.inf


def orthogonal(shape):
    """Matrices whose leading vectors are orthogonal to the start of the Lanczos steps."""
    m, n = shape
    h = (torch.arange(1, m + 1, dtype=torch.float64) * ((5**0.5 - 1) / 2)).frac() - 0.5
    left = torch.zeros(m, dtype=torch.float64)
    left[0] = h[1]
    left[1] = -h[0]
    right = torch.ones(n, dtype=torch.float64)
    rank_one = torch.outer(left, right)
    other_left = torch.zeros(m, dtype=torch.float64)
    other_left[5] = 1.0
    other_right = torch.cat([torch.ones(n // 2), -torch.ones(n - n // 2)]).double()
    further = 0.3 * torch.outer(other_left, other_right)
    spread = torch.zeros(m, dtype=torch.float64)
    spread[10:] = 0.2
    spread -= h * (h @ spread) / (h @ h)
    return {
        "rank one": rank_one,
        "rank two": 3 * rank_one + further,
        "rank two, the larger row elsewhere": 0.4 * rank_one
        + 0.3 * torch.outer(other_left, other_right),
        "many small rows": torch.outer(spread, right) + 0.3 * torch.outer(other_left, other_right),
    }


SHAPES = [(60, 60), (80, 50), (300, 45)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("wide", [False, True])
def test_no_matrix_hides_from_the_start(shape, dtype, wide):
    for name, A in orthogonal(shape).items():
        A = A.to(dtype).mT.contiguous() if wide else A.to(dtype)
        ball = NuclearBall(1.0, *A.shape)
        s = ball.lmo(A.flatten())
        best = float(torch.linalg.svdvals(A.double())[0])
        rel = {torch.float32: 1e-4, torch.float64: 1e-9, torch.bfloat16: 2e-2}[dtype]
        assert -float(A.flatten().double() @ s.double()) == pytest.approx(best, rel=rel), name
        assert ball.contains(s)
        assert ball.contains(ball.project(A.flatten()))


def test_a_leading_pair_has_unit_length():
    for seed in range(20):
        g = generator(seed)
        rank = 1 + seed % 4
        A = torch.randn(70, rank, generator=g) @ torch.randn(rank, 60, generator=g)
        u, v = leading_pair(10.0 ** (seed - 10) * A, 3 + seed)
        assert [float(u.norm()), float(v.norm())] == pytest.approx([1, 1], abs=1e-5)
    u, v = leading_pair(torch.zeros(70, 60))
    assert not u.any()
    assert not v.any()


@pytest.mark.parametrize("dim", [100, 10_000, 200_000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_large_models_stay_in_their_sets(dim, dtype):
    x = torch.randn(dim, generator=generator(1)).to(dtype)
    for convex_set in (Ball(1.0), L1Ball(10.0), Simplex(3.0), Box(0.1)):
        assert convex_set.contains(convex_set.project(x))
        assert convex_set.contains(convex_set.lmo(x))
        outside = convex_set.project(x) * 4
        assert not convex_set.contains(outside)


def simplex_by_fractions(x, radius):
    """The nearest point of the simplex in exact arithmetic, rounded once."""
    numbers = [Fraction(value) for value in x.double().tolist()]
    falling = sorted(numbers, reverse=True)
    total = Fraction(0)
    theta = Fraction(0)
    for count, value in enumerate(falling, 1):
        total += value
        shift = (total - Fraction(radius)) / count
        if value > shift:
            theta = shift
    return torch.tensor([float(max(value - theta, 0)) for value in numbers], dtype=torch.float64)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("radius", [1e-30, 0.1, 3.0, 1e30])
def test_entries_far_below_the_largest_do_not_add_up(radius, dtype):
    """Many entries just above -radius: rounding of theta counts once for each of them."""
    size = 1000
    close_by = torch.full((size,), -radius, dtype=torch.float64)
    close_by[7] = 0.0
    spread = close_by * (1 - 1e-5 * torch.rand(size, generator=generator(3), dtype=torch.float64))
    far = 1e3 * radius * torch.randn(size, generator=generator(4), dtype=torch.float64)
    for x in (close_by, spread, far):
        rounded = x.to(dtype)
        simplex = Simplex(float(torch.tensor(radius, dtype=dtype)))
        nearest = simplex.project(rounded)
        assert simplex.contains(nearest)
        assert L1Ball(simplex.radius).contains(L1Ball(simplex.radius).project(rounded))
        exact = simplex_by_fractions(rounded, simplex.radius)
        worst = (nearest.double() - exact).abs().sum() / radius
        assert worst < 8 * torch.finfo(dtype).eps * size**0.5


@pytest.mark.parametrize("seed", range(4))
def test_no_rounding_is_added_to_entries_that_are_zero(seed):
    x = torch.randn(1000, generator=generator(seed), dtype=torch.float64)
    exact = simplex_by_fractions(x, 30.0)
    assert torch.equal(Simplex(30.0).project(x) == 0, exact == 0)


@pytest.mark.parametrize(
    ("convex_set", "point"),
    [
        (Ball(1.0), [1.5, 0.0]),
        (Simplex(1.0), [1.5, 0.0]),
        (Simplex(1.0), [1.5, -0.5]),
        (Box(0.0, 1.0), [1.5, -0.5]),
    ],
)
def test_a_point_at_the_tolerance_is_inside(convex_set, point):
    x = torch.tensor(point, dtype=torch.float64)
    assert convex_set.contains(x, tol=0.5)
    assert not convex_set.contains(x, tol=0.499)


def test_of_no_tolerance_the_rounding_remains():
    """Two units of a short float, four of a float32, and those below the smallest normal number."""
    unit = 2.0**-7
    for set_type in (Ball, Simplex):
        for units, inside in ((2, True), (3, False)):
            x = torch.tensor([1 + units * unit], dtype=torch.bfloat16)
            assert set_type(1.0).contains(x, tol=0.0) == inside
    halves = torch.tensor([0.5 + unit, 0.5 + 1.5 * unit], dtype=torch.bfloat16)
    assert not Simplex(1.0).contains(halves, tol=0.0)
    assert Simplex(1.0).contains(torch.tensor([1.0, 0.0]), tol=0.0)
    assert Box(0.0, math.inf).contains(torch.ones(2), tol=0.0)
    assert not Ball(1e-36).contains(torch.tensor([3e-36]))
    smallest = 2.0**-24
    rounded = Simplex(150 * smallest).project(torch.zeros(100, dtype=torch.float16))
    assert rounded.tolist() == [2 * smallest] * 100
    assert Simplex(150 * smallest).contains(rounded, tol=0.0)
    ball = NuclearBall(1.0, 300, 300)  # the rounding of a matrix of rank one has full rank
    assert ball.contains(ball.lmo(torch.randn(90_000, generator=generator(0)).bfloat16()))


def test_infinity_lies_in_no_box():
    for box in (Box(0.0, math.inf), Box(-math.inf, math.inf)):
        assert not box.contains(torch.tensor([1.0, math.inf]))
        assert box.contains(torch.tensor([1.0, 3e38]))


def test_projections_onto_infinite_boxes_map():
    box = Box(0.0, math.inf)
    x = torch.randn(4, 3, generator=generator(0))
    assert torch.equal(vmap(box.project)(x), x.clamp(min=0))
    assert vmap(box.contains)(x.abs()).all()


@pytest.mark.parametrize(
    ("convex_set", "inside", "step"),
    [
        (Ball(10.0), [6.0, 8.0], [0.6, 0.8]),
        (L1Ball(10.0), [5.0, -5.0], [1.0, 0.0]),
        (NuclearBall(10.0, 1, 2), [6.0, 8.0], [0.6, 0.8]),
        (Simplex(10.0), [5.0, 5.0], [1.0, 0.0]),
        (Simplex(10.0), [5.0, 5.0], [-1.0, 0.0]),
        (Simplex(10.0), [0.0, 10.0], [-1.0, 1.0]),
        (Box(-1.0, 3.0), [3.0], [0.4]),
        (Box(-1.0, 3.0), [-1.0], [-0.4]),
        (Box(-math.inf, 2.0), [2.0], [0.2]),
        (Box(-2.0, math.inf), [-2.0], [-0.2]),
    ],
    ids=str,
)
def test_the_tolerance_is_relative_to_the_set(convex_set, inside, step):
    """`step` is a tenth of the set's size: five tolerances of it are half of what is allowed."""
    x = torch.tensor(inside, dtype=torch.float64)
    away = torch.tensor(step, dtype=torch.float64)
    for tol in (1e-6, 1e-3):
        assert convex_set.contains(x + 5 * tol * away, tol)
        assert not convex_set.contains(x + 50 * tol * away, tol)
    assert convex_set.contains(x + 5e-6 * away)
    assert not convex_set.contains(x + 50e-6 * away)
