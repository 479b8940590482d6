"""The l1 ball and the simplex: oracles against linear programs, projections against a QP solver."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import linprog, minimize
from torch.func import vmap

from fedlib.sets import Ball, Box, L1Ball, Simplex
from fedlib.sets.vertices import wire_of

SETS = {
    "l1 ball": L1Ball(2.0),
    "small l1 ball": L1Ball(1e-3),
    "simplex": Simplex(),
    "large simplex": Simplex(30.0),
}
every = pytest.mark.parametrize("convex_set", SETS.values(), ids=SETS)
L1, SIMPLEX = L1Ball(2.0), Simplex(1.5)


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


def vertices(convex_set, dim):
    eye = convex_set.radius * torch.eye(dim, dtype=torch.float64)
    return torch.cat([eye, -eye]) if isinstance(convex_set, L1Ball) else eye


def program(convex_set, g):
    """The least value of <g, s> over the set, by HiGHS; the l1 ball as differences of halves."""
    n, r = len(g), convex_set.radius
    if isinstance(convex_set, L1Ball):
        return linprog(np.r_[g, -g], A_ub=np.ones((1, 2 * n)), b_ub=[r]).fun
    return linprog(g, A_eq=np.ones((1, n)), b_eq=[r]).fun


@every
@pytest.mark.parametrize("dim", [1, 2, 7])
def test_the_oracle_solves_the_linear_program(convex_set, dim):
    for g in inputs(dim, 60, seed=dim):
        unit = g / g.abs().max() if g.any() else g
        s = convex_set.lmo(g)
        assert convex_set.contains(s)
        value = float(unit @ s)
        assert value == pytest.approx(program(convex_set, unit.numpy()), abs=1e-8)
        assert int((s != 0).sum()) == 1  # a vertex, of the zero vector too


@every
@pytest.mark.parametrize("dim", [1, 2, 6])
def test_the_projection_satisfies_its_variational_inequality(convex_set, dim):
    """<x - p, z - p> <= 0 for all vertices z, which is what makes p the nearest point."""
    x = inputs(dim, seed=dim)
    p = vmap(convex_set.project)(x)
    assert vmap(convex_set.contains)(p).all()
    away = x - p
    z = vertices(convex_set, dim)
    products = (away[:, None] * (z[None] - p[:, None])).sum(-1)
    assert (products <= 1e-12 * convex_set.radius * away.norm(dim=1, keepdim=True)).all()


@pytest.mark.parametrize("convex_set", [L1, SIMPLEX], ids=["l1 ball", "simplex"])
def test_the_projection_equals_that_of_a_solver(convex_set):
    """SLSQP on the split form x = a - b (l1 ball) or on x itself."""
    double = isinstance(convex_set, L1Ball)
    n, r = 5, convex_set.radius
    signs = np.r_[np.ones(n), -np.ones(n)] if double else np.ones(n)
    folded = (np.eye(2 * n) * signs)[:n] + (np.eye(2 * n) * signs)[n:] if double else np.eye(n)
    g = torch.Generator().manual_seed(4)
    for x in 2 * torch.randn(100, n, generator=g, dtype=torch.float64):
        total = {"type": "ineq" if double else "eq", "fun": lambda a: r - a.sum()}
        found = minimize(
            lambda a, x=x: 0.5 * ((folded @ a - x.numpy()) ** 2).sum(),
            np.full(len(signs), r / len(signs)),
            jac=lambda a, x=x: folded.T @ (folded @ a - x.numpy()),
            bounds=[(0, None)] * len(signs),
            constraints=total,
            method="SLSQP",
            options={"ftol": 1e-20, "maxiter": 500},
        )
        p = convex_set.project(x).numpy()
        np.testing.assert_allclose(p, folded @ found.x, atol=1e-8)


@every
def test_points_of_the_set_stay_and_the_projection_is_nonexpansive(convex_set):
    g = torch.Generator().manual_seed(1)
    shares = torch.rand(200, 6, generator=g, dtype=torch.float64)
    z = convex_set.radius * shares / shares.sum(1, keepdim=True)
    if isinstance(convex_set, L1Ball):
        z = z * torch.randn(200, 6, generator=g).sign() * torch.rand(200, 1, generator=g).double()
    p = vmap(convex_set.project)(z)
    torch.testing.assert_close(p, z, rtol=1e-13, atol=1e-15 * convex_set.radius)
    x, y = inputs(6, seed=2), inputs(6, seed=3)
    moved = (vmap(convex_set.project)(x) - vmap(convex_set.project)(y)).norm(dim=1)
    assert (moved <= (x - y).norm(dim=1) * (1 + 1e-12) + 1e-14 * convex_set.radius).all()


@every
def test_contains_has_a_tolerance(convex_set):
    z = vertices(convex_set, 4)
    for factor, tol, answer in ((1.01, 1e-6, False), (1.01, 0.1, True), (1.0, 1e-12, True)):
        inside = vmap(lambda x, t=tol: convex_set.contains(x, t))(factor * z)
        assert (inside == answer).all()
    assert bool(convex_set.contains(0.99 * z[0], 1e-6)) == isinstance(convex_set, L1Ball)
    assert not SIMPLEX.contains(torch.tensor([2.0, -0.5]))


@every
def test_diameter_is_the_largest_distance_of_two_vertices(convex_set):
    for dim in (1, 2, 5):
        z = vertices(convex_set, dim)
        assert convex_set.diameter(dim) == pytest.approx(float(torch.cdist(z, z).max()))
    with pytest.raises(ValueError, match="dim must be at least 1, got 0"):
        convex_set.diameter(0)


@every
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtype_stays_and_vmap_is_the_loop(convex_set, dtype):
    x = inputs(6, 60, dtype=dtype)
    for method in (convex_set.project, convex_set.lmo, convex_set.gauge):
        together = vmap(method)(x)
        assert together.dtype == dtype
        torch.testing.assert_close(together, torch.stack([method(v) for v in x]))


@every
def test_float32_does_not_overflow(convex_set):
    x = torch.tensor([3e38, -3e38, 0, 1e-45, 3e30, 1.0])
    p = convex_set.project(x)
    assert convex_set.contains(p)
    torch.testing.assert_close(p.double(), convex_set.project(x.double()))


@every
def test_large_points_keep_their_digits(convex_set):
    """Two entries that differ by half a radius at a height of 1e8: the sum is still right."""
    r = convex_set.radius
    x = torch.tensor([1e8, 1e8 + r / 2, 1.0], dtype=torch.float64)
    gap = float(x[1] - x[0])
    wanted = [(r - gap) / 2, (r + gap) / 2, 0.0]
    assert convex_set.project(x).tolist() == pytest.approx(wanted, rel=1e-12)


@every
def test_nan_is_not_hidden(convex_set):
    x = torch.tensor([1.0, math.nan, 0.0])
    assert convex_set.project(x).isnan().any()
    assert convex_set.lmo(x).isnan().any()
    assert not convex_set.contains(x)


@every
def test_gradient_of_the_projection_is_finite(convex_set):
    for x in (torch.zeros(3), torch.ones(3) * 9, torch.tensor([0.1, 0.0, -7.0])):
        assert torch.func.jacrev(convex_set.project)(x).isfinite().all()


def test_known_points():
    assert L1.project(torch.tensor([3.0, -1.0, 0.5])).tolist() == [2.0, 0.0, 0.0]
    assert L1.project(torch.tensor([2.0, -2.0])).tolist() == [1.0, -1.0]
    assert L1.lmo(torch.tensor([1.0, -3.0])).tolist() == [0.0, 2.0]
    assert SIMPLEX.lmo(torch.tensor([1.0, -3.0])).tolist() == [0.0, 1.5]
    assert SIMPLEX.project(torch.tensor([0.0, 0.0, 0.0])).tolist() == [0.5, 0.5, 0.5]


def test_of_equal_entries_the_first_counts():
    assert L1.lmo(torch.tensor([0.0, -1.0, 1.0])).tolist() == [0.0, 2.0, 0.0]
    assert L1.lmo(torch.zeros(3)).tolist() == [-2.0, 0.0, 0.0]
    assert SIMPLEX.lmo(torch.ones(2)).tolist() == [1.5, 0.0]


def test_radii_may_be_stacked_under_vmap():
    x, radii = torch.tensor([3.0, 0.0]), torch.tensor([1.0, 5.0])
    assert vmap(lambda r: L1Ball(r).project(x))(radii).tolist() == [[1.0, 0.0], [3.0, 0.0]]
    assert vmap(lambda r: Simplex(r).project(x))(radii).tolist() == [[1.0, 0.0], [4.0, 1.0]]
    assert vmap(lambda r: L1Ball(r).lmo(x))(radii).tolist() == [[-1.0, 0.0], [-5.0, 0.0]]


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
        other = torch.full((dim,), 0.3, dtype=torch.float64)
        assert not torch.allclose(wire.decode(wire.encode(other), other), other)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: L1Ball(0), ValueError, "L1Ball: radius must be positive, got 0."),
        (lambda: L1Ball("1"), TypeError, "L1Ball: radius must be a number"),
        (lambda: Simplex(-1.0), ValueError, "Simplex: radius must be positive, got -1.0."),
        (lambda: Simplex(math.nan), ValueError, "Simplex: radius must be positive, got nan."),
    ],
)
def test_bad_radii(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(text)
