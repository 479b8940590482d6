"""The two switching rules and the identities between them."""

import pytest
import torch

from fedlib.steps import Hard, Soft
from fedlib.steps.switching import loss_weights

Z = torch.arange(-1000, 1001).double() / 1000


def test_hard_is_the_indicator_and_gives_the_threshold_to_the_objective():
    assert torch.equal(Hard()(Z), (Z > 0).double())


@pytest.mark.parametrize("beta", [0.5, 2.0, 40.0])
def test_soft_is_the_projection_of_its_line_onto_the_unit_interval(beta):
    assert torch.equal(Soft(beta)(Z), (1 + beta * Z).clamp(0, 1))


def test_soft_becomes_hard_as_its_sharpness_grows_except_at_zero():
    sharp = Soft(1e9)(Z)
    assert torch.equal(sharp[Z != 0], Hard()(Z)[Z != 0])
    assert sharp[Z == 0] == 1


@pytest.mark.parametrize(
    ("objectives", "constraints", "expected"),
    [
        ([0.5, 0.25], [0.125, 0.125], [0.5, 0.25, 0.125, 0.125]),
        (0.5, 0.25, [0.5, 0.25]),
    ],
)
def test_weights_of_objectives_and_constraints_stand_one_after_another(
    objectives,
    constraints,
    expected,
):
    weights = loss_weights(torch.tensor(objectives), torch.tensor(constraints))
    assert weights.tolist() == expected
