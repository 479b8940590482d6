"""Fair classification: pooled gaps, their sign, groups that are missing, metrics."""

from dataclasses import replace

import pytest
import torch
from fairlearn.metrics import MetricFrame, demographic_parity_difference
from sklearn.metrics import accuracy_score

import fedlib as fl
from fedlib.core.problem import Batch
from fedlib.core.sampling import seeded
from fedlib.problems.fairness import combine_gaps, network
from tests.helpers.expect import close
from tests.helpers.people import SIZES, entropy, gap, outputs, real_rows, task
from tests.helpers.problems import batches

ANSWERS = torch.tensor([[10.0, 10.0, 0.0, 10.0], [0.0, 1.0, 1.0, 1.0]])
POOLED = [
    ([[3.0, 4.0, 1.0, 4.0]], 0.5, 1),
    (
        [[3.0, 4.0, 1.0, 4.0], [1.0, 4.0, 3.0, 4.0]],
        0,
        0,
    ),  # gaps of opposite sign cancel
    (ANSWERS, 10 / 11 - 1 / 11, 1),  # people are counted, not clients
    (ANSWERS[:, [2, 3, 0, 1]], 9 / 11, -1),
]


@pytest.mark.parametrize(("answers", "value", "sign"), POOLED)
def test_gaps_are_pooled_by_people_with_their_sign(answers, value, sign):
    pooled, its_sign = combine_gaps(torch.as_tensor(answers))
    assert pooled.item() == pytest.approx(value)
    assert its_sign == sign


def test_the_signed_gap_falls_along_its_gradient_and_the_sign_turns_it():
    problem = task(clients=1)
    of_client = task(clients=1, sign="client")
    w = problem.w0
    direction = torch.tensor([0.0, 1.0]).double()
    (pool,) = batches(problem)
    step = problem.gradient(w, pool, direction)
    gap_at_start = problem.losses(w, pool)[1]
    assert problem.losses(w - 0.05 * step, pool)[1] < gap_at_start
    assert of_client.losses(w, pool)[1] == gap_at_start.abs()
    turned = of_client.gradient(w, pool, direction)
    assert torch.equal(turned, gap_at_start.sign() * step)


def test_statistics_count_real_rows_only_and_minibatches_stand_for_their_client():
    problem = task(alpha=0.7)
    statistics = problem.pooled.statistics
    assert len(set(problem.sizes)) > 1
    fifths = torch.full((5,), 0.2).double()
    for j, client in enumerate(batches(problem)):
        rows = real_rows(problem, j)
        _, men, _, women = statistics(problem.w0, client)
        assert men.item() == pytest.approx(float(problem.data[2][rows].sum()))
        assert (men + women).item() == pytest.approx(len(rows))
        minibatch = Batch(tuple(x[rows[:5]] for x in problem.data), fifths)
        _, men, _, women = statistics(problem.w0, minibatch)
        assert (men + women).item() == pytest.approx(len(rows))


@pytest.mark.parametrize("participants", [[0], [0, 2], [0, 1, 2, 3]])
def test_a_client_without_a_group_gives_no_nan(participants):
    problem = task()
    women = (problem.data[2] == 0).nonzero().flatten()
    rows = problem.rows.clone()
    rows[0] = women.repeat(2)[: rows.shape[1]]
    problem = replace(problem, rows=rows)
    method = fl.FedSGM(0.5, 3, len(participants), 0.001, batch_size=3)
    draw = method.draw(problem, seeded(0, "rounds"))
    chosen = draw._replace(participants=torch.tensor(participants))
    state, info = method.round(fl.Vectorized(problem), method.init(problem), chosen)
    assert torch.isfinite(state.w).all()
    assert torch.isfinite(info["g_hat"])
    assert (info["g_hat"] == 0) == (participants == [0])
    metrics = torch.stack([*problem.metrics(state.w, problem).values()])
    assert torch.isfinite(metrics).all()


@pytest.fixture
def decided():
    """The problem, a model whose decisions differ, and its metrics."""
    problem = task()
    w = 3 * problem.w0
    w[-1] -= network(w, problem.heldout[0], SIZES).median()
    return problem, w, problem.metrics(w, problem)


def test_metrics_of_heldout_rows_are_those_of_fairlearn(decided):
    problem, w, metrics = decided
    X, y, group = problem.heldout
    p = outputs(w, X)
    decisions = (p > 0.5).int()
    decision_gap = demographic_parity_difference(y, decisions, sensitive_features=group)
    assert decision_gap > 0.01
    assert float(metrics["test_decision_gap"]) == pytest.approx(decision_gap)
    options = {"y_true": y, "y_pred": p, "sensitive_features": group}
    means = MetricFrame(metrics=lambda _, predicted: predicted.mean(), **options)
    assert float(metrics["test_gap"]) == pytest.approx(means.difference())
    assert float(metrics["test_accuracy"]) == pytest.approx(accuracy_score(y, decisions))


def test_metrics_of_training_rows_are_those_by_hand(decided):
    problem, w, metrics = decided
    X, y, group, _ = problem.data
    p = outputs(w, X)
    close(metrics["f"], entropy(p, y))
    close(metrics["g"], gap(p, group).abs())
    of_clients = []
    for j in range(4):
        rows = real_rows(problem, j)
        of_clients.append(entropy(p[rows], y[rows]))
    close(metrics["f_clients"], torch.stack(of_clients).mean())
    close(metrics["f_clients"], problem.mean_losses(w)[0])
    assert abs(metrics["f_clients"] - metrics["f"]) > 1e-4
