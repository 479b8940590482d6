"""The nuclear ball against full singular value decompositions."""

import math

import pytest
import torch
from torch.func import vmap

from fedlib.sets import NuclearBall
from fedlib.sets.nuclear import unusual_scale
from fedlib.sets.vertices import wire_of
from fedlib.solvers.leading_pair import leading_pair
from tests.helpers.expect import close, refuses

LARGE = [(90, 70, 70), (70, 90, 3), (60, 60, 1), (120, 50, 50)]


@pytest.mark.parametrize(("m", "n", "rank"), LARGE)
def test_iterative_oracles_are_close(m, n, rank):
    ball = NuclearBall(1.0, m, n)
    g = torch.Generator().manual_seed(m)
    for _ in range(10):
        A = torch.randn(m, rank, generator=g, dtype=torch.float64)
        A = A @ torch.randn(rank, n, generator=g, dtype=torch.float64) if rank < n else A
        s = ball.lmo(A.flatten())
        top = float(torch.linalg.svdvals(A)[0])
        assert -float(A.flatten() @ s) == pytest.approx(top, rel=1e-5)
        assert ball.contains(s, 1e-12)
        assert torch.linalg.matrix_rank(s.view(m, n)) == 1


def test_the_start_is_not_caught_in_a_part_of_the_matrix():
    """A dominant block without the largest row, and one whose rows cancel in the sum."""
    A = torch.zeros(80, 60, dtype=torch.float64)
    A[0, 0] = 2.0
    A[1:50, 1:50] = 0.1
    u, v = leading_pair(A, 10)
    assert float(u @ A @ v) == pytest.approx(4.9, rel=1e-10)
    B = torch.zeros(80, 60, dtype=torch.float64)
    B[0, :] = 1.0
    B[1, :] = -1.0
    B[2, 0] = 3.0
    u, v = leading_pair(B, 10)
    assert float(u @ B @ v) == pytest.approx(float(torch.linalg.svdvals(B)[0]), rel=1e-10)


def test_float32_and_repeated_singular_values():
    A = torch.randn(100, 80, generator=torch.Generator().manual_seed(1))
    u, v = leading_pair(A)
    assert float(u @ A @ v) == pytest.approx(float(torch.linalg.svdvals(A)[0]), rel=1e-5)
    assert u.dtype == torch.float32
    Q = torch.linalg.qr(A.double()).Q  # all singular values 1
    u, v = leading_pair(Q)
    assert float(u @ Q @ v) == pytest.approx(1.0, rel=1e-12)


def test_zero_and_diagonals():
    ball = NuclearBall(1.0, 2, 2)
    assert ball.lmo(torch.zeros(4)).tolist() == [0, 0, 0, 0]
    corner = ball.lmo(torch.tensor([0.0, 0, 0, -5.0]))
    assert corner.tolist() == pytest.approx([0, 0, 0, 1.0])
    close(ball.project(torch.tensor([3.0, 0, 0, 2.5])), torch.tensor([0.75, 0, 0, 0.25]), 1e-6)


def test_vmap_is_the_loop_and_the_same_matrix_gives_the_same_answer():
    ball = NuclearBall(2.0, 9, 8, steps=4)
    x = torch.randn(20, 72, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for method in (ball.lmo, ball.project, ball.gauge):
        together = vmap(method)(x)
        close(together, torch.stack([method(v) for v in x]), 1e-10)
    assert torch.equal(ball.lmo(x[0]), ball.lmo(x[0].clone()))


def test_nan_is_not_hidden():
    ball = NuclearBall(1.0, 2, 2)
    x = torch.tensor([1.0, math.nan, 0.0, 1.0])
    assert ball.lmo(x).isnan().any()
    assert ball.project(x).isnan().any()
    assert ball.gauge(x).isnan()
    assert not ball.contains(x)


def test_wire_and_diameter():
    ball = NuclearBall(1.5, 20, 30)
    assert wire_of(ball, 600).bits(600) == 32 * 50
    assert ball.diameter(600) == 3.0
    refuses("NuclearBall: x must be a vector of floats of 600 entries", ball.project, torch.ones(5))
    g = torch.randn(600, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    ends = ball.lmo(g) - ball.lmo(-g)
    assert float(ends.norm()) == pytest.approx(3.0)
    for direction in (g, torch.zeros_like(g)):
        s = ball.lmo(direction)
        wire = ball.wire(600)
        assert len(wire.encode(s).values) == 50
        torch.testing.assert_close(wire.decode(wire.encode(s), s), s, atol=1e-14, rtol=0)
    assert not torch.allclose(ball.wire(600).decode(ball.wire(600).encode(g), g), g)


@pytest.mark.parametrize(
    ("top", "scale"),
    [(0.0, 1.0), (5.0, 1.0), (1e15, 1.0), (1e-15, 1.0), (1e16, 1e16), (1e-16, 1e-16)],
)
def test_a_matrix_far_from_one_is_scaled(top, scale):
    A = torch.tensor([[top, -0.5 * top]], dtype=torch.float64)
    assert unusual_scale(A) == scale


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e20, 1e38])
def test_matrices_of_all_sizes_are_projected(size):
    x = torch.tensor([3.0 * size, 0.0, 0.0, 2.5 * size])
    expected = torch.tensor([0.75, 0.0, 0.0, 0.25]) * size
    nearest = NuclearBall(size, 2, 2).project(x)
    torch.testing.assert_close(nearest, expected, rtol=1e-6, atol=0)


def test_the_singular_values_of_a_huge_matrix_do_not_overflow():
    x = torch.tensor([3.3e38, 0.0, 0.0]).diag().flatten()
    nearest = NuclearBall(3e38, 3, 3).project(x)
    assert nearest.tolist() == pytest.approx([3e38] + [0.0] * 8, rel=1e-6)


def test_a_matrix_of_the_boundary_is_its_own_projection_bit_by_bit():
    x = torch.tensor([0.1, 0.2, 0.7], dtype=torch.float64).diag().flatten()
    radius = float(NuclearBall(1.0, 3, 3).size(x))
    assert torch.equal(NuclearBall(radius, 3, 3).project(x), x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_the_dtype_stays(dtype):
    ball = NuclearBall(1.0, 2, 3)
    x = torch.randn(6, generator=torch.Generator().manual_seed(0)).to(dtype)
    for method in (ball.project, ball.lmo, ball.gauge):
        assert method(x).dtype == dtype


def test_few_steps_give_a_vertex_that_is_less_exact():
    g = torch.randn(600, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    short, exact = (-g @ NuclearBall(1.0, 20, 30, steps).lmo(g) for steps in (2, 20))
    assert 0 < short < 0.99 * exact
