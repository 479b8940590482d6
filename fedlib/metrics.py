"""Measures that use a problem's exact gradient.

The Frank-Wolfe gap is (11) of "Federated Frank-Wolfe Algorithm" (ECML PKDD 2024).
"""

from functools import partial

from fedlib import checks
from fedlib.core.problem import Problem, objective_weights, pullback
from fedlib.shapes import Scalar, Vector


def mean_gradient(problem: Problem, w: Vector) -> Vector:
    """The gradient at `w` of the clients' mean objectives, averaged over clients, on all rows."""
    checks.arguments(mean_gradient, locals())
    checks.vector("mean_gradient", "w", w, problem.dim)
    weights = objective_weights(problem.num_objectives, problem.num_statistics, w)
    gradient = partial(pullback, problem.losses, problem.gradient, w, weights=weights)
    return problem.mean_over_clients(gradient)


def fw_gap(problem: Problem, w: Vector) -> Scalar:
    """The Frank-Wolfe gap, the largest <grad F(w), w - u> over the points u of the feasible set.

    It is nonnegative for a feasible w, and 0 exactly at stationary points. For convex F it is at
    least F(w) - F*. All rows of all clients enter the gradient. Raises ValueError unless the
    problem has a feasible set.
    """
    checks.arguments(fw_gap, locals())
    remedy = "build it with problem.within(L1Ball(radius))"
    checks.require(problem.set, "fw_gap", "problem", "have a feasible set", problem.name, remedy)
    assert problem.set is not None
    g = mean_gradient(problem, w)
    vertex = problem.set.lmo(g)
    return g @ (w - vertex)
