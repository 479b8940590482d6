"""SSCA's norm against cost and Theorem 5: gradients, and quantities by hand."""

import torch
from torch.func import grad

import fedlib as fl
from fedlib.core.sampling import seeded
from papers.ssca.long.problem import one_constraint
from papers.ssca.tradeoff.quantities import relative_gradient
from papers.ssca.tradeoff.theorem import STEPS, theorem_problem
from tests.helpers.expect import near

SMALL = {"pictures": 40, "clients": 4, "hidden": 5}


def test_the_gradients_parts_are_those_of_autograd():
    problem = theorem_problem(1, **SMALL)
    w = problem.w0 + 0.3 * torch.randn(problem.dim, generator=seeded(1, "split")).double()
    metrics = problem.metrics(w, problem)
    g = grad(lambda u: problem.mean_losses(u)[0])(w)
    expected = float(problem.mean_losses(w)[0])
    near(float(metrics["cost"]), expected)
    expected = float(g.norm())
    near(float(metrics["slope"]), expected)
    for ridge in (0.0, 0.02, 3.0):
        along = metrics["along"] + 2 * ridge * metrics["norm"].sqrt()
        regularized = torch.hypot(metrics["across"], along)
        expected = float((g + 2 * ridge * w).norm())
        near(float(regularized), expected, rel=1e-9)


def test_solving_with_the_constraint_makes_the_ridges_gradient_small():
    problem = theorem_problem(0, **SMALL)
    method = one_constraint(100, 0.9, **STEPS)
    trace = fl.run(
        method,
        problem,
        rounds=200,
        evaluate_every=20,
        progress=False,
    )
    _, gradient = relative_gradient(trace)
    assert gradient[0, -1] < 0.1 < gradient[0, 0]
    near(trace.metrics["cost"][0, -1], 0.9, abs=0.01)
