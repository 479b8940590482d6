"""Problems with several tasks on pictures: pairs of digits, and forty attributes of a pair."""

import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from fedlib import FedCMOO, Loop, OneWay, Sequential, Vectorized, models
from fedlib.core.sampling import seeded
from papers.fedcmoo import networks
from papers.fedcmoo.problems.attributes import DIGITS, GROUPS, ITEMS, attributes, labelled
from papers.fedcmoo.problems.paired_digits import paired_digits
from tests.helpers.composite import random_pairs
from tests.helpers.expect import close, near
from tests.helpers.problems import batches
from tests.helpers.rounds import final_model

TRAIN = random_pairs(60, 0)
TEST = random_pairs(30, 1)


def predicted(pictures):
    """What the network of the start says of pictures of the first scale."""
    module = networks.pair_lenet(seeded(0, "split"))
    return module((pictures / 255 - 0.1307) / 0.3081).detach()


def test_losses_and_metrics_against_torch():
    problem = paired_digits(TRAIN, TEST, clients=4)
    assert (problem.dim, problem.num_objectives, problem.num_clients) == (34_635, 2, 4)
    assert problem.config["shared"] == 28_515
    assert len(problem.rows.flatten().unique()) == 60
    rows = problem.rows[2]
    outputs = predicted(TRAIN.X[rows])
    expected = [cross_entropy(outputs[:, k], TRAIN.y[rows, k]) for k in range(2)]
    losses = problem.losses(problem.w0, batches(problem)[2])
    close(losses, torch.stack(expected), 1e-5)
    values = problem.metrics(problem.w0, problem)
    outputs = predicted(TEST.X)
    for k in range(2):
        loss = cross_entropy(outputs[:, k], TEST.y[:, k])
        right = outputs[:, k].argmax(1) == TEST.y[:, k]
        near(float(values[f"loss_{k + 1}"]), float(loss), rel=1e-5)
        near(float(values[f"accuracy_{k + 1}"]), float(right.double().mean()))
    mean = (values["accuracy_1"] + values["accuracy_2"]) / 2
    near(float(values["accuracy"]), float(mean))


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
    outputs = predicted(TRAIN.X[rows])
    error = outputs[:, 0].softmax(-1) - torch.eye(10)[TRAIN.y[rows, 0]]
    squares = error.square()
    of_rows = squares.sum(-1).sqrt() if loss == "norm" else squares.mean(-1)
    first, second = problem.losses(problem.w0, batches(problem)[0])
    near(float(first), float(of_rows.mean()), rel=1e-4)
    expected = cross_entropy(outputs[:, 1], TRAIN.y[rows, 1])
    near(float(second), float(expected))


@pytest.mark.parametrize("engine", [Vectorized, Sequential, None])
def test_fedcmoo_runs_on_pairs(engine):
    """Convolutions under vmap, recorded, and in a loop."""
    problem = paired_digits(TRAIN, TEST, clients=4, evaluate=10)
    method = FedCMOO(
        0.1,
        2,
        2,
        batch_size=5,
        gram=OneWay(),
        shared=problem.config["shared"],
    )

    slow = final_model(method, problem, 2, engine=Loop)
    moved = (slow - problem.w0).norm()
    assert moved > 0.05
    model = final_model(method, problem, 2, engine=engine)
    assert (model - slow).norm() < 1e-5 * moved


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


def outputs_of(problem, table, rows):
    """What a network with a decoder for each attribute, or group of them, says of some rows."""
    groups = problem.num_objectives
    numbers = 2 if groups == 40 else 8
    module = networks.pair_lenet(decoders=groups, out=numbers, hidden=0)
    _, apply = models.ravel(module)
    return apply(problem.w0, table.scale(table.X[rows]))


def test_forty_tasks_against_torch():
    train = labelled(TRAIN)
    test = labelled(TEST)
    problem = attributes(train, test, clients=4)
    assert (problem.dim, problem.num_objectives) == (28_515 + 40 * 102, 40)
    rows = problem.rows[1]
    outputs = outputs_of(problem, train, rows)
    labels = train.a[rows].long()
    expected = [cross_entropy(outputs[:, k], labels[:, k]) for k in range(40)]
    losses = problem.losses(problem.w0, batches(problem)[1])
    close(losses, torch.stack(expected), 1e-6)
    values = problem.metrics(problem.w0, problem)
    chosen = outputs_of(problem, test, slice(None)).argmax(-1)
    right = (chosen == test.a).double().mean(0)
    near(float(values["accuracy_40"]), float(right[39]))
    near(float(values["accuracy"]), float(right.mean()), rel=1e-5)


def test_five_groups_against_torch():
    train = labelled(TRAIN)
    test = labelled(TEST)
    problem = attributes(train, test, groups=GROUPS, clients=4)
    assert (problem.dim, problem.num_objectives) == (28_515 + 5 * 408, 5)
    rows = problem.rows[1]
    outputs = outputs_of(problem, train, rows)
    expected = []
    for g, group in enumerate(GROUPS):
        labels = train.a[rows][:, list(group)].float()
        expected.append(binary_cross_entropy_with_logits(outputs[:, g], labels))
    losses = problem.losses(problem.w0, batches(problem)[1])
    close(losses, torch.stack(expected), 1e-6)
    values = problem.metrics(problem.w0, problem)
    outputs = outputs_of(problem, test, slice(None))
    labels = test.a[:, list(GROUPS[2])].bool()
    right = (outputs[:, 2] > 0) == labels
    near(float(values["accuracy_3"]), float(right.double().mean()), rel=1e-5)


# ---- real files -----------------------------------------------------------------------------
