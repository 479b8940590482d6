"""FedCMOO and what it is compared with: plain twins, reductions, bits by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import fedlib as fl
from fedlib.core.sampling import seeded
from fedlib.problems import pareto
from fedlib.solvers.min_norm import minimum_norm
from fedlib.solvers.simplex import project_simplex
from tests.helpers.expect import close, refuses
from tests.helpers.problems import np_problem, objectives, three_objectives
from tests.helpers.rounds import walk

WORK = {"lr": 0.1, "local_steps": 3, "participants": 4}
EXACT = {"gram": fl.OneWay(fl.Exact())}


def final(algorithm, problem, rounds=12, **options):
    return fl.run(algorithm, problem, rounds=rounds, **options).state.w[0]


def same(a, b, problem, atol=1e-12, **options):
    close(final(a, problem, **options), final(b, problem, **options), atol)


def client_batches(problem, draw):
    """The rows of every participant's batches."""
    clients = draw.participants.tolist()
    return [problem.rows[j][rows].numpy() for j, rows in zip(clients, draw.batches, strict=True)]


def slope(centres, u, rows, task):
    """The gradient of one objective on some rows."""
    return u - centres[rows, task].mean(0)


def weighted_steps(centres, u, lam, batches):
    """Where steps on the weighted objectives lead from u."""
    for rows in batches:
        u = u - 0.1 * sum(lam[k] * slope(centres, u, rows, k) for k in range(3))
    return u


def projected(v):
    return project_simplex(torch.as_tensor(v)).numpy()


def largest_entries(matrix, count):
    """The matrix with its largest entries alone."""
    kept = np.argsort(-np.abs(matrix).ravel())[:count]
    sent = np.zeros(matrix.size)
    sent[kept] = matrix.ravel()[kept]
    return sent.reshape(matrix.shape)


class TestPlainTwins:
    def test_a_round_of_fedcmoo(self):
        problem = three_objectives()
        sketch = fl.Largest(0.6)
        rule = fl.FindWeights(0.05, steps=20)
        work = {
            **WORK,
            "server_lr": 1.5,
            "batch_size": 2,
            "shared": 4,
        }
        algorithm = fl.FedCMOO(**work, gram=fl.OneWay(sketch), weights=rule)
        w = problem.w0.numpy()
        lam = np.full(3, 1 / 3)
        centres = problem.data[0].numpy()
        for _, draw, state, info in walk(algorithm, problem, 4, seed=5):
            received = []
            ends = []
            for batches in client_batches(problem, draw):
                assert batches.shape == (3 + 2, 2)  # three for line 2, then two
                H = np.stack([slope(centres, w, batches[k], k) for k in range(3)])
                received.append(largest_entries(H[:, :4], sketch.count_entries(3, 4)))
                ends.append((H, batches[3:]))
            mean = np.mean(received, 0)
            gram = mean @ mean.T
            G = gram / np.mean(np.sqrt(np.diag(gram) + 1e-4)) ** 2
            for _ in range(20):
                lam = projected(lam - 0.05 * G @ lam)
            deltas = []
            for H, later_batches in ends:
                u = weighted_steps(centres, w - 0.1 * lam @ H, lam, later_batches)
                deltas.append((w - u) / 0.3)
            w = w - 1.5 * 0.1 * 3 * np.mean(deltas, 0)
            np.testing.assert_allclose(state.weights, lam, atol=1e-12)
            np.testing.assert_allclose(state.w, w, atol=1e-12)
            assert float(info["weight_2"]) == pytest.approx(lam[1])
            assert float(info["direction"]) == pytest.approx(lam @ gram @ lam)

    def test_a_round_of_fsmgda(self):
        problem = three_objectives()
        algorithm = fl.FSMGDA(**WORK, server_lr=0.7, batch_size=2)
        ((_, draw, state, _),) = walk(algorithm, problem, 1, seed=1)
        w = problem.w0.numpy()
        centres = problem.data[0].numpy()
        deltas = np.zeros((3, 5))
        for batches in client_batches(problem, draw):
            for k in range(3):
                only = np.eye(3)[k]
                u = weighted_steps(centres, w, only, batches[3 * k : 3 * k + 3])
                deltas[k] += (w - u) / 0.3 / 4
        lam = minimum_norm(deltas @ deltas.T)
        np.testing.assert_allclose(state.w, w - 0.7 * 0.3 * lam @ deltas, atol=1e-12)

    def test_a_round_of_the_theory_variant(self):
        problem = three_objectives()
        compressor = fl.RandK(0.4)
        options = {"gram_participants": 2, "batch_size": 2, "compressor": compressor}
        algorithm = fl.FedCMOOTheory(**WORK, step=0.4, **options)
        ((_, draw, state, _),) = walk(algorithm, problem, 1, seed=2)
        w = problem.w0.numpy()
        centres = problem.data[0].numpy()
        estimates = []
        for group in draw.others:
            sent = np.zeros((2, 3, 5))
            for i, batches in enumerate(client_batches(problem, group)):
                for k in range(3):
                    g = slope(centres, w, batches[k], k)
                    kept = group.uplink[i, k].numpy()
                    assert len(kept) == 2
                    sent[i, k, kept] = g[kept] * 5 / 2
            estimates.append(sent.mean(0))
        first_estimate, second_estimate = estimates
        third = np.full(3, 1 / 3)
        lam = projected(third - 0.4 * first_estimate @ second_estimate.T @ third)
        np.testing.assert_allclose(state.weights, lam, atol=1e-13)
        batches_of_clients = client_batches(problem, draw)
        ends = [weighted_steps(centres, w, lam, batches) for batches in batches_of_clients]
        np.testing.assert_allclose(state.w, np.mean(ends, 0), atol=1e-12)


GRAMS = (fl.TwoWay(fl.Masked()), fl.OneWay(fl.Exact()), fl.MeanOfGrams())


class TestReductions:
    @pytest.mark.parametrize("batch_size", [None, 2])
    def test_one_objective_is_fedavg(self, batch_size):
        problem = objectives(tasks=1, spread=0.5, noise=0.3)
        work = WORK | {"batch_size": batch_size}
        averaging = fl.FedAvg(**work)
        for gram in GRAMS:
            same(fl.FedCMOO(**work, gram=gram), averaging, problem, rounds=1)
        for method in (fl.FSMGDA, fl.Scalarized):
            same(method(**work), averaging, problem)
        same(fl.FedCMOO(**work, gram=fl.MeanOfGrams()), averaging, problem)

    @pytest.mark.parametrize("gram", GRAMS)
    def test_with_one_objective_the_participants_are_those_of_fedavg(self, gram):
        problem = objectives(tasks=1, spread=0.5, noise=0.3)
        methods = (fl.FedAvg(**WORK), fl.FedCMOO(**WORK, gram=gram))
        expected, actual = (method.draw(problem, seeded(0, "rounds")) for method in methods)
        assert torch.equal(actual.participants, expected.participants)

    def test_one_step_one_client_exact_gram_is_mgda(self):
        problem = objectives(clients=1, tasks=3, w0=torch.ones(5).double())
        work = {"lr": 0.1, "local_steps": 1, "participants": 1}
        same(fl.FedCMOO(**work, weights=fl.MinNorm(), **EXACT), fl.MGDA(lr=0.1), problem)
        same(fl.FSMGDA(**work), fl.MGDA(lr=0.1), problem)
        rule = fl.FindWeights()
        same(fl.FedCMOO(**work, weights=rule, **EXACT), fl.MGDA(lr=0.1, weights=rule), problem)

    def test_weights_that_do_not_move_are_scalarized(self):
        problem = three_objectives()
        still = {"weights": fl.FindWeights(step=0.0), "gram": fl.MeanOfGrams()}
        longer = WORK | {"server_lr": 1.3}
        same(fl.FedCMOO(**longer, **still), fl.Scalarized(**longer), problem)
        batches = WORK | {"batch_size": 2}
        shared = fl.FedCMOO(**batches, **still, shared_batch=True)
        same(shared, fl.Scalarized(**batches), problem)
        everyone = WORK | {"participants": 8}
        frozen = fl.FedCMOOTheory(**everyone, step=0.0, gram_participants=2)
        same(frozen, fl.Scalarized(**everyone), problem)

    @pytest.mark.parametrize("task", [1, 2, 3])
    def test_a_single_task_is_fedavg_on_that_objective(self, task):
        problem = three_objectives()

        def only(w, batch):
            return problem.losses(w, batch)[task - 1 : task]

        alone = replace(problem, losses=only, num_objectives=1, gradient=None)
        expected = final(fl.FedAvg(**WORK), alone)
        close(final(fl.Scalarized(**WORK, task=task), problem), expected)

    def test_with_one_step_fedcmoo_and_fsmgda_are_the_same_on_full_batches(self):
        problem = three_objectives()
        work = {"lr": 0.1, "local_steps": 1, "participants": 4}
        same(fl.FedCMOO(**work, weights=fl.MinNorm(), **EXACT), fl.FSMGDA(**work), problem)


class TestBits:
    """Five parameters, three objectives, four of eight clients, 32 bits a number."""

    @pytest.mark.parametrize(
        ("algorithm", "up", "down"),
        [
            (fl.Scalarized(**WORK), 5, 5),
            (fl.FSMGDA(**WORK), 3 * 5, 5),
            (fl.FedCMOO(**WORK, gram=fl.OneWay(fl.Exact())), 3 * 5 + 5, 5 + 3),
            (fl.FedCMOO(**WORK, gram=fl.OneWay(fl.Masked())), 5 + 5, 5 + 3),
            (fl.FedCMOO(**WORK, gram=fl.TwoWay(fl.Masked())), 5 + 2 * 9 + 5, 5 + 5 + 3),
            (fl.FedCMOO(**WORK, gram=fl.MeanOfGrams()), 9 + 5, 5 + 3),
            (fl.FedCMOOPref(**WORK, gram=fl.OneWay(fl.Masked())), 3 + 5 + 5, 5 + 3),
        ],
    )
    def test_numbers_a_client(self, algorithm, up, down):
        trace = fl.run(algorithm, three_objectives(), rounds=1)
        assert trace.info["bits_up"][0, 0] == 4 * 32 * up
        assert trace.info["bits_down"][0, 0] == 4 * 32 * down

    def test_of_the_theory_variant_and_of_mgda(self):
        two = {"gram_participants": 3, "compressor": fl.RandK(0.4)}
        algorithm = fl.FedCMOOTheory(**WORK, step=0.1, **two)
        trace = fl.run(algorithm, three_objectives(), rounds=1)
        assert trace.info["bits_up"][0, 0] == 32 * (2 * 3 * 3 * 2 + 4 * 5)
        assert trace.info["bits_down"][0, 0] == 32 * ((4 + 6) * 5 + 4 * 3)
        trace = fl.run(fl.MGDA(lr=0.1), three_objectives(), rounds=1)
        assert trace.info["bits_up"][0, 0] == 8 * 32 * 15


def test_what_does_not_fit_the_problem_is_named():
    words = "problem must have objectives only, got '1 objectives, 1 constraints'"
    refuses(f"Scalarized: {words}", fl.Scalarized(**WORK).init, np_problem())
    three = three_objectives()
    refuses("Scalarized: task must lie in 1..3", fl.Scalarized(**WORK, task=4).init, three)
    preferring = fl.FedCMOOPref(**WORK, preference=fl.Preference((1.0, 2.0)))
    refuses("one for each of the 3 objectives, got (1.0, 2.0)", preferring.init, three)
    biased = {"gram_participants": 2, "compressor": fl.TopK(0.5)}
    theory = fl.FedCMOOTheory(**WORK, step=0.1, **biased)
    refuses("compressor must be unbiased", theory.init, three)
    refuses("pareto: centres must be", pareto, torch.zeros(2, 3))
    centres = torch.zeros(1, 1, 2, 3)
    refuses("pareto: curvature must be positive", pareto, centres, torch.zeros(2, 3))


@pytest.mark.parametrize("method", [fl.FedCMOO, fl.FedCMOOPref])
def test_with_one_objective_the_server_goes_its_share_of_the_way_to_the_mean(method):
    """One objective: FedAvg, and `server_lr` of the step from w to the clients' mean."""
    problem = objectives(tasks=1, spread=0.5, w0=torch.ones(5, dtype=torch.float64))
    mean = final(fl.FedAvg(**WORK), problem, rounds=1)
    for share in (1.0, 0.4):
        end = final(method(**WORK, **EXACT, server_lr=share), problem, rounds=1)
        close(end, problem.w0 + share * (mean - problem.w0), 1e-12)
