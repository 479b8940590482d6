"""The positions of the largest entries: those of `torch.topk`, also among equal magnitudes."""

import pytest
import torch
from torch.func import vmap

import fedlib as fl
from fedlib.compress import selection
from fedlib.compress.selection import largest_positions
from fedlib.engine.capture import capture
from tests.helpers.randoms import generator, normal, numbers

DIM = selection.LONG + 7
X = numbers(DIM)
SOME = torch.arange(DIM) % 50 == 0
VECTORS = {
    "float32": X,
    "float64": normal(DIM),
    "ties": (8 * X).round(),
    "mostly zero": X * (torch.arange(DIM) % 9 == 0),
    "zeros": 0 * X,
    "infinite": X.masked_fill(SOME, -torch.inf),
    "not a number": X.masked_fill(SOME, torch.nan),
    "short": X[:9],
    "half precision": X.half(),
}


@pytest.mark.parametrize("x", VECTORS.values(), ids=VECTORS)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.5, 1.0])
def test_positions_are_those_of_topk(x, share):
    count = max(1, round(share * len(x)))
    expected = x.abs().topk(count).indices
    positions = largest_positions(x, count)
    assert sorted(positions.tolist()) == sorted(expected.tolist())


def test_a_threshold_replaces_the_sort_where_no_magnitudes_are_equal(monkeypatch):
    x = torch.randperm(DIM, generator=generator()).float()
    with monkeypatch.context() as patch:
        patch.setattr(torch.Tensor, "topk", None)
        positions = largest_positions(x, 100)
    assert sorted(x[positions].tolist()) == list(range(DIM - 100, DIM))


def test_maps_and_captured_rounds_select_row_by_row():
    x = numbers(2, 3, DIM)
    wire = fl.TopK(20 / DIM)
    rows = torch.stack([wire(row) for row in x.flatten(0, 1)])
    mapped = vmap(vmap(wire), in_dims=1, out_dims=1)
    assert torch.equal(mapped(x).flatten(0, 1), rows)
    captured = capture(mapped, x)
    assert torch.equal(captured(x).flatten(0, 1), rows)
    names = [str(node.target) for node in captured.graph.graph.nodes]
    assert "fedlib_kernels.select_largest.default" in names
