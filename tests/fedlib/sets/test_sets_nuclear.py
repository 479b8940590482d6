"""The nuclear ball against full singular value decompositions."""

import pytest
import torch

from fedlib.sets import NuclearBall
from fedlib.sets.nuclear import unusual_scale
from fedlib.solvers.leading_pair import leading_pair
from tests.helpers.expect import refuses
from tests.helpers.problems import double
from tests.helpers.randoms import normal

ROUNDING = {torch.float32: 1e-4, torch.float64: 1e-9, torch.bfloat16: 2e-2}


def attained(A, steps=40):
    """u'Av of the pair that is found."""
    u, v = leading_pair(A, steps)
    return float(u @ A @ v)


def largest_singular_value(A):
    return float(torch.linalg.svdvals(A.double())[0])


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    ("m", "n", "rank"),
    [(90, 70, 70), (70, 90, 3), (60, 60, 1), (120, 50, 50)],
)
def test_iterative_oracles_are_close(m, n, rank, seed):
    ball = NuclearBall(1.0, m, n)
    A = normal(m, rank, seed=seed)
    if rank < n:
        A = A @ normal(rank, n, seed=seed + 1)
    s = ball.lmo(A.flatten())
    assert -float(A.flatten() @ s) == pytest.approx(largest_singular_value(A), rel=1e-5)
    assert ball.contains(s, 1e-12)
    assert torch.linalg.matrix_rank(s.view(m, n)) == 1


def dominant_block():
    """A block that dominates, without the largest row."""
    A = torch.zeros(80, 60).double()
    A[0, 0] = 2.0
    A[1:50, 1:50] = 0.1
    return A


def cancelling_rows():
    """Rows that cancel in the sum, and a further entry."""
    A = torch.zeros(80, 60).double()
    A[0] = 1.0
    A[1] = -1.0
    A[2, 0] = 3.0
    return A


@pytest.mark.parametrize("A", [dominant_block(), cancelling_rows()])
def test_the_start_is_not_caught_in_a_part_of_the_matrix(A):
    assert attained(A, 10) == pytest.approx(largest_singular_value(A), rel=1e-10)


def test_repeated_singular_values():
    Q = torch.linalg.qr(normal(100, 80)).Q  # all singular values 1
    assert attained(Q) == pytest.approx(1.0, rel=1e-12)


def hidden(m, n, further):
    """Leading vectors that are orthogonal to the start of the Lanczos steps, and a further row."""
    multiples = torch.arange(1, m + 1).double() * ((5**0.5 - 1) / 2)
    start = multiples.frac() - 0.5
    left = torch.zeros(m).double()
    left[0] = start[1]
    left[1] = -start[0]
    A = torch.outer(left, torch.ones(n).double())
    A[5, : n // 2] = further
    A[5, n // 2 :] = -further
    return A


@pytest.mark.parametrize("further", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("shape", [(60, 60), (300, 45)])
def test_no_matrix_hides_from_the_start(shape, dtype, further):
    for A in (hidden(*shape, further), hidden(*shape, further).mT):
        A = A.to(dtype).contiguous()
        ball = NuclearBall(1.0, *A.shape)
        s = ball.lmo(A.flatten())
        best = largest_singular_value(A)
        value = float(A.flatten().double() @ s.double())
        assert -value == pytest.approx(best, rel=ROUNDING[dtype])
        assert ball.contains(s)
        assert ball.contains(ball.project(A.flatten()))


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
    x = double(0.1, 0.2, 0.7).diag().flatten()
    radius = float(NuclearBall(1.0, 3, 3).size(x))
    assert torch.equal(NuclearBall(radius, 3, 3).project(x), x)


def test_few_steps_give_a_vertex_that_is_less_exact():
    g = normal(600)
    short = -g @ NuclearBall(1.0, 20, 30, 2).lmo(g)
    exact = -g @ NuclearBall(1.0, 20, 30, 20).lmo(g)
    assert 0 < short < 0.99 * exact


def test_a_matrix_of_another_size_is_refused():
    words = "NuclearBall: x must be a vector of floats of 600 entries"
    refuses(words, NuclearBall(1.0, 20, 30).project, torch.ones(5))


@pytest.mark.parametrize(
    ("top", "scale"),
    [
        (0.0, 1.0),
        (1e15, 1.0),
        (1e-15, 1.0),
        (1e16, 1e16),
        (1e-16, 1e-16),
    ],
)
def test_a_matrix_far_from_one_is_scaled(top, scale):
    assert unusual_scale(double([top, -0.5 * top])) == scale
