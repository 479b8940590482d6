"""What `classifier` and `fairness` refuse, in one sentence that names the argument."""

import pytest
import torch

from fedlib import problems
from fedlib.problems.classification import Samples, linear_model
from fedlib.problems.fairness import Rows
from tests.helpers.expect import refuses
from tests.helpers.randoms import generator

X = torch.randn(12, 4, generator=generator())
Y = torch.arange(12) % 3
GOOD = Samples(X, Y)


def made(train, test=GOOD, rows=torch.arange(12).view(2, 6)):  # noqa: B008
    """The classifier of two clients with six rows each."""
    return problems.classifier(train, test, rows, linear_model(4, 3))


CHANGED = [
    ("{}.y must lie in 0..2*3 classes*got [1, 3]", X, Y + 1),
    ("{}.y must lie in 0..2", X, Y - 1),
    ("{}.y must be one whole number*use y.long", X, Y > 0),
    ("{}.y must be one whole number", X, Y.float()),
    ("{}.y must be one whole number", X, Y[:, None]),
    ("y must have a label for each of the 12 rows", X, Y[:5]),
    ("{}.X must be a tensor of real numbers", X.numpy(), Y),
    ("{}.X must be a tensor of real numbers", X + 0j, Y),
    ("{}.X must be dense", X.to_sparse(), Y),
    ("{}.X must have no gradient", X.clone().requires_grad_(), Y),
    ("X must be finite", X / 0, Y),
    ("X must not be empty", X[:0], Y[:0]),
]


@pytest.mark.parametrize("name", ["train", "test"])
@pytest.mark.parametrize(("words", "X", "y"), CHANGED)
def test_odd_samples_are_refused(name, words, X, y):
    samples = {"train": GOOD, name: Samples(X, y)}
    refuses(words.format(name), made, **samples)


BETWEEN = [
    ("test.X must have rows of shape", (GOOD, Samples(X[:, :3], Y))),
    ("test.X must be bytes where train.X is", (GOOD, Samples(X.byte(), Y))),
    ("train.X must have rows that the model takes", [Samples(X[:, :3], Y)] * 2),
    ("rows must give each client a row", (GOOD, GOOD, torch.zeros(2, 0).long())),
    ("rows must give each client a row", (GOOD, GOOD, torch.zeros(0, 6).long())),
]


@pytest.mark.parametrize(("words", "arguments"), BETWEEN)
def test_samples_that_do_not_fit_each_other_are_refused(words, arguments):
    refuses(words, made, *arguments)


PEOPLE = Rows(X, Y.clamp(max=1).float(), torch.arange(12) % 2.0)
ODD_PEOPLE = [
    ("y must be 0 or 1", PEOPLE._replace(y=PEOPLE.y + 1)),
    ("y must be a tensor of*shape [12]", PEOPLE._replace(y=PEOPLE.y[:, None])),
    ("y must be a tensor of*shape [12]", PEOPLE._replace(y=PEOPLE.y[:5])),
    ("group must be 0 or 1", PEOPLE._replace(group=PEOPLE.group / 2)),
    ("group must hold both groups, got [0.0]", PEOPLE._replace(group=0 * PEOPLE.group)),
    ("*must be torch.float", PEOPLE._replace(X=X.double())),
    ("X must not be empty", Rows(*(x[:0] for x in PEOPLE))),
    ("X must have no gradient", PEOPLE._replace(X=X.clone().requires_grad_())),
]


@pytest.mark.parametrize("name", ["train", "test"])
@pytest.mark.parametrize(("words", "people"), ODD_PEOPLE)
def test_odd_people_are_refused(name, words, people):
    both = {"train": PEOPLE, "test": PEOPLE, name: people}
    refuses(f"{name}.{words}", problems.fairness, **both, clients=2)
