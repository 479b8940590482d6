"""The authors' own rows and loop: rows as theirs to the digit, rounds as worked out by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

import fedlib as fl
from fedlib.core.federation import Sequential
from fedlib.core.sampling import seeded
from fedlib.data.split import padded
from fedlib.problems import classifier
from fedlib.problems.classification import Samples, linear_model, mlp_model
from papers.fedfw.authors.loop import AuthorsFedDR, AuthorsFW, generator, random_models, shapes_of
from papers.fedfw.authors.rows import authors_problem, authors_rows
from tests.helpers.expect import near
from tests.helpers.rounds import final_model

SIZES = (9545, 855, 2180, 24380, 11685, 285, 2075, 450, 470, 870)
TEN = [17913, 1645, 477, 9060, 1725, 172, 116, 3636, 1376, 16675]
HUNDRED = [8053, 31459, 4708, 20330, 1657, 20785, 3043, 18260, 10962, 86538]
#: Users, classes, rows, label counts, the sum of all features, the start of the first row.
THEIRS = [
    (10, 10, 52_795, TEN, -357005.5918, (-2.056799, -1.097627, -0.735923)),
    (10, 3, 52_795, [9482, 8471, 34842], -357271.2329, (-0.418571, -0.523648, -0.517860)),
    (100, 10, 205_795, HUNDRED, -283221.3021, (1.170852, -0.447271, -0.268067)),
    (100, 3, 205_795, [78917, 68174, 58704], -283677.2124, (-0.208014, 0.527412, -1.221335)),
]


@pytest.mark.parametrize(("users", "classes", "rows", "counts", "total", "start"), THEIRS)
def test_rows_are_those_of_the_authors(users, classes, rows, counts, total, start):
    X, y, sizes = authors_rows(users, classes)
    assert X.shape == (rows, 60)
    assert len(sizes) == users
    assert sizes[:10] == SIZES
    assert y.bincount().tolist() == counts
    near(X.double().sum().item(), total, abs=0.05)  # float32 holds the rows
    near(X[0, :3].tolist(), start, abs=1e-6)


def test_a_quarter_of_every_users_rows_is_for_testing_and_the_model_has_ten_outputs():
    problem = authors_problem(1, net="mclr", classes=3)
    assert problem.sizes == tuple(n - round(n / 4) for n in SIZES)
    assert len(problem.heldout[1]) == 52_795 - sum(problem.sizes)
    assert problem.dim == 610
    assert authors_problem(1, net="dnn", classes=3).dim == 61 * 20 + 21 * 10


def small(net="mclr", sizes=(70, 5, 130)):
    """Three clients with 2, 1 and 3 minibatches of at most 64 rows."""
    rng = seeded(3, "split")
    count = sum(sizes)
    X = torch.randn(count, 4, generator=rng)
    y = torch.randint(3, (count,), generator=rng)
    order = torch.randperm(count, generator=rng)
    rows, sizes = padded(torch.split(order, list(sizes)))
    model = linear_model(4, 3) if net == "mclr" else mlp_model(4, 5, 3, rng)
    samples = Samples(X, y)
    problem = classifier(
        samples,
        samples,
        rows,
        model,
        sizes=sizes,
    )
    return replace(problem, sequential_clients=True)


def tensors_of(problem, x):
    """The weights and biases of a model."""
    shapes = shapes_of(problem)
    tensors = x.split([math.prod(shape) for shape in shapes])
    return [tensor.view(shape) for tensor, shape in zip(tensors, shapes, strict=True)]


def slope(problem, x, rows):
    """The gradient of a client's mean cross-entropy on some rows, by autograd."""
    X, y = (tensor[rows] for tensor in problem.data)
    x = x.clone().requires_grad_()
    W, b, *second_layer = tensors_of(problem, x)
    outputs = X @ W.T + b
    if second_layer:
        V, c = second_layer
        outputs = torch.relu(outputs) @ V.T + c
    F.cross_entropy(outputs, y).backward()
    return x.grad


def corner(problem, g, norm, radius):
    """The answer of a ball for each tensor."""
    ball = fl.Ball(radius) if norm == "l2" else fl.L1Ball(radius)
    return torch.cat([ball.lmo(tensor.flatten()) for tensor in tensors_of(problem, g)])


def by_hand(problem, method, draws):
    """The authors' FedFW on lists, a client after another; the server's model after every round."""
    n = problem.num_clients
    w = problem.w0
    steps = [0] * n
    averages = [torch.zeros_like(w) for _ in range(n)]
    for draw in draws:
        rng = generator(draw)
        models = []
        orders = [np.arange(n) if method.ordered else rng.permutation(n) for n in problem.sizes]
        for i, order in enumerate(orders):
            x = w.clone()
            rows = problem.own_rows(i)[torch.from_numpy(order)]
            for minibatch in torch.split(rows, 64):
                steps[i] += 1
                s = steps[i]
                g = slope(problem, x, minibatch) / n
                eta = 2 / (s + 1)
                lam = method.lam0 * (s + 1) ** 0.5
                if method.averaged:
                    eta = 9 / (s + 8)
                    lam = method.lam0 * (s + 8) ** 0.5
                    rho = 4 / (s + 7) ** (2 / 3)
                    averages[i] = (1 - rho) * averages[i] + rho * g
                    g = averages[i]
                v = corner(problem, g + lam * (x - w), method.norm, method.radius)
                x = (1 - eta) * x + eta * v
            models.append(x)
        w = torch.stack(models).mean(0)
        yield w


@pytest.mark.parametrize("net", ["mclr", "dnn"])
@pytest.mark.parametrize(
    "method",
    [
        AuthorsFW(0.1, radius=2.0),
        AuthorsFW(0.1, "l1", radius=2.0),
        AuthorsFW(0.1, radius=2.0, averaged=True),
        AuthorsFW(0.1, radius=2.0, ordered=True),
    ],
)
def test_the_authors_loop_is_the_one_on_lists(net, method):
    problem = small(net)
    rng = seeded(0, "rounds")
    draws = [method.draw(problem, rng) for _ in range(3)]
    state = method.init(problem)
    for draw, w in zip(draws, by_hand(problem, method, draws), strict=True):
        state, _ = method.round(Sequential(problem), state, draw)
        assert_close(state.w, w, rtol=1e-4, atol=1e-5)


def test_without_its_changes_the_loop_is_the_papers():
    """Kept models, one step on all rows, one ball: Algorithm 1, the library's FedFW."""
    problem = small("dnn").within(fl.Ball(2.0))
    plain = AuthorsFW(
        0.1,
        radius=2.0,
        reset=False,
        epoch=False,
        tensors=False,
    )
    ours = final_model(plain, problem, 6)
    library = final_model(fl.FedFW(0.1), problem, 6)
    assert_close(ours, library, rtol=1e-4, atol=1e-5)


def feddr_rows(problem, client, t, chance, published):
    """The rows of a client's step: 64 at random, or the published code's minibatches in turn."""
    if published:  # 2, 2 and 3 minibatches, the last one short
        minibatches = torch.split(problem.own_rows(client), 64)
        return minibatches[t % len(minibatches)]
    places = chance.choice(problem.sizes[client], 64, replace=False)
    return problem.own_rows(client)[torch.from_numpy(places)]


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize(("norm", "order"), [("l2", 2), ("l1", 1)])
def test_the_authors_feddr_is_the_one_by_hand(norm, order, published):
    method = AuthorsFedDR(norm, 0.02, common=published, ordered=published)
    problem = small(sizes=(70, 80, 130))
    rng = seeded(0, "rounds")
    draws = [method.draw(problem, rng) for _ in range(4)]
    state = method.init(problem)
    assert not state.w.any()
    w = state.w
    clients = []
    scaled = 0
    for t, draw in enumerate(draws):
        chance = generator(draw)
        if t == 0:
            count = 1 if published else 3
            starts = torch.from_numpy(random_models(shapes_of(problem), count, chance))
            clients = [(x, x, x) for x in starts.expand(3, -1)]
        moves = []
        for i, (y, x, reflected) in enumerate(clients):
            rows = feddr_rows(
                problem,
                i,
                t,
                chance,
                published,
            )
            y = y + 0.01 * (w - x)
            x = x - 0.05 * (slope(problem, x, rows) + 0.01 * (x - y))
            clients[i] = (y, x, 2 * x - y)
            moves.append(2 * x - y - reflected)
        w = w + torch.stack(moves).mean(0)
        length = torch.linalg.vector_norm(w, order)
        if length > 0.02:
            w = w * 0.02 / length
            scaled += 1
        state, _ = method.round(Sequential(problem), state, draw)
        assert_close(state.w, w, rtol=1e-4, atol=1e-6)
    assert scaled
