"""Sketches of Jacobians: folding, messages that lose nothing, ranks and bits by hand."""

import pytest
import torch

from fedlib.compress import Exact, Largest, LowRank, Masked, RandK
from fedlib.compress.lowrank import fold, folded_shape, randomized_svd, unfold
from fedlib.compress.sketches import Columns, Wire
from fedlib.compress.wire import Field
from fedlib.core.sampling import seeded
from tests.helpers.expect import close, refuses
from tests.helpers.randoms import normal, uniform

ORDERS = ("block", "row", "column")
every_order = pytest.mark.parametrize("order", ORDERS)


def noise_of(sketch, tasks, dim, count=1):
    return sketch.draw(count, tasks, dim, seeded(0, "rounds"))


def sketched(sketch, x):
    """What a sketch makes of a Jacobian, and what its message is decoded to."""
    (noise,) = noise_of(sketch, *x.shape)
    sent = sketch(x, noise)
    return sent, sketch.decode(sketch.encode(sent, noise), sent, noise)


@every_order
@pytest.mark.parametrize(
    "shape",
    [
        (1, 1),
        (2, 9),
        (3, 50),
        (7, 3),
        (5, 5),
        (40, 63),
    ],
)
def test_folding_back_is_exact(order, shape):
    x = normal(*shape)
    folded = fold(x, order)
    assert folded.shape == folded_shape(*shape, order)
    assert torch.equal(unfold(folded, *shape, order), x)
    assert folded.square().sum() == pytest.approx(float(x.square().sum()))


def test_blocks_by_hand():
    x = torch.arange(1.0, 11.0).view(2, 5)  # two gradients of five entries, q = 3
    expected = [[1.0, 6.0, 4.0, 9.0], [2.0, 7.0, 5.0, 10.0], [3.0, 8.0, 0.0, 0.0]]
    assert fold(x).tolist() == expected


def with_small_columns(tasks, dim, count, factor=0.0, size=1.0):
    """Gradients whose first entries are small or zero: all else is in the last ones."""
    gradients = size * normal(tasks, dim)
    gradients[:, :count] *= factor
    return gradients


SPARSE = [
    normal(2, dim, seed=seed) * (uniform(2, dim, seed=seed + 9) < 0.15)
    for seed in range(6)
    for dim in (5, 7, 9, 21)
]


@every_order
@pytest.mark.parametrize(
    ("budget", "gradients"),
    [
        *((2.5, normal(1, dim)) for dim in (5, 11, 19)),  # of almost all components
        (1.0, with_small_columns(2, 5, 4)),
        (1.0, with_small_columns(3, 41, 39)),
        (1.0, with_small_columns(1, 30, 29)),
        (
            1.0,
            with_small_columns(
                1,
                19,
                17,
                1e-3,
                1e-6,
            ),
        ),
        *((budget, x) for budget in (2.5, 3.5) for x in SPARSE),
    ],
)
def test_a_message_loses_nothing(order, budget, gradients):
    sketch = LowRank(budget=budget, order=order)
    sent, arrived = sketched(sketch, gradients)
    close(arrived, sent, 1e-12 * float(gradients.abs().max()))


@pytest.mark.parametrize(
    ("sketch", "shape", "rank"),
    [
        # the paper's
        (LowRank(), (2, 28515), 59),
        (LowRank(), (2, 1685888), 459),
        (LowRank(), (40, 11168832), 264),
        (LowRank(), (11, 616960), 118),
        # at most as many components as the matrix has rows
        (LowRank(budget=9.0), (1, 5), 2),
        (LowRank(budget=9.0, order="row"), (1, 5), 3),
    ],
)
def test_ranks(sketch, shape, rank):
    assert sketch.rank(*shape) == rank


def test_a_sketch_has_its_rank():
    sent, _ = sketched(LowRank(), normal(2, 800))
    assert torch.linalg.matrix_rank(fold(sent)) == LowRank().rank(2, 800) == 10


def test_a_matrix_of_low_rank_is_found_exactly():
    A = normal(30, 4) @ normal(4, 20, seed=1)
    left, right = randomized_svd(A, normal(20, 5, seed=2), 4, 2)
    close(left @ right, A, 1e-11)


def test_what_is_not_finite_gives_nan_and_no_exception():
    A = normal(6, 6)
    A[0, 0] = torch.inf
    left, right = randomized_svd(A, normal(6, 2), 2, 1)
    assert torch.isnan(left @ right).all()


@pytest.mark.parametrize(
    ("sketch", "shape", "bits"),
    [
        (Exact(), (3, 400), 32 * 1200),
        # q = floor(sqrt 1200) = 34, 12 blocks of 3 columns; rank floor(400 / (2 sqrt 1200)) = 5
        (LowRank(), (3, 400), 32 * 5 * (34 + 36)),
        # 12800 bits: with a list of 11 bits a number 12800 // 43 = 297, with a map of 1200 bits
        # (12800 - 1200) // 32 = 362
        (Largest(), (3, 400), 362 * 32 + 1200),
        # 64 bits for each of 10 of 20000 entries: the list of 15 bits is cheaper
        (Largest(0.01), (20, 1000), (320 // 47) * 47),
        (Masked(), (3, 400), 32 * 400),
        (Columns(RandK(0.5)), (3, 400), 3 * 32 * 200),
    ],
)
def test_bits_by_hand(sketch, shape, bits):
    assert sketch.bits(*shape) == bits


@pytest.mark.parametrize(
    ("sketch", "layout"),
    [
        (Largest(budget=1e-3), (Field("number", 1, 32), Field("position", 1, 4))),
        # a list as long as the map: 4 times 4
        (Largest(budget=150 / 256), (Field("number", 4, 32), Field("position", 4, 4))),
        (Largest(budget=1.0), (Field("number", 7, 32), Field("map", 7, 16))),
        (Largest(budget=1.0, value_bits=16), (Field("number", 7, 16), Field("map", 7, 16))),
    ],
)
def test_the_largest_entries_are_listed_or_mapped_whichever_is_shorter(sketch, layout):
    assert sketch.layout(2, 8) == layout


def test_the_largest_entries_are_kept():
    x = torch.tensor([[5.0, 0.1, -3.0, 0.2], [0.3, -9.0, 0.4, 1.0]])
    sent = Largest(0.75)(x)  # 96 bits: a map of 8 and two numbers
    assert sent.tolist() == [[5.0, 0.0, 0.0, 0.0], [0.0, -9.0, 0.0, 0.0]]


@pytest.mark.parametrize(("scaled", "factor"), [(False, 1), (True, 2)])
def test_a_mask_keeps_entries_as_they_are_or_scaled(scaled, factor):
    x = torch.arange(1.0, 9.0).view(2, 4)
    sent, _ = sketched(Masked(scaled=scaled), x)
    assert sent.count_nonzero() == 4
    assert torch.equal(sent[sent != 0], factor * x[sent != 0])


def test_a_wired_sketch_has_the_bits_and_the_noise_of_the_sketch():
    wire = Wire(Masked(), 2)
    assert wire.bits(8) == Masked().bits(2, 4)
    drawn = wire.draw(3, 8, seeded(0, "rounds"))
    assert torch.equal(drawn, noise_of(Masked(), 2, 4, count=3))
    assert wire.variance(8) is None
    assert wire.contraction(8) is None


def test_noise_is_required():
    refuses("LowRank: noise must be a result of draw()", LowRank(), normal(2, 9))
