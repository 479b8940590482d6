"""A factor that all methods of a grid share is multiplied once, and the products are the same."""

import pytest
import torch
from randoms import normal
from torch.func import vmap

import fedlib as fl
from fedlib.engine.batch import BatchedRuns
from fedlib.engine.record import record
from fedlib.problems.classification import Samples, classifier, linear_model
from fedlib.sets.balls import Ball

G, S, B, K, N = 3, 2, 40, 30, 4


def kinds(replay, target="bmm.default"):
    nodes = [n for n in replay.graph.graph.nodes if n.op == "call_function"]
    return [tuple(n.meta["val"].shape) for n in nodes if n.target.__name__ == target]


def over_methods(function):
    """`function(x, w)` of S seeds' rows `[S, B, K]`, for G methods with a w each."""
    return lambda x, w: vmap(vmap(function), in_dims=(None, 0))(x, w)


def scores(x, w):
    return x @ w


PRODUCTS = {
    "scores": scores,
    "sums": lambda x, w: w.mT @ x.mT,
    "slopes": lambda x, w: x.mT @ (x @ w).tanh(),
    "turned": lambda x, w: (x @ w).mT.tanh() @ x,
}


@pytest.mark.parametrize("function", PRODUCTS.values(), ids=PRODUCTS)
@pytest.mark.parametrize("transposed", [False, True])
def test_a_shared_factor_is_multiplied_once(function, transposed):
    x, w = normal(S, B, K), normal(G, S, K, N, seed=1)
    if transposed:
        w = w.mT.contiguous().mT
    many = over_methods(function)
    replay = record(many, x, w)
    assert all(shape[0] == S for shape in kinds(replay))
    assert not kinds(replay, "clone.default")
    for y in (x, normal(S, B, K, seed=2)):
        found, expected = replay(y, w), many(y, w)
        assert found.shape == expected.shape
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_a_factor_of_every_method_s_own_is_left_alone():
    x, w = normal(G, S, B, K), normal(G, S, K, N, seed=1)
    replay = record(vmap(vmap(scores)), x, w)
    assert kinds(replay) == [(G * S, B, N)]
    torch.testing.assert_close(replay(x, w), x @ w)


def test_where_more_would_be_moved_than_saved_nothing_changes():
    x, w = normal(S, 3, K), normal(G, S, K, 50, seed=1)
    replay = record(over_methods(scores), x, w)
    assert kinds(replay) == [(G * S, 3, 50)]


def test_rows_that_are_written_to_are_left_alone():
    def doubled(x, w):
        y = x.clone()
        found = over_methods(scores)(y, w)
        y.mul_(2)
        return found, over_methods(scores)(y, w)

    x, w = normal(S, B, K), normal(G, S, K, N, seed=1)
    for a, b in zip(record(doubled, x, w)(x, w), doubled(x, w), strict=True):
        torch.testing.assert_close(a, b)


def one_split_a_seed(seed):
    rng = torch.Generator().manual_seed(seed)
    y = torch.randint(3, (60,), generator=rng)
    x = normal(60, 20, seed=seed) + y.unsqueeze(1)
    rows = torch.randperm(60, generator=rng).view(3, 20)
    made = classifier(Samples(x, y), Samples(x, y), rows, linear_model(20, 3), dtype=torch.float64)
    return made.within(Ball(5.0))


def test_a_grid_of_methods_does_what_each_does_alone():
    grid = [fl.FedFW(lam, batch_size=16) for lam in (0.01, 0.1, 1.0)]
    together = fl.run(grid, one_split_a_seed, rounds=4, seeds=(0, 1), progress=False)
    of = BatchedRuns(grid, one_split_a_seed, (0, 1), torch.device("cpu"), None)
    now, draw = of.example()
    of.step(now.state, draw)
    assert kinds(of._step)
    assert all(shape[0] < 3 * 2 * 3 for shape in kinds(of._step))
    for method, trace in zip(grid, together, strict=True):
        alone = fl.run(method, one_split_a_seed, rounds=4, seeds=(0, 1), progress=False)
        for name, values in trace.metrics.items():
            torch.testing.assert_close(
                torch.tensor(values), torch.tensor(alone.metrics[name]), rtol=1e-9, atol=1e-9
            )
