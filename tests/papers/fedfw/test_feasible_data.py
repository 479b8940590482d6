"""The data of the FedFW experiments: generated, or real pictures dealt by labels."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

import fedlib as fl
from fedlib import data
from papers.fedfw.feasible_data import (
    constrained_pictures,
    constrained_synthetic,
    gaussian_labels,
)
from tests.helpers.expect import near
from tests.helpers.randoms import generator as rng

DOUBLE = torch.float64


@pytest.fixture(scope="module")
def tables():
    table = data.digits()
    return [replace(table, X=table.X[a:b], y=table.y[a:b]) for a, b in ((0, 1200), (1200, 1797))]


def pictures(tables, **options):
    options = {"data": "digits", "dtype": DOUBLE, **options}
    return constrained_pictures(*tables, **options)


def test_sizes_of_generated_clients():
    X, y, sizes = gaussian_labels(10, rng())
    assert all(n % 5 == 0 and n >= 250 for n in sizes)
    assert max(sizes) > 3 * min(sizes)
    assert X.shape == (sum(sizes), 60)
    assert len(y) == sum(sizes)
    assert gaussian_labels(3, rng(), most=100).sizes == (100,) * 3


def test_generated_rows_have_the_stated_means_and_variances():
    X, _, sizes = gaussian_labels(40, rng())
    long = [rows for rows in X.split([*sizes]) if len(rows) > 2000]
    means = torch.stack([rows.mean(0) for rows in long])
    centred = torch.cat([rows - rows.mean(0) for rows in long])
    assert_close(centred.var(0), torch.arange(1, 61) ** -1.2, rtol=0.1, atol=0)
    assert means.std(1).max() < 0.05 < means[:, 0].std()  # v_u = B_u (1, ..., 1)


def test_both_readings_of_three_labels_a_client():
    iid = constrained_synthetic(most=250)
    words = constrained_synthetic(most=250, labels=3)
    code = constrained_synthetic(most=250, labels=3, paper_code=True)
    assert [problem.dim for problem in (iid, words, code)] == [610, 610, 183]
    assert iid.sizes == code.sizes == (188,) * 10
    for u in range(10):
        rows = words.rows[u, : words.sizes[u]]
        labels = {*words.data[1][rows].tolist()}
        assert labels <= {u, (u + 1) % 10, (u + 2) % 10}
    near(len(words.heldout[1]), 625, abs=10)
    assert {*code.data[1].tolist()} == {0, 1, 2}


def test_a_local_test_has_the_clients_mixture(tables):
    problem = constrained_pictures(
        tables[0], None, data="digits", labels=1, clients=2, local_test=0.25
    )
    assert set(problem.heldout[1].tolist()) == {0, 1}
    expected = sum(problem.sizes) / 3
    near(len(problem.heldout[1]), expected, abs=1)
    assert len(pictures(tables, test_rows=50).heldout[1]) == 50


def test_a_seed_deals_the_rows_and_a_network_starts_within_its_set():
    usual = constrained_synthetic(most=250)
    reseeded = constrained_synthetic(most=250, seed=3)
    assert torch.equal(usual.data[0], reseeded.data[0])
    assert not torch.equal(usual.rows, reseeded.rows)
    network = constrained_synthetic(most=100, model="mlp").within(fl.L1Ball(10.0))
    assert network.dim == 1430
    assert network.set.contains(network.w0)
