"""The study of FedCMOO's toys: problems, numbers by hand, rules in both directions."""

import torch
from torch.testing import assert_close

from fedlib.core import Vectorized
from fedlib.core.sampling import seeded
from fedlib.problems.quadratics import pareto_point
from papers.fedcmoo.problems.federation import DirectionProbe, federation
from tests.helpers.expect import near
from tests.helpers.problems import double


def test_the_front_is_where_weighted_sums_of_the_losses_are_stationary():
    problem = federation(3, spread=1.0, noise=1.0, rows=3)
    middle, curvature, front = problem.heldout
    for share in (0.0, 0.3, 1.0):
        lam = double(1 - share, share)
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
        assert_close(metrics[k], value)
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
    near(float(info["mu"]), float(mu(w)))
    near(float(info["slope"]), -float(slope.norm()), rel=1e-6)
    assert info["error"] < 1e-6
    unit = slope / slope.norm()
    for key, length in (("change", 1e-4), ("change_1", 0.01), ("change_3", 1.0)):
        near(float(info[key]), float(mu(w - length * unit) - mu(w)), rel=1e-6)
    assert torch.equal(state.w, problem.w0)
