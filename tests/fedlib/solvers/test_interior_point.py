"""The penalized problem of SSCA's server: Lemma 1, and several constraints."""

import pytest
import torch
from torch.func import vmap

from fedlib.solvers.interior_point import best_response
from tests.helpers.expect import close
from tests.helpers.problems import double
from tests.helpers.randoms import generator

COUNT = 400
DIM = 5


def instances(seed, M):
    """Random problems: a_0, B, A, U, tau, c, tau_0, of very different scales."""
    rng = generator(seed)

    def normal(*shape):
        return torch.randn(COUNT, *shape, generator=rng, dtype=torch.float64)

    return {
        "objective": normal(DIM),
        "linear": normal(M, DIM) * torch.exp(normal(M, 1)),
        "constant": normal(M),
        "levels": normal(M),
        "tau": torch.exp(normal() - 1),
        "penalty": 10 ** (2 * normal() + 1.5).clamp(-2, 5),
        "curvature": torch.exp(normal()),
    }


def solve(p):
    """All instances at once."""

    def alone(objective, linear, constant, levels, tau, penalty, curvature):
        options = {"tau": tau, "penalty": penalty, "curvature": curvature}
        return tuple(
            best_response(
                objective,
                linear,
                constant,
                levels,
                **options,
            )
        )

    return vmap(alone)(*p.values())


def lagrangian_minimizer(p, nu):
    total = p["curvature"] + p["tau"] * nu.sum(-1)
    slope = p["objective"] + torch.einsum("im,imd->id", nu, p["linear"])
    return -slope / (2 * total[:, None])


def excess(p, w):
    """A + B' w + tau |w|^2 - U, which is the derivative of the dual."""
    quadratic = p["tau"] * w.square().sum(-1)
    linear = torch.einsum("imd,id->im", p["linear"], w)
    return p["constant"] + linear + quadratic[:, None] - p["levels"]


def bisected(p):
    """The multiplier of one constraint: where the derivative of the concave dual changes sign."""
    low = torch.zeros(COUNT, 1).double()
    high = p["penalty"][:, None].clone()
    for _ in range(200):
        middle = (low + high) / 2
        up = excess(p, lagrangian_minimizer(p, middle)) > 0
        low = torch.where(up, middle, low)
        high = torch.where(up, high, middle)
    return high


def relative_gap(p, w, nu, slack):
    """The primal value less the dual one, relative to the primal value."""

    def value(w):
        return (p["objective"] * w).sum(-1) + p["curvature"] * w.square().sum(-1)

    minimizer = lagrangian_minimizer(p, nu)
    dual = value(minimizer) + (nu * excess(p, minimizer)).sum(-1)
    primal = value(w) + p["penalty"] * slack.sum(-1)
    return (primal - dual) / (1 + primal.abs())


def printed_multiplier(p):
    """Lemma 1, and which of its branches holds."""
    b = p["linear"].square().sum((1, 2))
    den = b + 4 * p["tau"] * (p["levels"] - p["constant"])[:, 0]
    root = ((b / den.clamp(min=1e-300)).sqrt() - 1) / p["tau"]
    nu = torch.where(den > 0, root.clamp(min=0).minimum(p["penalty"]), p["penalty"])
    branches = [
        (den > 0) & (nu == 0),  # met without effort
        (nu > 0) & (nu < p["penalty"]),
        (den > 0) & (nu == p["penalty"]),
        den <= 0,  # never met
    ]
    return nu, branches


def test_lemma_1_on_all_branches():
    p = instances(0, 1)
    p["objective"] *= 0
    p["curvature"] = torch.ones(COUNT).double()
    _, nu, _ = solve(p)
    printed, branches = printed_multiplier(p)
    torch.testing.assert_close(nu[:, 0], printed, atol=1e-12, rtol=1e-12)
    assert all(members.sum() >= 10 for members in branches)


@pytest.mark.parametrize("with_objective", [0, 1])
def test_one_constraint_against_bisection(with_objective):
    p = instances(1, 1)
    p["objective"] *= with_objective
    w, nu, slack = solve(p)
    torch.testing.assert_close(
        w,
        lagrangian_minimizer(p, bisected(p)),
        atol=1e-10,
        rtol=1e-10,
    )
    torch.testing.assert_close(slack, excess(p, w).clamp(min=0), atol=1e-12, rtol=1e-12)
    assert (nu >= 0).all()
    assert (nu[:, 0] <= p["penalty"]).all()
    assert 0.1 < (slack > 1e-9).double().mean() < 0.9


@pytest.mark.parametrize("M", [2, 3, 5, 8])
def test_several_constraints_leave_no_duality_gap(M):
    p = instances(M, M)
    w, nu, slack = solve(p)
    assert (nu >= 0).all()
    assert (nu <= p["penalty"][:, None]).all()
    gap = relative_gap(p, w, nu, slack)
    assert gap.min() > -1e-10
    assert gap.max() < 1e-9
    assert gap.median() < 1e-12
    assert ((nu > 0).sum(1) > 1).sum() > 5  # really several at once


EDGE = {"tau": 0.5, "penalty": 10.0, "curvature": 1.0}
B = double([1.0, -2.0, 0.5])


@pytest.mark.parametrize(
    ("linear", "A", "U", "nu", "slack"),
    [
        (0 * B, 0.0, 1.0, 0.0, 0.0),  # b = 0, U > A
        (0 * B, 1.0, 1.0, 10.0, 0.0),  # b = 0, U = A
        (0 * B, 2.0, 1.0, 10.0, 1.0),  # b = 0, U < A
        (B, 1.0, 1.0, 0.0, 0.0),  # A = U
        (B, 0.5, 1.0, 0.0, 0.0),  # A < U
    ],
)
def test_edge_cases_of_lemma_1(linear, A, U, nu, slack):
    response = best_response(
        0 * B[0],
        linear,
        double(A),
        double(U),
        **EDGE,
    )
    assert response.nu.item() == nu
    assert response.slack.item() == slack
    assert (response.w == 0).all()


def test_without_constraints_it_is_the_minimizer_of_the_objective():
    response = best_response(
        B[0],
        B[:0],
        double(),
        double(),
        **EDGE,
    )
    close(response.w, -B[0] / 2, 0)
    assert response.nu.shape == response.slack.shape == (0,)


@pytest.mark.parametrize(
    ("dtype", "most"),
    [(torch.float64, 1e-8), (torch.float32, 2e-5)],
)
def test_runs_together_keep_the_digits_of_a_small_slack(dtype, most):
    """Norms of 100,000 entries cancel where a constraint is just fulfilled."""
    linear = 0.01 * torch.randn(
        5,
        1,
        100_000,
        generator=generator(),
        dtype=torch.float64,
    )
    least = (linear * linear).sum(-1) / 0.4  # of the constraint's convex part, times -1

    def slack(linear, constant):
        zero = torch.zeros_like(constant)
        options = {"tau": 0.1, "penalty": 1e5, "curvature": 1.0}
        return best_response(
            0 * linear[0],
            linear,
            constant,
            zero,
            **options,
        ).slack

    assert vmap(slack)(linear.to(dtype), (least - 0.01).to(dtype)).max() < most
