"""What sets, compressors, weights and estimates promise, on examples that hypothesis draws.

A few examples each in the suite, always the same; `--hypothesis-profile=many` draws a thousand.
"""

import itertools
import math

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


@st.composite
def sets(draw):
    """A set of any radius from 1e-6 to 1e6, and its dimension."""
    radius = draw(st.sampled_from([1.0, 1 / 3, 7.7])) * 10.0 ** draw(st.integers(-6, 5))
    dim = draw(st.integers(1, 7))
    set_type = draw(st.sampled_from([Ball, Box, L1Ball, Simplex, NuclearBall, Blocks]))
    if set_type is NuclearBall:
        return NuclearBall(radius, dim, 3), 3 * dim
    if set_type is Blocks:
        return Blocks((L1Ball(radius), Ball(2 * radius)), (dim, 2)), dim + 2
    if set_type is Box and draw(st.booleans()):
        return Box(-radius, 0.5 * radius), dim
    return set_type(radius), dim


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


def support(convex_set, g):
    """The largest <g, s> over the set, by its formula, in float64."""
    if isinstance(convex_set, Blocks):
        pieces = zip(convex_set.sets, torch.split(g, convex_set.sizes), strict=True)
        return sum(support(block, piece) for block, piece in pieces)
    if isinstance(convex_set, Box):
        return torch.maximum(convex_set.low * g, convex_set.high * g).sum()
    if isinstance(convex_set, Ball):
        size = torch.linalg.vector_norm(g)
    elif isinstance(convex_set, L1Ball):
        size = g.abs().amax()
    elif isinstance(convex_set, Simplex):
        size = g.amax()
    else:
        size = torch.linalg.svdvals(g.view(-1, 3))[0]
    return convex_set.radius * size


@given(sets(), st.data())
def test_a_projection_is_the_nearest_point_of_the_set(pair, data):
    convex_set, dim = pair
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
    assert support(convex_set, away) - away @ p.double() <= slack * (away.norm() + slack)
    other_point = convex_set.project(y).double()
    assert away.norm() <= (x.double() - other_point).norm() + slack


@given(sets(), st.data())
def test_an_oracle_attains_the_support_function(pair, data):
    convex_set, dim = pair
    g = data.draw(vectors(dim))
    s = convex_set.lmo(g)
    unit = precision(g.dtype)
    assert s.dtype == g.dtype
    assert convex_set.contains(s, tol=unit)
    bound = unit * dim * size_of(convex_set) * float(g.double().norm())
    assert abs(g.double() @ s.double() + support(convex_set, -g.double())) <= bound
    wire = wire_of(convex_set, dim)
    back = wire.decode(wire.encode(s), s)
    if isinstance(convex_set, NuclearBall):
        assert torch.allclose(back, s, rtol=0, atol=unit * convex_set.radius)
    elif g.any() or not isinstance(convex_set, Blocks):
        assert torch.equal(back, s)


@given(sets(), st.data())
def test_a_gauge_says_who_lies_in_the_set(pair, data):
    convex_set, dim = pair
    x = data.draw(vectors(dim))
    unit = precision(x.dtype)
    p = convex_set.project(x)
    assert gauge_of(convex_set, p) <= 1 + unit
    gauge = float(gauge_of(convex_set, x))
    if isinstance(convex_set, Simplex) or abs(gauge - 1) < unit:
        return  # the simplex is no ball of its norm
    assert bool(convex_set.contains(x, tol=0)) == (gauge < 1)
    if gauge < 1:
        assert torch.allclose(p, x, rtol=unit, atol=0)


FRACTIONS = st.sampled_from([0.01, 0.3, 0.5, 0.75, 1.0])


@given(vectors(exponents=st.integers(-30, 30)), FRACTIONS, st.integers(1, 22))
def test_a_contraction_holds_for_every_vector(x, fraction, digits):
    for c in (Identity(), TopK(fraction), Rounding(digits)):
        q = c.contraction(len(x))
        wide = x.double()
        left = (c(x).double() - wide).square().sum()
        assert left <= (1 - q) * wide.square().sum() * (1 + 1e-12)


@given(vectors(dtype=torch.float64), FRACTIONS, st.booleans())
def test_rand_k_over_all_its_positions_has_the_mean_and_the_spread_that_it_says(
    x, fraction, scaled
):
    c = RandK(fraction, scaled=scaled)
    dim = len(x)
    k = c.draw(1, dim, generator()).shape[-1]
    chosen = torch.tensor(list(itertools.combinations(range(dim), k)))
    messages = torch.stack([c(x, noise) for noise in chosen])
    spread = (messages - x).square().sum(1).mean()
    square = x.square().sum()
    if c.variance(dim) is not None:
        torch.testing.assert_close(messages.mean(0), x, rtol=1e-12, atol=0)
        torch.testing.assert_close(spread, c.variance(dim) * square, rtol=1e-12, atol=1e-30)
    if c.contraction(dim) is not None:
        assert spread <= (1 - c.contraction(dim)) * square * (1 + 1e-12) + 1e-30


def first_noise(compressor, *shape, seed):
    """The randomness of one message."""
    noise = compressor.draw(1, *shape, generator(seed))
    return noise[0] if isinstance(noise, torch.Tensor) else ()


@given(vectors(exponents=st.just(0)), FRACTIONS, st.integers(1, 22), SEEDS)
def test_what_is_decoded_is_what_was_sent(x, fraction, digits, seed):
    dim = len(x)
    for c in (Identity(), TopK(fraction), RandK(fraction), Rounding(digits)):
        noise = first_noise(c, dim, seed=seed)
        for dtype in (x.dtype, torch.float16, torch.bfloat16):
            y = c(x.to(dtype), noise)
            message = c.encode(y, noise)
            assert y.dtype == dtype
            assert torch.equal(c.decode(message, y, noise), y)
            bits = 9 + digits if isinstance(c, Rounding) else 32
            if isinstance(message.positions, torch.Tensor):
                bits += math.ceil(math.log2(dim))
            assert c.bits(dim) == message.values.numel() * bits


@given(st.integers(1, 4), st.integers(1, 12), st.sampled_from([0.3, 1.0, 2.5]), SEEDS)
def test_a_sketch_is_as_long_as_it_says_and_survives_its_wire(tasks, dim, budget, seed):
    x = normal(tasks, dim, seed=seed)
    low_rank = [compress.LowRank(budget), compress.LowRank(budget, order="row")]
    for s in (compress.Exact(), compress.Largest(budget), compress.Masked(budget), *low_rank):
        noise = first_noise(s, tasks, dim, seed=seed)
        y = s(x, noise)
        message = s.encode(y, noise)
        tolerance = 1e-12 if s in low_rank else 0
        torch.testing.assert_close(s.decode(message, y, noise), y, rtol=0, atol=tolerance)
        if not isinstance(s, compress.Largest):
            assert s.bits(tasks, dim) == 32 * message.values.numel()
        assert torch.equal(s(x, noise), y)


@given(st.integers(1, 5), st.integers(1, 6), EXPONENTS, SEEDS)
def test_minimum_norm_weights_are_optimal(tasks, dim, exponent, seed):
    G = gram_of(normal(tasks, dim, seed=seed)) * 10.0**exponent
    start = torch.full((tasks,), 1 / tasks, dtype=torch.float64)
    w = MinNorm()(G, start)
    scale = float(G.abs().max())
    assert w.min() >= 0
    assert abs(w.sum() - 1) < 1e-12
    assert (G @ w).min() >= w @ G @ w - 1e-8 * scale
    near = FindWeights(step=1.0 / (tasks * scale), steps=500, normalize=False)(G, start)
    assert near.min() >= 0
    assert abs(near.sum() - 1) < 1e-12
    assert near @ G @ near <= start @ G @ start + 1e-12 * scale
    assert (G @ near).min() >= near @ G @ near - 5e-2 * scale


@given(vectors(exponents=st.integers(-6, 1)), st.sampled_from([0.0, 0.2, 0.9]))
def test_the_simplex_and_the_smaller_one_within(v, share):
    w = project_simplex(v)
    unit = precision(v.dtype) * (1 + float(v.abs().max()))
    away = v.double() - w.double()
    assert w.min() >= 0
    assert abs(w.sum() - 1) <= unit
    assert away.max() - away @ w.double() <= unit * (1 + away.norm())
    for rule in (Least(share), Least(share, mixture=False)):
        inner = rule(w)
        assert inner.min() >= share / len(w) - unit
        assert abs(inner.sum() - 1) <= unit
        if rule.mixture:
            torch.testing.assert_close(inner, share / len(w) + (1 - share) * w)
        else:  # the nearest point: no vertex of the smaller simplex is further on
            residual = w.double() - inner.double()
            corner = share / len(w) * residual.sum() + (1 - share) * residual.max()
            assert corner - residual @ inner.double() <= unit * (1 + residual.norm())


@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 5), SEEDS)
def test_the_two_way_estimate_leaves_out_the_products_of_errors_alone(n, tasks, dim, seed):
    H = normal(n, tasks, dim, seed=seed)
    C = normal(n, tasks, dim, seed=seed + 1)
    R = H - C
    true = gram_of(H.mean(0))
    estimate = combine(gram_of(H), C, R @ (C.sum(0) - C).mT)
    left_out = symmetric(gram_of(R.sum(0)) - gram_of(R).sum(0)) / n**2
    torch.testing.assert_close(estimate + left_out, true, rtol=1e-10, atol=1e-10)
    nothing_left = torch.zeros(n, tasks, tasks, dtype=torch.float64)
    torch.testing.assert_close(combine(gram_of(H), H, nothing_left), true)


@given(st.integers(1, 3), st.integers(1, 4), st.sampled_from([0.4, 1.0]), SEEDS)
def test_a_scaled_mask_is_unbiased_over_all_its_positions(tasks, dim, budget, seed):
    x = normal(tasks, dim, seed=seed)
    sketch = compress.Masked(budget)
    k = sketch.draw(1, tasks, dim, generator()).shape[-1]
    chosen = itertools.combinations(range(tasks * dim), k)
    mean = torch.stack([sketch(x, torch.tensor(noise)) for noise in chosen]).mean(0)
    torch.testing.assert_close(mean, x)
