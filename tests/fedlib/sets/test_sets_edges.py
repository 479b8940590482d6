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
from fedlib.sets import (
    Ball,
    Blocks,
    Box,
    L1Ball,
    NuclearBall,
    Simplex,
)
from fedlib.sets.vertices import Corner
from tests.helpers.expect import close, refuses
from tests.helpers.problems import double
from tests.helpers.randoms import generator, normal, uniform

HALF = (torch.float16, torch.bfloat16)
#: The smallest and the largest power of ten of each dtype; the smallest have few digits.
POWERS = {
    torch.float16: (-7, 4),
    torch.bfloat16: (-40, 37),
    torch.float32: (-44, 37),
    torch.float64: (-320, 307),
}
every_dtype = pytest.mark.parametrize("dtype", POWERS)


@st.composite
def vectors(draw, dim, dtype):
    """A vector of any scale that the dtype has: zeros, ties, single entries or normal ones."""
    power = draw(st.integers(*POWERS[dtype]))
    ties = st.lists(st.integers(-2, 2).map(float), min_size=dim, max_size=dim)
    normal_entries = st.integers(0, 999).map(lambda seed: normal(dim, seed=seed).tolist())
    single = st.integers(0, dim - 1).map(lambda k: torch.eye(dim)[k].tolist())
    entries = double(*draw(st.one_of(ties, normal_entries, single)))
    return (entries * 10.0**power).clamp(-1e308, 1e308).to(dtype)


@st.composite
def cases(draw):
    """A set with a bound of any scale, a dimension and a dtype."""
    dtype = draw(st.sampled_from([*POWERS]))
    power = draw(st.integers(*POWERS[dtype]))
    size = draw(st.sampled_from([1.0, 1 / 3, 7.7])) * 10.0**power
    radius = min(size, torch.finfo(dtype).max)
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
    projected = convex_set.project(x)
    for point in (projected, convex_set.lmo(x), convex_set.project(projected)):
        assert point.dtype == dtype
        assert point.isfinite().all()
        assert convex_set.contains(point)


@given(st.sampled_from(HALF), st.integers(0, 999), st.sampled_from([Ball, L1Ball, Simplex]))
def test_short_floats_are_as_near_as_they_can_be(dtype, seed, set_type):
    x = 10 * normal(5, seed=seed).to(dtype)
    exact = set_type(2.0).project(x.double())
    unit = torch.finfo(dtype).eps
    torch.testing.assert_close(
        set_type(2.0).project(x).double(),
        exact,
        rtol=unit,
        atol=unit,
    )


INFINITE = {
    "nonnegative": Box(0.0, math.inf),
    "nonpositive": Box(-math.inf, 0.0),
    "from a number on": Box(0.1, math.inf),
    "everything": Box(-math.inf, math.inf),
    "beyond float32": Box(0.0, 1e300),
}


@pytest.mark.parametrize("box", INFINITE.values(), ids=INFINITE)
@every_dtype
def test_a_box_with_infinite_sides_projects(box, dtype):
    x = torch.tensor([-2.0, -0.0, 0.05, 3.0], dtype=dtype)
    point = box.project(x)
    assert point.dtype == dtype
    assert box.contains(point)
    expected = x.double().clamp(box.low, box.high).to(dtype)
    close(point, expected, 0)
    if box.low > -math.inf and (dtype is not torch.float64 or math.isinf(box.high)):
        assert not box.contains(point - 1)
    if dtype is not torch.float64 or math.isinf(box.high - box.low):
        refuses("Box: * must be finite in torch.", box.lmo, x)


def test_a_run_in_a_box_with_infinite_sides_ends_at_the_nearest_point():
    centres = torch.tensor([[1.0, -2.0], [3.0, -4.0]]).view(2, 1, 1, 2)
    problem = problems.pareto(centres).within(Box(0.0, math.inf))
    trace = fl.run(fl.FedAvg(0.5, 1, 2), problem, rounds=60)
    close(trace.model(), torch.tensor([2.0, 0.0]), 1e-5)  # the objective is a sum over entries
    json.dumps(trace.config)


def test_projections_onto_infinite_boxes_map():
    box = Box(0.0, math.inf)
    x = normal(4, 3)
    assert torch.equal(vmap(box.project)(x), x.clamp(min=0))
    assert vmap(box.contains)(x.abs()).all()


@pytest.mark.parametrize("box", [Box(0.0, math.inf), Box(-math.inf, math.inf)])
def test_infinity_lies_in_no_box(box):
    assert not box.contains(torch.tensor([1.0, math.inf]))
    assert box.contains(torch.tensor([1.0, 3e38]))


X = torch.ones(2)
FINITE = "must be finite in torch.float32, at most 3.4e+38, got"


@pytest.mark.parametrize(
    ("words", "call", "arguments"),
    [
        ("Box: high must be above low, got (inf, inf)", Box, (math.inf, math.inf)),
        ("Box: high must be above low", Box, (0.0, -math.inf)),
        ("Box: high must be a finite number, got nan", Box, (0.0, math.nan)),
        ("Box: radius must be positive", Box, (math.inf,)),
        (
            "Box: the box must hold numbers of torch.float32, got Box(low=1e+300, high=inf).",
            Box(1e300, math.inf).project,
            (X,),
        ),
        (
            f"Box: low {FINITE} -inf; such a box is for methods that project, "
            "and has no minimizers of directions.",
            Box(-math.inf, 0.0).lmo,
            (X,),
        ),
        ("NuclearBall: radius must be finite", NuclearBall(1e300, 1, 2).lmo, (X,)),
    ],
)
def test_boxes_without_a_point_and_bounds_that_no_number_reaches(words, call, arguments):
    refuses(words, call, *arguments)


@pytest.mark.parametrize("set_type", [Ball, L1Ball, Simplex])
@pytest.mark.parametrize("method", ["project", "lmo", "contains"])
def test_a_radius_beyond_the_dtype_is_refused(set_type, method):
    huge = set_type(1e300)
    refuses(f"{set_type.__name__}: radius {FINITE} 1e+300.", getattr(huge, method), X)
    assert getattr(huge, method)(X.double()).isfinite().all()


def test_the_largest_box_of_a_dtype():
    largest = torch.finfo(torch.float32).max
    assert Box(-largest, largest).project(torch.tensor([math.inf])).tolist() == [largest]
    assert Box(0.0, 1e300).wire(2) == Corner(0.0, 1e300)
    assert Box(0.0, math.inf).gauge(X).isnan()


@pytest.mark.parametrize("dim", [100, 10_000, 200_000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "convex_set",
    [Ball(1.0), L1Ball(10.0), Simplex(3.0), Box(0.1)],
)
def test_large_models_stay_in_their_sets(dim, dtype, convex_set):
    x = torch.randn(dim, generator=generator(1)).to(dtype)
    assert convex_set.contains(convex_set.project(x))
    assert convex_set.contains(convex_set.lmo(x))
    assert not convex_set.contains(4 * convex_set.project(x))


def simplex_by_fractions(x, radius):
    """The nearest point of the simplex in exact arithmetic, rounded once."""
    numbers = [Fraction(value) for value in x.double().tolist()]
    total = Fraction(0)
    theta = Fraction(0)
    for count, value in enumerate(sorted(numbers, reverse=True), 1):
        total += value
        shift = (total - Fraction(radius)) / count
        if value > shift:
            theta = shift
    return double(*(float(max(value - theta, 0)) for value in numbers))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("radius", [1e-30, 0.1, 3.0, 1e30])
def test_entries_far_below_the_largest_do_not_add_up(radius, dtype):
    """Many entries just above -radius: rounding of theta counts once for each of them."""
    size = 1000
    near = torch.full((size,), -radius).double()
    near[7] = 0.0
    spread = near * (1 - 1e-5 * uniform(size))
    away = 1e3 * radius * normal(size)
    simplex = Simplex(float(torch.tensor(radius, dtype=dtype)))
    for x in (near, spread, away):
        x = x.to(dtype)
        nearest = simplex.project(x)
        assert simplex.contains(nearest)
        assert L1Ball(simplex.radius).contains(L1Ball(simplex.radius).project(x))
        exact = simplex_by_fractions(x, simplex.radius)
        error = (nearest.double() - exact).abs().sum() / radius
        assert error < 8 * torch.finfo(dtype).eps * size**0.5


@pytest.mark.parametrize("seed", range(4))
def test_no_rounding_is_added_to_entries_that_are_zero(seed):
    x = normal(1000, seed=seed)
    exact = simplex_by_fractions(x, 30.0)
    assert torch.equal(Simplex(30.0).project(x) == 0, exact == 0)


UNIT = 2.0**-7  # of bfloat16


@pytest.mark.parametrize(
    ("convex_set", "x", "inside"),
    [
        (Ball(1.0), [1 + 2 * UNIT], True),
        (Ball(1.0), [1 + 3 * UNIT], False),
        (Simplex(1.0), [1 + 2 * UNIT], True),
        (Simplex(1.0), [1 + 3 * UNIT], False),
        (Simplex(1.0), [0.5 + UNIT, 0.5 + 1.5 * UNIT], False),
        (Ball(1e-36), [3e-36], False),
        (Box(0.0, math.inf), [1.0, 1.0], True),
    ],
)
def test_of_no_tolerance_two_units_of_a_short_float_remain(convex_set, x, inside):
    assert convex_set.contains(torch.tensor(x).bfloat16(), tol=0.0) == inside


def test_of_no_tolerance_the_rounding_below_the_smallest_normal_number_remains():
    smallest = 2.0**-24
    simplex = Simplex(150 * smallest)
    point = simplex.project(torch.zeros(100).half())
    assert point.tolist() == [2 * smallest] * 100
    assert simplex.contains(point, tol=0.0)


def test_the_rounding_of_a_matrix_of_rank_one_has_full_rank():
    ball = NuclearBall(1.0, 300, 300)
    direction = normal(90_000).bfloat16()
    assert ball.contains(ball.lmo(direction))


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
@pytest.mark.parametrize("tol", [1e-6, 1e-3, 0.5])
def test_the_tolerance_is_relative_to_the_set(convex_set, inside, step, tol):
    """`step` is a tenth of the set's size."""
    x = double(*inside)
    away = 10 * tol * double(*step)
    assert convex_set.contains(x + 0.999 * away, tol)
    assert not convex_set.contains(x + 1.001 * away, tol)
