"""Sums over clients of products: the sum they were, where they become one, what is left alone."""

from itertools import pairwise

import pytest
import torch
from randoms import generator, normal
from torch import nn

import fedlib as fl
from fedlib import problems
from fedlib.engine import sums
from fedlib.engine.portions import RESHAPES
from fedlib.engine.record import record

N, K, M, P = 7, 5, 6, 8  # clients, rows of each, and the sides of a client's product
aten = torch.ops.aten


@pytest.fixture(autouse=True)
def _whatever_the_size(monkeypatch):
    monkeypatch.setattr(sums, "LEAST", 1)


def example(*outer, seed=0):
    """A model `[M P + M]`, and rows of all clients on both sides of the product."""
    w = normal(*outer, M * P + M, seed=seed)
    return w, normal(*outer, N, K, M, seed=seed + 1), normal(*outer, N, K, P, seed=seed + 2)


def gradients(a, x):
    """Of every client, as flat as the model: its product, and what a bias would get."""
    products = (a.mT @ x).flatten(-2)
    return torch.cat([products, a.sum(-2)], -1)


def sizes(replay):
    """Of all that the recording multiplies: how many products, each with how many rows."""
    products = [
        n for n in replay.graph.graph.nodes if n.target in (aten.bmm.default, aten.mm.default)
    ]
    return [tuple(n.all_input_nodes[-1].meta["val"].shape) for n in products]


def one_step(w, a, x):
    return (w - 0.1 * gradients(a, x)).mean(0)


def halves(w, a, x):
    """As a large table's rows are read: some clients first, then the others."""
    parts = [w - 0.1 * gradients(a[s], x[s]) for s in (slice(0, 3), slice(3, N))]
    return torch.cat(parts).mean(0)


def the_same_one_twice(w, a, x):
    g = gradients(a, x)
    return w, (g + g).mean(0)


WEIGHTS = normal(N, seed=7)


def weighed_halves(w, a, x):
    parts = [w - 0.1 * gradients(a[s], x[s]) for s in (slice(0, 3), slice(3, N))]
    return WEIGHTS.view(1, N) @ torch.cat(parts)


def weights_changed(w, a, x):
    """In place, after the view by which they are read was made."""
    weights = WEIGHTS + 0
    seen = weights.view(1, N)
    weights.neg_()
    return w, seen @ (w - 0.1 * gradients(a, x))


SUMMED = {
    "one step": one_step,
    "total": lambda w, a, x: (gradients(a, x) * 3 + w).sum(0, keepdim=True),
    "nothing but products": lambda w, a, x: (w, (a.mT @ x).mean(-3)),
    "halves": halves,
    "scaled by a tensor": lambda w, a, x: (w - w[0] * gradients(a, x)).mean(0),
    "weighed": lambda w, a, x: WEIGHTS @ (w - 0.1 * gradients(a, x)),
    "weighed halves": weighed_halves,
    "weights that were changed": weights_changed,
    "weighed and scaled": lambda w, a, x: (w, WEIGHTS @ (w - w[0] * gradients(a, x))),
    "a difference of products": lambda w, a, x: (
        gradients(a, x) - gradients(a.flip(-1), x) - 2 * w
    ).mean(0),
    "the same one twice": the_same_one_twice,
}


@pytest.mark.parametrize("function", SUMMED.values(), ids=SUMMED)
def test_all_rows_below_each_other_give_the_sum(function):
    replay = record(function, *example())
    assert sizes(replay)
    assert all(len(size) == 2 for size in sizes(replay)), "a product of each client is left"
    for seed in (0, 3):
        given = example(seed=seed)
        torch.testing.assert_close(replay(*given), function(*given), rtol=1e-12, atol=1e-13)


def last_use(node, places):
    """Where a value is read last, by itself or as a view of it."""
    views = [n for n in node.users if n.target in RESHAPES]
    return max(*(places[n] for n in node.users), *(last_use(n, places) for n in views), -1)


def test_gathered_rows_are_given_up_before_the_next_are_gathered():
    order = torch.randperm(N * K, generator=generator())

    def function(w, a, table):
        parts = []
        for s in (slice(0, 3), slice(3, 5), slice(5, N)):
            rows = order[s.start * K : s.stop * K]
            parts.append(w - 0.1 * gradients(a[s], table.index_select(0, rows).view(-1, K, P)))
        return torch.cat(parts).mean(0)

    w, a, x = example()
    replay = record(function, w, a, x.flatten(0, 1))
    nodes = [*replay.graph.graph.nodes]
    places = {node: i for i, node in enumerate(nodes)}
    gathered = [n for n in nodes if n.target is aten.index_select.default]
    assert len(gathered) == 3
    for one, following in pairwise(gathered):
        assert last_use(one, places) < places[following]


def test_parts_of_a_value_are_summed_as_they_are():
    def function(w, a, x):
        first, second = (w - a.sum((0, 1)).sum() * w).expand(N, -1).split([M * P, M], -1)
        return (first - (a.mT @ x).flatten(1)).mean(0), second.mean(0)

    replay = record(function, *example())
    assert sizes(replay) == [(N * K, P)]
    for one, other in zip(replay(*example()), function(*example()), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-13)


def test_runs_together_have_a_sum_each():
    lr = torch.tensor([0.1, 0.2], dtype=torch.float64)

    def step(w, a, x):
        return (w[:, None] - lr.view(2, 1, 1) * gradients(a, x)).mean(1)

    replay = record(step, *example(2))
    assert sizes(replay) == [(2, N * K, P)]
    given = example(2, seed=5)
    torch.testing.assert_close(replay(*given), step(*given), rtol=1e-12, atol=1e-13)


def test_runs_together_have_a_weighted_sum_each():
    def step(weights, w, a, x):
        return weights @ (w - 0.1 * gradients(a, x))

    def steps(weights, w, a, x):
        return torch.func.vmap(step)(weights, w, a, x)

    weights = normal(2, N, seed=8)
    replay = record(steps, weights, *example(2))
    assert (2, N * K, P) in sizes(replay)
    assert (2 * N, K, P) not in sizes(replay)
    given = normal(2, N, seed=9), *example(2, seed=5)
    torch.testing.assert_close(replay(*given), steps(*given), rtol=1e-12, atol=1e-13)


def _weighed_and_shown(w, a, x):
    g = gradients(a, x)
    return g, WEIGHTS @ (w - g)


def _also_shown(w, a, x):
    g = gradients(a, x)
    return g, (w - g).mean(0)


def _written_to(w, a, x):
    g = a.mT @ x
    g[0] += 1
    return w, g.mean(0)


def _changed_since(w, a, x):
    v = w + 0
    g = v - gradients(a, x)
    v.neg_()
    return v, g.mean(0)


OTHER = {
    "changed since": _changed_since,
    "with a factor of its own": lambda w, a, x: (w, torch.sub(w, gradients(a, x), alpha=2).mean(0)),
    "also shown": _also_shown,
    "bent": lambda w, a, x: (w - gradients(a, x).relu()).mean(0),
    "each weighed": lambda w, a, x: (w - gradients(a, x) * a[:, 0, :1]).mean(0),
    "over two axes": lambda w, a, x: (w, (a.mT @ x).mean((0, 1))),
    "over rows": lambda w, a, x: (w, (a.mT @ x).mean(1)),
    "in single precision": lambda w, a, x: (w.float() - gradients(a, x)).mean(0),
    "written to": _written_to,
    "weighed and shown": _weighed_and_shown,
    "weighed twice": lambda w, a, x: (
        w,
        torch.stack([WEIGHTS, WEIGHTS**2]) @ (w - gradients(a, x)),
    ),
}


@pytest.mark.parametrize("function", OTHER.values(), ids=OTHER)
def test_what_is_no_such_sum_is_left_alone_bit_for_bit(function):
    given = example()
    replay = record(function, *given)
    assert any(len(size) == 3 for size in sizes(replay))
    assert (N, K, P) in sizes(replay)
    for one, other in zip(replay(*given), function(*given), strict=True):
        assert torch.equal(one, other)


def test_small_ones_are_left_alone(monkeypatch):
    monkeypatch.setattr(sums, "LEAST", N * M * P + 1)
    given = example()
    replay = record(one_step, *given)
    assert sizes(replay) == [(N, K, P)]
    assert torch.equal(replay(*given), one_step(*given))
    monkeypatch.setattr(sums, "LEAST", N * M * P)
    assert sizes(record(one_step, *given)) == [(N * K, P)]


@pytest.mark.parametrize("local_steps", [1, 3])
@pytest.mark.parametrize("seeds", [[0], [0, 1]])
def test_a_round_is_that_of_the_plain_loop(monkeypatch, local_steps, seeds):
    taken, product = [], sums._Sums._product

    def counted(self, *arguments):
        found = product(self, *arguments)
        taken.append(found is not None)
        return found

    monkeypatch.setattr(sums._Sums, "_product", counted)
    g = torch.Generator().manual_seed(0)
    clients = [(normal(20, 9, seed=j), torch.randint(3, (20,), generator=g)) for j in range(N)]
    module = nn.Sequential(nn.Linear(9, 8), nn.Tanh(), nn.Linear(8, 3)).double()
    problem = problems.from_clients(
        clients, module=module, objective=lambda rows: rows.mean(
            nn.functional.cross_entropy(rows.output, rows.target, reduction="none")
        ),
    )  # fmt: skip
    methods = [fl.FedAvg(lr, local_steps, 4, batch_size=5) for lr in (0.1, 0.3)]
    often = {"rounds": 4, "seeds": seeds, "progress": False}
    for grid in (methods[:1], methods):
        taken.clear()
        together = fl.run(grid, problem, **often)
        assert taken
        assert all(taken)
        for method, fast in zip(grid, together, strict=True):
            slow = fl.run(method, problem, engine=fl.Loop, **often)
            torch.testing.assert_close(fast.state.w, slow.state.w, rtol=1e-11, atol=1e-13)
