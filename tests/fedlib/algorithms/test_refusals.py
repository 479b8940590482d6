"""The sentences with which methods refuse a problem or settings, to the letter."""

from dataclasses import replace
from functools import partial

import pytest
import torch

import fedlib as fl
from fedlib.problems import pareto, quadratics
from tests.helpers.expect import refuses
from tests.helpers.networks import NORM, STEPS, tiny
from tests.helpers.problems import centred

CENTRES = torch.ones(4, 2).double()
CONSTRAINED = quadratics(CENTRES, 0 * CENTRES, level=1.0)
TWO_OBJECTIVES = pareto(torch.ones(4, 1, 2, 2).double())
IN_A_BALL = centred(fl.Ball(1.0))
NETWORK = tiny()
WORK = {"lr": 0.1, "local_steps": 1, "participants": 2}
NEEDS_A_CONSTRAINT = (
    "problem must have one objective and at least one constraint, "
    "got '2 objectives, 0 constraints'."
)
NEEDS_OBJECTIVES = "problem must have objectives only, got '1 objectives, 1 constraints'."
NEEDS_A_SET = "problem must have a feasible set that contains its start, got"
REFUSED = [
    (fl.FedSGM(**WORK, tolerance=0.1), TWO_OBJECTIVES, NEEDS_A_CONSTRAINT),
    (
        fl.PenaltyFedAvg(**WORK, tolerance=0.1, rho=1.0),
        TWO_OBJECTIVES,
        NEEDS_A_CONSTRAINT,
    ),
    (
        fl.MultiFedSGM(**WORK, tolerance=0.1),
        TWO_OBJECTIVES,
        "problem must have at least one constraint, got 0; without any, take FedCMOO.",
    ),
    (fl.MGDA(lr=0.1), CONSTRAINED, NEEDS_OBJECTIVES),
    (fl.Scalarized(**WORK), CONSTRAINED, NEEDS_OBJECTIVES),
    (
        fl.Scalarized(**WORK, task=1, weights=(1.0, 2.0)),
        TWO_OBJECTIVES,
        "weights must be given without task, got (1.0, 2.0).",
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
    (fl.FedFW(1.0), TWO_OBJECTIVES, f"{NEEDS_A_SET} 'pareto'; build"),
    (fl.NaiveFW(), replace(IN_A_BALL, w0=torch.ones(6).double()), NEEDS_A_SET),
    (
        fl.FedFW(1.0, split=fl.PerClient((fl.Ball(1.0),), (0, 0))),
        IN_A_BALL,
        "split.of must have an entry for each of 5 clients, got (0, 0).",
    ),
    (
        fl.FedFWReset(1.0),
        CONSTRAINED.within(fl.Ball(1.0)),
        "problem must have objectives only",
    ),
    (
        fl.ConstrainedSSCA(**STEPS, penalty=1.0),
        TWO_OBJECTIVES,
        "the problem must have one objective, got 2.",
    ),
    (
        fl.ConstrainedSSCA(**NORM | {"levels": (0.1, 0.2)}),
        NETWORK,
        "levels must hold 1 numbers (the constraints of swish_network), got (0.1, 0.2).",
    ),
    (
        fl.ConstrainedSSCA(**STEPS, penalty=1.0),
        NETWORK,
        "the problem must have a constraint, got 'swish_network'; "
        'pass objective="norm" to constrain its losses.',
    ),
    (
        fl.ConstrainedSSCA(**NORM),
        replace(NETWORK, set=fl.Ball(1.0)),
        "the problem must have no set and no pooled constraint, got 'swish_network'.",
    ),
]


@pytest.mark.parametrize(("method", "problem", "rule"), REFUSED)
def test_a_method_names_itself_and_what_does_not_fit(method, problem, rule):
    refuses(f"{type(method).__name__}: {rule}", method.init, problem)


STEEP = fl.PowerLaw(1.2, 0.4)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            partial(fl.SSCA, **STEPS | {"rho": STEEP}),
            f"SSCA: rho must lie in (0, 1] for all t >= 1, got {STEEP}; take a scale of at most 1.",
        ),
        (
            partial(fl.ConstrainedSSCA, **NORM | {"levels": (0.1, 0.0)}),
            "ConstrainedSSCA: levels[1] must be positive, got 0.0.",
        ),
        (partial(pareto, torch.zeros(2, 3)), "pareto: centres must be"),
        (
            partial(pareto, torch.zeros(1, 1, 2, 3), torch.zeros(2, 3)),
            "pareto: curvature must be positive",
        ),
    ],
)
def test_bad_settings_are_refused_when_they_are_written(make, words):
    refuses(words, make, error=(TypeError, ValueError))


WITH_WEIGHTS = [
    partial(fl.FedCMOO, **WORK),
    partial(fl.MultiFedSGM, **WORK, tolerance=0.1),
]


@pytest.mark.parametrize("make", WITH_WEIGHTS)
def test_weights_that_are_numbers_mean_fixed_weights(make):
    assert make(weights=[3, 1]).weights == fl.FixedWeights((3, 1))
    name = make.func.__name__
    refuses(f"{name}: weights[1] must be positive, got -1.0.", make, weights=(1.0, -1.0))
    refuses(f"{name}: weights must not be empty, got ().", make, weights=())


def test_there_is_a_weight_for_each_objective():
    method = fl.MultiFedSGM(**WORK, tolerance=0.1, weights=(1, 2, 3))
    words = "FixedWeights: values must hold a number for each of 1 objectives"
    refuses(words, method.init, CONSTRAINED)


def test_a_gram_matrix_of_one_client_is_not_refused():
    method = fl.FedCMOOTheory(**WORK, step=0.1, gram_participants=1)
    assert method.init(TWO_OBJECTIVES).weights.tolist() == [0.5, 0.5]


def test_the_norm_may_be_minimized_under_several_losses():
    method = fl.ConstrainedSSCA(**NORM | {"levels": (1.0, 2.0)})
    assert method.init(TWO_OBJECTIVES).linear.shape == (2, 2)


def test_relative_weights_of_scalarized_are_divided_by_their_sum():
    state = fl.Scalarized(**WORK, weights=(3.0, 1.0)).init(TWO_OBJECTIVES)
    assert state.weights.tolist() == [0.75, 0.25]
    assert torch.equal(state.w, TWO_OBJECTIVES.w0)
