"""The study of FedCMOO's toys: problems, numbers by hand, rules in both directions."""

import numpy as np
import pytest
import torch

import fedlib as fl
from fedlib.core import Trace, Vectorized
from fedlib.core.sampling import seeded
from fedlib.problems.quadratics import pareto_point
from papers.fedcmoo.problems.federation import CLIENTS, DirectionProbe, federation
from papers.fedcmoo.theory import sketches
from papers.fedcmoo.theory.balancing import balance
from papers.fedcmoo.toy import STUDY
from papers.fedcmoo.toy.claims import C16
from papers.fedcmoo.toy.quantities import rate_squares, tolerated
from papers.fedcmoo.toy.runs import DEFAULTS, preferences
from papers.kit import store
from papers.kit.numbers import mean
from papers.kit.quantities import Quantities, Query, row, table

TINY = {
    "seeds": (0, 1),
    "rounds": 3,
    "edge_rounds": 3,
    "horizons": (4, 6),
    "tolerances": (0.01,),
    "points": 2,
}


@pytest.fixture(scope="module")
def params():
    return STUDY.resolve("quick", **TINY)


@pytest.fixture(scope="module")
def traces(params):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDLIB_RESULTS", "no-such-folder")
        return store.compute_or_load("cmoo_toy", "quick", STUDY.specs(params), progress=False)


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


def test_clients_differ_in_curvature_and_by_the_spread_in_their_centres():
    problem = federation(0, spread=2.0, dim=200)
    centres, A = problem.data
    assert problem.num_clients == CLIENTS
    assert 0.25 <= A.min() < 0.27
    assert 0.98 < A.max() <= 1
    away = (centres - centres.mean(0)).square().sum(-1).mean().sqrt()
    assert away.item() == pytest.approx(2.0, rel=0.1)
    equal = federation(0)
    assert (equal.data[0] - equal.data[0][0]).abs().max() == 0
    assert equal.data[1][0, 0, 0] != equal.data[1][1, 0, 0]


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


def test_the_tolerated_ratio_solves_its_equation():
    for epsilon in (0.1, 0.01, 1e-4):
        x = tolerated(epsilon)
        for losses in ((x, 1.0), (1.0, x)):
            assert balance(np.ones(2), np.array(losses))[0] == pytest.approx(epsilon)
    assert tolerated(0.01) == pytest.approx(1.329, abs=1e-3)  # the paper's epsilon
    assert preferences(5) == (1.0, 1.25, 1.5, 1.75, 2.0)


def test_rate_squares_take_the_weights_from_before_the_round():
    G = {"g_11": [[1.0, 4.0, 9.0]], "g_12": [[0.0, 0.0, 0.0]], "g_22": [[0.0, 4.0, 1.0]]}
    info = {"weight_1": np.array([[0.9, 1.0, 0.7, 0.3]])}
    metrics = {k: np.array(v) for k, v in G.items()}
    trace = Trace(metrics, info, np.array([0, 2, 4]), (0,), {})
    assert rate_squares(trace) == pytest.approx([(0.25 * 1 + 1.0 * 4) / 2])


def test_numbers_of_a_short_run(traces, params):
    numbers = STUDY.derive(traces, params)
    assert all(np.isfinite(n.value) for n in numbers.values())
    for spread in params["spreads"]:
        setting = {"part": "drift", "spread": spread, "E": 1}
        fedcmoo = numbers[Query.of("stationarity", **setting, method="fedcmoo")]
        fsmgda = numbers[Query.of("stationarity", **setting, method="fsmgda")]
        assert fedcmoo.value == pytest.approx(fsmgda.value, rel=1e-4)  # the same method


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
    rows = [row("falls", mean((1.0, share)), part="probe", M=M) for M, share in falls.items()]
    assert C16(Quantities.of([table(rows)], DEFAULTS)).verdict == verdict


class TestSketches:
    def test_the_estimates_are_those_of_the_library(self):
        rng = torch.Generator().manual_seed(0)
        jacobians = sketches.related_jacobians(rng, clients=3, dim=200)
        errors = sketches.gram_errors(jacobians, torch.Generator().manual_seed(1))
        sketch = fl.LowRank()
        noise = sketch.draw(4, 2, 200, torch.Generator().manual_seed(1))
        C = [sketch(H, z) for H, z in zip(jacobians, noise[:3], strict=True)]
        S = sum(C)
        h = sketch(sum(C), noise[3])
        # as printed: sum H'H + sum_{i != j} C_i C_j' + 2 sum R_i (h - C_i)', by its pairs
        raw = sum(H @ H.mT for H in jacobians)
        raw = raw + sum(C[i] @ C[j].mT for i in range(3) for j in range(3) if i != j)
        of_code = raw - (S @ S.mT - sum(c @ c.mT for c in C)) + sum(c @ (h - c).mT for c in C)
        cross = 2 * sum((H - c) @ (h - c).mT for H, c in zip(jacobians, C, strict=True))
        exact = jacobians.mean(0) @ jacobians.mean(0).mT
        for key, own_terms in (("Algorithm 6", raw), ("second term of the code", of_code)):
            G = (own_terms + cross + (own_terms + cross).mT) / 2 / 3**2
            error = ((G - exact).norm() / exact.norm()).item()
            assert errors[f"two-way, {key}"] == pytest.approx(error)

    def test_a_mask_is_unbiased_and_a_truncated_svd_is_not(self):
        rng = torch.Generator().manual_seed(0)
        jacobian = sketches.related_jacobians(rng, clients=1, dim=200)[0]
        svd, mask = (
            sketches.mean_error(s, jacobian, 200, rng) for s in (fl.LowRank(), fl.Masked())
        )
        assert svd > 0.2
        assert mask < 0.1

    def test_one_call_of_find_weights_gains_most_but_not_all(self):
        shares = sketches.gap_closed(3, 5, np.random.default_rng(0))
        assert len(shares) == 5
        assert all(0.5 < x < 1 for x in shares)
