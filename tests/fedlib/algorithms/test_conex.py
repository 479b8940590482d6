"""IPP ConEx: the paper's recursion on lists, and a convex problem with a known multiplier."""

from dataclasses import replace

import pytest
import torch

import fedlib as fl
from fedlib.problems import quadratics
from tests.helpers.rounds import walk

A = torch.tensor([[3.0, 1.0]]).double()
B = torch.tensor([[-1.0, 0.5]]).double()
LEVEL = 0.5
TOLERANCE = 0.1
RADIUS = (2 * (LEVEL + TOLERANCE)) ** 0.5
DISTANCE = float((A - B).norm())
SOLUTION = (B + (A - B) * RADIUS / DISTANCE)[0]
MULTIPLIER = (DISTANCE - RADIUS) / RADIUS  # (w - a) + lambda (w - b) = 0
METHOD = fl.ConEx(
    lr=0.05,
    dual_lr=0.2,
    tolerance=TOLERANCE,
    inner_steps=50,
    prox=0.0,
    constraint_prox=0.0,
)


def problem():
    return quadratics(A, B, level=LEVEL)


def plain(method, steps):
    """The recursion of the docstring, one variable an index; returns every w, y and average."""
    a = A[0]
    b = B[0]
    u = w = torch.zeros(2).double()
    y = 0.0
    path = []
    t = 0
    points = []
    models = []
    average = u

    def phi(v):
        return (
            0.5 * (v - b) @ (v - b) - LEVEL + method.constraint_prox * (v - u) @ (v - u),
            v - b + 2 * method.constraint_prox * (v - u),
        )

    for _ in range(steps):
        if t == method.inner_steps:
            u = w = average
            points = []
            models = []
            t = 0
        if t == 0:
            line = phi(w)[0]
        else:
            old, slope = phi(points[-1])
            line = old + slope @ (w - points[-1])
        old_model = models[-1] if models else line
        s = (1 + method.theta) * line - method.theta * old_model - method.tolerance - method.level
        y = max(0.0, float(y + method.dual_lr * s))
        points.append(w)
        models.append(line)
        w = w - method.lr * (w - a + 2 * method.prox * (w - u) + y * phi(w)[1])
        t += 1
        gamma = torch.tensor([method.theta**-k for k in range(t)], dtype=torch.float64)
        ends = torch.stack([*points[1:], w])
        average = (gamma[:, None] * ends).sum(0) / gamma.sum()
        path.append((w, y, average))
    return path


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
    path = walk(method, problem(), 40)
    for (w, y, average), (*_, state, info) in zip(plain(method, 40), path, strict=True):
        torch.testing.assert_close(state.w, w, atol=1e-11, rtol=0)
        assert info["sigma"].item() == pytest.approx(y, abs=1e-11)
        torch.testing.assert_close(method.output(state), average, atol=1e-11, rtol=0)


@pytest.mark.parametrize("prox", [0.0, 0.2])
def test_finds_the_solution_and_the_multiplier(prox):
    method = replace(METHOD, prox=prox, constraint_prox=prox, steps=10)
    trace = fl.run(method, problem(), rounds=80, progress=False)
    torch.testing.assert_close(trace.state.w[0], SOLUTION, atol=2e-4, rtol=0)
    torch.testing.assert_close(torch.tensor(trace.output[0]), SOLUTION, atol=2e-3, rtol=0)
    assert trace.info["sigma"][0, -1] == pytest.approx(MULTIPLIER, abs=2e-3)
    assert MULTIPLIER > 2
    assert abs(trace.metrics["g"][0, 0]) > 0.05  # it did not start there


def test_before_the_first_step_the_output_is_the_start():
    start = replace(problem(), w0=torch.tensor([2.0, -1.0]).double())
    assert METHOD.output(METHOD.init(start)).tolist() == [2.0, -1.0]


def test_the_state_keeps_the_type_of_the_models_numbers_when_it_restarts():
    half = quadratics(A.bfloat16(), B.bfloat16(), level=LEVEL)
    method = replace(METHOD, inner_steps=2)
    *_, (_, _, state, _) = walk(method, half, 3)
    assert {values.dtype for values in state} == {torch.bfloat16}
