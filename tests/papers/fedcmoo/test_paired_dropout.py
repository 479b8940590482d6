"""Dropout as a function of model and rows: fair, fresh coins, and the network that uses them."""

import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

from papers.fedcmoo import networks
from papers.fedcmoo.data.pairs import MNIST_SCALE
from papers.fedcmoo.problems.paired_digits import coins, dropped, paired_digits
from tests.helpers.composite import random_pairs
from tests.helpers.expect import near
from tests.helpers.problems import batches
from tests.helpers.randoms import numbers

PAIRS = random_pairs(60)
MODEL = numbers(1000)


def test_coins_are_fair_and_independent_of_one_another():
    heads = coins(MODEL, PAIRS.X, 3, 50)
    assert heads.shape == (60, 3, 50)
    assert {*heads.unique().tolist()} == {0, 1}
    signs = 2 * heads.flatten(1).double() - 1
    assert abs(float(signs.mean())) < 4 * signs.numel() ** -0.5
    for values in (signs, signs.T):
        products = values @ values.T / values.shape[1]
        off = products[~torch.eye(len(products), dtype=torch.bool)]
        near(float(off.std()), values.shape[1] ** -0.5, rel=0.1)


@pytest.mark.parametrize(
    ("w", "pictures"),
    [(MODEL + 1e-5, PAIRS.X), (MODEL, PAIRS.X.flip(0))],
    ids=["the model has moved", "other pictures"],
)
def test_coins_fall_anew(w, pictures):
    heads = coins(MODEL, PAIRS.X, 3, 50)
    equal = heads == coins(w, pictures, 3, 50)
    near(float(equal.double().mean()), 0.5, abs=0.03)


@pytest.fixture(scope="module")
def plain():
    return paired_digits(PAIRS, PAIRS, clients=4, evaluate=10)


def test_the_losses_are_those_of_the_network_with_these_units_off(plain):
    problem = dropped(plain, MNIST_SCALE)
    assert problem.config["dropout"] == 0.5
    rows = problem.rows[0]
    pictures = PAIRS.X[rows]
    w = problem.w0
    keep = 2 * coins(w, pictures, 3, 50).float()
    module = networks.pair_lenet()
    torch.nn.utils.vector_to_parameters(w, module.parameters())
    code = module.encoder(MNIST_SCALE(pictures)) * keep[:, 0]
    expected = []
    for k, decoder in enumerate(module.decoders):
        hidden = torch.relu(decoder[0](code)) * keep[:, k + 1]
        expected.append(cross_entropy(decoder[2](hidden), PAIRS.y[rows, k]))
    assert_close(problem.losses(w, batches(problem)[0]), torch.stack(expected))


def test_metrics_are_without_dropout(plain):
    problem = dropped(plain, MNIST_SCALE)
    w = problem.w0
    assert_close(problem.metrics(w, problem), plain.metrics(w, plain))
