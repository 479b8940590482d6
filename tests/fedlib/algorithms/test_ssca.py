"""SSCA with samples split over clients, its SGD baseline, and the paper's network."""

from dataclasses import replace
from itertools import product
from math import exp, log, sqrt

import numpy as np
import pytest
import torch
from expect import close, refuses
from problems import np_problem, objectives
from torch.func import grad

import fedlib as fl
from fedlib.compress import Identity
from fedlib.core.sampling import seeded
from fedlib.core.types import Batch, Draw
from fedlib.data import Table, digits
from fedlib.problems import swish_network
from fedlib.sets import Ball
from fedlib.steps.surrogate import best_response

SIZES = (5, 3, 4)
RHO, GAMMA = fl.PowerLaw(0.6, 0.3), fl.PowerLaw(0.9, 0.35)
STEPS = {"tau": 0.1, "rho": RHO, "gamma": GAMMA}
NORM = {**STEPS, "penalty": 1e5, "levels": 0.6, "objective": "norm"}


def tiny(seed=0, hidden=3):
    """Twelve rows of five bytes, three classes, clients of 5, 3 and 4 rows, float64."""
    rng = torch.Generator().manual_seed(0)
    X = torch.randint(0, 256, (12, 5), generator=rng).to(torch.uint8)
    table = Table(X, torch.arange(12) % 3, ("a", "b", "c"))
    options = {"clients": 3, "hidden": hidden, "seed": seed, "dtype": torch.float64}
    problem = swish_network(table, table, **options)
    order = problem.rows.flatten()
    parts = torch.split(order, list(SIZES))
    rows = torch.stack([torch.cat([p, p[:1].expand(5 - len(p))]) for p in parts])
    return replace(problem, rows=rows, sizes=SIZES)


def small(seed=0, hidden=6, rows=120, clients=3):
    """Some 8 x 8 digits in float64."""
    table = digits()
    train = replace(table, X=table.X[:rows], y=table.y[:rows])
    test = replace(table, X=table.X[rows : rows + 60], y=table.y[rows : rows + 60])
    options = {"hidden": hidden, "seed": seed, "scale": 16.0, "dtype": torch.float64}
    return swish_network(train, test, clients=clients, **options)


def walk(algorithm, problem, rounds, engine=fl.Vectorized, seed=0):
    """States, draws and infos of some rounds."""
    state, rng, seen = algorithm.init(problem), seeded(seed, "rounds"), []
    for _ in range(rounds):
        draw = algorithm.draw(problem, rng)
        after, info = algorithm.round(engine(problem), state, draw)
        seen.append((state, draw, after, info))
        state = after
    return seen


def batch_rows(problem, draw):
    """Rows of the batch of every client."""
    return [problem.rows[i][draw.batches[i, 0]] for i in range(problem.num_clients)]


def mean_gradient(problem, w, rows):
    weight = torch.full((len(rows),), 1 / len(rows), dtype=w.dtype)
    batch = Batch(tuple(x[rows] for x in problem.data), weight)
    return grad(lambda u: problem.losses(u, batch)[0])(w)


# The recursions (30)-(34), (39), (40)-(42) with plain numbers


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


def test_debiased_and_constrained():
    problem = tiny()
    algorithm = fl.ConstrainedSSCA(**NORM, debias=True)
    for before, _, after, _ in walk(algorithm, problem, 4):
        kappa, gamma = 1 - after.left, GAMMA(after.t)
        level = torch.full((1,), 0.6, dtype=torch.float64)
        options = {"tau": 0.1, "penalty": 1e5, "curvature": 1.0}
        zero, lines = torch.zeros_like(after.w), after.linear / kappa
        found = best_response(zero, lines, after.constant / kappa, level, **options)
        close(after.w, (1 - gamma) * before.w + gamma * found.w)


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


def test_batches_are_distinct_rows_of_every_client_each_equally_likely():
    problem, algorithm = tiny(), fl.SSCA(**STEPS, batch_size=3)
    rng, counts = seeded(1, "rounds"), torch.zeros(3, 5)
    for _ in range(400):
        draw = algorithm.draw(problem, rng)
        assert draw.participants.tolist() == [0, 1, 2]
        for i in range(3):
            rows = draw.batches[i, 0].tolist()
            assert len(set(rows)) == 3
            assert max(rows) < SIZES[i]
            counts[i, rows] += 1
    for i, n in enumerate(SIZES):
        expected = 400 * 3 / n
        assert (counts[i, :n] - expected).abs().max() < 5 * sqrt(expected)


@pytest.mark.parametrize(
    "full", [fl.SSCA(**STEPS), fl.ConstrainedSSCA(**NORM), fl.MiniBatchSGD(lr=fl.PowerLaw(0.5))]
)
def test_no_batch_size_is_all_rows(full):
    problem = small()
    whole = replace(full, batch_size=40)
    a, b = walk(full, problem, 3), walk(whole, problem, 3)
    close(a[-1][2].w, b[-1][2].w)


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


# The line between server and clients, engines, grids


def test_bits_are_those_of_the_papers_table():
    problem, d = tiny(), 24
    _, _, _, plain = walk(fl.SSCA(**STEPS, batch_size=2), problem, 1)[0]
    assert plain["bits_up"] == 3 * 32 * d
    assert plain["bits_down"] == 3 * 32 * d
    _, _, _, constrained = walk(fl.ConstrainedSSCA(**NORM, batch_size=2), problem, 1)[0]
    assert constrained["bits_up"] == 3 * 32 * (d + 1)
    assert constrained["bits_down"] == 3 * 32 * d
    both = np_problem()
    constrained = fl.ConstrainedSSCA(**STEPS, penalty=10.0, levels=0.3)
    _, _, _, info = walk(constrained, both, 1)[0]
    assert info["bits_up"] == 20 * 32 * (2 * 30 + 1)


# What the methods reach


@pytest.mark.parametrize("U", [0.3, 0.6])
def test_with_full_batches_the_constraint_is_met_in_the_limit(U):
    gamma = fl.PowerLaw(0.9, 0.6)
    algorithm = fl.ConstrainedSSCA(**NORM | {"levels": U, "gamma": gamma})
    problem = small(hidden=4, rows=60)
    # after 600 rounds the cost at U = 0.3 is 0.296, after 1200 0.2987; as slow as on 300 digits
    trace = fl.run(algorithm, problem, rounds=1200, evaluate_every=400, progress=False)
    far = np.abs(trace.metrics["cost"][0] - U)
    assert (np.diff(far) < 0).all()  # nearer and nearer
    assert far[-1] < 3e-3
    w = trace.state.w[0]
    assert trace.info["slack"][0, 0, 0] > 0.1  # from far away
    assert trace.info["slack"][0, 0, -1] < 1e-6
    nu = trace.info["nu"][0, 0, -1]
    assert 0 < nu < 1e5
    slope = mean_gradient(problem, w, problem.rows.flatten())
    left = slope + 2 * w / nu  # the gradient of (27) at lambda = 1 / nu (Theorem 5)
    assert left.norm() < 0.2 * slope.norm()


def test_the_problems_own_objective_and_constraint():
    """Two quadratics, one of them a constraint: the multiplier and the solution are known."""
    both = objectives(clients=4, rows=3, tasks=2, dim=3, spread=0.1, noise=0.1)
    problem = replace(both, num_objectives=1, num_constraints=1)
    middle = both.heldout[0]
    floor = both.mean_losses(middle[1])[1]
    level = float(floor + 0.25 * (both.mean_losses(middle[0])[1] - floor))
    # F_k = |w - c_k|^2 / 2 + its floor: half of the way from c_0 to c_1, where nu = 1
    solution = middle.mean(0)
    steps = {"tau": 1.0, "rho": RHO, "gamma": fl.PowerLaw(0.9, 0.5)}
    algorithm = fl.ConstrainedSSCA(**steps, penalty=100.0, levels=level)
    trace = fl.run(algorithm, problem, rounds=400, evaluate_every=400, progress=False)
    w = trace.state.w[0]
    assert problem.mean_losses(w)[1].item() == pytest.approx(level, abs=1e-3)
    assert (w - solution).norm() < 0.02 * (middle[0] - middle[1]).norm()
    assert trace.info["nu"][0, 0, -1] == pytest.approx(1, abs=0.05)
    assert trace.info["slack"][0, 0, -1] < 1e-9


def test_a_constraint_that_does_not_bind_loses_its_multiplier():
    """Neyman-Pearson on breast cancer: the level is far above what the least objective needs."""
    problem = np_problem()
    steps = {"tau": 1.0, "rho": RHO, "gamma": fl.PowerLaw(0.9, 0.5)}
    algorithm = fl.ConstrainedSSCA(**steps, penalty=100.0, levels=0.2)
    trace = fl.run(algorithm, problem, rounds=200, evaluate_every=200, progress=False)
    assert trace.info["nu"][0, 0, :50].max() > 1
    assert trace.info["nu"][0, 0, -100:].max() == 0
    assert trace.info["slack"][0, 0, -100:].max() == 0
    f, g = problem.mean_losses(trace.state.w[0]).tolist()
    assert max(f, g) < 0.18


def test_several_constraints():
    """Two quadratics as constraints, the norm as objective: the active one fixes the norm."""
    problem = objectives(clients=4, rows=3, tasks=2, dim=3, spread=0.1, noise=0.1)
    floor = fl.run(fl.SSCA(tau=1.0, rho=RHO, gamma=GAMMA), problem, rounds=50, progress=False)
    least = problem.mean_losses(floor.state.w[0])
    levels = (float(least[0]) + 0.01, float(least[1]) + 0.5)
    steps = {"tau": 1.0, "rho": RHO, "gamma": fl.PowerLaw(0.9, 0.5)}
    algorithm = fl.ConstrainedSSCA(**steps, penalty=1e3, levels=levels, objective="norm")
    trace = fl.run(algorithm, problem, rounds=200, evaluate_every=200, progress=False)
    values = problem.mean_losses(trace.state.w[0])
    assert values[0].item() <= levels[0] + 2e-3
    assert values[1].item() <= levels[1] + 2e-3
    assert trace.info["nu"].shape == (1, 2, 200)


def test_a_growing_penalty_shrinks_the_slack():
    problem = small(hidden=4, rows=60)
    # much smaller penalties let the model fall to 0 first, where the gradient is 0 too: there it
    # stays, whatever the penalty grows to (the paper asks for a large first one)
    fixed = fl.ConstrainedSSCA(**NORM | {"penalty": 20.0})
    growing = replace(fixed, growth=3.0, patience=20, tolerance=1e-3)
    options = {"rounds": 200, "evaluate_every": 200, "progress": False}
    kept, grew = (fl.run(a, problem, **options).info for a in (fixed, growing))
    assert kept["slack"][0, 0, -1] > 0.3
    assert grew["slack"][0, 0, -1] < 1e-3
    assert (kept["penalty"] == 20).all()
    steps = np.diff(grew["penalty"][0])
    assert (steps >= 0).all()
    assert set(np.flatnonzero(steps) + 1) <= {20 * k for k in range(1, 11)}
    ratios = grew["penalty"][0, 1:] / grew["penalty"][0, :-1]
    assert set(ratios.round(9)) == {1.0, 3.0}
    assert grew["penalty"][0, -1] < 20 * 3.0**9  # it stops once the constraint is met


# The network


def test_the_networks_gradient_and_metrics():
    problem = tiny()
    rng = torch.Generator().manual_seed(5)
    w = torch.randn(24, generator=rng, dtype=torch.float64)
    weight = torch.rand(12, generator=rng, dtype=torch.float64)
    batch = Batch(problem.data, weight / weight.sum())
    two = torch.tensor([2.0], dtype=torch.float64)
    auto = grad(lambda u: 2 * problem.losses(u, batch)[0])(w)
    close(problem.gradient(w, batch, two), auto)
    x = problem.data[0].double() / 255
    first, second = w[:15].view(3, 5), w[15:].view(3, 3)
    out = torch.nn.functional.silu(x @ first.T) @ second.T
    each = torch.nn.functional.cross_entropy(out, problem.data[1], reduction="none")
    close(problem.losses(w, batch)[0], batch.weight @ each)
    found = problem.metrics(w, problem)
    close(found["cost"], each.mean())
    close(found["accuracy"], (out.argmax(1) == problem.data[1]).double().mean())
    close(found["norm"], w.square().sum())


def test_the_networks_start_split_and_subset():
    problem = small(seed=3, hidden=6, rows=121)
    assert problem.data[0].dtype == torch.uint8
    assert problem.dim == 64 * 6 + 6 * 10
    assert problem.rows.shape == (3, 40)  # one row is left out
    assert problem.rows.unique().numel() == 120
    assert not torch.equal(problem.rows.flatten().sort().values, problem.rows.flatten())
    assert problem.w0[: 64 * 6].abs().max() <= 1 / 8
    assert 0.2 < problem.w0[64 * 6 :].abs().max() <= 1 / sqrt(6)
    again, other = small(seed=3, rows=121), small(seed=4, rows=121)
    assert torch.equal(problem.w0, again.w0)
    assert torch.equal(problem.rows, again.rows)
    assert not torch.equal(problem.rows, other.rows)
    table = digits()
    few = swish_network(table, table, hidden=2, evaluate=50, scale=16.0)
    assert few.heldout[0].shape == (50,)
    assert few.heldout[0].unique().numel() == 50
    assert few.w0.dtype == torch.float32


def test_the_cost_on_a_subset_is_computed_in_parts():
    table = digits()
    whole = swish_network(table, table, clients=3, hidden=2, evaluate=1797, scale=16.0)
    double = replace(whole, w0=whole.w0.double())
    cost = double.metrics(double.w0, double)["cost"]
    close(cost, double.mean_losses(double.w0)[0], 1e-12)


# Bad input


TABLE = Table(torch.zeros(4, 2), torch.zeros(4).long(), ("a", "b"))


def test_bad_steps_and_levels():
    who = "ConstrainedSSCA"
    steps = STEPS | {"gamma": 0.5}
    refuses("SSCA: gamma must be a PowerLaw, got 0.5.", fl.SSCA, **steps, error=TypeError)
    refuses("lr must be a PowerLaw, got 0.3.", fl.MiniBatchSGD, lr=0.3, error=TypeError)
    law = "PowerLaw(scale=1.2, exponent=0.4); take a scale of at most 1."
    rho = {"rho": fl.PowerLaw(1.2, 0.4)}
    refuses(f"SSCA: rho must lie in (0, 1] for all t >= 1, got {law}", fl.SSCA, **STEPS | rho)
    make = fl.ConstrainedSSCA
    refuses(f"{who}: penalty must be positive, got 0.0.", make, **NORM | {"penalty": 0.0})
    refuses(f"{who}: levels must be positive, got 0.0.", make, **NORM | {"levels": 0.0})
    refuses(f"{who}: objective must be one of 'problem', 'norm'", make, **NORM | {"objective": "w"})


def test_what_does_not_fit_the_problem():
    who, two = "ConstrainedSSCA", fl.ConstrainedSSCA(**NORM | {"levels": (0.1, 0.2)})
    words = "levels must hold 1 numbers (the constraints of swish_network), got (0.1, 0.2)."
    refuses(f"{who}: {words}", two.init, tiny())
    words = 'swish_network has none; pass objective="norm" to constrain its losses.'
    free = fl.ConstrainedSSCA(**STEPS, penalty=1.0)
    refuses(f"{who}: the problem must have a constraint, {words}", free.init, tiny())
    words = "swish_network has one; its server step has no closed form there."
    within = replace(tiny(), set=Ball(1.0))
    rule = "the problem must have no set and no pooled constraint"
    refuses(f"{who}: {rule}, {words}", fl.ConstrainedSSCA(**NORM).init, within)
    refuses(
        "SSCA: batch_size must lie in 1..3 (the rows of the smallest client), got 4.",
        *(fl.SSCA(**STEPS, batch_size=4).init, tiny()),
    )


def test_bad_tables():
    who, nan = "swish_network", replace(TABLE, X=torch.full((4, 2), torch.nan))
    words = f"{who}: clients must lie in 1..4 (the training rows), got"
    refuses(f"{words} 5.", swish_network, TABLE, TABLE, clients=5)
    refuses(f"{words} 10.", swish_network, nan, TABLE)
    wide = replace(TABLE, X=torch.zeros(4, 3))
    words = "test must have 2 features as the training rows do, got 3."
    refuses(f"{who}: {words}", swish_network, TABLE, wide, clients=2)
    words = "train must be finite, got 8 of 8 entries NaN or infinite."
    refuses(f"{who}: {words}", swish_network, nan, TABLE, clients=2)
    words = "scale must be positive, got 0.0."
    refuses(f"{who}: {words}", swish_network, TABLE, TABLE, clients=2, scale=0.0)
