"""What sets, compressors, weights and estimates promise, on examples that hypothesis draws.

A few examples each in the suite, always the same; `--hypothesis-profile=many` draws a thousand.
"""

import itertools
import math
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedlib import compress
from fedlib.compress import Identity, RandK, Rounding, TopK
from fedlib.sets import Ball, Blocks, Box, L1Ball, NuclearBall, Simplex
from fedlib.sets.vertices import gauge_of, wire_of
from fedlib.solvers.simplex import project_simplex
from fedlib.weights import FindWeights, Least, MinNorm
from fedlib.weights.gram import combine, gram_of, symmetric
from tests.helpers.randoms import generator, normal

DTYPES = st.sampled_from([torch.float32, torch.float64])
EXPONENTS = st.integers(-6, 6)
SEEDS = st.integers(0, 2**16)


@st.composite
def vectors(draw, dim=None, dtype=None, exponents=EXPONENTS):
    """A vector of some scale: a few round entries, ties and zeros among them, or normal ones."""
    dim = dim or draw(st.integers(1, 7))
    dtype = dtype or draw(DTYPES)
    round_entries = st.lists(st.integers(-4, 4).map(float), min_size=dim, max_size=dim)
    normal = SEEDS.map(lambda s: torch.randn(dim, generator=generator(s)).tolist())
    entries = torch.tensor(draw(st.one_of(round_entries, normal)), dtype=torch.float64)
    return (entries * 10.0 ** draw(exponents)).to(dtype)


#: Sets by their radius and a number of dimensions, and the dimension that they have.
SETS = {
    "Ball": lambda radius, dim: (Ball(radius), dim),
    "Box": lambda radius, dim: (Box(-radius, 0.5 * radius), dim),
    "cube": lambda radius, dim: (Box(radius), dim),
    "L1Ball": lambda radius, dim: (L1Ball(radius), dim),
    "Simplex": lambda radius, dim: (Simplex(radius), dim),
    "NuclearBall": lambda radius, dim: (NuclearBall(radius, dim, 3), 3 * dim),
    "Blocks": lambda radius, dim: (
        Blocks((L1Ball(radius), Ball(2 * radius)), (dim, 2)),
        dim + 2,
    ),
}
every_set = pytest.mark.parametrize("make", SETS.values(), ids=SETS)


@st.composite
def radii(draw):
    """Any radius from 1e-6 to 1e6."""
    digits = draw(st.sampled_from([1.0, 1 / 3, 7.7]))
    return digits * 10.0 ** draw(st.integers(-6, 5))


def drawn_set(make, data):
    """A set of any radius and its dimension."""
    return make(data.draw(radii()), data.draw(st.integers(1, 7)))


def precision(dtype, factor=64):
    """Some units of rounding."""
    return factor * torch.finfo(dtype).eps


def size_of(convex_set):
    """The largest entry of a point of a set."""
    if isinstance(convex_set, Blocks):
        return max(map(size_of, convex_set.sets))
    if isinstance(convex_set, Box):
        return max(abs(convex_set.low), convex_set.high)
    return convex_set.radius


#: The support function of a set of radius 1.
UNIT_SUPPORT = {
    Ball: torch.linalg.vector_norm,
    L1Ball: lambda g: g.abs().amax(),
    Simplex: lambda g: g.amax(),
    NuclearBall: lambda g: torch.linalg.svdvals(g.view(-1, 3))[0],
}


def support(convex_set, g):
    """The largest <g, s> over the set, by its formula, in float64."""
    if isinstance(convex_set, Blocks):
        pieces = torch.split(g, convex_set.sizes)
        return sum(map(support, convex_set.sets, pieces))
    if isinstance(convex_set, Box):
        return torch.maximum(convex_set.low * g, convex_set.high * g).sum()
    return convex_set.radius * UNIT_SUPPORT[type(convex_set)](g)


def dot(x, y):
    return x.double() @ y.double()


def distance(x, y):
    return torch.linalg.vector_norm(x.double() - y.double())


@every_set
@given(st.data())
def test_a_projection_is_the_nearest_point_of_the_set(make, data):
    convex_set, dim = drawn_set(make, data)
    x = data.draw(vectors(dim))
    y = data.draw(vectors(dim)).to(x.dtype)
    p = convex_set.project(x)
    unit = precision(x.dtype)
    assert p.dtype == x.dtype
    assert convex_set.contains(p, tol=unit)
    size = size_of(convex_set)
    if isinstance(convex_set, NuclearBall):  # a decomposition's error is that of x
        size = size + float(x.double().norm())
    slack = unit * dim * size
    away = x.double() - p.double()
    # no point of the set lies further in the direction from p to x than p does
    further = support(convex_set, away) - dot(away, p)
    assert further <= slack * (away.norm() + slack)
    other_point = convex_set.project(y)
    assert away.norm() <= distance(x, other_point) + slack


@every_set
@given(st.data())
def test_an_oracle_attains_the_support_function(make, data):
    convex_set, dim = drawn_set(make, data)
    g = data.draw(vectors(dim))
    s = convex_set.lmo(g)
    unit = precision(g.dtype)
    assert s.dtype == g.dtype
    assert convex_set.contains(s, tol=unit)
    slack = unit * dim * size_of(convex_set) * g.double().norm()
    least = -support(convex_set, -g.double())
    assert abs(dot(g, s) - least) <= slack
    wire = wire_of(convex_set, dim)
    received = wire.decode(wire.encode(s), s)
    if isinstance(convex_set, NuclearBall):
        assert distance(received, s) <= dim * unit * convex_set.radius
    elif g.any() or not isinstance(convex_set, Blocks):
        assert torch.equal(received, s)


@every_set
@given(st.data())
def test_a_gauge_says_who_lies_in_the_set(make, data):
    convex_set, dim = drawn_set(make, data)
    x = data.draw(vectors(dim))
    unit = precision(x.dtype)
    p = convex_set.project(x)
    assert gauge_of(convex_set, p) <= 1 + unit
    gauge = float(gauge_of(convex_set, x))
    if isinstance(convex_set, Simplex) or abs(gauge - 1) < unit:
        return  # the simplex is no ball of its norm
    inside = gauge < 1
    assert bool(convex_set.contains(x, tol=0)) == inside
    if inside:
        torch.testing.assert_close(p, x, rtol=unit, atol=0)


FRACTIONS = st.sampled_from([0.01, 0.3, 0.5, 0.75, 1.0])
DIGITS = st.integers(1, 22)


def square(x):
    return x.double().square().sum()


@given(vectors(exponents=st.integers(-30, 30)), FRACTIONS, DIGITS)
def test_a_contraction_holds_for_every_vector(x, fraction, digits):
    for compressor in (Identity(), TopK(fraction), Rounding(digits)):
        share = 1 - compressor.contraction(len(x))
        error = compressor(x).double() - x.double()
        assert square(error) <= share * square(x) * (1 + 1e-12)


def choices(sketch, *shape):
    """All positions that a random sketch may choose."""
    k = sketch.draw(1, *shape, generator()).shape[-1]
    positions = itertools.combinations(range(math.prod(shape)), k)
    return [torch.tensor(chosen) for chosen in positions]


@given(vectors(dtype=torch.float64), FRACTIONS, st.booleans())
def test_rand_k_over_all_its_positions_has_the_mean_and_the_spread_that_it_says(
    x, fraction, scaled
):
    compressor = RandK(fraction, scaled=scaled)
    dim = len(x)
    messages = torch.stack([compressor(x, noise) for noise in choices(compressor, dim)])
    spread = square(messages - x) / len(messages)
    variance = compressor.variance(dim)
    contraction = compressor.contraction(dim)
    if variance is not None:
        close = partial(torch.testing.assert_close, rtol=1e-12, atol=1e-30)
        close(messages.mean(0), x)
        close(spread, variance * square(x))
    if contraction is not None:
        assert spread <= (1 - contraction) * square(x) * (1 + 1e-12) + 1e-30


@given(st.integers(1, 3), st.integers(1, 4), st.sampled_from([0.4, 1.0]), SEEDS)
def test_a_scaled_mask_is_unbiased_over_all_its_positions(tasks, dim, budget, seed):
    x = normal(tasks, dim, seed=seed)
    sketch = compress.Masked(budget)
    messages = [sketch(x, noise) for noise in choices(sketch, tasks, dim)]
    torch.testing.assert_close(torch.stack(messages).mean(0), x)


def first_noise(compressor, *shape, seed):
    """The randomness of one message."""
    noise = compressor.draw(1, *shape, generator(seed))
    return noise[0] if isinstance(noise, torch.Tensor) else ()


@given(vectors(exponents=st.just(0)), FRACTIONS, DIGITS, SEEDS)
def test_what_is_decoded_is_what_was_sent(x, fraction, digits, seed):
    dim = len(x)
    for compressor in (Identity(), TopK(fraction), RandK(fraction), Rounding(digits)):
        noise = first_noise(compressor, dim, seed=seed)
        for dtype in (x.dtype, torch.float16, torch.bfloat16):
            y = compressor(x.to(dtype), noise)
            message = compressor.encode(y, noise)
            assert y.dtype == dtype
            assert torch.equal(compressor.decode(message, y, noise), y)
            bits = 9 + digits if isinstance(compressor, Rounding) else 32
            if isinstance(message.positions, torch.Tensor):
                bits += math.ceil(math.log2(dim))
            assert compressor.bits(dim) == message.values.numel() * bits


@given(st.integers(1, 4), st.integers(1, 12), st.sampled_from([0.3, 1.0, 2.5]), SEEDS)
def test_a_sketch_is_as_long_as_it_says_and_survives_its_wire(tasks, dim, budget, seed):
    x = normal(tasks, dim, seed=seed)
    sketches = [
        compress.Exact(),
        compress.Largest(budget),
        compress.Masked(budget),
        compress.LowRank(budget),
        compress.LowRank(budget, order="row"),
    ]
    for sketch in sketches:
        noise = first_noise(sketch, tasks, dim, seed=seed)
        y = sketch(x, noise)
        message = sketch.encode(y, noise)
        tolerance = 1e-12 if isinstance(sketch, compress.LowRank) else 0
        received = sketch.decode(message, y, noise)
        torch.testing.assert_close(received, y, rtol=0, atol=tolerance)
        if not isinstance(sketch, compress.Largest):
            assert sketch.bits(tasks, dim) == 32 * message.values.numel()
        assert torch.equal(sketch(x, noise), y)


def check_simplex(w, slack, least=0.0):
    """Weights of at least `least` that add up to 1."""
    assert w.min() >= least
    assert abs(w.sum() - 1) <= slack


@given(st.integers(1, 5), st.integers(1, 6), EXPONENTS, SEEDS)
def test_minimum_norm_weights_are_optimal(tasks, dim, exponent, seed):
    G = gram_of(normal(tasks, dim, seed=seed)) * 10.0**exponent
    start = torch.full((tasks,), 1 / tasks, dtype=torch.float64)
    scale = float(G.abs().max())
    descent = FindWeights(step=1.0 / (tasks * scale), steps=500, normalize=False)
    for rule, slack in ((MinNorm(), 1e-8), (descent, 5e-2)):
        w = rule(G, start)
        check_simplex(w, 1e-12)
        assert (G @ w).min() >= w @ G @ w - slack * scale
        assert w @ G @ w <= start @ G @ start + 1e-12 * scale


@given(vectors(exponents=st.integers(-6, 1)), st.sampled_from([0.0, 0.2, 0.9]))
def test_the_simplex_and_the_smaller_one_within(v, share):
    w = project_simplex(v)
    unit = precision(v.dtype) * (1 + float(v.abs().max()))
    check_simplex(w, unit)
    away = v.double() - w.double()
    assert away.max() - dot(away, w) <= unit * (1 + away.norm())
    least = share / len(w)
    mixed = Least(share)(w)
    torch.testing.assert_close(mixed, least + (1 - share) * w)
    nearest = Least(share, mixture=False)(w)
    check_simplex(nearest, unit, least - unit)
    # no vertex of the smaller simplex is further on
    away = w.double() - nearest.double()
    corner = least * away.sum() + (1 - share) * away.max()
    assert corner - dot(away, nearest) <= unit * (1 + away.norm())


@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 5), SEEDS)
def test_the_two_way_estimate_leaves_out_the_products_of_errors_alone(n, tasks, dim, seed):
    H = normal(n, tasks, dim, seed=seed)
    C = normal(n, tasks, dim, seed=seed + 1)
    R = H - C
    exact = gram_of(H.mean(0))
    estimate = combine(gram_of(H), C, R @ (C.sum(0) - C).mT)
    left_out = symmetric(gram_of(R.sum(0)) - gram_of(R).sum(0)) / n**2
    torch.testing.assert_close(estimate + left_out, exact, rtol=1e-10, atol=1e-10)
    nothing_left = torch.zeros_like(gram_of(H))
    torch.testing.assert_close(combine(gram_of(H), H, nothing_left), exact)
