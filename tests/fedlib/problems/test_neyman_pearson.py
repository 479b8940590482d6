"""The Neyman-Pearson problem: values, splits, closed forms, and what bad data get."""

import pytest
import torch

from fedlib import data
from fedlib.core.problem import Batch
from fedlib.problems import neyman_pearson, quadratics
from tests.helpers import plain
from tests.helpers.expect import close, refuses
from tests.helpers.problems import np_problem

CLEAN = data.breast_cancer()


def build(X=CLEAN.X, y=CLEAN.y, **options):
    options.setdefault("clients", 10)
    return neyman_pearson(X, y, **options)


def test_the_papers_splits():
    w_study = np_problem(clients=10, fraction=1.0)
    f_study = np_problem()
    for problem, size, ones in ((w_study, 56, 21), (f_study, 22, 8)):
        y = problem.data[1]
        assert problem.sizes == (size,) * problem.num_clients
        assert [int(y[r].sum()) for r in problem.rows] == [ones] * problem.num_clients
        assert len(set(problem.rows.flatten().tolist())) == size * problem.num_clients
    assert len(f_study.heldout[1]) == 113
    assert w_study.dim == 30


def test_features_have_the_training_rows_statistics():
    X = np_problem().data[0]
    close(X.mean(0), torch.zeros(30).double(), 1e-10)
    torch.testing.assert_close(X.std(0, correction=0), torch.ones(30).double())


def test_losses_are_the_means_over_the_two_classes():
    problem = np_problem()
    w = torch.linspace(-1, 1, 30).double()
    batch = problem.all_clients()
    for j in (0, 7, 19):
        client = Batch(tuple(x[j] for x in batch.data), batch.weight[j])
        X, y, shares = client.data
        z = X @ w
        phi = torch.log1p(torch.exp(z)) - y * z
        expected = torch.stack([phi[y == 0].mean(), phi[y == 1].mean()])
        close(problem.losses(w, client), expected)
        for c in (0, 1):
            e = torch.eye(2).double()[c]
            close(problem.gradient(w, client, e), plain.gradient(w, X, y, shares, c))


def test_a_minibatch_is_unbiased_even_if_a_class_is_missing_in_it():
    problem = np_problem()
    w = torch.full((30,), 0.1).double()
    client = problem.rows_of(torch.tensor([3]))
    full = problem.losses(w, Batch(tuple(x[0] for x in client.data), client.weight[0]))
    rows = torch.randint(22, (20_000, 4), generator=torch.Generator().manual_seed(0))
    means = torch.stack(
        [
            problem.losses(
                w, Batch(tuple(x[0][r] for x in client.data), torch.full((4,), 0.25).double())
            )
            for r in rows[:4000]
        ]
    )
    error = means.std(0) / 4000**0.5
    assert ((means.mean(0) - full).abs() < 4 * error).all()


def test_metrics_are_the_exact_means_over_clients_and_heldout_rates():
    problem = np_problem()
    w = torch.full((30,), 0.1).double()
    values = problem.metrics(w, problem)
    f, g = problem.mean_losses(w)
    assert values["f"] == pytest.approx(float(f))
    assert values["g"] == pytest.approx(float(g))
    X, y = problem.heldout
    flagged = X @ w > 0
    assert values["miss"] == pytest.approx(float((~flagged[y == 1]).double().mean()))
    assert values["false_alarm"] == pytest.approx(float(flagged[y == 0].double().mean()))


def test_options():
    assert build(bias=True).dim == 31
    assert build(standardize=False).data[0].max() > 1000
    assert build(alpha=2.0).num_clients == 10
    assert build(seed=1).rows.tolist() != build(seed=2).rows.tolist()
    assert build(seed=1).rows.tolist() == build(seed=1).rows.tolist()


def test_labels_other_than_zero_and_one_are_refused():
    refuses("neyman_pearson: y must *recode", build, y=CLEAN.y * 2)


def test_a_client_without_a_class_is_refused():
    refuses("client * must have rows of class", build, alpha=0.01, clients=20)


def test_the_quadratics_optimum_is_the_nearest_feasible_point():
    a = torch.tensor([[3.0, 0.0], [5.0, 0.0]]).double()
    b = torch.tensor([[0.0, 1.0], [0.0, -1.0]]).double()
    problem = quadratics(a, b, level=2.0)
    (optimum,) = problem.heldout
    torch.testing.assert_close(optimum, torch.tensor([2.0, 0.0]).double())
    values = problem.metrics(optimum, problem)
    assert values["g"] == pytest.approx(0.0)
    assert values["f"] == pytest.approx(0.0)
    assert quadratics(a, b, level=100.0).heldout[0].tolist() == [4.0, 0.0]
    refuses("quadratics: level must", quadratics, a, b, level=0.0)
    refuses("b must be [2, 2] as a is", quadratics, a, b[:1], level=1.0)


def test_labels_and_features_of_other_kinds():
    X = torch.ones(6, 2)
    y = torch.tensor([0, 1] * 3)
    words = "neyman_pearson: y must be a tensor of whole numbers of shape [R], got float32 [6]."
    refuses(words, neyman_pearson, X, y.float(), clients=2)
    refuses("neyman_pearson: X must not be empty", neyman_pearson, X[:, :0], y, clients=2)
    refuses("X must be a tensor of real numbers", neyman_pearson, X + 0j, y, clients=2)
