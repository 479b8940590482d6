"""Estimates of the Gram matrix: exact where nothing is compressed, by hand where something is."""

from itertools import product

import pytest
import torch
from torch.func import vmap

from fedlib.compress import Exact, Identity, Largest, LowRank, Masked, RandK, Rounding
from fedlib.compress import TopK as VectorTopK
from fedlib.compress.lowrank import fold, folded_shape, randomized_svd, unfold
from fedlib.compress.sketches import Columns, Wire
from fedlib.core import Loop, Vectorized
from fedlib.core.client import Client
from fedlib.core.problem import Draw
from fedlib.weights import MeanOfGrams, OneWay, TwoWay
from fedlib.weights.gram import gram_of
from tests.helpers.expect import refuses
from tests.helpers.problems import objectives
from tests.helpers.randoms import normal

SKETCHES = {
    "exact": Exact(),
    "low rank": LowRank(),
    "low rank, rows": LowRank(order="row"),
    "low rank, columns": LowRank(order="column", budget=2.0),
    "largest": Largest(),
    "masked": Masked(),
    "masked, unscaled": Masked(scaled=False),
    "columns": Columns(RandK(0.5)),
    "rounded columns": Columns(Rounding(3)),
    "top of columns": Columns(VectorTopK(0.3)),
}
sketches = pytest.mark.parametrize("sketch", SKETCHES.values(), ids=SKETCHES)


def noise_of(sketch, count, tasks, dim, seed=0):
    return sketch.draw(count, tasks, dim, torch.Generator().manual_seed(seed))


class TestFolding:
    @pytest.mark.parametrize("order", ["block", "row", "column"])
    def test_the_round_trip_is_exact(self, order):
        for shape in [(1, 1), (2, 9), (3, 50), (7, 3), (5, 5), (40, 63)]:
            x = normal(*shape)
            folded = fold(x, order)
            assert folded.shape == folded_shape(*shape, order)
            assert torch.equal(unfold(folded, *shape, order), x)
            assert folded.square().sum() == pytest.approx(float(x.square().sum()))

    @pytest.mark.parametrize("order", ["row", "column"])
    @pytest.mark.parametrize("dim", [5, 11, 19])  # fewer rows are full than the rank has components
    def test_a_message_of_almost_all_components_loses_nothing(self, order, dim):
        sketch = LowRank(budget=2.5, order=order)
        noise = noise_of(sketch, 1, 1, dim)[0]
        x = sketch(normal(1, dim), noise)
        message = sketch.encode(x, noise)
        torch.testing.assert_close(sketch.decode(message, x, noise), x, rtol=0, atol=1e-12)

    @pytest.mark.parametrize("order", ["block", "row", "column"])
    @pytest.mark.parametrize(
        ("shape", "first", "small", "size"),
        [
            ((2, 5), 4, 0.0, 1.0),
            ((3, 41), 39, 0.0, 1.0),
            ((1, 30), 29, 0.0, 1.0),
            ((1, 19), 17, 1e-3, 1e-6),
        ],
    )
    def test_a_message_of_few_large_entries_loses_nothing(self, order, shape, first, small, size):
        """What the full columns (or rows) lack is in the last ones alone."""
        sketch = LowRank(order=order)
        noise = noise_of(sketch, 1, *shape)[0]
        gradients = size * normal(*shape)
        gradients[:, :first] *= small
        x = sketch(gradients, noise)
        message = sketch.encode(x, noise)
        torch.testing.assert_close(sketch.decode(message, x, noise), x, rtol=0, atol=1e-12 * size)

    @pytest.mark.parametrize("budget", [2.5, 3.5])
    @pytest.mark.parametrize("shape", [(2, 5), (2, 7), (2, 9), (2, 21)])
    def test_messages_of_sparse_gradients_lose_nothing(self, shape, budget):
        for seed, order in product(range(6), ("block", "row", "column")):
            rng = torch.Generator().manual_seed(seed)
            gradients = torch.randn(*shape, generator=rng) * (
                torch.rand(*shape, generator=rng) < 0.15
            )
            sketch = LowRank(budget=budget, order=order)
            noise = noise_of(sketch, 1, *shape)[0]
            x = sketch(gradients, noise)
            message = sketch.encode(x, noise)
            torch.testing.assert_close(sketch.decode(message, x, noise), x, rtol=0, atol=1e-5)

    @pytest.mark.parametrize("order", ["block", "row", "column"])
    def test_a_message_of_short_floats_is_rounded_once(self, order):
        sketch = LowRank(order=order)
        noise = noise_of(sketch, 1, 2, 50)[0]
        x = normal(2, 50).bfloat16()
        sent = sketch(x, noise)
        message = sketch.encode(sent, noise)
        assert sent.dtype == message.values.dtype == torch.bfloat16
        rounding = torch.finfo(torch.bfloat16).eps
        exact = sketch(x.double(), noise)
        torch.testing.assert_close(sent.double(), exact, rtol=0, atol=4 * rounding)

    def test_the_shapes_of_folds_and_tests(self):
        for size, side in {(2, 8): 4, (1, 15): 4, (1, 17): 5}.items():
            assert folded_shape(*size, "row") == folded_shape(*size, "column") == (side, side)
        # a tenth more columns than the rank, but never more than the matrix has rows
        assert noise_of(LowRank(), 3, 2, 3200).shape == (3, 80, 22)
        assert noise_of(LowRank(budget=9.0), 3, 1, 144).shape == (3, 12, 12)
        sketch = LowRank()
        x = sketch(normal(2, 800), noise_of(sketch, 1, 2, 800)[0])
        assert torch.linalg.matrix_rank(fold(x)) == sketch.rank(2, 800) == 10
        # at most as many components as the matrix has rows
        assert LowRank(budget=9.0).rank(1, 5) == 2
        assert LowRank(budget=9.0, order="row").rank(1, 5) == 3

    def test_blocks_by_hand(self):
        x = torch.arange(1.0, 11.0).view(2, 5)  # two gradients of five entries, q = 3
        expected = [[1.0, 6.0, 4.0, 9.0], [2.0, 7.0, 5.0, 10.0], [3.0, 8.0, 0.0, 0.0]]
        assert torch.equal(fold(x), torch.tensor(expected))
        assert torch.equal(unfold(fold(x), 2, 5), x)

    def test_the_ranks_of_the_paper(self):
        sizes = {
            (2, 28515): 59,
            (2, 1685888): 459,
            (40, 11168832): 264,
            (11, 616960): 118,
        }
        assert {size: LowRank().rank(*size) for size in sizes} == sizes

    def test_a_matrix_of_low_rank_is_found_exactly(self):
        A = normal(30, 4) @ normal(4, 20, seed=1)
        left, right = randomized_svd(A, normal(20, 5, seed=2), 4, 2)
        torch.testing.assert_close(left @ right, A, atol=1e-11, rtol=0)

    def test_what_is_not_finite_gives_nan_and_no_exception(self):
        A = normal(6, 6)
        A[0, 0] = torch.inf
        left, right = randomized_svd(A, normal(6, 2), 2, 1)
        assert torch.isnan(left @ right).all()


class TestSketches:
    @sketches
    def test_vmap_gives_the_loop(self, sketch):
        x = normal(4, 3, 40)
        noise = noise_of(sketch, 4, 3, 40)
        if isinstance(noise, torch.Tensor):
            mapped = vmap(sketch)(x, noise)
            looped = [sketch(a, b) for a, b in zip(x, noise, strict=True)]
        else:
            mapped = vmap(sketch)(x)
            looped = [sketch(a) for a in x]
        torch.testing.assert_close(mapped, torch.stack(looped), atol=1e-12, rtol=0)

    def test_bits_by_hand(self):
        assert Exact().bits(3, 400) == 32 * 1200
        # q = floor(sqrt 1200) = 34, 12 blocks of 3 columns; rank floor(400 / (2 sqrt 1200)) = 5
        assert LowRank().bits(3, 400) == 32 * 5 * (34 + 36)
        # 12800 bits: with a list of 11 bits a number 12800 // 43 = 297, with a map of 1200 bits
        # (12800 - 1200) // 32 = 362
        assert Largest().count_entries(3, 400) == 362
        assert Largest().bits(3, 400) == 362 * 32 + 1200 <= 12800
        # 64 bits for each of 10 of 20000 entries: the list of 15 bits is cheaper
        assert Largest(0.01).count_entries(20, 1000) == 320 // 47
        assert Largest(0.01).bits(20, 1000) == (320 // 47) * 47
        assert Masked().bits(3, 400) == 32 * 400
        assert Columns(RandK(0.5)).bits(3, 400) == 3 * 32 * 200
        assert Wire(Masked(), 3).bits(1200) == 32 * 400

    def test_the_largest_entries_are_kept(self):
        x = torch.tensor([[5.0, 0.1, -3.0, 0.2], [0.3, -9.0, 0.4, 1.0]])
        sketch = Largest(0.75)  # 96 bits: a map of 8 and two numbers
        expected = torch.tensor([[5.0, 0.0, 0.0, 0.0], [0.0, -9.0, 0.0, 0.0]])
        assert torch.equal(sketch(x), expected)


class WholeNumbers(Exact):
    """A sketch that sends the entries rounded down, so the sum of sketches is sent exactly."""

    def __call__(self, x, noise=()):  # noqa: ARG002
        return x.floor()


def estimate(gram, jacobians, engine=Vectorized, shared=None, participants=None):
    """The estimate for given Jacobians `[n, M, d]`, each client's read from its rows."""
    n, tasks, dim = jacobians.shape
    problem = objectives(
        clients=n,
        rows=1,
        tasks=tasks,
        dim=dim,
    )
    problem = problem.with_tensors({"data": (jacobians, problem.data[1])})
    count = participants or n
    noise = gram.draw(count, tasks, shared or dim, torch.Generator().manual_seed(0))
    fed = engine(problem)
    clients = fed.clients(Draw(torch.arange(count), uplink=noise.up), model=problem.w0)

    def jacobian(client: Client):
        return client.batch(0).data[0][0]

    G, clients = gram(fed, clients, noise.down, jacobian, shared or dim)
    assert torch.equal(clients.memory, jacobians[:count])
    return G, fed


def error(gram, true):
    """How far an estimate is from the true matrix."""
    estimated, _ = estimate(gram, JACOBIANS)
    return (estimated - true).norm()


JACOBIANS = normal(5, 3, 60)


class TestEstimates:
    true = gram_of(JACOBIANS.mean(0))

    @pytest.mark.parametrize("estimator", [OneWay, TwoWay])
    def test_nothing_compressed_is_exact(self, estimator):
        G, _ = estimate(estimator(Exact()), JACOBIANS)
        torch.testing.assert_close(G, self.true, atol=1e-12, rtol=0)

    @pytest.mark.parametrize("sketch", [LowRank(), Largest()])
    def test_two_ways_are_better_than_one(self, sketch):
        assert error(TwoWay(sketch), self.true) < error(OneWay(sketch), self.true)

    def test_the_two_way_estimate_lacks_the_products_of_what_two_clients_left_out(self):
        """Eq. (13), for a server whose sketch of the sum is the sum."""
        G, _ = estimate(TwoWay(WholeNumbers()), JACOBIANS)
        rests = JACOBIANS - JACOBIANS.floor()
        left_out = gram_of(rests.sum(0)) - gram_of(rests).sum(0)
        torch.testing.assert_close(G, self.true - left_out / 25, atol=1e-12, rtol=0)

    def test_the_server_draws_a_sketch_after_the_clients(self):
        rng = torch.Generator().manual_seed(0)
        noise = TwoWay(Masked()).draw(3, 2, 8, rng)
        again = torch.Generator().manual_seed(0)
        assert torch.equal(noise.up, Masked().draw(3, 2, 8, again))
        assert torch.equal(noise.down, Masked().draw(1, 2, 8, again)[0])
        assert torch.equal(rng.get_state(), again.get_state())

    def test_the_mean_of_grams_by_hand(self):
        G, fed = estimate(MeanOfGrams(), JACOBIANS)
        expected = torch.stack([y @ y.T for y in JACOBIANS]).mean(0)
        torch.testing.assert_close(G, expected)
        assert fed.bits_up == 5 * 32 * 9

    @pytest.mark.parametrize("gram", [OneWay(Exact()), TwoWay(), MeanOfGrams()])
    def test_only_shared_parameters_count(self, gram):
        G, _ = estimate(gram, JACOBIANS, shared=20)
        changed = JACOBIANS.clone()
        changed[:, :, 20:] *= 7
        G_of_changed, _ = estimate(gram, changed, shared=20)
        torch.testing.assert_close(G, G_of_changed, atol=1e-13, rtol=0)

    def test_the_matrix_of_shared_parameters(self):
        G, _ = estimate(OneWay(Exact()), JACOBIANS, shared=20)
        torch.testing.assert_close(G, gram_of(JACOBIANS.mean(0)[:, :20]))

    @pytest.mark.parametrize("estimator", [OneWay, TwoWay])
    @sketches
    def test_both_engines_agree_and_the_estimate_is_symmetric(self, estimator, sketch):
        fast, fed = estimate(estimator(sketch), JACOBIANS)
        slow, looped = estimate(estimator(sketch), JACOBIANS, engine=Loop)
        torch.testing.assert_close(fast, slow, atol=1e-11, rtol=0)
        torch.testing.assert_close(fast, fast.T, atol=1e-14, rtol=0)
        assert fed.bits_up == looped.bits_up
        assert fed.bits_down == looped.bits_down

    def test_bits_by_hand(self):
        _, fed = estimate(OneWay(Masked()), JACOBIANS)
        assert fed.bits_up == 5 * 32 * 60
        assert fed.bits_down == 0
        _, fed = estimate(TwoWay(Masked()), JACOBIANS)
        assert fed.bits_up == 5 * 32 * (60 + 2 * 9)
        assert fed.bits_down == 5 * 32 * 60

    def test_the_participants_alone_receive_the_server_s_sketch(self):
        _, fed = estimate(TwoWay(Masked()), JACOBIANS, participants=2)
        assert fed.bits_down == 2 * 32 * 60


def test_errors_are_one_sentence():
    refuses("LowRank: noise must be a result of draw()", LowRank(), normal(2, 9))

    assert Wire(Exact(), 2).variance(4) is None is Wire(Exact(), 2).contraction(4)
    assert torch.equal(Columns(Identity())(normal(2, 3)), normal(2, 3))
