"""Step sizes, and what convergence asks of them."""

from dataclasses import replace

import pytest
import torch
from expect import refuses

from fedlib.steps import PowerLaw
from fedlib.steps.schedules import (
    Convex,
    Fixed,
    Nonconvex,
    Stochastic,
    averaging,
    conditions,
    power_law,
)

PAPER = ((0.4, 0.4, 0.4), (0.6, 0.9, 0.3), (0.9, 0.9, 0.3))  # a_1, a_2, alpha for B = 1, 10, 100


def test_a_power_law_at_numbers_and_tensors():
    rule = PowerLaw(0.9, 0.5)
    assert rule(1) == 0.9
    assert rule(4) == pytest.approx(0.45)
    t = torch.tensor([1.0, 4.0, 9.0], dtype=torch.float64)
    torch.testing.assert_close(rule(t), torch.tensor([0.9, 0.45, 0.3], dtype=torch.float64))
    assert PowerLaw(0.3)(1000) == 0.3


@pytest.mark.parametrize(("a1", "a2", "alpha"), PAPER)
def test_the_papers_own_step_sizes_break_two_conditions(a1, a2, alpha):
    found = {c.name: c for c in conditions(PowerLaw(a1, alpha), PowerLaw(a2, alpha + 0.05))}
    assert len(found) == 7
    assert {n for n, c in found.items() if not c.holds} == {"sum gamma^2 < inf", "sum rho^2 < inf"}
    why = found["sum gamma^2 < inf"].why
    assert why == f"gamma^2 falls as t^-{2 * alpha + 0.1:.4g}, whose sum is infinite"


def test_a_valid_family_meets_all_conditions():
    assert all(c.holds for c in conditions(PowerLaw(1.0, 0.6), PowerLaw(1.0, 0.65)))
    assert all(c.holds for c in conditions(PowerLaw(0.5, 0.51), PowerLaw(0.9, 1.0)))


@pytest.mark.parametrize(
    ("alpha", "beta", "broken"),
    [
        (0.0, 0.6, {"lim rho = 0", "sum rho^2 < inf"}),
        (0.6, 0.6, {"lim gamma / rho = 0"}),
        (0.6, 1.1, {"sum gamma = inf"}),
        (1.1, 1.2, {"sum rho = inf", "sum gamma = inf"}),
        (0.6, 0.0, {"lim gamma = 0", "sum gamma^2 < inf", "lim gamma / rho = 0"}),
        (0.5, 0.5, {"sum gamma^2 < inf", "sum rho^2 < inf", "lim gamma / rho = 0"}),
    ],
)
def test_each_condition_fails_where_it_should(alpha, beta, broken):
    found = conditions(PowerLaw(1.0, alpha), PowerLaw(1.0, beta))
    assert {c.name for c in found if not c.holds} == broken


def test_weights_of_an_average_lie_in_the_unit_interval():
    averaging("SSCA", "rho", PowerLaw(1.0, 0.3))
    averaging("SSCA", "rho", PowerLaw(torch.tensor(2.0), 0.3))  # a grid's numbers were checked
    words = "SSCA: rho must lie in (0, 1] for all t >= 1, got P"
    refuses(words, averaging, "SSCA", "rho", PowerLaw(1.5, 0.3))


def test_bad_step_sizes():
    refuses("PowerLaw: scale must be positive, got 0.0.", PowerLaw, 0.0)
    refuses("PowerLaw: exponent must be nonnegative, got -0.1.", PowerLaw, 0.5, -0.1)
    for check, name in ((power_law, "lr"), (averaging, "rho")):
        words = f"SSCA: {name} must be a PowerLaw, got 0.3."
        refuses(words, check, "SSCA", name, 0.3, error=TypeError)


def test_fixed_steps_and_weights_lie_in_the_unit_interval():
    for bad in (0.0, -0.5, 1.5):
        refuses("Fixed: step must lie in (0, 1], got", Fixed, bad)
        refuses("Fixed: weight must lie in (0, 1], got", Fixed, 0.5, bad)
    t = torch.tensor([1.0, 4.0])
    assert Fixed(1.0, 1.0).eta(t).tolist() == Fixed(1.0, 1.0).rho(t).tolist() == [1.0, 1.0]
    assert Fixed(0.25, 0.5).rho(t).tolist() == [0.5, 0.5]


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
        parts = float(schedule.eta(t, 0.5)), float(schedule.growth(t, 0.5))
        assert parts == pytest.approx(half[type(schedule)])
