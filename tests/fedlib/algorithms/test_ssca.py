"""SSCA with samples split over clients and its SGD baseline, round by round."""

from dataclasses import replace
from functools import partial
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


def softmax_of(scores):
    exponentials = [exp(score) for score in scores]
    return [x / sum(exponentials) for x in exponentials]


def statistics(w1, w2, X, y, pi):
    """A bar without its tau term (32), B bar (33), C bar (34), loop by loop."""
    cells = range(len(w1))
    inputs = range(len(X[0]))
    classes = range(len(w2))
    A = 0.0
    B = [[0.0 for _ in inputs] for _ in cells]
    C = [[0.0 for _ in cells] for _ in classes]
    for x, label, p in zip(X, y, pi, strict=True):
        z = [sum(w1[j][k] * x[k] for k in inputs) for j in cells]
        sigmoid = [1 / (1 + exp(-a)) for a in z]
        S = [a * s for a, s in zip(z, sigmoid, strict=True)]
        slope = [s * (1 + a * (1 - s)) for a, s in zip(z, sigmoid, strict=True)]
        Q = softmax_of([sum(w2[m][j] * S[j] for j in cells) for m in classes])
        A -= p * log(Q[label])
        error = [Q[m] - (m == label) for m in classes]
        for j in cells:
            back = sum(error[m] * w2[m][j] for m in classes)
            for k in inputs:
                B[j][k] += p * back * slope[j] * x[k]
            for m in classes:
                C[m][j] += p * error[m] * S[j]
    return A, B, C


def numbers(problem, w, draw):
    """A bar, and (B bar, C bar) as one flat vector, of the round's batches."""
    hidden = 3
    features = 5
    batch_size = draw.batches.shape[-1]
    X = []
    y = []
    pi = []
    for size, rows in zip(SIZES, batch_rows(problem, draw), strict=True):
        for row in rows:
            X.append([byte / 255 for byte in problem.data[0][row].tolist()])
            y.append(int(problem.data[1][row]))
            pi.append(size / (batch_size * sum(SIZES)))
    w1 = w[: hidden * features].view(hidden, features).tolist()
    w2 = w[hidden * features :].view(3, hidden).tolist()
    A, B, C = statistics(w1, w2, X, y, pi)
    flat = [entry for row in (*B, *C) for entry in row]
    return A, torch.tensor(flat, dtype=torch.float64)


def weighted_gradient(problem, w, draw):
    """The gradient of the mean over all rows, as the round's batches estimate it."""
    total = torch.zeros_like(w)
    for size, rows in zip(SIZES, batch_rows(problem, draw), strict=True):
        total = total + size / 12 * mean_gradient(problem, w, rows)
    return total


def test_the_unconstrained_recursions_equal_a_plain_twin():
    problem = tiny()
    lam = 0.02
    tau = 0.1
    algorithm = fl.SSCA(**STEPS, batch_size=2, ridge=lam)
    f = torch.zeros(24, dtype=torch.float64)
    beta = torch.zeros(24, dtype=torch.float64)
    w = problem.w0
    for t, (old_state, draw, state, _) in enumerate(walk(algorithm, problem, 6), start=1):
        rho = 0.6 / t**0.3
        gamma = 0.9 / t**0.35
        close(old_state.w, w)
        _, g = numbers(problem, w, draw)
        f = (1 - rho) * f + rho * (g - 2 * tau * w)  # (30), (31)
        beta = (1 - rho) * beta + rho * w
        best = -(f + 2 * lam * beta) / (2 * tau)  # (35), (36)
        w = (1 - gamma) * w + gamma * best
        close(state.w, w)
        close(state.linear[0], f + 2 * lam * beta)


def test_the_constrained_recursions_equal_a_plain_twin_and_lemma_1():
    problem = tiny()
    tau = 0.1
    U = 0.9
    c = 50.0
    algorithm = fl.ConstrainedSSCA(**NORM | {"levels": U, "penalty": c}, batch_size=2)
    A = 0.0
    f = torch.zeros(24, dtype=torch.float64)
    w = problem.w0
    multipliers = []
    for t, (_, draw, state, info) in enumerate(walk(algorithm, problem, 8), start=1):
        rho = 0.6 / t**0.3
        gamma = 0.9 / t**0.35
        value, g = numbers(problem, w, draw)
        A = (1 - rho) * A + rho * (value + tau * float(w @ w) - float(g @ w))  # (32), (39)
        f = (1 - rho) * f + rho * (g - 2 * tau * w)
        close(state.linear[0], f)
        assert state.constant.item() == pytest.approx(A, abs=1e-12)
        b = float(f @ f)
        den = b + 4 * tau * (U - A)
        nu = min(max((sqrt(b / den) - 1) / tau, 0), c) if den > 0 else c
        best = -nu * f / (2 * (1 + nu * tau))  # (40), (41)
        slack = max(0.0, float(f @ best) + tau * float(best @ best) + A - U)
        assert info["nu"].item() == pytest.approx(nu, abs=1e-11)
        assert info["slack"].item() == pytest.approx(slack, abs=1e-12)
        w = (1 - gamma) * w + gamma * best
        close(state.w, w)
        multipliers.append(nu)
    assert len(set(multipliers)) > 1


@pytest.mark.parametrize("ridge", [0.0, 0.05])
def test_it_is_momentum_sgd(ridge):
    """v_t = (1 - rho_t)(1 - gamma_{t-1}) v_{t-1} + rho_t / 2 tau g_t,  w <- w - gamma_t v_t."""
    problem = tiny()
    tau = 0.1
    algorithm = fl.SSCA(**STEPS, batch_size=2, ridge=ridge)
    w = problem.w0
    kept = w
    for t, (_, draw, state, _) in enumerate(walk(algorithm, problem, 30), start=1):
        g = weighted_gradient(problem, w, draw) + 2 * ridge * w
        v = (1 - RHO(t)) * kept + RHO(t) / (2 * tau) * g
        kept = (1 - GAMMA(t)) * v
        w = w - GAMMA(t) * v
        close(state.w, w)


def test_debiased_it_minimizes_the_average_of_its_surrogates():
    problem = tiny()
    tau = 0.1
    algorithm = fl.SSCA(**STEPS, batch_size=2, debias=True)
    total = torch.zeros_like(problem.w0)
    count = 0.0
    kappas = []
    for t, (old_state, draw, state, info) in enumerate(walk(algorithm, problem, 8), start=1):
        rho = RHO(t)
        gamma = GAMMA(t)
        g = weighted_gradient(problem, old_state.w, draw)
        least = old_state.w - g / (2 * tau)  # where the round's own surrogate is least
        total = (1 - rho) * total + rho * least
        count = (1 - rho) * count + rho
        close(state.w, (1 - gamma) * old_state.w + gamma * total / count)
        assert info["kappa"].item() == pytest.approx(count)
        kappas.append(float(info["kappa"]))
    assert kappas[0] == pytest.approx(0.6)
    assert kappas == sorted(kappas)


def test_the_weights_make_unequal_clients_unbiased():
    """Over all pairs of rows of two clients of different size, g is the full gradient."""
    whole_problem = tiny()
    problem = replace(whole_problem, rows=whole_problem.rows[:2], sizes=(5, 3))
    all_rows = torch.cat([problem.rows[0], problem.rows[1][:3]])
    law = fl.PowerLaw(1.0)
    algorithm = fl.SSCA(
        tau=0.1,
        rho=law,
        gamma=law,
        batch_size=1,
    )
    state = algorithm.init(problem)
    gradients = []
    for a, b in product(range(5), range(3)):
        draw = Draw(torch.arange(2), torch.tensor([[[a]], [[b]]]))
        next_state, _ = algorithm.round(fl.Vectorized(problem), state, draw)
        gradients.append(next_state.linear[0] + 0.2 * state.w)
    mean = sum(gradients) / len(gradients)
    close(mean, mean_gradient(problem, problem.w0, all_rows))


def test_sgd_equals_a_plain_twin():
    problem = tiny()
    lam = 0.03
    algorithm = fl.MiniBatchSGD(
        lr=fl.PowerLaw(0.5, 0.3),
        local_steps=2,
        batch_size=2,
        ridge=lam,
    )
    w = problem.w0
    for t, (_, draw, state, info) in enumerate(walk(algorithm, problem, 5), start=1):
        ends = []
        for i in range(3):
            u = w
            for e in range(2):
                rows = problem.rows[i][draw.batches[i, e]]
                u = u - 0.5 / t**0.3 * (mean_gradient(problem, u, rows) + 2 * lam * u)
            ends.append(SIZES[i] / 12 * u)
        w = sum(ends)
        close(state.w, w)
        assert info["bits_up"] == 3 * Identity().bits(24)


def test_bits_are_those_of_the_papers_table():
    problem = tiny()
    d = 24
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


REMEDY = "write PowerLaw(scale, exponent), or derive a frozen dataclass from it"
STEEP = fl.PowerLaw(1.2, 0.4)
#: What is made, with which options, and the sentence.
REFUSED = {
    "a number for a law": (
        partial(fl.SSCA, **STEPS | {"gamma": 0.5}),
        f"SSCA: gamma must be a PowerLaw, got 0.5; {REMEDY}",
    ),
    "a number for a learning rate": (
        partial(fl.MiniBatchSGD, lr=0.3),
        f"MiniBatchSGD: lr must be a PowerLaw, got 0.3; {REMEDY}",
    ),
    "weights above one": (
        partial(fl.SSCA, **STEPS | {"rho": STEEP}),
        f"SSCA: rho must lie in (0, 1] for all t >= 1, got {STEEP}; take a scale of at most 1.",
    ),
    "a level of zero": (
        partial(fl.ConstrainedSSCA, **NORM | {"levels": (0.1, 0.0)}),
        "ConstrainedSSCA: levels[1] must be positive, got 0.0.",
    ),
}


@pytest.mark.parametrize(("make", "words"), REFUSED.values(), ids=REFUSED)
def test_bad_steps_and_levels(make, words):
    refuses(words, make, error=(TypeError, ValueError))


IN_A_BALL = replace(tiny(), set=Ball(1.0))
UNFIT = {
    "two levels": (
        fl.ConstrainedSSCA(**NORM | {"levels": (0.1, 0.2)}),
        tiny(),
        "ConstrainedSSCA: levels must hold 1 numbers (the constraints of swish_network), "
        "got (0.1, 0.2).",
    ),
    "no constraint": (
        fl.ConstrainedSSCA(**STEPS, penalty=1.0),
        tiny(),
        "ConstrainedSSCA: the problem must have a constraint, got 'swish_network'; "
        'pass objective="norm" to constrain its losses.',
    ),
    "a set": (
        fl.ConstrainedSSCA(**NORM),
        IN_A_BALL,
        "ConstrainedSSCA: the problem must have no set and no pooled constraint, "
        "got 'swish_network'.",
    ),
    "a large batch": (
        fl.SSCA(**STEPS, batch_size=4),
        tiny(),
        "SSCA: batch_size must lie in 1..3 (a batch has distinct rows*, got 4.",
    ),
}


@pytest.mark.parametrize(("method", "problem", "words"), UNFIT.values(), ids=UNFIT)
def test_what_does_not_fit_the_problem(method, problem, words):
    refuses(words, method.init, problem)
