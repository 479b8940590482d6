"""Problems with several tasks on pictures: pairs of digits, and forty attributes of a pair."""

from dataclasses import replace

import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from fedlib import FedCMOO, Loop, OneWay, Sequential, Vectorized, models, run
from fedlib.core.sampling import seeded
from papers.fedcmoo import networks
from papers.fedcmoo.problems.attributes import DIGITS, GROUPS, ITEMS, attributes, labelled
from papers.fedcmoo.problems.paired_digits import paired_digits
from tests.helpers.composite import random_pairs
from tests.helpers.problems import batches

TRAIN = random_pairs(60, 0)
TEST = random_pairs(30, 1)


def test_losses_and_metrics_against_torch():
    problem = paired_digits(TRAIN, TEST, clients=4)
    assert (problem.dim, problem.num_objectives, problem.num_clients) == (34_635, 2, 4)
    assert problem.config["shared"] == 28_515
    rows = problem.rows[2]
    assert len(problem.rows.flatten().unique()) == 60
    module = networks.pair_lenet(seeded(0, "split"))
    outputs = module((TRAIN.X[rows] / 255 - 0.1307) / 0.3081).detach()
    expected = [cross_entropy(outputs[:, k], TRAIN.y[rows, k]) for k in range(2)]
    losses = problem.losses(problem.w0, batches(problem)[2])
    assert torch.allclose(losses, torch.stack(expected), atol=1e-5)
    values = problem.metrics(problem.w0, problem)
    outputs = module((TEST.X / 255 - 0.1307) / 0.3081).detach()
    for k in range(2):
        loss = cross_entropy(outputs[:, k], TEST.y[:, k])
        right = (outputs[:, k].argmax(1) == TEST.y[:, k]).double().mean()
        assert float(values[f"loss_{k + 1}"]) == pytest.approx(float(loss), rel=1e-5)
        assert float(values[f"accuracy_{k + 1}"]) == pytest.approx(float(right))
    mean = (values["accuracy_1"] + values["accuracy_2"]) / 2
    assert float(values["accuracy"]) == pytest.approx(float(mean))
    assert len(values) == 6


def test_copies_stay_with_their_client_and_keep_their_labels():
    problem = paired_digits(TRAIN, TEST, clients=4, copies=3)
    assert problem.rows.shape == (4, 45)
    assert problem.data[0].shape == (180, 1, 28, 28)
    for rows in problem.rows:
        assert torch.equal((rows % 60).view(3, 15), (rows[:15] % 60).expand(3, 15))
    assert torch.equal(problem.data[1][60:120], TRAIN.y)
    assert torch.equal(problem.heldout[0], TEST.X)  # test pictures are not turned


@pytest.mark.parametrize("loss", ["squared", "norm"])
def test_the_loss_of_the_first_task_may_be_another(loss):
    problem = paired_digits(TRAIN, TEST, clients=4, kinds=(loss, "nll"))
    rows = problem.rows[0]
    module = networks.pair_lenet(seeded(0, "split"))
    outputs = module((TRAIN.X[rows] / 255 - 0.1307) / 0.3081).detach()
    error = outputs[:, 0].softmax(-1) - torch.eye(10)[TRAIN.y[rows, 0]]
    losses = problem.losses(problem.w0, batches(problem)[0])
    squares = error.square()
    of_rows = squares.sum(-1).sqrt() if loss == "norm" else squares.mean(-1)
    expected = float(of_rows.mean())
    assert float(losses[0]) == pytest.approx(expected, rel=1e-4)
    expected = float(cross_entropy(outputs[:, 1], TRAIN.y[rows, 1]))
    assert float(losses[1]) == pytest.approx(expected)


def test_fedcmoo_runs_on_pairs():
    problem = paired_digits(TRAIN, TEST, clients=4, evaluate=10)
    method = FedCMOO(
        0.1,
        2,
        2,
        batch_size=5,
        gram=OneWay(),
        shared=problem.config["shared"],
    )
    fast = run(method, problem, rounds=2, engine=Vectorized).state.w.squeeze()
    slow = run(method, problem, rounds=2, engine=Loop).state.w.squeeze()
    moved = (slow - problem.w0).norm()
    assert moved > 0.05
    assert (fast - slow).norm() < 1e-5 * moved  # convolutions under vmap, recorded, and in a loop
    sequential = run(method, problem, rounds=2, engine=Sequential).state.w.squeeze()
    assert (sequential - slow).norm() < 1e-5 * moved
    as_the_problem_asks = run(method, problem, rounds=2).state.w.squeeze()
    assert torch.equal(as_the_problem_asks, sequential)


def test_pictures_that_no_client_has_are_measured_beside_the_test_pictures():
    further = replace(TEST, y=(TEST.y + 1) % 10)
    problem = paired_digits(TRAIN, TEST, clients=4, held=further)
    assert problem.config["held"] == len(TEST.y)
    metrics = problem.metrics(problem.w0, problem)
    alone = paired_digits(TRAIN, further, clients=4)
    expected = alone.metrics(problem.w0, alone)
    assert len(metrics) == 2 * len(expected)
    for name, value in expected.items():
        assert torch.equal(metrics[f"held_{name}"], value)
    assert float(metrics["loss"]) != float(metrics["held_loss"])


# ---- attributes -----------------------------------------------------------------------------


def test_labelled_looks_up_both_classes():
    table = labelled(TRAIN)
    assert table.a.shape == (60, 40)
    for row in (0, 17):
        digit, item = (str(int(c)) for c in TRAIN.y[row])
        expected = [digit in has for has in DIGITS.values()]
        expected += [item in has for has in ITEMS.values()]
        assert table.a[row].bool().tolist() == expected
    assert torch.equal(table.cells, TRAIN.cells())


def test_forty_tasks_against_torch():
    train = labelled(TRAIN)
    test = labelled(TEST)
    problem = attributes(train, test, clients=4)
    assert (problem.dim, problem.num_objectives) == (28_515 + 40 * 102, 40)
    rows = problem.rows[1]
    _, apply = models.ravel(networks.pair_lenet(decoders=40, out=2, hidden=0))
    outputs = apply(problem.w0, train.scale(train.X[rows]))
    expected = [cross_entropy(outputs[:, k], train.a[rows, k].long()) for k in range(40)]
    losses = problem.losses(problem.w0, batches(problem)[1])
    assert torch.allclose(losses, torch.stack(expected), atol=1e-6)
    values = problem.metrics(problem.w0, problem)
    assert len(values) == 82
    outputs = apply(problem.w0, test.scale(test.X))
    right = (outputs.argmax(-1) == test.a).double().mean(0)
    assert float(values["accuracy_40"]) == pytest.approx(float(right[39]))
    assert float(values["accuracy"]) == pytest.approx(float(right.mean()), rel=1e-5)


def test_five_groups_against_torch():
    train = labelled(TRAIN)
    test = labelled(TEST)
    problem = attributes(train, test, groups=GROUPS, clients=4)
    assert (problem.dim, problem.num_objectives) == (28_515 + 5 * 408, 5)
    rows = problem.rows[1]
    _, apply = models.ravel(networks.pair_lenet(decoders=5, out=8, hidden=0))
    outputs = apply(problem.w0, train.scale(train.X[rows]))
    expected = []
    for g, group in enumerate(GROUPS):
        labels = train.a[rows][:, list(group)].float()
        expected.append(binary_cross_entropy_with_logits(outputs[:, g], labels))
    losses = problem.losses(problem.w0, batches(problem)[1])
    assert torch.allclose(losses, torch.stack(expected), atol=1e-6)
    values = problem.metrics(problem.w0, problem)
    outputs = apply(problem.w0, test.scale(test.X)).sigmoid()
    right = ((outputs[:, 2] > 0.5) == test.a[:, list(GROUPS[2])].bool()).double().mean()
    assert float(values["accuracy_3"]) == pytest.approx(float(right), rel=1e-5)


# ---- real files -----------------------------------------------------------------------------
