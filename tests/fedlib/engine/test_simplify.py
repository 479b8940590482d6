"""Simplification: what is done once or never, and what only looks as if it could be."""

import pytest
import torch
from randoms import numbers
from recorded import same, simplified
from torch.func import vmap

from fedlib.compress import Rounding
from fedlib.engine.record import record


def test_equal_operations_are_done_once():
    def steps(shares, weights, u):
        for _ in range(4):
            u = u - (shares @ weights).sum() * u
        return u

    names, _ = simplified(steps, numbers(5, 2), numbers(2), numbers(3))
    assert names.count("mv") == names.count("sum") == 1
    same(steps, numbers(5, 2), numbers(2), numbers(3))


def test_operations_on_a_part_of_an_operation_are_done_once_too():
    def twice(x):
        basis, triangle = torch.linalg.qr(x)
        again, _ = torch.linalg.qr(x)
        return basis @ x, again @ x, triangle

    names, _ = simplified(twice, numbers(3, 3))
    assert names.count("linalg_qr") == names.count("mm") == 1
    same(twice, numbers(3, 3))


def test_chains_of_views_become_one_and_idle_views_none():
    def views(x):
        return x.unsqueeze(0).view(1, 6, 2).unsqueeze(3).view(3, 4) + 1, x.view(3, 4).expand(3, 4)

    names, _ = simplified(views, numbers(3, 4))
    assert names == ["add"]
    same(views, numbers(3, 4))


def test_a_transposed_view_is_kept():
    def transposed(x):
        return x.T.reshape(-1) + x.reshape(-1), x.T.unsqueeze(0).squeeze(0), x[None, 1:2].squeeze()

    same(transposed, numbers(3, 3))
    replay = record(transposed, numbers(3, 3))
    x = numbers(3, 3, seed=1).T  # not the strides of the example
    assert all(torch.equal(a, b) for a, b in zip(replay(x), transposed(x), strict=True))


@pytest.mark.parametrize(
    "there_and_back",
    [
        lambda x: x.mT.mT + 1,
        lambda x: x.permute(2, 0, 1).permute(1, 2, 0) + 1,
        lambda x: x.permute(0, 2, 1).transpose(-1, -2) + 1,
    ],
)
def test_axes_that_are_turned_back_were_never_turned(there_and_back):
    x = numbers(2, 3, 4)
    assert simplified(there_and_back, x)[0] == ["add"]
    same(there_and_back, x)


def test_axes_that_are_turned_on_stay_so():
    x = numbers(2, 3, 4)
    assert simplified(lambda x: x.permute(2, 0, 1).permute(2, 0, 1) + 1, x)[0][-1] == "add"
    replay = same(lambda x: x.permute(2, 0, 1).permute(2, 0, 1) + 1, x)
    assert replay(x).shape == (3, 4, 2)


@pytest.mark.parametrize("masked", [lambda g, y: g * (y > 0), lambda g, y: (y > 0) * g])
def test_the_derivative_of_a_relu_is_one_operation(masked):
    g, y = numbers(5, 4), numbers(5, 4, seed=1)
    y[0, 0] = 0.0
    assert simplified(masked, g, y)[0] == ["threshold_backward"]
    same(masked, g, y)


@pytest.mark.parametrize(
    ("function", "g"),
    [
        (lambda g, y: g * (y > 1), numbers(5, 4)),
        (lambda g, y: g * (y > 0), numbers(4)),  # another shape
        (lambda g, y: g * (y > 0), numbers(5, 4).double()),  # another type
    ],
)
def test_what_only_looks_like_the_derivative_of_a_relu_is_left_alone(function, g):
    y = numbers(5, 4, seed=1)
    assert simplified(function, g, y)[0] == ["gt", "mul"]
    same(function, g, y)


def test_a_view_as_another_type_is_kept():
    same(lambda x: x.view(torch.int32) + 0, numbers(4))
    same(vmap(Rounding(3)), numbers(2, 5))


def test_rows_are_gathered_whole():
    def gather(x, rows):
        return x[rows.long()], x[:, rows.long()[0]], x[rows.long(), rows.long()]

    x, rows = numbers(6, 7), torch.tensor([[0, 5], [3, 3]])
    names, _ = simplified(gather, x, rows)
    assert names.count("index_select") == 1
    assert names.count("index") == 2
    replay = record(gather, x, rows)
    assert all(torch.equal(a, b) for a, b in zip(replay(x, rows), gather(x, rows), strict=True))
    x, rows = numbers(6, 7, seed=1), 5 - rows
    assert all(torch.equal(a, b) for a, b in zip(replay(x, rows), gather(x, rows), strict=True))


def of_runs(x, rows):
    """Of every run its own rows, counted from the start and from the end."""
    return vmap(lambda x, rows: (x[rows], x[rows - 6]))(x, rows)


def of_clients_of_runs(x, rows):
    return vmap(vmap(lambda x, rows: x[rows.flip(0)], (None, 0)))(x, rows)


@pytest.mark.parametrize("gather", [of_runs, of_clients_of_runs])
def test_rows_of_runs_with_data_of_their_own_are_gathered_whole(gather):
    x, rows = (
        numbers(3, 6, 16),
        torch.tensor([[[0, 5], [3, 3]], [[1, 2], [5, 0]], [[4, 4], [2, 0]]]),
    )
    names, _ = simplified(gather, x, rows)
    assert "index" not in names
    assert "index_select" in names
    replay = record(gather, x, rows)
    for given in ((x, rows), (numbers(3, 6, 16, seed=1), 5 - rows), (x, rows.roll(1, 0))):
        found, expected = replay(*given), gather(*given)
        torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_short_rows_and_strange_tables_are_left_alone():
    rows = torch.tensor([[0, 1], [2, 0]])

    def gather(x, y, rows):
        return x[rows, rows], y.mT[rows, rows], y[:, rows, rows]

    x, y = numbers(6, 7), numbers(6, 6, 20)
    replay = record(gather, x, y, rows)
    targets = [str(n.target) for n in replay.graph.graph.nodes]
    assert targets.count("aten.index.Tensor") == 3
    for one, other in zip(replay(x, y, rows), gather(x, y, rows), strict=True):
        assert torch.equal(one, other)


def test_every_random_number_stays_its_own():
    _, module = simplified(lambda x: (torch.rand_like(x), torch.rand_like(x)), numbers(8))
    a, b = module(numbers(8))
    assert not torch.equal(a, b)
