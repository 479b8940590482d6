"""The two switching rules and the identities between them."""

import pytest
import torch

from fedlib.steps import Hard, Soft
from fedlib.steps.switching import loss_weights

Z = torch.arange(-1000, 1001, dtype=torch.float64) / 1000


def test_hard_is_the_indicator_and_gives_the_threshold_to_the_objective():
    assert torch.equal(Hard()(Z), (Z > 0).double())
    assert Hard()(torch.tensor(0.0)) == 0


def test_soft_is_the_projection_of_its_line_onto_the_unit_interval():
    for beta in (0.5, 2.0, 40.0):
        line = 1 + beta * Z
        assert torch.equal(Soft(beta)(Z), torch.minimum(torch.ones(()), line.clamp(min=0)).double())
    assert Soft(40.0)(torch.tensor(0.0)) == 1
    assert Soft(40.0)(torch.tensor(-1 / 40)) == pytest.approx(0, abs=1e-6)


def test_soft_becomes_hard_as_its_sharpness_grows_except_at_zero():
    off = Z[Z != 0]
    assert torch.equal(Soft(1e9)(off), Hard()(off))
    assert Soft(1e9)(Z[Z == 0]) != Hard()(Z[Z == 0])


def test_weights_of_several_objectives_and_constraints_stand_one_after_another():
    objectives = torch.tensor([0.5, 0.25])
    constraints = torch.tensor([0.1, 0.15])
    assert torch.equal(loss_weights(objectives, constraints), torch.cat([objectives, constraints]))
    assert loss_weights(torch.tensor(0.5), torch.tensor(0.25)).tolist() == [0.5, 0.25]
