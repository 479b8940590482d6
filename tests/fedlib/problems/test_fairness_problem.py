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
    own = [combine_gaps(row.unsqueeze(0))[0] for row in answers]
    assert sum(own) / 2 == 0.5  # the mean of the clients' gaps
    assert combine_gaps(answers) == (0.0, 0.0)


def test_the_pooled_gap_counts_people_not_clients():
    answers = torch.tensor([[10.0, 10.0, 0.0, 10.0], [0.0, 1.0, 1.0, 1.0]])
    value, sign = combine_gaps(answers)
    assert value.item() == pytest.approx(10 / 11 - 1 / 11)
    assert sign == 1
    value, sign = combine_gaps(answers[:, [2, 3, 0, 1]])
    assert (value.item(), sign) == (pytest.approx(9 / 11), -1)


def test_the_signed_gap_falls_along_its_gradient_and_the_sign_turns_it():
    problem = task(clients=1)
    w, constraint = problem.w0, torch.tensor([0.0, 1.0]).double()
    pool = Batch((*people(160), torch.ones(160).double()), torch.full((160,), 1 / 160).double())
    step = problem.gradient(w, pool, constraint)
    before, after = (problem.losses(u, pool)[1] for u in (w, w - 0.05 * step))
    assert after < before
    own = task(clients=1, sign="client")
    value = own.losses(w, pool)[1]
    assert value == before.abs()
    assert torch.equal(own.gradient(w, pool, constraint), before.sign() * step)


def test_statistics_count_real_rows_only_and_minibatches_stand_for_their_client():
    problem = task(alpha=0.7)
    assert len(set(problem.sizes)) > 1
    whole = problem.all_clients()
    for j, size in enumerate(problem.sizes):
        own = Batch(tuple(x[j] for x in whole.data), whole.weight[j])
        four = problem.pooled.statistics(problem.w0, own)
        group = problem.data[2][real_rows(problem, j)]
        assert four[1].item() == pytest.approx(float(group.sum()))
        assert (four[1] + four[3]).item() == pytest.approx(size)
        some = real_rows(problem, j)[:5]
        batch = Batch(tuple(x[some] for x in problem.data), torch.full((5,), 0.2).double())
        four = problem.pooled.statistics(problem.w0, batch)
        assert (four[1] + four[3]).item() == pytest.approx(size)


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
    method = fl.FedSGM(
        lr=0.5, local_steps=3, participants=len(participants), tolerance=0.001, batch_size=3
    )
    draw = method.draw(problem, seeded(0, "rounds"))._replace(
        participants=torch.tensor(participants)
    )
    state, info = method.round(fl.Vectorized(problem), method.init(problem), draw)
    assert torch.isfinite(state.w).all()
    assert torch.isfinite(info["g_hat"])
    assert (info["g_hat"] == 0) == (participants == [0])
    assert torch.isfinite(torch.stack(list(problem.metrics(state.w, problem).values()))).all()


def test_metrics_are_those_of_fairlearn():
    problem = task()
    w = 3 * problem.w0
    w[-1] -= network(w, problem.heldout[0], SIZES).median()  # so that decisions differ
    found = problem.metrics(w, problem)
    X, y, group = (x.numpy() for x in problem.heldout)
    p = outputs(w, torch.from_numpy(X)).numpy()
    decisions = (p > 0.5).astype(int)
    apart = demographic_parity_difference(y, decisions, sensitive_features=group)
    assert found["test_decision_gap"].item() == pytest.approx(apart, abs=1e-12)
    assert apart > 0.01
    means = MetricFrame(
        metrics=lambda _, out: float(np.mean(out)), y_true=y, y_pred=p, sensitive_features=group
    )
    assert found["test_gap"].item() == pytest.approx(means.difference(), abs=1e-12)
    assert found["test_accuracy"].item() == pytest.approx((decisions == y).mean())
    X, y, group, _ = problem.data
    p = outputs(w, X)
    assert found["f"].item() == pytest.approx(float(entropy(p, y)))
    assert found["g"].item() == pytest.approx(abs(float(gap(p, group))))
    rows = [real_rows(problem, j) for j in range(4)]
    each = [float(entropy(p[r], y[r])) for r in rows]
    assert found["f_clients"].item() == pytest.approx(sum(each) / 4)
    assert found["f_clients"].item() == pytest.approx(float(problem.mean_losses(w)[0]))
    assert abs(found["f_clients"] - found["f"]) > 1e-4
