"""The penalized problem of SSCA's server: Lemma 1, and several constraints."""

import pytest
import torch
from torch.func import vmap

from fedlib.solvers.interior_point import best_response
from tests.helpers.expect import close

COUNT = 400
DIM = 5


def normal(rng, *shape):
    return torch.randn(shape, generator=rng, dtype=torch.float64)


def instances(seed, M):
    """Random problems: a_0, B, A, U, tau, c, tau_0, of very different scales."""
    rng = torch.Generator().manual_seed(seed)
    B = normal(rng, COUNT, M, DIM) * torch.exp(normal(rng, COUNT, M, 1))
    return {
        "objective": normal(rng, COUNT, DIM),
        "linear": B,
        "constant": normal(rng, COUNT, M),
        "levels": normal(rng, COUNT, M),
        "tau": torch.exp(normal(rng, COUNT) - 1),
        "penalty": 10 ** (torch.rand(COUNT, generator=rng, dtype=torch.float64) * 7 - 2),
        "curvature": torch.exp(normal(rng, COUNT)),
    }


def solve(p):
    """All instances at once."""
    leading = ("objective", "linear", "constant", "levels")

    def one(p):
        options = {name: x for name, x in p.items() if name not in leading}
        return tuple(best_response(*(p[name] for name in leading), **options))

    return vmap(one)(p)


def lagrangian_minimizer(p, nu):
    total = p["curvature"] + p["tau"] * nu.sum(-1)
    return -(p["objective"] + torch.einsum("im,imd->id", nu, p["linear"])) / (2 * total[:, None])


def excess(p, w):
    """A + B' w + tau |w|^2 - U, which is the derivative of the dual."""
    quadratic = p["tau"] * w.square().sum(-1)
    linear = torch.einsum("imd,id->im", p["linear"], w)
    return p["constant"] + linear + quadratic[:, None] - p["levels"]


def bisected(p):
    """The multiplier of one constraint: where the derivative of the concave dual changes sign."""
    low = torch.zeros(COUNT, 1, dtype=torch.float64)
    high = p["penalty"][:, None].clone()
    for _ in range(200):
        middle = (low + high) / 2
        up = excess(p, lagrangian_minimizer(p, middle)) > 0
        low = torch.where(up, middle, low)
        high = torch.where(up, high, middle)
    return high


def primal(p, w, slack):
    value = (p["objective"] * w).sum(-1) + p["curvature"] * w.square().sum(-1)
    return value + p["penalty"] * slack.sum(-1)


def dual(p, nu):
    w = lagrangian_minimizer(p, nu)
    return primal(p, w, torch.zeros_like(nu)) + (nu * excess(p, w)).sum(-1)


def test_lemma_1_against_bisection_on_all_branches():
    p = instances(0, 1)
    p["objective"] *= 0
    p["curvature"] = torch.ones(COUNT, dtype=torch.float64)
    w, nu, slack = solve(p)
    b = p["linear"].square().sum((1, 2))
    gap = (p["levels"] - p["constant"])[:, 0]
    den = b + 4 * p["tau"] * gap
    root = ((b / den.clamp(min=1e-300)).sqrt() - 1) / p["tau"]
    printed = torch.where(den > 0, root.clamp(min=0).minimum(p["penalty"]), p["penalty"])
    torch.testing.assert_close(nu[:, 0], printed, atol=1e-12, rtol=1e-12)
    branches = {
        "met without effort": (den > 0) & (nu[:, 0] == 0),
        "between": (nu[:, 0] > 0) & (nu[:, 0] < p["penalty"]),
        "at the penalty": (den > 0) & (nu[:, 0] == p["penalty"]),
        "never met": den <= 0,
    }
    assert all(members.sum() >= 10 for members in branches.values())
    sure = bisected(p)
    torch.testing.assert_close(w, lagrangian_minimizer(p, sure), atol=1e-10, rtol=1e-10)
    torch.testing.assert_close(slack, excess(p, w).clamp(min=0), atol=1e-12, rtol=1e-12)
    gap = primal(p, w, slack) - dual(p, nu)
    assert (gap.abs() / (1 + primal(p, w, slack).abs())).max() < 1e-8


def test_one_constraint_with_any_objective_against_bisection():
    p = instances(1, 1)
    w, nu, slack = solve(p)
    torch.testing.assert_close(w, lagrangian_minimizer(p, bisected(p)), atol=1e-10, rtol=1e-10)
    assert (nu >= 0).all()
    assert (nu[:, 0] <= p["penalty"]).all()
    assert 0.1 < (slack > 1e-9).double().mean() < 0.9


EDGE = {"tau": 0.5, "penalty": 10.0, "curvature": 1.0}
ZERO = torch.zeros(3, dtype=torch.float64)
ONE = torch.ones(1, dtype=torch.float64)
B = torch.tensor([[1.0, -2.0, 0.5]], dtype=torch.float64)


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
    response = best_response(ZERO, linear, A * ONE, U * ONE, **EDGE)
    assert response.nu.item() == nu
    assert response.slack.item() == slack
    assert (response.w == 0).all()


def test_without_constraints_it_is_the_minimizer_of_the_objective():
    empty = torch.zeros(0, dtype=torch.float64)
    response = best_response(B[0], torch.zeros(0, 3).double(), empty, empty, **EDGE)
    close(response.w, -B[0] / 2, 0)
    assert response.nu.shape == response.slack.shape == (0,)


@pytest.mark.parametrize("M", [2, 3, 5, 8])
def test_several_constraints_leave_no_duality_gap(M):
    p = instances(M, M)
    w, nu, slack = solve(p)
    assert (nu >= 0).all()
    assert (nu <= p["penalty"][:, None]).all()
    value = primal(p, w, slack)
    gap = (value - dual(p, nu)) / (1 + value.abs())
    assert gap.min() > -1e-10
    assert gap.max() < 1e-9
    assert gap.median() < 1e-12
    assert ((nu > 0).sum(1) > 1).sum() > 5  # really several at once


def test_runs_together_keep_the_digits_of_a_small_slack():
    """Norms of 100,000 entries cancel where a constraint is just fulfilled."""
    rng = torch.Generator().manual_seed(0)
    runs = 5
    dim = 100_000
    tau = 0.1
    linear = 0.01 * normal(rng, runs, 1, dim)
    least = (linear * linear).sum(-1) / (4 * tau)  # of the constraint's convex part, times -1

    def slack(dtype):
        def solved(linear, constant):
            return best_response(
                torch.zeros_like(linear[0]),
                linear,
                constant,
                torch.zeros_like(constant),
                tau=tau,
                penalty=1e5,
                curvature=1.0,
            ).slack

        return vmap(solved)(linear.to(dtype), (least - 0.01).to(dtype)).double()

    assert slack(torch.float64).max() < 1e-8
    assert slack(torch.float32).max() < 2e-5
