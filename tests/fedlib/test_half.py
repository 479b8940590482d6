"""Models of bfloat16 and half precision: methods run on them, close to float32."""

import numpy as np
import pytest
import torch

import fedlib as fl
from fedlib import compress, problems, weights
from fedlib.compress import Rounding
from tests.helpers.randoms import generator

HALF = (torch.bfloat16, torch.float16)
METHODS = {
    "rounded": fl.FedSGM(0.1, 2, 2, 0.05, uplink=Rounding(3)),
    "rounded to more digits than there are": fl.FedSGM(0.1, 2, 2, 0.05, uplink=Rounding(20)),
    "a sketch": fl.FedCMOO(0.1, 2, 2),
    "shortest combination": fl.FedCMOO(0.1, 2, 2, weights=weights.MinNorm()),
    "preference": fl.FedCMOOPref(0.1, 2, 2, preference=weights.Preference((1.0, 2.0))),
}


def problem_of(name, dtype):
    if name.startswith("rounded"):
        return problems.quadratics(torch.ones(2, 2).to(dtype), torch.zeros(2, 2).to(dtype))
    return problems.pareto(torch.eye(4).view(2, 1, 2, 4).to(dtype))


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("name", METHODS)
def test_methods_run_close_to_float32(name, dtype):
    options = {"rounds": 5, "progress": False}
    short = fl.run(METHODS[name], problem_of(name, dtype), **options)
    exact = fl.run(METHODS[name], problem_of(name, torch.float32), **options)
    assert short.model().dtype == dtype
    for metric, curve in exact.metrics.items():
        np.testing.assert_allclose(short.metrics[metric], curve, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("order", ["block", "row", "column"])
def test_sketches_of_short_floats_are_close_to_those_of_float32(order, dtype):
    sketch = compress.LowRank(1.0, order=order)
    x = torch.randn(3, 10, generator=generator(0)).to(dtype)
    noise = sketch.draw(1, 3, 10, generator(1))[0]
    short = sketch(x, noise)
    exact = sketch(x.float(), noise)
    assert short.dtype == dtype
    torch.testing.assert_close(short.float(), exact, rtol=0.05, atol=0.05)
    back = sketch.decode(sketch.encode(short, noise), short, noise)
    torch.testing.assert_close(back.float(), exact, rtol=0.05, atol=0.05)
