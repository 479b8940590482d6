"""Step sizes that fall with the round."""

import math
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
from tests.helpers.expect import close, refuses
from tests.helpers.problems import double

FOURTH = double(4.0).squeeze()


def test_a_power_law_at_numbers_and_tensors():
    rule = PowerLaw(0.9, 0.5)
    assert rule(1) == 0.9
    close(rule(double(1.0, 4.0, 9.0)), double(0.9, 0.45, 0.3))
    assert PowerLaw(0.3)(1000) == 0.3


def test_weights_of_an_average_lie_in_the_unit_interval():
    averaging("SSCA", "rho", PowerLaw(1.0, 0.3))
    averaging("SSCA", "rho", PowerLaw(torch.tensor(2.0), 0.3))  # a grid's numbers were checked
    words = "SSCA: rho must lie in (0, 1] for all t >= 1, got PowerLaw(scale=1.5, exponent=0.3)"
    refuses(
        words,
        averaging,
        "SSCA",
        "rho",
        PowerLaw(1.5, 0.3),
    )


@pytest.mark.parametrize(
    ("schedule", "share", "eta", "growth"),
    [
        (Convex(), 1.0, 2 / 5, 5**0.5),
        (Convex(), 0.5, 2 / 3.5, 3.5**0.5),
        (Convex(grows=False), 1.0, 2 / 5, 1.0),
        (Nonconvex(8), 1.0, 1 / 4, 2.0),
        (Nonconvex(8), 0.5, 5 ** (-2 / 3), 5 ** (1 / 3)),
        (Nonconvex(8, grows=False), 1.0, 1 / 4, 1.0),
        (Stochastic(), 1.0, 9 / 12, 12**0.5),
        (Stochastic(), 0.5, 9 / 12, 12**0.5),
        (Fixed(0.3, 0.6), 0.5, 0.3, 1.0),
    ],
)
def test_the_fourth_step(schedule, share, eta, growth):
    assert float(schedule.eta(FOURTH, share)) == pytest.approx(eta)
    assert float(schedule.growth(FOURTH, share)) == pytest.approx(growth)


@pytest.mark.parametrize(
    "schedule",
    [Convex(), Nonconvex(8), Stochastic(), Fixed(0.3, 0.6)],
)
def test_all_clients_are_the_default_share(schedule):
    assert schedule.eta(FOURTH) == schedule.eta(FOURTH, 1.0)
    assert schedule.growth(FOURTH) == schedule.growth(FOURTH, 1.0)
    rho = 0.6 if isinstance(schedule, Fixed) else 4 / 11 ** (2 / 3)
    assert float(schedule.rho(FOURTH)) == pytest.approx(rho)


@dataclass(frozen=True)
class Shared:
    """A schedule that depends on the share of clients; its step is a number, not a tensor."""

    step: float = 1.0
    less: float = 0.0

    def eta(self, t, share):  # noqa: ARG002
        return self.step * share

    def growth(self, t, share):
        return t.sqrt() - self.less * share


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"step": 2.0}, "M: schedule.eta(1) must lie in [0, 1], got 2.0."),
        ({"step": -1.0}, "M: schedule.eta(1) must lie in [0, 1], got -1.0."),
        ({"step": math.nan}, "M: schedule.eta(1) must lie in [0, 1], got nan."),
        ({"less": 1.0}, "M: schedule.growth(1) must be positive, got 0.0."),
        ({"less": -math.inf}, "M: schedule.growth(1) must be positive and finite, got inf."),
    ],
)
def test_a_schedule_is_checked_at_the_share_of_the_clients(changes, words):
    w = double(0.0, 0.0)
    check_schedule("M", Shared(), 0.5, w)
    refuses(
        words,
        check_schedule,
        "M",
        replace(Shared(), **changes),
        1.0,
        w,
    )
