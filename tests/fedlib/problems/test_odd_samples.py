"""What `classifier` and `fairness` refuse, in one sentence that names the argument."""

import pytest
import torch

from fedlib import problems
from fedlib.problems.classification import Samples, linear_model
from fedlib.problems.fairness import Rows
from tests.helpers.expect import refuses

CLASSES = 3


@pytest.fixture
def samples():
    rng = torch.Generator().manual_seed(0)
    X = torch.randn(12, 4, generator=rng)
    y = torch.arange(12) % CLASSES
    return Samples(X, y)


def made(train, test, rows=None):
    """The classifier of two clients with six rows each."""
    if rows is None:
        rows = torch.arange(12).reshape(2, 6)
    return problems.classifier(train, test, rows, linear_model(4, CLASSES))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X, y + 1), "{}.y must lie in 0..2*3 classes*got [1, 3]"),
        (lambda X, y: (X, y - 1), "{}.y must lie in 0..2"),
        (lambda X, y: (X, y > 0), "{}.y must be one whole number*use y.long"),
        (lambda X, y: (X, y.float()), "{}.y must be one whole number"),
        (lambda X, y: (X, y[:, None]), "{}.y must be one whole number"),
        (lambda X, y: (X, y[:5]), "y must have a label for each of the 12 rows"),
        (lambda X, y: (X.numpy(), y), "{}.X must be a tensor of real numbers"),
        (lambda X, y: (X.to(torch.complex64), y), "{}.X must be a tensor of real numbers"),
        (lambda X, y: (X.to_sparse(), y), "{}.X must be dense"),
        (lambda X, y: (X.clone().requires_grad_(), y), "{}.X must have no gradient"),
        (lambda X, y: (X / 0, y), "X must be finite"),
        (lambda X, y: (X[:0], y[:0]), "X must not be empty"),
        (lambda X, y: (X[:, :3], y), "test.X must have rows of shape"),
        (lambda X, y: (X.to(torch.uint8), y), "test.X must be bytes where train.X is"),
    ],
)
def test_odd_samples_are_refused(samples, change, message):
    for name in ("train", "test"):
        both = {"train": samples, "test": samples}
        both[name] = Samples(*change(*samples))
        refuses(message.format(name), made, **both)


def test_inputs_that_the_model_does_not_take_are_refused(samples):
    narrow = Samples(samples.X[:, :3], samples.y)
    refuses("train.X must have rows that the model takes", made, narrow, narrow)


def test_a_client_without_rows_is_refused(samples):
    refuses("rows must give each client a row", made, samples, samples, torch.zeros(2, 0).long())
    refuses("rows must give each client a row", made, samples, samples, torch.zeros(0, 6).long())


@pytest.fixture
def people(samples):
    labels = samples.y.clamp(max=1).float()
    group = (torch.arange(12) % 2).float()
    return Rows(samples.X, labels, group)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y, a: (X, y + 1, a), "{}.y must be 0 or 1"),
        (lambda X, y, a: (X, y[:, None], a), "{}.y must be a tensor of*shape [12]"),
        (lambda X, y, a: (X, y[:5], a), "{}.y must be a tensor of*shape [12]"),
        (lambda X, y, a: (X, y, a / 2), "{}.group must be 0 or 1"),
        (lambda X, y, a: (X, y, 0 * a), "{}.group must hold both groups, got [0.0]"),
        (lambda X, y, a: (X.double(), y, a), "{}.*must be torch.float"),
        (lambda X, y, a: (X[:0], y[:0], a[:0]), "{}.X must not be empty"),
        (lambda X, y, a: (X.clone().requires_grad_(), y, a), "{}.X must have no gradient"),
    ],
)
def test_odd_people_are_refused(people, change, message):
    for name in ("train", "test"):
        both = {"train": people, "test": people}
        both[name] = Rows(*change(*people))
        refuses(message.format(name), problems.fairness, **both, clients=2)
