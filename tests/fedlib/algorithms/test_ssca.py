"""SSCA with samples split over clients and its SGD baseline, round by round."""

from dataclasses import replace
from itertools import product
from math import exp, log, sqrt

import pytest
import torch

import fedlib as fl
from fedlib.compress import Identity
from fedlib.core.problem import Draw
from fedlib.sets import Ball
from tests.helpers.expect import close, refuses
from tests.helpers.networks import GAMMA, NORM, RHO, SIZES, STEPS, mean_gradient, tiny
from tests.helpers.problems import np_problem
from tests.helpers.rounds import walk


def batch_rows(problem, draw):
    """Rows of the batch of every client."""
    return [problem.rows[i][draw.batches[i, 0]] for i in range(problem.num_clients)]


def statistics(w1, w2, X, y, pi):
    """A bar without its tau term (32), B bar (33), C bar (34), loop by loop."""
    J, K, L = len(w1), len(X[0]), len(w2)
    A, B, C = 0.0, [[0.0] * K for _ in range(J)], [[0.0] * J for _ in range(L)]
    for x, label, p in zip(X, y, pi, strict=True):
        z = [sum(w1[j][k] * x[k] for k in range(K)) for j in range(J)]
        S = [a / (1 + exp(-a)) for a in z]
        slope = [1 / (1 + exp(-a)) * (1 + a * exp(-a) / (1 + exp(-a))) for a in z]
        out = [exp(sum(w2[m][j] * S[j] for j in range(J))) for m in range(L)]
        Q = [o / sum(out) for o in out]
        A -= p * log(Q[label])
        error = [Q[m] - (m == label) for m in range(L)]
        for j in range(J):
            back = sum(error[m] * w2[m][j] for m in range(L))
            for k in range(K):
                B[j][k] += p * back * slope[j] * x[k]
            for m in range(L):
                C[m][j] += p * error[m] * S[j]
    return A, B, C


def numbers(problem, w, draw):
    """A bar, and (B bar, C bar) as one flat vector, of the round's batches."""
    J, K, L, B = 3, 5, 3, draw.batches.shape[-1]
    X, y, pi = [], [], []
    for i, rows in enumerate(batch_rows(problem, draw)):
        X += [[v / 255 for v in problem.data[0][r].tolist()] for r in rows]
        y += problem.data[1][rows].tolist()
        pi += [SIZES[i] / (B * sum(SIZES))] * B
    w1, w2 = w[: J * K].view(J, K).tolist(), w[J * K :].view(L, J).tolist()
    A, Bbar, Cbar = statistics(w1, w2, X, y, pi)
    return A, torch.tensor([v for row in (*Bbar, *Cbar) for v in row], dtype=torch.float64)


def test_the_unconstrained_recursions_equal_a_plain_twin():
    problem, lam, tau = tiny(), 0.02, 0.1
    algorithm = fl.SSCA(**STEPS, batch_size=2, ridge=lam)
    f, beta = torch.zeros(24, dtype=torch.float64), torch.zeros(24, dtype=torch.float64)
    w = problem.w0
    for t, (before, draw, after, _) in enumerate(walk(algorithm, problem, 6), start=1):
        rho, gamma = 0.6 / t**0.3, 0.9 / t**0.35
        close(before.w, w)
        _, g = numbers(problem, w, draw)
        f = (1 - rho) * f + rho * (g - 2 * tau * w)  # (30), (31)
        beta = (1 - rho) * beta + rho * w
        best = -(f + 2 * lam * beta) / (2 * tau)  # (35), (36)
        w = (1 - gamma) * w + gamma * best
        close(after.w, w)
        close(after.linear[0], f + 2 * lam * beta)


def test_the_constrained_recursions_equal_a_plain_twin_and_lemma_1():
    problem, tau, U, c = tiny(), 0.1, 0.9, 50.0
    algorithm = fl.ConstrainedSSCA(**NORM | {"levels": U, "penalty": c}, batch_size=2)
    A, f, w = 0.0, torch.zeros(24, dtype=torch.float64), problem.w0
    multipliers = []
    for t, (_, draw, after, info) in enumerate(walk(algorithm, problem, 8), start=1):
        rho, gamma = 0.6 / t**0.3, 0.9 / t**0.35
        value, g = numbers(problem, w, draw)
        A = (1 - rho) * A + rho * (value + tau * float(w @ w) - float(g @ w))  # (32), (39)
        f = (1 - rho) * f + rho * (g - 2 * tau * w)
        close(after.linear[0], f)
        assert after.constant.item() == pytest.approx(A, abs=1e-12)
        b = float(f @ f)
        den = b + 4 * tau * (U - A)
        nu = min(max((sqrt(b / den) - 1) / tau, 0), c) if den > 0 else c
        best = -nu * f / (2 * (1 + nu * tau))  # (40), (41)
        slack = max(0.0, float(f @ best) + tau * float(best @ best) + A - U)
        assert info["nu"].item() == pytest.approx(nu, abs=1e-11)
        assert info["slack"].item() == pytest.approx(slack, abs=1e-12)
        w = (1 - gamma) * w + gamma * best
        close(after.w, w)
        multipliers.append(nu)
    assert len(set(multipliers)) > 1


@pytest.mark.parametrize("ridge", [0.0, 0.05])
def test_it_is_momentum_sgd(ridge):
    """v_t = (1 - rho_t)(1 - gamma_{t-1}) v_{t-1} + rho_t / 2 tau g_t,  w <- w - gamma_t v_t."""
    problem, tau = tiny(), 0.1
    algorithm = fl.SSCA(**STEPS, batch_size=2, ridge=ridge)
    w = problem.w0
    for t, (_, draw, after, _) in enumerate(walk(algorithm, problem, 30), start=1):
        rows = batch_rows(problem, draw)
        parts = [n / 12 * mean_gradient(problem, w, r) for n, r in zip(SIZES, rows, strict=True)]
        g = sum(parts) + 2 * ridge * w
        rho, gamma = RHO(t), GAMMA(t)
        kept = w if t == 1 else (1 - GAMMA(t - 1)) * v
        v = (1 - rho) * kept + rho / (2 * tau) * g
        w = w - gamma * v
        close(after.w, w)


def test_debiased_it_minimizes_the_average_of_its_surrogates():
    problem, tau = tiny(), 0.1
    algorithm = fl.SSCA(**STEPS, batch_size=2, debias=True)
    points, counts, kappas = [], [], []
    for t, (before, draw, after, info) in enumerate(walk(algorithm, problem, 8), start=1):
        rho, gamma = RHO(t), GAMMA(t)
        rows = batch_rows(problem, draw)
        g = sum(
            n / 12 * mean_gradient(problem, before.w, r) for n, r in zip(SIZES, rows, strict=True)
        )
        points.append(before.w - g / (2 * tau))  # where the round's own surrogate is least
        counts = [(1 - rho) * x for x in counts] + [rho]
        best = sum(c * p for c, p in zip(counts, points, strict=True)) / sum(counts)
        close(after.w, (1 - gamma) * before.w + gamma * best)
        assert info["kappa"].item() == pytest.approx(sum(counts))
        kappas.append(float(info["kappa"]))
    assert kappas[0] == pytest.approx(0.6)
    assert kappas == sorted(kappas)


def test_the_weights_make_unequal_clients_unbiased():
    """Over all pairs of rows of two clients of different size, g is the full gradient."""
    problem = tiny()
    problem = replace(problem, rows=problem.rows[:2], sizes=(5, 3))
    every = torch.cat([problem.rows[0], problem.rows[1][:3]])
    algorithm = fl.SSCA(tau=0.1, rho=fl.PowerLaw(1.0), gamma=fl.PowerLaw(1.0), batch_size=1)
    state, found = algorithm.init(problem), []
    for a, b in product(range(5), range(3)):
        draw = Draw(torch.arange(2), torch.tensor([[[a]], [[b]]]))
        after, _ = algorithm.round(fl.Vectorized(problem), state, draw)
        found.append(after.linear[0] + 0.2 * state.w)
    close(sum(found) / len(found), mean_gradient(problem, problem.w0, every))


def test_sgd_equals_a_plain_twin():
    problem, lam = tiny(), 0.03
    algorithm = fl.MiniBatchSGD(lr=fl.PowerLaw(0.5, 0.3), local_steps=2, batch_size=2, ridge=lam)
    w = problem.w0
    for t, (_, draw, after, info) in enumerate(walk(algorithm, problem, 5), start=1):
        ends = []
        for i in range(3):
            u = w
            for e in range(2):
                rows = problem.rows[i][draw.batches[i, e]]
                u = u - 0.5 / t**0.3 * (mean_gradient(problem, u, rows) + 2 * lam * u)
            ends.append(SIZES[i] / 12 * u)
        w = sum(ends)
        close(after.w, w)
        assert info["bits_up"] == 3 * Identity().bits(24)


def test_bits_are_those_of_the_papers_table():
    problem, d = tiny(), 24
    ((*_, plain),) = walk(fl.SSCA(**STEPS, batch_size=2), problem, 1)
    assert plain["bits_up"] == 3 * 32 * d
    assert plain["bits_down"] == 3 * 32 * d
    ((*_, constrained),) = walk(fl.ConstrainedSSCA(**NORM, batch_size=2), problem, 1)
    assert constrained["bits_up"] == 3 * 32 * (d + 1)
    assert constrained["bits_down"] == 3 * 32 * d
    both = np_problem()
    constrained = fl.ConstrainedSSCA(**STEPS, penalty=10.0, levels=0.3)
    ((*_, info),) = walk(constrained, both, 1)
    assert info["bits_up"] == 20 * 32 * (2 * 30 + 1)


def test_bad_steps_and_levels():
    who = "ConstrainedSSCA"
    steps = STEPS | {"gamma": 0.5}
    remedy = "write PowerLaw(scale, exponent), or derive a frozen dataclass from it"
    words = f"SSCA: gamma must be a PowerLaw, got 0.5; {remedy}"
    refuses(words, fl.SSCA, **steps, error=TypeError)
    words = f"MiniBatchSGD: lr must be a PowerLaw, got 0.3; {remedy}"
    refuses(words, fl.MiniBatchSGD, lr=0.3, error=TypeError)
    law = "PowerLaw(scale=1.2, exponent=0.4); take a scale of at most 1."
    rho = {"rho": fl.PowerLaw(1.2, 0.4)}
    refuses(f"SSCA: rho must lie in (0, 1] for all t >= 1, got {law}", fl.SSCA, **STEPS | rho)
    zero = NORM | {"levels": (0.1, 0.0)}
    refuses(f"{who}: levels[1] must be positive, got 0.0.", fl.ConstrainedSSCA, **zero)


def test_what_does_not_fit_the_problem():
    who, two = "ConstrainedSSCA", fl.ConstrainedSSCA(**NORM | {"levels": (0.1, 0.2)})
    words = "levels must hold 1 numbers (the constraints of swish_network), got (0.1, 0.2)."
    refuses(f"{who}: {words}", two.init, tiny())
    words = "got 'swish_network'; pass objective=\"norm\" to constrain its losses."
    free = fl.ConstrainedSSCA(**STEPS, penalty=1.0)
    refuses(f"{who}: the problem must have a constraint, {words}", free.init, tiny())
    words = "got 'swish_network'."
    within = replace(tiny(), set=Ball(1.0))
    rule = "the problem must have no set and no pooled constraint"
    refuses(f"{who}: {rule}, {words}", fl.ConstrainedSSCA(**NORM).init, within)
    refuses(
        "SSCA: batch_size must lie in 1..3 (a batch has distinct rows*, got 4.",
        *(fl.SSCA(**STEPS, batch_size=4).init, tiny()),
    )
