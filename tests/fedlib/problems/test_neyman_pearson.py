"""The Neyman-Pearson problem: values, splits, closed forms, and what bad data get."""

import pytest
import torch

from fedlib import data
from fedlib.core.problem import Batch
from fedlib.problems import neyman_pearson, quadratics
from tests.helpers.expect import close, refuses
from tests.helpers.problems import batches, np_problem
from tests.helpers.randoms import generator

CLEAN = data.breast_cancer()
X = CLEAN.X
Y = CLEAN.y
PROBLEM = np_problem()


def build(X=X, y=Y, clients=10, **options):
    return neyman_pearson(X, y, clients=clients, **options)


STUDIES = [(np_problem(clients=10, fraction=1.0), 56, 21), (PROBLEM, 22, 8)]


@pytest.mark.parametrize(("problem", "size", "ones"), STUDIES)
def test_the_papers_splits(problem, size, ones):
    y = problem.data[1]
    assert set(problem.sizes) == {size}
    assert {int(y[rows].sum()) for rows in problem.rows} == {ones}
    assert len(problem.rows.unique()) == size * problem.num_clients


def test_the_other_rows_are_held_out():
    assert len(PROBLEM.heldout[1]) == 113


def test_features_have_the_training_rows_statistics():
    features = PROBLEM.data[0]
    close(features.mean(0), torch.zeros(30).double(), 1e-10)
    close(features.std(0, correction=0), torch.ones(30).double(), 1e-6)


@pytest.mark.parametrize("label", [0, 1])
def test_losses_are_the_means_over_the_two_classes(label):
    w = torch.linspace(-1, 1, 30).double()
    for client in batches(PROBLEM):
        features, y, _ = client.data
        z = features @ w
        phi = torch.log1p(torch.exp(z)) - y * z
        close(PROBLEM.losses(w, client)[label], phi[y == label].mean())


def test_a_minibatch_is_unbiased_even_if_a_class_is_missing_in_it():
    w = torch.full((30,), 0.1).double()
    client = batches(PROBLEM)[3]
    quarter = torch.full((4,), 0.25).double()
    losses = []
    for rows in torch.randint(22, (4000, 4), generator=generator()):
        batch = Batch(tuple(x[rows] for x in client.data), quarter)
        losses.append(PROBLEM.losses(w, batch))
    sampled = torch.stack(losses)
    error = (sampled.mean(0) - PROBLEM.losses(w, client)).abs()
    assert (error < 4 * sampled.std(0) / 4000**0.5).all()


def test_metrics_are_the_exact_means_over_clients_and_heldout_rates():
    w = torch.full((30,), 0.1).double()
    metrics = PROBLEM.metrics(w, PROBLEM)
    f, g = PROBLEM.mean_losses(w)
    close(metrics["f"], f)
    close(metrics["g"], g)
    features, y = PROBLEM.heldout
    flagged = (features @ w > 0).double()
    close(metrics["miss"], 1 - flagged[y == 1].mean())
    close(metrics["false_alarm"], flagged[y == 0].mean())


def test_options():
    assert build(bias=True).dim == 31
    assert build(standardize=False).data[0].max() > 1000
    assert build(alpha=2.0).num_clients == 10
    rows = build(seed=1).rows
    assert torch.equal(build(seed=1).rows, rows)
    assert not torch.equal(build(seed=2).rows, rows)


REFUSED = [
    ("neyman_pearson: y must *recode", {"y": Y * 2}),
    ("client * must have rows of class", {"alpha": 0.01, "clients": 20}),
    ("y must be a tensor of whole numbers of shape [R], got float32 [569]", {"y": Y.float()}),
    ("neyman_pearson: X must not be empty", {"X": X[:, :0]}),
    ("X must be a tensor of real numbers", {"X": X + 0j}),
]


@pytest.mark.parametrize(("words", "options"), REFUSED)
def test_bad_data_are_refused(words, options):
    refuses(words, build, **options)


A = torch.tensor([[3.0, 0.0], [5.0, 0.0]]).double()
B = torch.tensor([[0.0, 1.0], [0.0, -1.0]]).double()


@pytest.mark.parametrize(("level", "optimum"), [(2.0, [2.0, 0.0]), (100.0, [4.0, 0.0])])
def test_the_quadratics_optimum_is_the_nearest_feasible_point(level, optimum):
    problem = quadratics(A, B, level=level)
    w = torch.tensor(optimum).double()
    close(problem.heldout[0], w, 1e-6)
    metrics = problem.metrics(w, problem)
    close(metrics["f"], torch.zeros(()).double())
    assert metrics["g"] <= 1e-12


def test_quadratics_refuse_other_shapes_and_levels():
    refuses("quadratics: level must", quadratics, A, B, level=0.0)
    refuses(
        "b must be [2, 2] as a is",
        quadratics,
        A,
        B[:1],
        level=1.0,
    )
