"""Features split over clients: the result is that of pooled features; partitions, refusals."""

from dataclasses import fields, replace

import pytest
import torch

import fedlib as fl
from fedlib.algorithms import (
    SSCA,
    ConstrainedSSCA,
    ConstrainedVerticalSSCA,
    MiniBatchSGD,
    VerticalSGD,
    VerticalSSCA,
)
from fedlib.core.sampling import seeded
from fedlib.steps import PowerLaw
from fedlib.vertical import Partition, contiguous, vertical
from papers.ssca.network import vertical_network
from tests.helpers.divided import (
    ALL,
    FREE,
    NORM,
    SGD,
    B,
    J,
    K,
    batch_of,
    by_name,
    general,
    network,
    tapped,
    task,
)
from tests.helpers.expect import close, refuses
from tests.helpers.rounds import walk

TWIN = {VerticalSSCA: SSCA, ConstrainedVerticalSSCA: ConstrainedSSCA, VerticalSGD: MiniBatchSGD}


def horizontal(algorithm):
    """The algorithm that is given all features in one place."""
    twin = TWIN[type(algorithm)]
    names = {f.name for f in fields(twin)}
    same = {f.name: getattr(algorithm, f.name) for f in fields(algorithm) if f.name in names}
    return twin(**same)


def moved(algorithm, problem, rounds, seed=0):
    """The last state of some rounds, all equal to those of the algorithm with pooled features."""
    twin = horizontal(algorithm)
    pooled = twin.init(problem)
    for _, draw, state, info in walk(algorithm, problem, rounds, seed=seed):
        pooled, twin_info = twin.round(fl.Vectorized(problem), pooled, draw)
        for a, b in zip(state, pooled, strict=True):
            torch.testing.assert_close(a, b, atol=1e-12, rtol=1e-11)
        for key in twin_info.keys() - {"bits_up", "bits_down"}:
            torch.testing.assert_close(info[key], twin_info[key], atol=1e-9, rtol=1e-9)
    return state


@pytest.mark.parametrize("clients", [1, 2, 5])
@pytest.mark.parametrize(
    "algorithm", [*ALL, *(replace(a, debias=True) for a in ALL[:2])], **by_name
)
def test_equals_the_horizontal_algorithm_on_the_same_batches(algorithm, clients):
    problem = task(clients)
    assert (moved(algorithm, problem, 12, seed=1).w - problem.w0).norm() > 0.1


@pytest.mark.parametrize("clients", [1, 2, 5])
@pytest.mark.parametrize("objective", ["problem", "norm"])
def test_equals_the_horizontal_algorithm_with_constraints_of_the_problem(clients, objective):
    levels = 0.0 if objective == "problem" else (2.0, 0.3, 0.3)
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


@pytest.mark.parametrize("closed", [True, False])
def test_what_is_sent_up_is_the_gradient(closed):
    rng = torch.Generator().manual_seed(2)
    blocks = contiguous(K, 4)
    problem = task(4)
    if not closed:
        form = replace(problem.composite, outer_pullback=None, inner_pullback=None)
        problem = replace(problem, composite=form)
    draw = SGD.draw(problem, rng)
    seen = tapped(problem, SGD, problem.w0, draw)
    up = {i: seen[f"client {i}", "server", "gradient of the block"][0][0] for i in range(1, 5)}
    of_head, values = seen["client 1", "server", "gradient of the head"]
    assert values.numel() == 0
    batch = batch_of(problem, draw.batches[0, 0])
    true = torch.func.grad(lambda w: B * problem.losses(w, batch)[0])(problem.w0)
    close(of_head[0], true[J * K :])
    for i, block in enumerate(blocks, start=1):
        columns = true[: J * K].view(J, K)[:, block].flatten()
        close(up[i], columns)


def test_the_sums_of_values_are_the_losses():
    problem = task(4)
    draw = NORM.draw(problem, seeded(0, "rounds"))
    seen = tapped(problem, NORM, problem.w0, draw)
    _, values = seen["client 1", "server", "gradient of the head"]
    losses = problem.losses(problem.w0, batch_of(problem, draw.batches[0, 0]))
    close(values / B, losses, 1e-13)


def test_a_batch_is_common_distinct_and_uniform():
    problem = task(2)
    draw = FREE.draw(problem, seeded(0, "rounds"))
    assert draw.participants.tolist() == [0]
    assert draw.batches.shape == (1, 1, B)
    assert len(set(draw.batches.flatten().tolist())) == B
    full = replace(FREE, batch_size=None).draw(problem, seeded(0, "rounds"))
    assert full.batches.flatten().tolist() == list(range(300))
    times = torch.zeros(300)
    rng = seeded(0, "rounds")
    for _ in range(2000):
        times[replace(FREE, batch_size=60).draw(problem, rng).batches[0, 0]] += 1
    assert (times / 2000 - 0.2).abs().max() < 0.04  # standard deviation 0.009


def test_the_cost_falls_and_the_constraint_is_met():
    steps = {"rho": PowerLaw(0.9, 0.3), "gamma": PowerLaw(0.9, 0.6), "batch_size": 100}
    free = fl.run(replace(FREE, **steps), task(4), rounds=60, evaluate_every=60)
    norm = fl.run(replace(NORM, **steps), task(4), rounds=100, evaluate_every=100)
    assert free.metrics["cost"][0, -1] < 0.5 < 2 < free.metrics["cost"][0, 0]
    assert norm.metrics["cost"][0, -1] == pytest.approx(0.5, abs=0.05)
    assert norm.info["slack"][0, 0, -1] < 1e-3


def test_partition_cuts_and_joins():
    rng = torch.Generator().manual_seed(0)
    pieces = torch.tensor_split(torch.randperm(9, generator=rng), [2, 2, 6])
    partition = Partition("features", pieces, 9)
    x = torch.randn(3, 9, generator=rng)
    assert [piece.shape[1] for piece in partition.split(x)] == [2, 0, 4, 3]
    assert torch.equal(partition.join(partition.split(x)), x)
    assert torch.equal(partition.to("cpu").join(partition.split(x)), x)
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


def blocks(*lists):
    return [torch.tensor(numbers) for numbers in lists]


def test_refused_problems():
    words = "composite must give the losses of swish_network"
    two = {"clients": 2, "scale": 255.0}
    refuses(words, vertical_network, network(), **two)
    form = task(2).composite
    refuses("features must be divided as general has them*[7]", vertical, general(), form)
    seven = replace(form, features=Partition("features", contiguous(7, 2), 7))
    refuses("parameters must be divided as general has them", vertical, general(3), seven)
    refuses("parameters must be in 3 parts", replace, form, parameters=form.features)
    words = "problem must be a VerticalProblem, got Problem(name='swish_network'"
    for algorithm in ALL:
        refuses(words, algorithm.init, network(), error=TypeError)


def test_refused_heads_batches_and_levels():
    refuses("VerticalSSCA: head must lie in 1..2", replace(FREE, head=3).init, task(2))
    refuses("batch_size must lie in 1..300", replace(FREE, batch_size=301).init, task(2))
    name = "ConstrainedVerticalSSCA"
    of_problem = replace(NORM, objective="problem")
    refuses(f"{name}: levels must be positive, got -0.1", replace, NORM, levels=-0.1)
    refuses(f"{name}: the problem must have a constraint", of_problem.init, task())
