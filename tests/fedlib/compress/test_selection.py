"""The positions of the largest entries: those of `torch.topk`, also among equal magnitudes."""

import pytest
import torch
from torch.func import vmap

import fedlib as fl
from fedlib.compress import selection
from fedlib.compress.selection import largest_positions
from fedlib.engine.capture import capture
from tests.helpers.randoms import generator

DIM = selection.LONG + 7


def random(*shape, dtype=torch.float32):
    return torch.randn(*shape, generator=generator(), dtype=dtype)


def assert_like_topk(x, count):
    expected = x.abs().topk(count).indices.sort().values
    assert torch.equal(largest_positions(x, count).sort().values, expected)


VECTORS = {
    "float32": random(DIM),
    "float64": random(DIM, dtype=torch.float64),
    "ties": (8 * random(DIM)).round(),
    "mostly zero": random(DIM) * (torch.arange(DIM) % 9 == 0),
    "zeros": torch.zeros(DIM),
    "infinite": random(DIM).masked_fill(torch.arange(DIM) % 50 == 0, -torch.inf),
    "not a number": random(DIM).masked_fill(torch.arange(DIM) % 50 == 0, torch.nan),
    "short": random(9),
    "half precision": random(DIM).half(),
}


@pytest.mark.parametrize("name", VECTORS)
def test_positions_are_those_of_topk(name):
    x = VECTORS[name]
    for share in (0.0, 0.01, 0.1, 0.5, 1.0):
        assert_like_topk(x, max(1, round(share * len(x))))


def test_a_threshold_replaces_the_sort_where_no_magnitudes_are_equal(monkeypatch):
    x = torch.randperm(DIM, generator=generator()).float()
    with monkeypatch.context() as patch:
        patch.setattr(torch.Tensor, "topk", None)
        positions = largest_positions(x, 100)
    assert sorted(x[positions].tolist()) == list(range(DIM - 100, DIM))


def test_maps_and_captured_rounds_select_row_by_row():
    x = random(2, 3, DIM)
    rows = torch.stack(
        [torch.stack([largest_positions(row, 20) for row in matrix]) for matrix in x]
    )
    compressed = torch.zeros_like(x).scatter(-1, rows, x.gather(-1, rows))
    wire = fl.TopK(20 / DIM)
    mapped = vmap(vmap(wire), in_dims=1, out_dims=1)
    assert torch.equal(mapped(x), compressed)
    captured = capture(mapped, x)
    assert torch.equal(captured(x), compressed)
    names = [str(node.target) for node in captured.graph.graph.nodes]
    assert "fedlib_kernels.select_largest.default" in names
