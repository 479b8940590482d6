"""Classification over convex sets: gradients, splits, generators, metrics."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from expect import refuses
from randoms import generator as rng

import fedlib as fl
from fedlib import data
from fedlib.data.split import holdout, label_windows, padded, random_equal
from fedlib.metrics import fw_gap, mean_gradient
from fedlib.models import picture_cnn
from fedlib.problems import classifier
from fedlib.problems.classification import Samples, linear_model, mlp_model
from papers.fedfw.feasible_data import constrained_pictures, constrained_synthetic
from papers.fedfw.gaussian_labels import gaussian_labels

DOUBLE = torch.float64


@pytest.fixture(scope="module")
def tables():
    table = data.digits()
    return [replace(table, X=table.X[a:b], y=table.y[a:b]) for a, b in ((0, 1200), (1200, 1797))]


def pictures(tables, **options):
    options = {"data": "digits", "dtype": DOUBLE, **options}
    return constrained_pictures(*tables, **options)


@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_the_closed_form_is_the_gradient(tables, model):
    problem = pictures(tables, model=model, labels=3, train_rows=300)
    general = replace(problem, gradient=None)
    w = problem.w0 + 0.1 * torch.randn(problem.dim, generator=rng(), dtype=DOUBLE)
    torch.testing.assert_close(mean_gradient(problem, w), mean_gradient(general, w))


def test_parameters_are_those_of_the_network_in_torch():
    g = rng()
    for model, module in (
        (linear_model(5, 3), torch.nn.Linear(5, 3)),
        (
            mlp_model(5, 4, 3, g),
            torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3)),
        ),
    ):
        w, apply = fl.models.ravel(module)
        X = torch.randn(7, 5, generator=g)
        torch.testing.assert_close(model.apply(w, X), apply(w, X))
        assert model.shapes == tuple(tuple(p.shape) for p in module.parameters())
        assert len(model.w0) == len(w)
    assert linear_model(784, 10).w0.shape == (7850,)
    assert not linear_model(784, 10).w0.any()
    assert mlp_model(60, 20, 10, g).w0.shape == (1430,)


def test_metrics_are_what_they_say(tables):
    train, test = tables
    problem = pictures(tables, train_rows=400).within(fl.L1Ball(5.0))
    w = fl.L1Ball(5.0).project(torch.randn(problem.dim, generator=rng(), dtype=DOUBLE))
    found = problem.metrics(w, problem)
    A, b = w[:640].view(10, 64), w[640:]
    scaled = (test.X.flatten(1).double() / 16 - 0.5) / 0.5
    right = ((scaled @ A.T + b).argmax(1) == test.y).double().mean()
    assert found["accuracy"] == pytest.approx(float(right))
    each = [
        torch.nn.functional.cross_entropy(problem.data[0][r] @ A.T + b, problem.data[1][r])
        for r in problem.rows
    ]
    assert found["loss"] == pytest.approx(float(sum(each) / 10))
    assert found["size"] == pytest.approx(float(w.abs().sum()) / 5)
    slope = mean_gradient(problem, w)
    assert found["gap"] == pytest.approx(float(slope @ w + 5 * slope.abs().max()))
    assert "gap" not in pictures(tables, train_rows=400).metrics(
        w, pictures(tables, train_rows=400)
    )
    bytes_of = (8 * (problem.data[0] + 1)).round().byte()
    assert set(map(tuple, bytes_of.tolist())) <= set(map(tuple, train.X.flatten(1).tolist()))


def test_many_pictures_stay_bytes_and_give_the_same(tables, monkeypatch):
    few = pictures(tables, train_rows=300).within(fl.Ball(5.0))
    monkeypatch.setattr("fedlib.problems.classification.LARGE", 100)
    many = pictures(tables, train_rows=300).within(fl.Ball(5.0))
    assert (few.data[0].dtype, many.data[0].dtype) == (DOUBLE, torch.uint8)
    assert few.config == many.config
    w = 0.1 * torch.randn(few.dim, generator=rng(), dtype=DOUBLE)
    for name, value in few.metrics(w, few).items():
        assert torch.equal(value, many.metrics(w, many)[name])


def test_measured_rows_are_the_first_of_every_client(tables):
    problem = pictures(tables, labels=3, measured=20).within(fl.Ball(5.0))
    assert min(problem.sizes) < max(problem.sizes)
    part = replace(problem, rows=problem.rows[:, :20], sizes=(20,) * 10)
    w = 0.1 * torch.randn(problem.dim, generator=rng(), dtype=DOUBLE)
    found = problem.metrics(w, problem)
    assert found["loss"] == pytest.approx(float(part.mean_losses(w)[0]))
    assert found["loss"] != pytest.approx(float(problem.mean_losses(w)[0]))
    assert found["gap"] == pytest.approx(float(fw_gap(part, w)))
    refuses("measured must lie in 1", pictures, tables, labels=3, measured=500)


def test_seeds_run_together_give_what_they_give_alone(tables):
    def problem(seed):
        return pictures(tables, labels=3, seed=seed, train_rows=305).within(fl.L1Ball(10.0))

    method = fl.FedFW(1e-3, participation=0.5)
    both = fl.run(method, problem, rounds=12, seeds=[0, 1], progress=False)
    for place, seed in enumerate((0, 1)):
        alone = fl.run(method, problem, rounds=12, seeds=[seed], progress=False)
        for name, values in alone.metrics.items():
            np.testing.assert_allclose(values[0], both.metrics[name][place], atol=1e-9)
    assert problem(0).sizes != problem(1).sizes


def test_methods_learn_the_digits(tables):
    problem = pictures(tables, dtype=torch.float32).within(fl.Ball(10.0))
    for method in (fl.FedFW(1e-2), fl.FedFWPlus(1e-2), fl.FedFWSto(1e-3, 32), fl.FedDR(0.1, 2)):
        trace = fl.run(method, problem, rounds=60, evaluate_every=60, progress=False)
        assert trace.metrics["accuracy"][0, 0] < 0.2 < 0.8 < trace.metrics["accuracy"][0, 1]
        assert trace.metrics["size"][0, 1] <= 1 + 1e-6
        assert trace.metrics["gap"].min() >= 0


def test_a_cnn_over_clients(tables):
    small = [
        replace(t, X=torch.nn.functional.pad(t.X, (10, 10, 10, 10))[:60], y=t.y[:60])
        for t in tables
    ]
    problem = pictures(small, model="cnn", clients=3, dtype=torch.float32, measured=5)
    assert problem.dim == 184_586
    shapes = problem.config["shapes"]
    assert shapes[0] == [32, 1, 5, 5]
    bounded = problem.within(fl.Blocks.of_shapes(shapes, fl.L1Ball(10.0)))
    trace = fl.run(fl.FedFW(1e-3), bounded, rounds=1, progress=False)
    assert trace.info["bits_up"][0, 0] == 3 * sum(
        int(np.ceil(np.log2(np.prod(s)))) + 1 for s in shapes
    )
    assert np.isfinite(trace.metrics["loss"]).all()
    whole = replace(problem, sequential_clients=False)
    torch.testing.assert_close(whole.mean_losses(problem.w0)[0], problem.mean_losses(problem.w0)[0])
    torch.testing.assert_close(
        mean_gradient(whole, problem.w0), mean_gradient(problem, problem.w0), atol=1e-6, rtol=1e-4
    )


def test_the_cnn_starts_from_its_generator_alone():
    before = torch.get_rng_state()
    a, b = (picture_cnn(rng(3)) for _ in range(2))
    assert torch.equal(before, torch.get_rng_state())
    for p, q in zip(a.parameters(), b.parameters(), strict=True):
        assert torch.equal(p, q)
    assert a(torch.zeros(2, 1, 28, 28)).shape == (2, 10)
    color = picture_cnn(rng(), channels=3, side=32)
    assert color(torch.zeros(2, 3, 32, 32)).shape == (2, 10)
    refuses("picture_cnn: side must be at least 16", picture_cnn, rng(), side=8)


def test_label_windows():
    labels = torch.arange(10).repeat(37)[torch.randperm(370, generator=rng())]
    rows, sizes = label_windows(labels, 10, 3, rng())
    real = [own[:size] for own, size in zip(rows, sizes, strict=True)]
    assert sorted(torch.cat(real).tolist()) == list(range(370))  # every row, none twice
    for u, own in enumerate(real):
        assert set(labels[own].tolist()) == {(u + j) % 10 for j in range(3)}
        assert labels[own].bincount(minlength=10).max() <= 13
        assert labels[own].diff().abs().sum() > 2 * 9  # in random order
    few, sizes = label_windows(labels, 4, 2, rng())
    assert len(few) == 4
    assert sum(sizes) == 5 * 37  # labels 0 to 4
    _, sizes = label_windows(labels, 23, 10, rng())
    assert sum(sizes) == 370
    with pytest.raises(ValueError, match=r"k must lie in 1..10 \(the number of classes\), got 11"):
        label_windows(labels, 4, 11, rng())
    with pytest.raises(ValueError, match="labels must have at least 40 rows of class 0"):
        label_windows(labels, 40, 10, rng())


def test_random_equal_and_holdout():
    rows = random_equal(103, 10, rng())
    assert rows.shape == (10, 10)
    assert len(set(rows.flatten().tolist())) == 100
    assert not torch.equal(rows, random_equal(103, 10, rng(1)))
    table, sizes = padded([torch.arange(8), torch.arange(8, 11)])
    stay, left, test = holdout(table, sizes, 0.25, rng())
    assert left == (6, 2)
    assert len(test) == 3
    assert sorted([*stay[0].tolist(), *stay[1, :2].tolist(), *test.tolist()]) == list(range(11))
    refuses("random_equal: clients must lie in 1", random_equal, 3, 4, rng())
    with pytest.raises(ValueError, match=r"holdout: sizes must lie in 2\.\.1"):
        holdout(torch.zeros(1, 1).long(), (1,), 0.5, rng())


def test_the_generator():
    X, y, sizes = gaussian_labels(10, rng())
    assert all(n % 5 == 0 and n >= 250 for n in sizes)
    assert max(sizes) > 3 * min(sizes)
    assert len(X) == len(y) == sum(sizes)
    assert X.shape[1] == 60
    X, y, sizes = gaussian_labels(4, rng(), samples=4000)
    assert sizes == (4000,) * 4
    centred = torch.stack([own - own.mean(0) for own in X.split(4000)]).flatten(0, 1)
    wanted = torch.arange(1, 61) ** -1.2
    torch.testing.assert_close(centred.var(0), wanted, rtol=0.1, atol=0)
    means = torch.stack([own.mean(0) for own in X.split(4000)])
    assert means.std(1).max() < 0.05 < means[:, 0].std()  # v_u = B_u (1, ..., 1)
    assert gaussian_labels(3, rng(), samples=500, most=100).sizes == (100,) * 3
    own = gaussian_labels(4, rng(), samples=2000, own_map=True)
    assert torch.stack([part.mean(0) for part in own.X.split(2000)]).std(1).min() > 0.5
    refuses("gaussian_labels: classes must be at least 1", gaussian_labels, 2, rng(), classes=0)


def test_both_readings_of_three_labels_a_client():
    iid, words, code = (
        constrained_synthetic(samples=400, **options)
        for options in ({}, {"labels": 3}, {"labels": 3, "paper_code": True})
    )
    assert [p.dim for p in (iid, words, code)] == [610, 610, 183]
    assert iid.sizes == code.sizes == (300,) * 10
    for u in range(10):
        own = words.rows[u, : words.sizes[u]]
        assert set(words.data[1][own].tolist()) <= {(u + j) % 10 for j in range(3)}
    assert len(words.heldout[1]) == pytest.approx(1000, abs=10)
    assert set(code.data[1].tolist()) == {0, 1, 2}
    assert torch.equal(iid.data[0], constrained_synthetic(samples=400, seed=3).data[0])
    assert not torch.equal(iid.rows, constrained_synthetic(samples=400, seed=3).rows)
    network = constrained_synthetic(samples=100, model="mlp").within(fl.L1Ball(10.0))
    assert network.dim == 1430
    assert network.set.contains(network.w0)
    trace = fl.run(fl.FedFW(1e-4), network, rounds=3, progress=False)
    assert np.isfinite(trace.metrics["gap"]).all()


def test_a_local_test_has_the_clients_mixture(tables):
    problem = constrained_pictures(
        tables[0], None, data="digits", labels=1, clients=2, local_test=0.25
    )
    assert set(problem.heldout[1].tolist()) == {0, 1}
    assert len(problem.heldout[1]) == pytest.approx(sum(problem.sizes) / 3, abs=1)
    assert len(pictures(tables, test_rows=50).heldout[1]) == 50


def test_refusals(tables):
    who = "constrained_pictures"
    refuses(f"{who}: model must be one of 'linear'", pictures, tables, model="svm")
    refuses(f"{who}: data must be one of 'digits'", pictures, tables, data="x")
    refuses(f"{who}: train_rows must lie in", pictures, tables, train_rows=9999)
    words = "test must be a Table, unless local_test is given, got None."
    refuses(f"{who}: {words}", constrained_pictures, tables[0], None, data="digits")
    refuses("constrained_synthetic: model must be one", constrained_synthetic, model="cnn")
    rest = Samples(torch.zeros(1, 3), torch.zeros(1).long()), torch.tensor([[0], [1]])
    words = "classifier: X must be finite, got 6 of 6 entries NaN"
    gaps = Samples(torch.full((2, 3), torch.nan), torch.zeros(2).long())
    refuses(words, classifier, gaps, *rest, linear_model(3, 2))
    words = "scale must be None for inputs that are no bytes, got (255.0, 0.5, 0.5)."
    whole = Samples(torch.zeros(2, 3), torch.zeros(2).long())
    options = {"scale": (255.0, 0.5, 0.5)}
    refuses(f"classifier: {words}", classifier, whole, *rest, linear_model(3, 2), **options)
