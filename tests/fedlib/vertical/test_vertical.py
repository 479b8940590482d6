"""Features split over clients: the result is that of pooled features; partitions, refusals."""

from dataclasses import fields, replace

import pytest
import torch

import fedlib as fl
from fedlib.core.sampling import seeded
from fedlib.vertical import Partition, contiguous, vertical
from papers.ssca.network import vertical_network
from tests.helpers.divided import (
    ALL,
    FREE,
    NORM,
    by_name,
    general,
    network,
    task,
)
from tests.helpers.expect import close, refuses
from tests.helpers.rounds import walk

TWINS = {
    fl.VerticalSSCA: fl.SSCA,
    fl.ConstrainedVerticalSSCA: fl.ConstrainedSSCA,
    fl.VerticalSGD: fl.MiniBatchSGD,
}


def moved(method, problem, rounds):
    """The last state of some rounds, all equal to those of the method with pooled features."""
    twin_type = TWINS[type(method)]
    names = {f.name for f in fields(twin_type)} & {f.name for f in fields(method)}
    settings = {name: getattr(method, name) for name in names}
    twin = twin_type(**settings)
    pooled = twin.init(problem)
    for _, draw, state, info in walk(method, problem, rounds, seed=1):
        pooled, twin_info = twin.round(fl.Vectorized(problem), pooled, draw)
        torch.testing.assert_close(tuple(state), tuple(pooled), atol=1e-12, rtol=1e-11)
        for key in twin_info.keys() - {"bits_up", "bits_down"}:
            close(info[key], twin_info[key], 1e-8)
    return state


@pytest.mark.parametrize("clients", [1, 2, 5])
@pytest.mark.parametrize(
    "method", [*ALL, *(replace(method, debias=True) for method in ALL[:2])], **by_name
)
def test_equals_the_horizontal_algorithm_on_the_same_batches(method, clients):
    problem = task(clients)
    assert (moved(method, problem, 12).w - problem.w0).norm() > 0.1


@pytest.mark.parametrize("clients", [1, 2, 5])
@pytest.mark.parametrize(("objective", "levels"), [("problem", 0.0), ("norm", (2.0, 0.3, 0.3))])
def test_equals_the_horizontal_algorithm_with_constraints_of_the_problem(
    clients, objective, levels
):
    method = replace(
        NORM,
        objective=objective,
        levels=levels,
        penalty=10.0,
        growth=2.0,
        patience=3,
    )
    moved(method, general(clients), 8)
    moved(replace(FREE, ridge=0.0), general(clients), 1)  # without constraints: the objective alone


def test_a_batch_is_common_distinct_and_uniform():
    problem = task(2)
    rng = seeded(0, "rounds")
    full = replace(FREE, batch_size=None).draw(problem, rng)
    assert full.batches.flatten().tolist() == list(range(300))
    times = torch.zeros(300)
    for _ in range(2000):
        draw = replace(FREE, batch_size=60).draw(problem, rng)
        times[draw.batches[0, 0]] += 1
    assert draw.participants.tolist() == [0]
    assert draw.batches.shape == (1, 1, 60)
    assert times.sum() == 2000 * 60  # distinct rows
    assert (times / 2000 - 0.2).abs().max() < 0.04  # standard deviation 0.009


def test_partition_cuts_and_joins():
    pieces = torch.tensor_split(torch.randperm(9), [2, 2, 6])
    partition = Partition("features", pieces, 9)
    x = torch.randn(3, 9)
    assert [piece.shape[1] for piece in partition.split(x)] == [2, 0, 4, 3]
    assert torch.equal(partition.join(partition.split(x)), x)
    moved = partition.to("meta")
    assert {p.device.type for p in (*moved.parts, moved.order)} == {"meta"}


def test_the_pool_is_all_samples_of_all_clients():
    source = network()
    problem = vertical_network(source, clients=2, scale=16.0)
    assert problem.sizes == (300,)
    assert torch.equal(problem.rows[0], source.rows.flatten())
    assert torch.equal(problem.w0, source.w0)
    padded = replace(source, rows=source.rows.repeat(1, 2), sizes=(100, 100, 100))
    again = vertical_network(padded, clients=2, scale=16.0)
    assert torch.equal(again.rows, problem.rows)


FORM = task(2).composite
SEVEN = replace(FORM, features=Partition("features", contiguous(7, 2), 7))
REFUSED = [
    (
        "composite must give the losses of swish_network",
        lambda: vertical_network(network(), clients=2, scale=255.0),
    ),
    (
        "features must be divided as general has them*[7]",
        lambda: vertical(general(), FORM),
    ),
    (
        "parameters must be divided as general has them",
        lambda: vertical(general(3), SEVEN),
    ),
    ("parameters must be in 3 parts", lambda: replace(FORM, parameters=FORM.features)),
    (
        "VerticalSSCA: head must lie in 1..2",
        lambda: replace(FREE, head=3).init(task(2)),
    ),
    (
        "batch_size must lie in 1..300",
        lambda: replace(FREE, batch_size=301).init(task(2)),
    ),
    ("VerticalSSCA: levels must be positive, got -0.1", lambda: replace(NORM, levels=-0.1)),
    (
        "VerticalSSCA: the problem must have a constraint",
        lambda: replace(NORM, objective="problem").init(task()),
    ),
]


@pytest.mark.parametrize(("words", "call"), REFUSED)
def test_what_does_not_fit_is_refused(words, call):
    refuses(words, call)


@pytest.mark.parametrize("method", ALL, **by_name)
def test_a_problem_of_other_features_is_refused(method):
    words = "problem must be a VerticalProblem, got Problem(name='swish_network'"
    refuses(words, method.init, network(), error=TypeError)
