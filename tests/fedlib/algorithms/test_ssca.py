"""SSCA with samples split over clients and its SGD baseline, round by round."""

from math import sqrt

import pytest
import torch

import fedlib as fl
from tests.helpers.expect import close
from tests.helpers.networks import (
    GAMMA,
    NORM,
    RHO,
    SIZES,
    STEPS,
    mean_gradient,
    tiny,
)
from tests.helpers.problems import np_problem
from tests.helpers.rounds import walk

TAU = STEPS["tau"]
PROBLEM = tiny()
CLIENTS = range(len(SIZES))
SHARES = [size / sum(SIZES) for size in SIZES]


def batch_rows(draw):
    """Rows of the batch of every client."""
    return [PROBLEM.rows[i][draw.batches[i, 0]] for i in CLIENTS]


def weighted_gradient(w, draw):
    """The gradient of the mean over all rows, as the round's batches estimate it."""
    pairs = zip(SHARES, batch_rows(draw), strict=True)
    return sum(share * mean_gradient(PROBLEM, w, rows) for share, rows in pairs)


def weighted_value(w, draw):
    """The mean cross entropy of all rows, as the round's batches estimate it."""
    bytes_, labels = PROBLEM.data[:2]
    w1 = w[:15].view(3, 5)
    w2 = w[15:].view(3, 3)
    value = 0.0
    for share, rows in zip(SHARES, batch_rows(draw), strict=True):
        z = bytes_[rows].double() / 255 @ w1.T
        scores = (z * torch.sigmoid(z)) @ w2.T
        value += share * torch.nn.functional.cross_entropy(scores, labels[rows])
    return float(value)


@pytest.mark.parametrize("debias", [False, True])
def test_the_unconstrained_recursions_equal_a_plain_twin(debias):
    ridge = 0.02
    method = fl.SSCA(**STEPS, batch_size=2, ridge=ridge, debias=debias)
    f = torch.zeros(24).double()
    beta = torch.zeros(24).double()
    kappa = 0.0
    w = PROBLEM.w0
    for t, (_, draw, state, info) in enumerate(walk(method, PROBLEM, 6), start=1):
        rho = RHO(t)
        f = (1 - rho) * f + rho * (weighted_gradient(w, draw) - 2 * TAU * w)  # (30), (31)
        beta = (1 - rho) * beta + rho * w
        kappa = (1 - rho) * kappa + rho
        best = -(f + 2 * ridge * beta) / (2 * TAU)  # (35), (36)
        if debias:
            assert info["kappa"].item() == pytest.approx(kappa)
            best = best / kappa
        w = (1 - GAMMA(t)) * w + GAMMA(t) * best
        close(state.w, w)


def test_the_constrained_recursions_equal_a_plain_twin_and_lemma_1():
    level = 0.9
    penalty = 50.0
    method = fl.ConstrainedSSCA(**NORM | {"levels": level, "penalty": penalty}, batch_size=2)
    A = 0.0
    f = torch.zeros(24).double()
    w = PROBLEM.w0
    multipliers = set()
    for t, (_, draw, state, info) in enumerate(walk(method, PROBLEM, 8), start=1):
        rho = RHO(t)
        g = weighted_gradient(w, draw)
        constant = weighted_value(w, draw) + TAU * float(w @ w) - float(g @ w)
        A = (1 - rho) * A + rho * constant  # (32), (39)
        f = (1 - rho) * f + rho * (g - 2 * TAU * w)
        close(state.linear[0], f)
        assert state.constant.item() == pytest.approx(A, abs=1e-12)
        b = float(f @ f)
        den = b + 4 * TAU * (level - A)
        nu = penalty
        if den > 0:
            nu = min(max((sqrt(b / den) - 1) / TAU, 0), penalty)
        best = -nu * f / (2 * (1 + nu * TAU))  # (40), (41)
        slack = max(0.0, float(f @ best) + TAU * float(best @ best) + A - level)
        assert info["nu"].item() == pytest.approx(nu, abs=1e-11)
        assert info["slack"].item() == pytest.approx(slack, abs=1e-12)
        w = (1 - GAMMA(t)) * w + GAMMA(t) * best
        close(state.w, w)
        multipliers.add(nu)
    assert len(multipliers) > 1


def test_sgd_equals_a_plain_twin():
    ridge = 0.03
    method = fl.MiniBatchSGD(
        lr=fl.PowerLaw(0.5, 0.3),
        local_steps=2,
        batch_size=2,
        ridge=ridge,
    )
    w = PROBLEM.w0
    for t, (_, draw, state, info) in enumerate(walk(method, PROBLEM, 5), start=1):
        ends = []
        for i in CLIENTS:
            u = w
            for e in range(2):
                rows = PROBLEM.rows[i][draw.batches[i, e]]
                u = u - 0.5 / t**0.3 * (mean_gradient(PROBLEM, u, rows) + 2 * ridge * u)
            ends.append(SHARES[i] * u)
        w = sum(ends)
        close(state.w, w)
        assert info["bits_up"] == 3 * 32 * 24


@pytest.mark.parametrize(
    ("method", "problem", "up", "down"),
    [
        (fl.SSCA(**STEPS), PROBLEM, 3 * 24, 3 * 24),
        (fl.ConstrainedSSCA(**NORM), PROBLEM, 3 * (24 + 1), 3 * 24),
        (
            fl.ConstrainedSSCA(**STEPS, penalty=10.0, levels=0.3),
            np_problem(),
            20 * (2 * 30 + 1),
            20 * 30,
        ),
    ],
)
def test_bits_are_those_of_the_papers_table(method, problem, up, down):
    ((_, _, _, info),) = walk(method, problem, 1)
    assert info["bits_up"] == 32 * up
    assert info["bits_down"] == 32 * down
