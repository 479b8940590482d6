"""The sentences with which methods refuse a problem or settings, to the letter."""

import re

import pytest
import torch

import fedlib as fl
from fedlib.problems import pareto, quadratics

CENTRES = torch.ones(4, 2, dtype=torch.float64)
CONSTRAINED = quadratics(CENTRES, 0 * CENTRES, level=1.0)
TWO_OBJECTIVES = pareto(torch.ones(4, 1, 2, 2, dtype=torch.float64))
WORK = {"lr": 0.1, "local_steps": 1, "participants": 2}

NEEDS_A_CONSTRAINT = (
    "problem must have one objective and at least one constraint, "
    "got '2 objectives, 0 constraints'."
)
NEEDS_OBJECTIVES = "problem must have objectives only, got '1 objectives, 1 constraints'."
REFUSALS = [
    (fl.FedSGM(**WORK, tolerance=0.1), TWO_OBJECTIVES, NEEDS_A_CONSTRAINT),
    (fl.PenaltyFedAvg(**WORK, tolerance=0.1, rho=1.0), TWO_OBJECTIVES, NEEDS_A_CONSTRAINT),
    (fl.MGDA(lr=0.1), CONSTRAINED, NEEDS_OBJECTIVES),
    (
        fl.Scalarized(**WORK, task=1, weights=(1.0, 2.0)),
        TWO_OBJECTIVES,
        "weights must be given without task, got (1.0, 2.0).",
    ),
    (
        fl.Scalarized(**WORK, task=3),
        TWO_OBJECTIVES,
        "task must lie in 1..2 (the problem's objectives), got 3.",
    ),
]


@pytest.mark.parametrize(("method", "problem", "rule"), REFUSALS)
def test_a_method_names_itself_and_what_does_not_fit(method, problem, rule):
    sentence = f"{type(method).__name__}: {rule}"
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        method.init(problem)
