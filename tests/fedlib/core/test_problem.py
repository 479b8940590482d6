"""A problem: what `run` refuses of its functions, and copies with other tensors."""

from dataclasses import replace

import pytest
import torch

import fedlib as fl
from fedlib.problems import quadratics
from tests.helpers.expect import refuses

EASY = quadratics(torch.ones(4, 2), torch.zeros(4, 2), level=0.5)
F = EASY.losses
G = EASY.gradient
M = EASY.metrics
WRONG = {
    "losses": [
        lambda w, b: F(w, b)[:1],
        lambda w, b: F(w, b).sum(),
        lambda _, __: 3.0,
        lambda _, __: None,
        lambda w, b: list(F(w, b)),
        lambda w, b: F(w, b).long(),
        lambda w, _: w @ torch.ones(5),
        lambda _, b: b.data[7],
    ],
    "gradient": [
        lambda w, b, v: G(w, b, v)[:1],
        lambda w, b, v: G(w, b, v).sum(),
        lambda *_: None,
    ],
    "metrics": [
        lambda _, __: None,
        lambda _, __: {},
        lambda w, _: {"f": w},
        lambda _, __: {"f": 1.0},
        lambda w, _: {3: w.sum()},
        lambda w, _: {"seed": w.sum()},
        lambda w, _: {"": w.sum()},
        lambda w, p: {**M(w, p), "bad": None},
    ],
    "num_objectives": [2],
    "num_constraints": [0, 2],
}
METHOD = fl.FedSGM(lr=0.1, local_steps=1, participants=2, tolerance=0.05)


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, vs in WRONG.items() for v in vs])
def test_functions_that_give_something_else_are_refused(name, value):
    problem = replace(EASY, **{name: value})
    subject = name if name in ("gradient", "metrics") else "losses"
    words = f"{subject[:6]}*must"  # metrics are named alone, or one by one
    refuses(
        words,
        fl.run,
        METHOD,
        problem,
        rounds=1,
        progress=False,
        error=(TypeError, ValueError),
    )
