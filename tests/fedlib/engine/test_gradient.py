"""A recorded gradient is autograd's, bit for bit; pooling by halves is PyTorch's."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.func import vmap
from torch.nn.functional import max_pool2d

import fedlib as fl
from fedlib import models
from fedlib.core.problem import Batch, pullback
from fedlib.engine import products
from fedlib.engine.batch import BatchedRuns
from fedlib.engine.gradient import Gradient
from fedlib.engine.halves import FEW, halve, halved, unhalved
from fedlib.engine.operations import operations

aten = torch.ops.aten
WEIGHTS = torch.tensor([1.0, 0.5])


def pictures(*shape, dtype=torch.float32):
    """Halves of whole numbers, so that many are equal, channels innermost."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=dtype)
    return (2 * x).round().div(2).contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(5, 3, 4, 6), (2, 1, 2, 2), (1, 15, 12, 12)])
def test_halves_pool_as_pytorch_does(shape, dtype):
    x = pictures(*shape, dtype=dtype).requires_grad_()
    expected = max_pool2d(x, 2)
    slope = torch.randn_like(expected)
    largest, columns = halved(x.detach())
    assert torch.equal(largest, expected)
    for given in (slope, slope.contiguous()):
        (derivative,) = torch.autograd.grad(expected, x, slope, retain_graph=True)
        assert torch.equal(unhalved(given, x.detach(), columns), derivative)


def recorded(pool, x):
    def slope(x):
        (found,) = torch.autograd.grad(pool(x).square().sum(), x)
        return (found,)

    module = operations(lambda x: slope(x.detach().requires_grad_()), (x,))
    halve(module)
    assert torch.equal(module(x)[0], slope(x.detach().requires_grad_())[0])
    return {node.target for node in module.graph.nodes}


def test_a_recording_pools_by_halves():
    found = recorded(lambda x: max_pool2d(x, 2), pictures(2, 3, 6, 4))
    assert {halved, unhalved} <= found
    assert aten.max_pool2d_with_indices.default not in found


OTHERS = {
    "by 3": (lambda x: max_pool2d(x, 3), (2, 3, 6, 6)),
    "overlapping": (lambda x: max_pool2d(x, 2, 1), (2, 3, 6, 6)),
    "padded": (lambda x: max_pool2d(x, 2, padding=1), (2, 3, 6, 6)),
    "odd": (lambda x: max_pool2d(x, 2), (2, 3, 6, 7)),
    "many channels": (lambda x: max_pool2d(x, 2), (2, FEW, 2, 2)),
    "rows innermost": (lambda x: max_pool2d(x.contiguous(), 2), (2, 3, 6, 4)),
    "one picture": (lambda x: max_pool2d(x[0], 2), (2, 3, 6, 4)),
    "positions": (lambda x: sum(max_pool2d(x, 2, return_indices=True)), (2, 3, 6, 4)),
}


@pytest.mark.parametrize(("pool", "shape"), OTHERS.values(), ids=OTHERS)
def test_other_pooling_stays(pool, shape):
    assert aten.max_pool2d_with_indices.default in recorded(pool, pictures(*shape))


def network():
    module = nn.Sequential(
        *(nn.Conv2d(2, 3, 3, padding=1), nn.MaxPool2d(2), nn.ReLU()),
        *(nn.Flatten(-3), nn.Linear(48, 2)),
    )
    w0, apply = models.ravel(module)
    calls = []

    def losses(w, batch):
        calls.append(1)
        x, y = batch.data
        out = apply(w, x)
        rows = torch.stack([(out[..., 0] - y).square(), out[..., 1].tanh()], -1)
        return batch.weight @ rows

    return w0, losses, calls


def batch(rows):
    weight = torch.full((rows,), 1 / rows)
    return Batch((pictures(rows, 2, 8, 8), torch.arange(rows).float()), weight)


def test_a_gradient_is_recorded_once_a_shape_and_equals_autograd_s():
    w, losses, calls = network()
    gradient = Gradient(losses)
    for rows in (4, 6):
        gradient(w, batch(rows), WEIGHTS)
    for module in gradient.recordings.values():
        assert aten.maximum.default in {node.target for node in module.graph.nodes}
    calls.clear()
    for rows in (4, 6, 4):
        own = gradient(rows / 5 * w, batch(rows), WEIGHTS)
        assert not calls
        assert torch.equal(own, pullback(losses, None, rows / 5 * w, batch(rows), WEIGHTS))
        calls.clear()


def test_losses_that_look_at_values_are_not_recorded():
    def losses(w, batch):
        return (w.square() if batch.weight.sum() > 1 else w).sum().expand(2)

    gradient, w = Gradient(losses), torch.ones(3)
    for factor, slope in ((1.0, 1.5), (2.0, 3.0)):
        some = Batch((), factor * torch.ones(1))
        assert torch.equal(gradient(w, some, WEIGHTS), slope * torch.ones(3))


def test_losses_that_differ_from_call_to_call_are_not_recorded():
    counted = []

    def losses(w, batch):
        counted.append(1)
        return len(counted) * w[:2]

    gradient, w = Gradient(losses), torch.ones(3)
    one, other = (gradient(w, Batch((), torch.ones(1)), WEIGHTS) for _ in range(2))
    assert not torch.equal(one, other)


def test_inside_of_a_map_it_is_autograd():
    w, losses, _ = network()
    gradient, some = Gradient(losses), batch(4)
    gradient(w, some, WEIGHTS)
    each = vmap(lambda u: gradient(u, some, WEIGHTS))(torch.stack([w, 2 * w]))
    torch.testing.assert_close(each[1], gradient(2 * w, some, WEIGHTS))


def test_a_run_one_by_one_is_recorded_and_equals_its_plain_twin():
    problem = fl.problems.quadratics(torch.rand(4, 3), torch.rand(4, 3), level=0.5)
    problem = replace(problem, gradient=None, sequential_clients=True)
    method = fl.FedAvg(0.1, 2, 3)
    loop = BatchedRuns([method], problem, (0,), torch.device("cpu"), None)
    now, draw = loop.example()
    after, _ = loop.step(now.state, draw)
    assert len(loop.gradient.recordings) == 1
    twin = BatchedRuns([method], problem, (0,), torch.device("cpu"), fl.Loop)
    assert twin.gradient is None
    assert torch.equal(after.w, twin.step(now.state, draw)[0].w)


@pytest.mark.skipif(not products.available(), reason="this torch has no oneDNN")
def test_large_products_of_a_recorded_gradient_go_to_onednn():
    w0, apply = models.ravel(nn.Sequential(nn.Linear(300, 100), nn.Tanh(), nn.Linear(100, 3)))
    x = torch.randn(400, 300, generator=torch.Generator().manual_seed(1))
    some = Batch((x,), torch.full((400,), 1 / 400))

    def losses(w, batch):
        return batch.weight @ apply(w, batch.data[0])[:, :2].square()

    gradient = Gradient(losses)
    own = gradient(w0, some, WEIGHTS)
    (module,) = gradient.recordings.values()
    assert any("product" in node.meta for node in module.graph.nodes)
    torch.testing.assert_close(own, pullback(losses, None, w0, some, WEIGHTS), atol=1e-6, rtol=1e-4)
