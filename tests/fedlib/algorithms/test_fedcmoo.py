"""FedCMOO and what it is compared with: plain twins, reductions, bits by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import fedlib as fl
from fedlib.solvers.min_norm import minimum_norm
from fedlib.solvers.simplex import project_simplex
from tests.helpers.expect import close
from tests.helpers.problems import objectives, three_objectives
from tests.helpers.rounds import walk

WORK = {"lr": 0.1, "local_steps": 3, "participants": 4}
EXACT = fl.OneWay(fl.Exact())
PROBLEM = three_objectives()
CENTRES = PROBLEM.data[0].numpy()
START = PROBLEM.w0.numpy()


def client_batches(draw):
    """The rows of every participant's batches."""
    pairs = zip(draw.participants, draw.batches, strict=True)
    return [PROBLEM.rows[j][rows].numpy() for j, rows in pairs]


def slope(u, rows, task):
    """The gradient of one objective on some rows."""
    return u - CENTRES[rows, task].mean(0)


def weighted_steps(u, lam, batches):
    """Where steps on the weighted objectives lead from u."""
    for rows in batches:
        u = u - 0.1 * sum(lam[k] * slope(u, rows, k) for k in range(3))
    return u


def projected(v):
    return project_simplex(torch.as_tensor(v)).numpy()


def largest_entries(matrix, count):
    """The matrix with its largest entries alone."""
    positions = np.argsort(-np.abs(matrix).ravel())[:count]
    sent = np.zeros(matrix.size)
    sent[positions] = matrix.ravel()[positions]
    return sent.reshape(matrix.shape)


def test_rounds_of_fedcmoo_equal_their_plain_twin():
    sketch = fl.Largest(0.6)
    method = fl.FedCMOO(
        **WORK,
        server_lr=1.5,
        batch_size=2,
        shared=4,
        gram=fl.OneWay(sketch),
        weights=fl.FindWeights(0.05, steps=20),
    )
    w = START
    lam = np.full(3, 1 / 3)
    for _, draw, state, info in walk(method, PROBLEM, 4, seed=5):
        received = []
        ends = []
        for batches in client_batches(draw):
            assert batches.shape == (3 + 2, 2)  # three for line 2, then two
            H = np.stack([slope(w, batches[k], k) for k in range(3)])
            received.append(largest_entries(H[:, :4], sketch.count_entries(3, 4)))
            ends.append((H, batches[3:]))
        mean = np.mean(received, 0)
        gram = mean @ mean.T
        G = gram / np.mean(np.sqrt(np.diag(gram) + 1e-4)) ** 2
        for _ in range(20):
            lam = projected(lam - 0.05 * G @ lam)
        deltas = []
        for H, later_batches in ends:
            u = weighted_steps(w - 0.1 * lam @ H, lam, later_batches)
            deltas.append((w - u) / 0.3)
        w = w - 1.5 * 0.1 * 3 * np.mean(deltas, 0)
        close(state.weights, lam)
        close(state.w, w)
        assert float(info["weight_2"]) == pytest.approx(lam[1])
        assert float(info["direction"]) == pytest.approx(lam @ gram @ lam)


def test_a_round_of_fsmgda_equals_its_plain_twin():
    method = fl.FSMGDA(**WORK, server_lr=0.7, batch_size=2)
    ((_, draw, state, _),) = walk(method, PROBLEM, 1, seed=1)
    deltas = np.zeros((3, 5))
    for batches in client_batches(draw):
        for k in range(3):
            only = np.eye(3)[k]
            u = weighted_steps(START, only, batches[3 * k : 3 * k + 3])
            deltas[k] += (START - u) / 0.3 / 4
    lam = minimum_norm(deltas @ deltas.T)
    close(state.w, START - 0.7 * 0.3 * lam @ deltas)


def test_a_round_of_the_theory_variant_equals_its_plain_twin():
    method = fl.FedCMOOTheory(
        **WORK,
        step=0.4,
        gram_participants=2,
        batch_size=2,
        compressor=fl.RandK(0.4),
    )
    ((_, draw, state, _),) = walk(method, PROBLEM, 1, seed=2)
    estimates = []
    for group in draw.others:
        sent = np.zeros((2, 3, 5))
        for i, batches in enumerate(client_batches(group)):
            for k in range(3):
                positions = group.uplink[i, k].numpy()
                g = slope(START, batches[k], k)
                sent[i, k, positions] = g[positions] * 5 / 2
        estimates.append(sent.mean(0))
    first_estimate, second_estimate = estimates
    third = np.full(3, 1 / 3)
    lam = projected(third - 0.4 * first_estimate @ second_estimate.T @ third)
    close(state.weights, lam, 1e-13)
    ends = [weighted_steps(START, lam, batches) for batches in client_batches(draw)]
    close(state.w, np.mean(ends, 0))


def same(a, b, problem=PROBLEM, rounds=12):
    """Both methods end with one model."""
    ends = [fl.run(method, problem, rounds=rounds).state.w for method in (a, b)]
    close(*ends)


@pytest.mark.parametrize("gram", [fl.TwoWay(fl.Masked()), EXACT, fl.MeanOfGrams()])
@pytest.mark.parametrize("method", [fl.FedCMOO, fl.FedCMOOPref])
def test_with_one_objective_it_is_fedavg_and_a_share_of_the_way_to_its_mean(method, gram):
    problem = objectives(tasks=1, spread=0.5, noise=0.3, w0=torch.ones(5).double())
    mean = fl.run(fl.FedAvg(**WORK), problem, rounds=1).state.w[0]
    for share in (1.0, 0.4):
        several = method(**WORK, gram=gram, server_lr=share)
        end = fl.run(several, problem, rounds=1).state.w[0]
        close(end, problem.w0 + share * (mean - problem.w0))


ALONE = {"lr": 0.1, "local_steps": 1, "participants": 1}
RULE = fl.FindWeights()


@pytest.mark.parametrize(
    ("method", "central"),
    [
        (fl.FedCMOO(**ALONE, weights=fl.MinNorm(), gram=EXACT), fl.MGDA(lr=0.1)),
        (fl.FedCMOO(**ALONE, weights=RULE, gram=EXACT), fl.MGDA(lr=0.1, weights=RULE)),
        (fl.FSMGDA(**ALONE), fl.MGDA(lr=0.1)),
    ],
)
def test_one_step_of_one_client_with_the_exact_gram_matrix_is_mgda(method, central):
    problem = objectives(clients=1, tasks=3, w0=torch.ones(5).double())
    same(method, central, problem)


STILL = {"weights": fl.FindWeights(step=0.0), "gram": fl.MeanOfGrams()}
EVERYONE = WORK | {"participants": 8}


@pytest.mark.parametrize(
    ("method", "scalarized"),
    [
        (
            fl.FedCMOO(**WORK, **STILL, batch_size=2, shared_batch=True),
            fl.Scalarized(**WORK, batch_size=2),
        ),
        (
            fl.FedCMOOTheory(**EVERYONE, step=0.0, gram_participants=2),
            fl.Scalarized(**EVERYONE),
        ),
    ],
)
def test_weights_that_do_not_move_are_scalarized(method, scalarized):
    same(method, scalarized)


def test_a_single_task_is_fedavg_on_that_objective():
    def only(w, batch):
        return PROBLEM.losses(w, batch)[1:2]

    alone = replace(PROBLEM, losses=only, num_objectives=1, gradient=None)
    expected = fl.run(fl.FedAvg(**WORK), alone, rounds=12).state.w
    close(fl.run(fl.Scalarized(**WORK, task=2), PROBLEM, rounds=12).state.w, expected)


def bits(method):
    """The bits of a first round, up and down, as multiples of a number's 32."""
    ((_, _, _, info),) = walk(method, PROBLEM, 1)
    return info["bits_up"] / 32, info["bits_down"] / 32


@pytest.mark.parametrize(
    ("method", "up", "down"),
    [
        (fl.Scalarized(**WORK), 5, 5),
        (fl.FSMGDA(**WORK), 3 * 5, 5),
        (fl.FedCMOO(**WORK, gram=EXACT), 3 * 5 + 5, 5 + 3),
        (fl.FedCMOO(**WORK, gram=fl.OneWay(fl.Masked())), 5 + 5, 5 + 3),
        (fl.FedCMOO(**WORK, gram=fl.TwoWay(fl.Masked())), 5 + 2 * 9 + 5, 5 + 5 + 3),
        (fl.FedCMOO(**WORK, gram=fl.MeanOfGrams()), 9 + 5, 5 + 3),
        (fl.FedCMOOPref(**WORK, gram=fl.OneWay(fl.Masked())), 3 + 5 + 5, 5 + 3),
    ],
)
def test_numbers_a_client(method, up, down):
    """Five parameters, three objectives, four of eight clients."""
    assert bits(method) == (4 * up, 4 * down)


def test_numbers_of_the_theory_variant_and_of_mgda():
    method = fl.FedCMOOTheory(
        **WORK,
        step=0.1,
        gram_participants=3,
        compressor=fl.RandK(0.4),
    )
    assert bits(method) == (2 * 3 * 3 * 2 + 4 * 5, (4 + 6) * 5 + 4 * 3)
    up, _ = bits(fl.MGDA(lr=0.1))
    assert up == 8 * 15
