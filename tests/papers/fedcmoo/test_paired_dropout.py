"""Dropout as a function of model and rows: fair, fresh coins, and the network that uses them."""

import torch
from torch.testing import assert_close

from fedlib.core.problem import Batch
from papers.fedcmoo import networks
from papers.fedcmoo.data.pairs import MNIST_SCALE, Pairs
from papers.fedcmoo.problems.paired_digits import coins, dropped, paired_digits
from tests.helpers.expect import near

RNG = torch.Generator().manual_seed(0)
X = torch.randint(256, (60, 1, 28, 28), generator=RNG, dtype=torch.uint8)
PAIRS = Pairs(
    X,
    torch.randint(10, (60, 2), generator=RNG),
    ("a", "b"),
    MNIST_SCALE,
)
PROBLEM = paired_digits(
    PAIRS,
    PAIRS,
    clients=4,
    evaluate=10,
)


def batch(rows):
    return Batch((X[rows], PAIRS.y[rows]), torch.full((len(rows),), 1 / len(rows)))


def test_coins_are_fair_and_independent_of_one_another():
    w = torch.randn(1000, generator=RNG)
    heads = coins(w, X, 3, 50)
    assert heads.shape == (60, 3, 50)
    assert {*heads.unique().tolist()} == {0, 1}
    signs = 2 * heads.flatten(1).double() - 1
    assert abs(float(signs.mean())) < 4 * signs.numel() ** -0.5
    for values in (signs, signs.T):
        products = values @ values.T / values.shape[1]
        off = products[~torch.eye(len(products), dtype=torch.bool)]
        near(float(off.std()), values.shape[1] ** -0.5, rel=0.1)


def test_coins_fall_anew_when_the_model_has_moved_and_for_another_picture():
    w = torch.randn(1000, generator=RNG)
    heads = coins(w, X, 3, 50)
    for changed in (coins(w + 1e-5, X, 3, 50), coins(w, X.flip(0), 3, 50)):
        equal = (heads == changed).double().mean()
        near(float(equal), 0.5, abs=0.03)


def test_the_losses_are_those_of_the_network_with_these_units_off():
    problem = dropped(PROBLEM, MNIST_SCALE)
    rows = torch.arange(7)
    w = problem.w0
    keep = coins(w, X[rows], 3, 50).float()
    module = networks.pair_lenet(torch.Generator().manual_seed(9))
    torch.nn.utils.vector_to_parameters(w, module.parameters())
    code = module.encoder(MNIST_SCALE(X[rows])) * keep[:, 0] * 2
    expected = []
    for k, decoder in enumerate(module.decoders):
        inner = torch.relu(decoder[0](code)) * keep[:, k + 1] * 2
        outputs = decoder[2](inner)
        expected.append(torch.nn.functional.cross_entropy(outputs, PAIRS.y[rows, k]))
    assert_close(problem.losses(w, batch(rows)), torch.stack(expected))
    without = PROBLEM.losses(w, batch(rows))
    assert not torch.allclose(problem.losses(w, batch(rows)), without)
    assert problem.config["dropout"] == 0.5
    metrics = problem.metrics(w, problem)
    assert metrics.keys() == PROBLEM.metrics(w, PROBLEM).keys()
    assert float(metrics["loss"]) == float(PROBLEM.metrics(w, PROBLEM)["loss"])
