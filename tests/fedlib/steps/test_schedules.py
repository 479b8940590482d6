"""Step sizes that fall with the round."""

from dataclasses import dataclass, replace

import pytest
import torch

from fedlib.steps import PowerLaw
from fedlib.steps.schedules import (
    Convex,
    Fixed,
    Nonconvex,
    Stochastic,
    averaging,
    check_schedule,
)
from tests.helpers.expect import refuses


def test_a_power_law_at_numbers_and_tensors():
    rule = PowerLaw(0.9, 0.5)
    assert rule(1) == 0.9
    assert rule(4) == pytest.approx(0.45)
    t = torch.tensor([1.0, 4.0, 9.0], dtype=torch.float64)
    torch.testing.assert_close(rule(t), torch.tensor([0.9, 0.45, 0.3], dtype=torch.float64))
    assert PowerLaw(0.3)(1000) == 0.3


def test_weights_of_an_average_lie_in_the_unit_interval():
    averaging("SSCA", "rho", PowerLaw(1.0, 0.3))
    averaging("SSCA", "rho", PowerLaw(torch.tensor(2.0), 0.3))  # a grid's numbers were checked
    words = (
        "SSCA: rho must lie in (0, 1] for all t >= 1, got PowerLaw(scale=1.5, exponent=0.3); "
        "take a scale of at most 1."
    )
    refuses(words, averaging, "SSCA", "rho", PowerLaw(1.5, 0.3))


@pytest.mark.parametrize(
    ("schedule", "eta", "growth", "rho"),
    [
        (Convex(), 2 / 5, 5**0.5, 4 / 11 ** (2 / 3)),
        (Nonconvex(8), 1 / 4, 2.0, 4 / 11 ** (2 / 3)),
        (Stochastic(), 9 / 12, 12**0.5, 4 / 11 ** (2 / 3)),
        (Fixed(0.3, 0.6), 0.3, 1.0, 0.6),
    ],
)
def test_the_fourth_step_with_all_clients_and_with_some(schedule, eta, growth, rho):
    t = torch.tensor(4.0, dtype=torch.float64)
    assert float(schedule.eta(t, 1.0)) == float(schedule.eta(t)) == pytest.approx(eta)
    assert float(schedule.growth(t, 1.0)) == float(schedule.growth(t)) == pytest.approx(growth)
    assert float(schedule.rho(t)) == pytest.approx(rho)
    if hasattr(schedule, "grows"):
        still = replace(schedule, grows=False)
        assert float(still.growth(t)) == 1.0
        assert float(still.eta(t)) == pytest.approx(eta)
    half = {Convex: (2 / 3.5, 3.5**0.5), Nonconvex: (5 ** (-2 / 3), 5 ** (1 / 3))}
    if type(schedule) in half:
        actual = float(schedule.eta(t, 0.5)), float(schedule.growth(t, 0.5))
        assert actual == pytest.approx(half[type(schedule)])


@dataclass(frozen=True)
class Shared:
    """A schedule that depends on the share of clients; its step is a number, not a tensor."""

    step: float
    less: float

    def eta(self, t, share):  # noqa: ARG002
        return self.step * share

    def growth(self, t, share):
        return t.sqrt() - self.less * share


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (Shared(2.0, 0.0), "M: schedule.eta(1) must lie in [0, 1], got 2.0."),
        (Shared(1.0, 1.0), "M: schedule.growth(1) must be positive, got 0.0."),
    ],
)
def test_a_schedule_is_checked_at_the_share_of_the_clients(schedule, words):
    w = torch.zeros(2, dtype=torch.float64)
    check_schedule("M", schedule, 0.5, w)
    refuses(words, check_schedule, "M", schedule, 1.0, w)
