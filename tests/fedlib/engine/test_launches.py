"""Kernels launched again: what the whole call gives, and the whole call where that is not sure."""

import ctypes
from types import MethodType, SimpleNamespace

import pytest
import torch

from fedlib.engine import launches as module
from fedlib.engine.launches import Launches, launches

#: As inductor writes it: memory without torch's operations, kernels, products into what is there.
START = "def call(self, x, y):\n    buffer, out = empty((2, 3)), empty((2, 2))\n    "
SOURCES = {
    "steady": "cpp_copy(x, buffer); torch.mm(buffer, y, out=out); return (out,)",
    "view": "cpp_copy(x[:], buffer); torch.mm(buffer, y, out=out); return (out[:],)",
    "new tensor": "cpp_copy(x, buffer); return (buffer @ y,)",
    "other kernel": "other_copy(x, buffer); torch.mm(buffer, y, out=out); return (out,)",
    "value seen": "out.fill_(x.sum().item()); return (out,)",
}


def copy(x, out):
    ctypes.memmove(out.data_ptr(), x.data_ptr(), x.nbytes)


def empty(shape):
    return torch._C._dynamo.guards._empty_strided_cpu(shape, (shape[1], 1), torch.float32)


def compiled(name):
    """A function, what stands for inductor's record of it, and its global names."""
    names = {"torch": torch, "empty": empty, "cpp_copy": copy, "other_copy": copy}
    exec(START + SOURCES[name], names)
    call = MethodType(names["call"], object())
    return call, [SimpleNamespace(current_callable=call)], names


def example(seed=0):
    rng = torch.Generator().manual_seed(seed)
    return [torch.randn(2, 3, generator=rng), torch.randn(3, 2, generator=rng)]


@pytest.mark.parametrize("name", ["steady", "view"])
def test_kernels_and_products_are_launched_again_on_other_arguments(name):
    call, made, names = compiled(name)
    first, other = example(), example(1)
    given = [x.clone() for x in first]
    fast = launches(call, made, given, 0)
    assert isinstance(fast, Launches)
    assert len(fast.steps) == 2
    assert names["cpp_copy"] is copy
    (one,) = fast(*first)
    (two,) = fast(*other)
    assert torch.equal(one, first[0] @ first[1])  # still, after another call
    assert torch.equal(two, other[0] @ other[1])
    assert all(torch.equal(x, y) for x, y in zip(given, first, strict=True))


def test_fixed_arguments_are_used_where_they_are():
    call, made, _ = compiled("steady")
    x, y = example()
    fast = launches(call, made, [x, y], 1)
    assert fast.arguments[0] is x
    assert fast.arguments[1] is not y


@pytest.mark.parametrize("name", ["new tensor", "other kernel", "value seen"])
def test_a_call_that_does_more_is_made_whole(name):
    call, made, names = compiled(name)
    assert launches(call, made, example(), 0) is call
    assert names["cpp_copy"] is copy


def test_large_calls_and_those_of_another_compiler_are_made_whole(monkeypatch):
    call, made, _ = compiled("steady")
    assert launches(call, [], example(), 0) is call
    assert launches(call, [SimpleNamespace(current_callable=copy)], example(), 0) is call
    monkeypatch.setattr(module, "MOST", 0)
    assert launches(call, made, example(), 0) is call
