"""The mean of what clients computed is that of their products, taken as one."""

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from fedlib.core import means
from fedlib.core.record import record
from fedlib.core.simplify import simplify


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setattr(means, "LARGE", 0)


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


W, E, X = numbers(23), numbers(4, 3, 5), numbers(4, 5, 7, seed=1)


def step(w, e, x):
    grads = torch.bmm(e, x).flatten(1), e.sum(2)[:, :2]
    return (w - 0.1 * torch.cat(grads, 1)).mean(0)


def change(w, e, x):
    grads = torch.bmm(e, x).flatten(1)
    return ((w[:21] - (w[:21] - grads * 0.3)) / 0.3 + torch.ones(21)).mean(0)


def turned(w, e, x):
    back = torch.bmm(e, x).mT  # as autograd gives it
    return (w[:21] - back.mT.flatten(1)).mean(0)


def kept(w, e, x):
    u = w[:21] - torch.bmm(e, x).flatten(1)
    return u.mean(0), u[0]


def squared(w, e, x):
    return (w[:21] - torch.bmm(e, x).flatten(1)).square().mean(0)


def scaled_each(w, e, x):
    return (torch.bmm(e, x).flatten(1) * e[:, 0, :1]).mean(0)


def along_rows(w, e, x):
    return torch.bmm(e, x).flatten(1).mean(1)


def products(function, *example):
    """How many products of matrices in batches the recording does, once it gives the same."""
    replay = record(function, *example)
    torch.testing.assert_close(replay(*example), function(*example), rtol=1e-5, atol=1e-6)
    module = make_fx(function, tracing_mode="fake", _allow_non_fake_inputs=True)(*example)
    simplify(module)
    return sum(node.target is torch.ops.aten.bmm.default for node in module.graph.nodes)


@pytest.mark.parametrize("function", [step, change, turned])
def test_what_is_linear_becomes_one_product(function):
    assert products(function, W, E, X) == 0


@pytest.mark.parametrize("function", [kept, squared, scaled_each, along_rows])
def test_what_is_not_or_is_kept_stays_as_it_is(function):
    assert products(function, W, E, X) == 1


def test_small_ones_stay_as_they_are(monkeypatch):
    monkeypatch.setattr(means, "LARGE", 10**6)
    assert products(step, W, E, X) == 1
