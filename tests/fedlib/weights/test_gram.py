"""Estimates of the Gram matrix: exact where nothing is compressed, by hand where something is."""

import pytest
import torch

from fedlib.compress import Exact, Largest, LowRank, Masked, RandK
from fedlib.compress.sketches import Columns
from fedlib.core import Loop, Vectorized
from fedlib.core.client import Client
from fedlib.core.problem import Draw
from fedlib.weights import MeanOfGrams, OneWay, TwoWay
from fedlib.weights.gram import gram_of
from tests.helpers.expect import close
from tests.helpers.problems import objectives
from tests.helpers.randoms import generator, normal

JACOBIANS = normal(5, 3, 60)
MEAN = JACOBIANS.mean(0)
TRUE = gram_of(MEAN)
NUMBER = 32


class WholeNumbers(Exact):
    """A sketch that sends the entries rounded down, so the sum of sketches is sent exactly."""

    def __call__(self, x, noise=()):  # noqa: ARG002
        return x.floor()


def estimate(
    gram,
    engine=Vectorized,
    jacobians=JACOBIANS,
    shared=60,
    participants=5,
):
    """The estimate for given Jacobians `[n, M, d]`, each client's read from its rows."""
    problem = objectives(clients=5, rows=1, tasks=3, dim=60)
    problem = problem.with_tensors({"data": (jacobians, problem.data[1])})
    noise = gram.draw(participants, 3, shared, generator())
    fed = engine(problem)
    draw = Draw(torch.arange(participants), uplink=noise.up)
    clients = fed.clients(draw, model=problem.w0)

    def jacobian(client: Client):
        return client.batch(0).data[0][0]

    G, clients = gram(
        fed,
        clients,
        noise.down,
        jacobian,
        shared,
    )
    assert torch.equal(clients.memory, jacobians[:participants])
    return G, fed


@pytest.mark.parametrize("estimator", [OneWay, TwoWay])
def test_nothing_compressed_is_exact(estimator):
    G, _ = estimate(estimator(Exact()))
    close(G, TRUE)


@pytest.mark.parametrize("sketch", [LowRank(), Largest()])
def test_two_ways_are_better_than_one(sketch):
    one_way, _ = estimate(OneWay(sketch))
    two_way, _ = estimate(TwoWay(sketch))
    assert (two_way - TRUE).norm() < (one_way - TRUE).norm()


def test_the_two_way_estimate_lacks_the_products_of_what_two_clients_left_out():
    """Eq. (13), for a server whose sketch of the sum is the sum."""
    G, _ = estimate(TwoWay(WholeNumbers()))
    rests = JACOBIANS - JACOBIANS.floor()
    left_out = gram_of(rests.sum(0)) - gram_of(rests).sum(0)
    close(G, TRUE - left_out / 25)


def test_the_mean_of_grams_by_hand():
    G, _ = estimate(MeanOfGrams())
    close(G, gram_of(JACOBIANS).mean(0))


def test_the_server_draws_a_sketch_after_the_clients():
    noise = TwoWay(Masked()).draw(3, 2, 8, generator())
    rng = generator()
    assert torch.equal(noise.up, Masked().draw(3, 2, 8, rng))
    assert torch.equal(noise.down, Masked().draw(1, 2, 8, rng)[0])


@pytest.mark.parametrize("gram", [OneWay(Exact()), TwoWay(), MeanOfGrams()])
def test_only_shared_parameters_count(gram):
    changed = JACOBIANS.clone()
    changed[:, :, 20:] *= 7
    G, _ = estimate(gram, shared=20)
    G_of_changed, _ = estimate(gram, jacobians=changed, shared=20)
    close(G, G_of_changed, 1e-13)


def test_the_matrix_of_shared_parameters():
    G, _ = estimate(OneWay(Exact()), shared=20)
    close(G, gram_of(MEAN[:, :20]))


@pytest.mark.parametrize("estimator", [OneWay, TwoWay])
@pytest.mark.parametrize(
    "sketch",
    [
        LowRank(),
        LowRank(order="column", budget=2.0),
        Largest(),
        Masked(scaled=False),
        Columns(RandK(0.5)),
    ],
)
def test_both_engines_agree_and_the_estimate_is_symmetric(estimator, sketch):
    fast, fed = estimate(estimator(sketch))
    slow, looped = estimate(estimator(sketch), Loop)
    close(fast, slow, 1e-11)
    close(fast, fast.T, 1e-14)
    assert fed.bits_up == looped.bits_up
    assert fed.bits_down == looped.bits_down


@pytest.mark.parametrize(
    ("gram", "participants", "up", "down"),
    [
        (MeanOfGrams(), 5, 9, 0),
        (OneWay(Masked()), 5, 60, 0),
        (TwoWay(Masked()), 5, 60 + 2 * 9, 60),
        (TwoWay(Masked()), 2, 60 + 2 * 9, 60),  # the participants alone receive the sketch
    ],
)
def test_numbers_of_a_participant_by_hand(gram, participants, up, down):
    _, fed = estimate(gram, participants=participants)
    assert fed.bits_up == participants * NUMBER * up
    assert fed.bits_down == participants * NUMBER * down
