"""The study of FedCMOO's toys: problems, numbers by hand, rules in both directions."""

import pytest
import torch

import fedlib as fl
from fedlib.core import Vectorized
from fedlib.core.sampling import seeded
from fedlib.problems.quadratics import pareto_point
from papers.fedcmoo.problems.federation import DirectionProbe, federation
from papers.fedcmoo.theory import sketches
from papers.fedcmoo.toy.claims import C16
from papers.fedcmoo.toy.runs import DEFAULTS
from papers.kit.numbers import mean
from papers.kit.quantities import Quantities, row


def test_the_front_is_where_weighted_sums_of_the_losses_are_stationary():
    problem = federation(3, spread=1.0, noise=1.0, rows=3)
    middle, curvature, front = problem.heldout
    for share in (0.0, 0.3, 1.0):
        lam = torch.tensor([1 - share, share]).double()
        w = pareto_point(middle, curvature, lam)
        slope = torch.func.grad(lambda u: problem.mean_losses(u) @ lam)(w)  # noqa: B023
        assert slope.norm() < 1e-12
        metrics = problem.metrics(w, problem)
        assert metrics["stationarity"] < 1e-12
        assert metrics["distance"] < 1e-3
    away = problem.metrics(problem.w0, problem)
    assert away["stationarity"] > 0.1
    assert away["distance"] > 0.1
    assert len(front) == 501


def test_the_gram_matrix_of_the_metrics_is_that_of_autograd():
    problem = federation(1, spread=1.0, scale=20.0)
    J = torch.func.jacrev(problem.mean_losses)(problem.w0)
    metrics = problem.metrics(problem.w0, problem)
    G = J @ J.mT
    for k, value in (("g_11", G[0, 0]), ("g_12", G[0, 1]), ("g_22", G[1, 1])):
        torch.testing.assert_close(metrics[k], value)
    assert J[0].norm() > 5 * J[1].norm()  # objective 1 is the one that is enlarged


def test_the_probe_measures_what_autograd_says():
    problem = federation(2, tasks=3, spread=0.5)
    probe = DirectionProbe()
    draw = probe.draw(problem, seeded(5, "rounds"))
    state, info = probe.round(Vectorized(problem), probe.init(problem), draw)
    z = draw.downlink.double()
    w = problem.w0 + z[:10]
    r = z[10:].exp()

    def mu(u):
        share = r * problem.mean_losses(u)
        share = share / share.sum()
        return (share * (3 * share).log()).sum()

    slope = torch.func.grad(mu)(w)
    assert float(info["mu"]) == pytest.approx(float(mu(w)))
    assert float(info["slope"]) == pytest.approx(-float(slope.norm()), rel=1e-6)
    assert info["error"] < 1e-6
    unit = slope / slope.norm()
    for key, length in (("change", 1e-4), ("change_1", 0.01), ("change_3", 1.0)):
        assert float(info[key]) == pytest.approx(float(mu(w - length * unit) - mu(w)), rel=1e-6)
    assert torch.equal(state.w, problem.w0)


@pytest.mark.parametrize(
    ("falls", "verdict"),
    [
        ({2: 1.0, 5: 1.0}, "reproduced"),
        ({2: 1.0, 5: 0.99}, "mixed"),
        ({2: 0.99, 5: 1.0}, "mixed"),
        ({2: 0.5, 5: 0.5}, "not reproduced"),
    ],
)
def test_the_direction_is_judged_at_every_point(falls, verdict):
    rows = [
        row(
            "falls",
            mean((1.0, share)),
            part="probe",
            M=M,
        )
        for M, share in falls.items()
    ]
    assert C16(Quantities.of([rows], DEFAULTS)).verdict == verdict


class TestSketches:
    def test_the_estimates_are_those_of_the_library(self):
        rng = torch.Generator().manual_seed(0)
        jacobians = sketches.related_jacobians(rng, clients=3, dim=200)
        errors = sketches.gram_errors(jacobians, torch.Generator().manual_seed(1))
        sketch = fl.LowRank()
        noise = sketch.draw(4, 2, 200, torch.Generator().manual_seed(1))
        C = [sketch(jacobians[i], noise[i]) for i in range(3)]
        S = sum(C)
        h = sketch(S, noise[3])
        # as printed: sum H'H + sum_{i != j} C_i C_j' + 2 sum R_i (h - C_i)', by its pairs
        of_pairs = sum(C[i] @ C[j].mT for i in range(3) for j in range(3) if i != j)
        raw = sum(H @ H.mT for H in jacobians) + of_pairs
        of_code = raw - of_pairs + sum(c @ (h - c).mT for c in C)
        cross = 2 * sum((jacobians[i] - C[i]) @ (h - C[i]).mT for i in range(3))
        exact = jacobians.mean(0) @ jacobians.mean(0).mT
        for key, own_terms in (("Algorithm 6", raw), ("second term of the code", of_code)):
            total = own_terms + cross
            G = (total + total.mT) / 2 / 3**2
            error = ((G - exact).norm() / exact.norm()).item()
            assert errors[f"two-way, {key}"] == pytest.approx(error)
