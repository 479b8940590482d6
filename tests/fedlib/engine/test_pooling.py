"""Max-pooling by rows: the values and gradients of torch's kernel, bit by bit."""

import pytest
import torch
from torch.nn.functional import max_pool2d

from fedlib.engine.capture import capture
from fedlib.engine.pooling import MAX_POOL, pool_by_rows


def pictures(shape=(3, 5, 8, 6), order=torch.channels_last):
    """Whole numbers from 0 to 2, of which many are equal."""
    rng = torch.Generator().manual_seed(0)
    x = torch.randint(3, shape, generator=rng).float()
    return x.contiguous(memory_format=order)


def pool_and_gradient(x, weight, window=2, stride=2):
    """A pooled batch, and the gradient of its weighted sum."""

    def weighted(x):
        pooled = max_pool2d(x, window, stride)
        return (weight * pooled).sum(), pooled

    gradient, pooled = torch.func.grad(weighted, has_aux=True)(x)
    return pooled, gradient


def captured_targets(function, *example):
    captured = capture(function, *example, passes=(pool_by_rows,))
    return captured, {node.target for node in captured.graph.graph.nodes}


def test_maxima_and_gradients_are_those_of_torch():
    x = pictures()
    weight = torch.arange(3 * 5 * 4 * 3.0).view(3, 5, 4, 3)
    captured, targets = captured_targets(pool_and_gradient, x, weight)
    assert MAX_POOL not in targets
    expected = pool_and_gradient(x, weight)
    for result, value in zip(captured(x, weight), expected, strict=True):
        assert torch.equal(result, value)


def test_pooling_without_a_gradient():
    x = pictures()
    captured, targets = captured_targets(lambda x: max_pool2d(x, 2), x)
    assert MAX_POOL not in targets
    assert torch.equal(captured(x), max_pool2d(x, 2))


def test_pools_of_pools():
    x = pictures((2, 3, 8, 8))
    captured, targets = captured_targets(lambda x: max_pool2d(max_pool2d(x, 2), 2), x)
    assert MAX_POOL not in targets
    assert torch.equal(captured(x), max_pool2d(x, 4))


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (lambda x: max_pool2d(x, 3), pictures()),
        (lambda x: max_pool2d(x, 2, stride=1), pictures()),
        (lambda x: max_pool2d(x, 2, padding=1), pictures()),
        (lambda x: max_pool2d(x, 2), pictures((3, 5, 7, 6))),
        (lambda x: max_pool2d(x, 2), pictures(order=torch.contiguous_format)),
        (lambda x: max_pool2d(x, 2, return_indices=True), pictures()),
    ],
    ids=["3x3", "overlapping", "padded", "odd", "rows innermost", "places are read"],
)
def test_other_pools_are_left_to_torch(function, x):
    captured, targets = captured_targets(function, x)
    assert MAX_POOL in targets
    results = captured(x)
    expected = function(x)
    if isinstance(expected, torch.Tensor):
        results, expected = (results,), (expected,)
    for result, value in zip(results, expected, strict=True):
        assert torch.equal(result, value)
