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
LAW = fl.PowerLaw(0.5, 0.3)
STEPS = {"tau": 1.0, "rho": LAW, "gamma": LAW}


def says(sentence, call, *arguments):
    """`call(*arguments)` raises ValueError with this sentence."""
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        call(*arguments)


NEEDS_A_CONSTRAINT = (
    "problem must have one objective and at least one constraint, "
    "got '2 objectives, 0 constraints'."
)
NEEDS_OBJECTIVES = "problem must have objectives only, got '1 objectives, 1 constraints'."
TOO_LARGE = "batch_size must lie in 1..1 (a batch has distinct rows of the smallest client), got 2."
REFUSED = [
    (fl.FedSGM(**WORK, tolerance=0.1), TWO_OBJECTIVES, NEEDS_A_CONSTRAINT),
    (fl.PenaltyFedAvg(**WORK, tolerance=0.1, rho=1.0), TWO_OBJECTIVES, NEEDS_A_CONSTRAINT),
    (
        fl.MultiFedSGM(**WORK, tolerance=0.1),
        TWO_OBJECTIVES,
        "problem must have at least one constraint, got 0; without any, take FedCMOO.",
    ),
    (
        fl.MultiFedSGM(
            lr=0.1,
            local_steps=1,
            participants=5,
            tolerance=0.1,
        ),
        CONSTRAINED,
        "participants must lie in 1..4 (the problem's clients), got 5.",
    ),
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
    (
        fl.FedCMOOPref(**WORK, preference=fl.Preference((1.0, 2.0, 3.0))),
        TWO_OBJECTIVES,
        "preference.ratios must be one for each of the 2 objectives, got (1.0, 2.0, 3.0).",
    ),
    (
        fl.FedCMOOTheory(**WORK, step=0.1, gram_participants=5),
        TWO_OBJECTIVES,
        "gram_participants must lie in 1..4, got 5.",
    ),
    (
        fl.FedCMOOTheory(
            **WORK,
            step=0.1,
            gram_participants=2,
            compressor=fl.TopK(0.5),
        ),
        TWO_OBJECTIVES,
        "compressor must be unbiased, got TopK(fraction=0.5); take Identity or a scaled RandK.",
    ),
    (fl.SSCA(**STEPS, batch_size=2), CONSTRAINED, TOO_LARGE),
    (fl.ConstrainedSSCA(**STEPS, penalty=1.0, batch_size=2), CONSTRAINED, TOO_LARGE),
    (
        fl.ConstrainedSSCA(**STEPS, penalty=1.0),
        TWO_OBJECTIVES,
        "the problem must have one objective, got 2.",
    ),
    (fl.MiniBatchSGD(lr=LAW, batch_size=2), CONSTRAINED, TOO_LARGE),
]


@pytest.mark.parametrize(("method", "problem", "rule"), REFUSED)
def test_a_method_names_itself_and_what_does_not_fit(method, problem, rule):
    says(f"{type(method).__name__}: {rule}", method.init, problem)


def test_a_gram_matrix_of_one_client_is_not_refused():
    method = fl.FedCMOOTheory(**WORK, step=0.1, gram_participants=1)
    assert method.init(TWO_OBJECTIVES).weights.tolist() == [0.5, 0.5]


def test_the_norm_may_be_minimized_under_several_losses():
    method = fl.ConstrainedSSCA(**STEPS, penalty=1.0, levels=(1.0, 2.0), objective="norm")
    assert method.init(TWO_OBJECTIVES).linear.shape == (2, 2)


def with_weights(method, weights):
    """FedCMOO or MultiFedSGM with weights in place of a rule for weights."""
    if method is fl.FedCMOO:
        return method(**WORK, weights=weights)
    return method(**WORK, tolerance=0.1, weights=weights)


@pytest.mark.parametrize("method", [fl.FedCMOO, fl.MultiFedSGM])
def test_weights_that_are_numbers_mean_fixed_weights(method):
    assert with_weights(method, [3, 1]).weights == fl.FixedWeights((3, 1))
    rule = "weights[1] must be positive, got -1.0."
    says(f"{method.__name__}: {rule}", with_weights, method, (1.0, -1.0))
    says(f"{method.__name__}: weights must not be empty, got ().", with_weights, method, ())


def test_relative_weights_of_scalarized_are_divided_by_their_sum():
    state = fl.Scalarized(**WORK, weights=(3.0, 1.0)).init(TWO_OBJECTIVES)
    assert state.weights.tolist() == [0.75, 0.25]
    assert torch.equal(state.w, TWO_OBJECTIVES.w0)
