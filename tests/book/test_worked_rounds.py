"""The rounds with numbers on the pages about methods: the library computes the same models."""

import math
import re
from pathlib import Path

import pytest
import torch

import fedlib as fl
from fedlib import problems
from tests.helpers.expect import near

METHODS = Path(__file__).resolve().parents[2] / "book" / "methods"


def final_model(method, problem, rounds):
    trace = fl.run(method, problem, rounds=rounds, progress=False)
    return float(trace.state.w)


def fractions(text):
    """The fractions of some LaTeX as numbers, each with its sign."""
    digits = re.findall(r"\\frac(?:\{(\d+)\}|(\d))(?:\{(\d+)\}|(\d))", text)
    return [int(a or b) / int(c or d) for a, b, c, d in digits]


def worked_example(switch):
    """FedSGM and the problem of two clients in one dimension that its page works out."""
    problem = problems.quadratics(
        torch.tensor([[2.0], [4.0]]),
        torch.zeros(2, 1),
        level=0.5,
    )
    method = fl.FedSGM(
        lr=0.25,
        local_steps=1,
        participants=2,
        tolerance=0.0,
        switch=switch,
    )
    return method, problem


@pytest.mark.parametrize(("switch", "column"), [(fl.Hard(), 3), (fl.Soft(2.0), 5)])
def test_three_rounds_of_fedsgm(switch, column):
    method, problem = worked_example(switch)
    lines = re.findall(
        r"^\| [123] \|.*$",
        (METHODS / "fedsgm.md").read_text("utf-8"),
        re.M,
    )
    printed = [fractions(line.split("|")[column])[0] for line in lines]
    models = [final_model(method, problem, rounds) for rounds in (1, 2, 3)]
    near(models, printed, abs=0.03)
    near(models[:2], printed[:2], abs=1e-6)


def test_where_soft_switching_settles():
    method, problem = worked_example(fl.Soft(2.0))
    near(final_model(method, problem, 100), (math.sqrt(37) - 1) / 6, abs=1e-4)


def test_two_rounds_of_fedfw():
    pulls = torch.tensor([3.0, -1.0]).view(2, 1, 1, 1)
    problem = problems.pareto(pulls).within(fl.L1Ball(1.0))
    assert final_model(fl.FedFW(lam0=0.5), problem, 1) == 0
    near(final_model(fl.FedFW(lam0=0.5), problem, 2), 2 / 3)
    near(final_model(fl.NaiveFW(), problem, 20), 0, abs=1e-6)


def test_the_shortest_combination_of_two_gradients():
    weights = fl.MinNorm()(torch.diag(torch.tensor([4.0, 1.0])), torch.tensor([0.5, 0.5]))
    near(weights.tolist(), [1 / 5, 4 / 5])


@pytest.mark.parametrize(("debias", "model"), [(False, 3 / 8), (True, 3 / 4)])
def test_the_first_round_of_ssca(debias, model):
    problem = problems.pareto(torch.tensor([3.0]).view(1, 1, 1, 1))
    half = fl.PowerLaw(0.5, 0.6)
    method = fl.SSCA(1.0, rho=half, gamma=half, debias=debias)
    near(final_model(method, problem, 1), model)
