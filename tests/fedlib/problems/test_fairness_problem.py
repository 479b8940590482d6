"""Fair classification: pooled gaps, their sign, groups that are missing, metrics."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from fairlearn.metrics import MetricFrame, demographic_parity_difference

import fedlib as fl
from fedlib.core.problem import Batch
from fedlib.core.sampling import seeded
from fedlib.problems.fairness import combine_gaps, network
from tests.helpers.people import SIZES, entropy, gap, outputs, people, real_rows, task


def test_gaps_of_opposite_sign_cancel_when_pooled():
    answers = torch.tensor([[3.0, 4.0, 1.0, 4.0], [1.0, 4.0, 3.0, 4.0]])  # gaps +0.5 and -0.5
    for client in range(2):
        value, _ = combine_gaps(answers[[client]])
        assert value == 0.5
    assert combine_gaps(answers) == (0.0, 0.0)


def test_the_pooled_gap_counts_people_not_clients():
    answers = torch.tensor([[10.0, 10.0, 0.0, 10.0], [0.0, 1.0, 1.0, 1.0]])
    value, sign = combine_gaps(answers)
    assert value.item() == pytest.approx(10 / 11 - 1 / 11)
    assert sign == 1
    groups_exchanged = answers[:, [2, 3, 0, 1]]
    value, sign = combine_gaps(groups_exchanged)
    assert value.item() == pytest.approx(9 / 11)
    assert sign == -1


def test_the_signed_gap_falls_along_its_gradient_and_the_sign_turns_it():
    problem = task(clients=1)
    w = problem.w0
    constraint = torch.tensor([0.0, 1.0]).double()
    ones = torch.ones(160).double()
    pool = Batch((*people(160), ones), ones / 160)
    step = problem.gradient(w, pool, constraint)
    gap_at_start = problem.losses(w, pool)[1]
    gap_at_end = problem.losses(w - 0.05 * step, pool)[1]
    assert gap_at_end < gap_at_start
    of_client = task(clients=1, sign="client")
    assert of_client.losses(w, pool)[1] == gap_at_start.abs()
    turned = of_client.gradient(w, pool, constraint)
    assert torch.equal(turned, gap_at_start.sign() * step)


def test_statistics_count_real_rows_only_and_minibatches_stand_for_their_client():
    problem = task(alpha=0.7)
    assert len(set(problem.sizes)) > 1
    data, weight = problem.all_clients()
    for j, size in enumerate(problem.sizes):
        client = Batch(tuple(x[j] for x in data), weight[j])
        _, men, _, women = problem.pooled.statistics(problem.w0, client)
        group = problem.data[2][real_rows(problem, j)]
        assert men.item() == pytest.approx(float(group.sum()))
        assert (men + women).item() == pytest.approx(size)
        few_rows = real_rows(problem, j)[:5]
        fifths = torch.full((5,), 0.2).double()
        batch = Batch(tuple(x[few_rows] for x in problem.data), fifths)
        _, men, _, women = problem.pooled.statistics(problem.w0, batch)
        assert (men + women).item() == pytest.approx(size)


def one_group_client():
    """Four clients, the first of whom has women only."""
    problem = task()
    women = (problem.data[2] == 0).nonzero().squeeze(1)
    rows = problem.rows.clone()
    rows[0] = women[torch.arange(rows.shape[1]) % len(women)]
    return replace(problem, rows=rows)


@pytest.mark.parametrize("participants", [[0], [0, 2], [0, 1, 2, 3]])
def test_a_client_without_a_group_gives_no_nan(participants):
    problem = one_group_client()
    count = len(participants)
    method = fl.FedSGM(
        0.5,
        local_steps=3,
        participants=count,
        tolerance=0.001,
        batch_size=3,
    )
    draw = method.draw(problem, seeded(0, "rounds"))
    chosen = draw._replace(participants=torch.tensor(participants))
    state, info = method.round(fl.Vectorized(problem), method.init(problem), chosen)
    assert torch.isfinite(state.w).all()
    assert torch.isfinite(info["g_hat"])
    assert (info["g_hat"] == 0) == (participants == [0])
    for value in problem.metrics(state.w, problem).values():
        assert torch.isfinite(value)


def decided(problem):
    """A model whose decisions differ."""
    w = 3 * problem.w0
    w[-1] -= network(w, problem.heldout[0], SIZES).median()
    return w


def test_metrics_of_heldout_rows_are_those_of_fairlearn():
    problem = task()
    w = decided(problem)
    metrics = problem.metrics(w, problem)
    X, y, group = (x.numpy() for x in problem.heldout)
    p = outputs(w, torch.from_numpy(X)).numpy()
    decisions = (p > 0.5).astype(int)
    decision_gap = demographic_parity_difference(y, decisions, sensitive_features=group)
    assert decision_gap > 0.01
    assert metrics["test_decision_gap"].item() == pytest.approx(decision_gap, abs=1e-12)
    means = MetricFrame(
        metrics=lambda _, predicted: float(np.mean(predicted)),
        y_true=y,
        y_pred=p,
        sensitive_features=group,
    )
    assert metrics["test_gap"].item() == pytest.approx(means.difference(), abs=1e-12)
    assert metrics["test_accuracy"].item() == pytest.approx((decisions == y).mean())


def test_metrics_of_training_rows_are_those_by_hand():
    problem = task()
    w = decided(problem)
    metrics = problem.metrics(w, problem)
    X, y, group, _ = problem.data
    p = outputs(w, X)
    assert metrics["f"].item() == pytest.approx(float(entropy(p, y)))
    assert metrics["g"].item() == pytest.approx(abs(float(gap(p, group))))
    rows = [real_rows(problem, j) for j in range(4)]
    entropies = [float(entropy(p[r], y[r])) for r in rows]
    assert metrics["f_clients"].item() == pytest.approx(sum(entropies) / 4)
    assert metrics["f_clients"].item() == pytest.approx(float(problem.mean_losses(w)[0]))
    assert abs(metrics["f_clients"] - metrics["f"]) > 1e-4
