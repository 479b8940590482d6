"""Models of bfloat16 and half precision: methods run on them, close to float32."""

import numpy as np
import pytest
import torch

import fedlib as fl
from fedlib import compress, problems
from tests.helpers.randoms import generator

HALF = (torch.bfloat16, torch.float16)


def constrained(dtype):
    ones = torch.ones(2, 2, dtype=dtype)
    return problems.quadratics(ones, 0 * ones)


def several(dtype):
    return problems.pareto(torch.eye(4, dtype=dtype).view(2, 1, 2, 4))


METHODS = [
    (fl.FedSGM(0.1, 2, 2, 0.05, uplink=fl.Rounding(3)), constrained),
    (
        fl.FedSGM(0.1, 2, 2, 0.05, uplink=fl.Rounding(20)),
        constrained,
    ),  # more than there are
    (fl.FedCMOO(0.1, 2, 2), several),
    (fl.FedCMOO(0.1, 2, 2, weights=fl.MinNorm()), several),
    (fl.FedCMOOPref(0.1, 2, 2, preference=fl.Preference((1.0, 2.0))), several),
]


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize(("method", "make"), METHODS)
def test_methods_run_close_to_float32(method, make, dtype):
    options = {"rounds": 5, "progress": False}
    short = fl.run(method, make(dtype), **options)
    exact = fl.run(method, make(torch.float32), **options)
    assert short.model().dtype == dtype
    for name, curve in exact.metrics.items():
        np.testing.assert_allclose(short.metrics[name], curve, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("order", ["block", "row", "column"])
def test_sketches_of_short_floats_are_close_to_those_of_float32(order, dtype):
    sketch = compress.LowRank(1.0, order=order)
    x = torch.randn(3, 10, generator=generator(0)).to(dtype)
    noise = sketch.draw(1, 3, 10, generator(1)).squeeze(0)
    short = sketch(x, noise)
    exact = sketch(x.float(), noise)
    assert short.dtype == dtype
    torch.testing.assert_close(short.float(), exact, rtol=0.05, atol=0.05)
    message = sketch.encode(short, noise)
    received = sketch.decode(message, short, noise)
    torch.testing.assert_close(received.float(), exact, rtol=0.05, atol=0.05)
