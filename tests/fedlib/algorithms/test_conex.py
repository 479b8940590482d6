"""IPP ConEx: the paper's recursion on lists, and a convex problem with a known multiplier."""

from dataclasses import replace

import pytest
import torch

import fedlib as fl
from fedlib.problems import quadratics
from tests.helpers.expect import close
from tests.helpers.problems import double
from tests.helpers.rounds import walk

A = double(3.0, 1.0)
B = double(-1.0, 0.5)
LEVEL = 0.5
TOLERANCE = 0.1
RADIUS = (2 * (LEVEL + TOLERANCE)) ** 0.5
DISTANCE = float((A - B).norm())
SOLUTION = B + (A - B) * RADIUS / DISTANCE
MULTIPLIER = (DISTANCE - RADIUS) / RADIUS  # (w - a) + lambda (w - b) = 0
METHOD = fl.ConEx(
    lr=0.05,
    dual_lr=0.2,
    tolerance=TOLERANCE,
    inner_steps=50,
    prox=0.0,
    constraint_prox=0.0,
)
PROBLEM = quadratics(A[None], B[None], level=LEVEL)


def constraint(method, u, v):
    """The constraint at v with its proximal term around u, and its slope."""
    value = 0.5 * (v - B) @ (v - B) - LEVEL
    term = method.constraint_prox * (v - u)
    return value + term @ (v - u), v - B + 2 * term


def plain_twin(method, steps):
    """The recursion of the docstring, one variable an index; gives every w, y and average."""
    u = torch.zeros(2).double()
    average = u
    point = u
    y = 0.0
    for step in range(steps):
        if step % method.inner_steps == 0:
            u = average
            w = u
            models = []
            ends = []
            line, _ = constraint(method, u, w)
        else:
            value, slope = constraint(method, u, point)
            line = value + slope @ (w - point)
        previous = models[-1] if models else line
        s = (1 + method.theta) * line - method.theta * previous - method.tolerance
        y = max(0.0, float(y + method.dual_lr * s))
        models.append(line)
        point = w
        _, slope = constraint(method, u, w)
        w = w - method.lr * (w - A + 2 * method.prox * (w - u) + y * slope)
        ends.append(w)
        gamma = double(*(method.theta**-k for k in range(len(ends))))
        average = gamma @ torch.stack(ends) / gamma.sum()
        yield w, y, average


@pytest.mark.parametrize("theta", [1.0, 0.9])
@pytest.mark.parametrize("prox", [0.0, 0.3])
def test_equals_the_plain_recursion(theta, prox):
    method = replace(
        METHOD,
        theta=theta,
        prox=prox,
        constraint_prox=prox / 2,
        inner_steps=7,
    )
    twin = plain_twin(method, 40)
    for (w, y, average), (_, _, state, info) in zip(twin, walk(method, PROBLEM, 40), strict=True):
        close(state.w, w, 1e-11)
        assert info["sigma"].item() == pytest.approx(y, abs=1e-11)
        close(method.output(state), average, 1e-11)


@pytest.mark.parametrize("prox", [0.0, 0.2])
def test_finds_the_solution_and_the_multiplier(prox):
    method = replace(METHOD, prox=prox, constraint_prox=prox, steps=10)
    trace = fl.run(method, PROBLEM, rounds=80)
    close(trace.state.w[0], SOLUTION, 2e-4)
    close(trace.output[0], SOLUTION, 2e-3)
    assert trace.info["sigma"][0, -1] == pytest.approx(MULTIPLIER, abs=2e-3)
    assert MULTIPLIER > 2
    assert abs(trace.metrics["g"][0, 0]) > 0.05  # it did not start there


def test_before_the_first_step_the_output_is_the_start():
    start = replace(PROBLEM, w0=double(2.0, -1.0))
    assert METHOD.output(METHOD.init(start)).tolist() == [2.0, -1.0]


def test_the_state_keeps_the_type_of_the_models_numbers_when_it_restarts():
    half = quadratics(A[None].bfloat16(), B[None].bfloat16(), level=LEVEL)
    method = replace(METHOD, inner_steps=2)
    *_, (_, _, state, _) = walk(method, half, 3)
    assert {values.dtype for values in state} == {torch.bfloat16}
