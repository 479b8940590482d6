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


class TestPlainTwins:
    def test_a_round_of_fedcmoo(self):
        problem = three_objectives()
        parts = {"gram": fl.OneWay(fl.Largest(0.6)), "weights": fl.FindWeights(0.05, steps=20)}
        algorithm = fl.FedCMOO(**WORK, **parts, server_lr=1.5, batch_size=2, shared=4)
        w, lam = problem.w0.numpy(), np.full(3, 1 / 3)
        centres = problem.data[0].numpy()
        for _, draw, state, info in walk(algorithm, problem, 4, seed=5):
            received, jacobians, batches = [], [], []
            for place, j in enumerate(draw.participants.tolist()):
                rows = problem.rows[j][draw.batches[place]].numpy()  # three for line 2, then two
                assert rows.shape == (3 + 2, 2)
                H = np.stack([w - centres[rows[k], k].mean(0) for k in range(3)])
                short = np.zeros((3, 4))
                order = np.argsort(-np.abs(H[:, :4]).ravel())
                kept = order[: fl.Largest(0.6).count_entries(3, 4)]
                short.ravel()[kept] = H[:, :4].ravel()[kept]
                received.append(short)
                jacobians.append(H)
                batches.append(rows[3:])
            mean = np.mean(received, 0)
            G = mean @ mean.T
            G = G / np.mean(np.sqrt(np.diag(G) + 1e-4)) ** 2
            for _ in range(20):
                v = lam - 0.05 * G @ lam
                lam = project_simplex(torch.as_tensor(v)).numpy()
            deltas = []
            for H, rows in zip(jacobians, batches, strict=True):
                u = w - 0.1 * lam @ H
                for step in rows:
                    u = u - 0.1 * sum(lam[k] * (u - centres[step, k].mean(0)) for k in range(3))
                deltas.append((w - u) / 0.3)
            w = w - 1.5 * 0.1 * 3 * np.mean(deltas, 0)
            np.testing.assert_allclose(state.weights, lam, atol=1e-12)
            np.testing.assert_allclose(state.w, w, atol=1e-12)
            assert float(info["weight_2"]) == pytest.approx(lam[1])
            assert float(info["direction"]) == pytest.approx(lam @ mean @ mean.T @ lam)

    def test_a_round_of_fsmgda(self):
        problem = three_objectives()
        algorithm = fl.FSMGDA(**WORK, server_lr=0.7, batch_size=2)
        ((_, draw, after, _),) = walk(algorithm, problem, 1, seed=1)
        w, centres = problem.w0.numpy(), problem.data[0].numpy()
        deltas = np.zeros((3, 5))
        for place, j in enumerate(draw.participants.tolist()):
            rows = problem.rows[j][draw.batches[place]].numpy()
            for k in range(3):
                u = w
                for step in rows[3 * k : 3 * k + 3]:
                    u = u - 0.1 * (u - centres[step, k].mean(0))
                deltas[k] += (w - u) / 0.3 / 4
        lam = minimum_norm(deltas @ deltas.T)
        np.testing.assert_allclose(after.w, w - 0.7 * 0.3 * lam @ deltas, atol=1e-12)

    def test_a_round_of_the_theory_variant(self):
        problem = three_objectives()
        algorithm = fl.FedCMOOTheory(
            **WORK, step=0.4, gram_participants=2, batch_size=2, compressor=fl.RandK(0.4)
        )
        ((_, draw, after, _),) = walk(algorithm, problem, 1, seed=2)
        w, centres = problem.w0.numpy(), problem.data[0].numpy()
        Y = []
        for which in range(2):
            sent = np.zeros((2, 3, 5))
            for i in range(2):
                some = draw.others[which]
                rows = problem.rows[some.participants[i]][some.batches[i]].numpy()
                for k in range(3):
                    g = w - centres[rows[k], k].mean(0)
                    kept = some.uplink[i, k].numpy()
                    assert len(kept) == 2
                    sent[i, k, kept] = g[kept] * 5 / 2
            Y.append(sent.mean(0))
        third = np.full(3, 1 / 3)
        lam = project_simplex(torch.as_tensor(third - 0.4 * Y[0] @ Y[1].T @ third)).numpy()
        np.testing.assert_allclose(after.weights, lam, atol=1e-13)
        ends = []
        for place, j in enumerate(draw.participants.tolist()):
            u = w
            for step in problem.rows[j][draw.batches[place]].numpy():
                u = u - 0.1 * sum(lam[k] * (u - centres[step, k].mean(0)) for k in range(3))
            ends.append(u)
        np.testing.assert_allclose(after.w, np.mean(ends, 0), atol=1e-12)


class TestReductions:
    @pytest.mark.parametrize("batch_size", [None, 2])
    def test_one_objective_is_fedavg(self, batch_size):
        problem = objectives(tasks=1, spread=0.5, noise=0.3)
        avg = fl.FedAvg(**WORK, batch_size=batch_size)
        for gram in (fl.TwoWay(fl.Masked()), fl.OneWay(fl.Exact()), fl.MeanOfGrams()):
            moo = fl.FedCMOO(**WORK, batch_size=batch_size, gram=gram)
            assert avg.draw(problem, seeded(0, "rounds")).participants.equal(
                moo.draw(problem, seeded(0, "rounds")).participants
            )
            same(moo, avg, problem, rounds=1)
        for other in (fl.FSMGDA(**WORK, batch_size=batch_size), fl.Scalarized(**WORK)):
            same(replace(other, batch_size=batch_size), avg, problem)
        same(fl.FedCMOO(**WORK, batch_size=batch_size, gram=fl.MeanOfGrams()), avg, problem)

    def test_one_step_one_client_exact_gram_is_mgda(self):
        problem = objectives(clients=1, tasks=3, w0=torch.ones(5).double())
        moo = fl.FedCMOO(lr=0.1, local_steps=1, participants=1, weights=fl.MinNorm(), **EXACT)
        same(moo, fl.MGDA(lr=0.1), problem)
        same(fl.FSMGDA(lr=0.1, local_steps=1, participants=1), fl.MGDA(lr=0.1), problem)
        steps = {"weights": fl.FindWeights()}
        same(replace(moo, **steps), fl.MGDA(lr=0.1, **steps), problem)

    def test_weights_that_do_not_move_are_scalarized(self):
        problem = three_objectives()
        still = {"weights": fl.FindWeights(step=0.0), "gram": fl.MeanOfGrams()}
        scaled, part = {"server_lr": 1.3}, {"batch_size": 2}
        same(fl.FedCMOO(**WORK, **still, **scaled), fl.Scalarized(**WORK, **scaled), problem)
        shared = fl.FedCMOO(**WORK, **still, **part, shared_batch=True)
        same(shared, fl.Scalarized(**WORK, **part), problem)
        frozen = fl.FedCMOOTheory(**WORK, step=0.0, gram_participants=2)
        alone = fl.Scalarized(**{**WORK, "participants": 8})
        same(replace(frozen, participants=8), alone, problem)

    def test_a_single_task_is_fedavg_on_that_objective(self):
        problem = three_objectives()
        for k in (1, 2, 3):

            def only(w, batch, k=k):
                return problem.losses(w, batch)[k - 1 : k]

            alone = replace(problem, losses=only, num_objectives=1, gradient=None)
            close(final(fl.Scalarized(**WORK, task=k), problem), final(fl.FedAvg(**WORK), alone))
        refuses("Scalarized: task must lie in 1..3", fl.Scalarized(**WORK, task=4).init, problem)

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
    words, three = (
        "problem must have objectives only, got '1 objectives, 1 constraints'",
        three_objectives(),
    )
    refuses(f"Scalarized: {words}", fl.Scalarized(**WORK).init, np_problem())
    pref = fl.FedCMOOPref(**WORK, preference=fl.Preference((1.0, 2.0)))
    refuses("one for each of the 3 objectives, got (1.0, 2.0)", pref.init, three)
    theory = fl.FedCMOOTheory(**WORK, step=0.1, gram_participants=2, compressor=fl.TopK(0.5))
    refuses("compressor must be unbiased", theory.init, three)
    refuses("pareto: centres must be", pareto, torch.zeros(2, 3))
    centres, curvature = torch.zeros(1, 1, 2, 3), torch.zeros(2, 3)
    refuses("pareto: curvature must be positive", pareto, centres, curvature)


@pytest.mark.parametrize("kind", [fl.FedCMOO, fl.FedCMOOPref])
def test_with_one_objective_the_server_goes_its_share_of_the_way_to_the_mean(kind):
    """One objective: FedAvg, and `server_lr` of the step from w to the clients' mean."""
    problem = objectives(tasks=1, spread=0.5, w0=torch.ones(5, dtype=torch.float64))
    mean = final(fl.FedAvg(**WORK), problem, rounds=1)
    for share in (1.0, 0.4):
        there = final(kind(**WORK, **EXACT, server_lr=share), problem, rounds=1)
        close(there, problem.w0 + share * (mean - problem.w0), 1e-12)
