"""Pictures abreast: convolution, pooling and whole gradients are PyTorch's.

Numbers are small whole ones where possible: all sums are exact then, whatever their order, and many
numbers in a window are equal.
"""

import pytest
import torch
from torch import nn
from torch.nn.functional import conv2d, max_pool2d

from fedlib import models
from fedlib.core.problem import Batch, pullback
from fedlib.engine import abreast as side_by_side
from fedlib.engine import products
from fedlib.engine.abreast import (
    BATCHES,
    FEW,
    abreast,
    convolved,
    ordered,
    pooled,
    put_abreast,
    unconvolved,
    unpooled,
)
from fedlib.engine.gradient import Gradient
from fedlib.engine.operations import operations
from fedlib.engine.script import Program

aten = torch.ops.aten
FORMATS = (torch.contiguous_format, torch.channels_last)
DTYPES = (torch.float32, torch.float64)
needs_onednn = pytest.mark.skipif(not products.available(), reason="this torch has no oneDNN")


def whole(*shape, dtype=torch.float32, seed=0, most=2):
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(-most, most + 1, shape, generator=rng).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", FORMATS)
@pytest.mark.parametrize("padding", [[0, 0], [1, 1], [2, 0]])
@pytest.mark.parametrize(
    "shape", [(3, 1, 7, 6, 4, 3, 3), (5, 2, 6, 9, 3, 2, 5), (1, 3, 5, 5, 1, 1, 1)]
)
def test_a_convolution_abreast_is_pytorch_s(shape, padding, order, dtype):
    B, c, h, w, n, a, b = shape
    x = whole(B, c, h, w, dtype=dtype).contiguous(memory_format=order).requires_grad_()
    weight = whole(n, c, a, b, dtype=dtype, seed=1).requires_grad_()
    bias = whole(n, dtype=dtype, seed=2).requires_grad_()
    expected = conv2d(x, weight, bias, padding=padding)
    slope = whole(*expected.shape, dtype=dtype, seed=3)
    wide = abreast(x.detach(), padding)
    assert torch.equal(convolved(wide, weight.detach(), bias.detach(), B), expected)
    by_all = torch.autograd.grad(expected, (x, weight, bias), slope)
    for wanted in ([True, True, True], [False, True, True], [True, False, False]):
        strides = weight.stride() if wanted[1] else None
        found = unconvolved(slope, wide, weight.detach(), padding, wanted, strides)
        for own, its, asked in zip(found, by_all, wanted, strict=True):
            assert torch.equal(own, its) if asked else own is None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", FORMATS)
@pytest.mark.parametrize("how", [(2, 2), (2, 1), (3, 2, 1), ((1, 2), (2, 2))])
@pytest.mark.parametrize("shape", [(5, 3, 4, 6), (2, 1, 7, 5), (1, 15, 6, 6)])
def test_pooling_abreast_is_pytorch_s(shape, how, order, dtype):
    x = whole(*shape, dtype=dtype).contiguous(memory_format=order).requires_grad_()
    expected = max_pool2d(x, *how)
    kernel, stride, *padding = ([side] * 2 if isinstance(side, int) else [*side] for side in how)
    own = (kernel, stride, *(padding or [[0, 0]]), [1, 1], False)
    largest, places = pooled(x.detach(), *own)
    assert torch.equal(largest, expected)
    slope = torch.randn_like(expected)
    (derivative,) = torch.autograd.grad(expected, x, slope)
    torch.testing.assert_close(unpooled(slope, x.detach(), *own, places), derivative)


class Net:
    """A network whose weights are small whole numbers, and its pictures."""

    def __init__(self, *layers, shape=(32, 1, 12, 10), dtype=torch.float32):
        w, self.apply = models.ravel(nn.Sequential(*layers))
        self.inputs = whole(*w.shape, dtype=dtype, most=1), whole(*shape, dtype=dtype, seed=1)

    def slope(self, w, x):
        def loss(w):
            out = self.apply(w, x).flatten()
            return out @ (torch.arange(len(out)) % 3 - 1).to(w.dtype)

        return (torch.func.grad(loss)(w),)

    def recorded(self):
        """The operations, pictures abreast, after the gradient is seen to be the same."""
        module = operations(self.slope, self.inputs)
        put_abreast(module)
        module.graph.lint()
        assert torch.equal(module(*self.inputs)[0], self.slope(*self.inputs)[0])
        return {node.target for node in module.graph.nodes}


def pool():
    return (nn.MaxPool2d(2), nn.ReLU())


class ChannelsLast(nn.Module):
    def forward(self, x):
        return x.contiguous(memory_format=torch.channels_last)


FIRST = (nn.Conv2d(1, 3, 3, padding=1), *pool())
ABREAST = {
    "two": Net(
        *FIRST, nn.Conv2d(3, 4, (3, 2), padding=1), *pool(), nn.Flatten(-3), nn.Linear(36, 2)
    ),
    "channels last": Net(ChannelsLast(), *FIRST, nn.Conv2d(3, 4, 3), *pool(), nn.Flatten(-3)),
    "ReLU first": Net(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(3, 2, 2)),
    "no bias": Net(nn.Conv2d(1, 3, 3, bias=False), nn.MaxPool2d(3, 2, 1), nn.Conv2d(3, 2, 2)),
}
COPIED = {
    "many channels": Net(*FIRST, nn.Conv2d(3, FEW, 3), *pool()),
    "strides": Net(*FIRST, nn.Conv2d(3, 4, 3, 2)),
    "no layer": Net(*FIRST, nn.Threshold(-1, 0), nn.Conv2d(3, 4, 2)),
    "mean": Net(*FIRST, nn.AvgPool2d((2, 1)), nn.Conv2d(3, 4, 2)),
}
AS_BEFORE = {
    "few pictures": Net(*FIRST, shape=(BATCHES.start - 1, 1, 6, 6)),
    "many pictures": Net(*FIRST, shape=(BATCHES.stop, 1, 4, 4)),
    "float64": Net(*FIRST, dtype=torch.float64),
    "colours": Net(nn.Conv2d(2, 3, 3), *pool(), shape=(32, 2, 6, 6)),
    "strides": Net(nn.Conv2d(1, 3, 3, 2), *pool()),
    "dilation": Net(nn.Conv2d(1, 3, 3, dilation=2), *pool()),
    "no pooling": Net(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Conv2d(3, 3, 3)),
    "transposed": Net(nn.ConvTranspose2d(1, 3, 3), *pool()),
    "written to": Net(nn.Conv2d(1, 3, 3), nn.MaxPool2d(2), nn.ReLU(inplace=True)),
}


@needs_onednn
@pytest.mark.parametrize("net", ABREAST.values(), ids=ABREAST)
def test_a_recorded_gradient_with_pictures_abreast_is_the_same(net):
    found = net.recorded()
    assert {convolved, unconvolved, pooled, unpooled} <= found
    assert found.isdisjoint([aten.convolution.default, aten.max_pool2d_with_indices.default])


@needs_onednn
@pytest.mark.parametrize("net", COPIED.values(), ids=COPIED)
def test_what_comes_after_sees_the_recorded_order(net):
    assert {convolved, pooled, ordered} <= net.recorded()


@needs_onednn
@pytest.mark.parametrize("net", AS_BEFORE.values(), ids=AS_BEFORE)
def test_other_pictures_stay_as_they_were(net):
    assert net.recorded().isdisjoint([convolved, pooled, ordered])


def test_without_onednn_all_stays(monkeypatch):
    monkeypatch.setattr(side_by_side, "available", lambda: False)
    assert convolved not in ABREAST["two"].recorded()


@needs_onednn
def test_a_gradient_of_a_small_network_is_as_exact_as_autograd_s():
    rng = torch.Generator().manual_seed(0)
    module = nn.Sequential(
        *(nn.Conv2d(1, 10, 3, padding=1), *pool(), nn.Conv2d(10, 15, 3), *pool()),
        *(nn.Flatten(-3), nn.Linear(540, 5)),
    ).float()
    for p in module.parameters():
        p.data = torch.randn(p.shape, generator=rng, dtype=p.dtype) / p[0].numel() ** 0.5
    w, apply = models.ravel(module)
    x = torch.randn(64, 1, 28, 28, generator=rng, dtype=torch.float32)

    def losses(w, batch):
        return batch.weight @ apply(w, batch.data[0])[:, :2].square()

    weights, some = torch.tensor([1.0, 0.5]), Batch((x,), torch.full((64,), 1 / 64))
    weights, some = weights.float(), some._replace(weight=some.weight.float())
    gradient = Gradient(losses)
    gradient(w, some, weights)
    (again,) = gradient.replays.values()
    assert isinstance(again, Program)
    exact = pullback(losses, None, w.double(), Batch((x.double(),), some.weight.double()), weights)
    for own in (gradient(w, some, weights), pullback(losses, None, w, some, weights)):
        assert (own - exact).norm() < 1e-6 * exact.norm()
