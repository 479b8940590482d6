"""Weights from Gram matrices: against brute force, optimality conditions and each other."""

from itertools import combinations, product

import numpy as np
import pytest
import torch
from expect import close, refuses
from torch.func import vmap

from fedlib.core.record import record
from fedlib.weights import FindWeights, Least, MinNorm, Preference
from fedlib.weights.preference import balancing, program, solve
from fedlib.weights.rules import descend, min_norm, minimum_norm, normalized, project_simplex


def gradients(count, dim=None, seed=0, scales=False):
    rng = torch.Generator().manual_seed(seed)
    rows = torch.randn(count, dim or 2 * count, generator=rng, dtype=torch.float64)
    spread = torch.rand(count, 1, generator=rng, dtype=torch.float64) * 6 - 3
    return rows * 10**spread if scales else rows


def gram(*arguments, **options):
    rows = gradients(*arguments, **options)
    return rows @ rows.T


#: rank one, zero, equal gradients, opposite gradients, indefinite
HARD = {
    "rank one": gram(4, dim=1),
    "zero": torch.zeros(4, 4, dtype=torch.float64),
    "equal": torch.ones(4, 4, dtype=torch.float64),
    "opposite": torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64),
    "indefinite": gram(4) - 6 * torch.eye(4, dtype=torch.float64),
    "negative": -torch.ones(4, 4, dtype=torch.float64) - torch.eye(4, dtype=torch.float64),
    "scales": gram(5, scales=True),
}


def excess(G, w):
    """How far `w` is from the least value of w'Gw on the simplex at most (the Frank-Wolfe gap)."""
    slope = G @ w
    return 2 * (w @ slope - slope.min())


def assert_on_simplex(w):
    assert (w >= 0).all()
    assert float(w.sum()) == pytest.approx(1, abs=1e-9)


class TestProjection:
    def test_it_is_the_nearest_point(self):
        rng = torch.Generator().manual_seed(0)
        v = 3 * torch.randn(300, 6, generator=rng, dtype=torch.float64)
        w = project_simplex(v)
        others = torch.distributions.utils.probs_to_logits(torch.rand(40, 6, generator=rng)).exp()
        others = torch.cat([others / others.sum(-1, keepdim=True), torch.eye(6)]).double()
        inner = torch.einsum("bm,bom->bo", v - w, others - w.unsqueeze(1))
        assert inner.max() < 1e-12  # the variational inequality
        assert (inner[:, -6:].max(1).values > -1e-12).all(), "tight at a vertex of the face"

    def test_a_point_of_the_simplex_stays(self):
        for point in ([1.0, 0.0, 0.0], [0.2, 0.3, 0.5]):
            torch.testing.assert_close(project_simplex(torch.tensor(point)), torch.tensor(point))

    def test_one_step_of_findweights_is_the_projection(self):
        G, w = gram(7), project_simplex(torch.arange(7.0).double())
        once = FindWeights(step=0.3, steps=1, normalize=False)(G, w)
        close(once, project_simplex(w - 0.3 * G @ w), 1e-15)


class TestMinNorm:
    def test_against_brute_force_over_supports(self):
        for seed, count in product(range(60), (2, 3, 4)):
            G = gram(count, seed=seed, scales=seed % 2 == 1).numpy()
            best = np.inf
            for size in range(1, count + 1):
                for kept in map(list, combinations(range(count), size)):
                    x = np.linalg.solve(G[np.ix_(kept, kept)], np.ones(size))
                    w = x / x.sum()
                    if (w >= 0).all():
                        best = min(best, w @ G[np.ix_(kept, kept)] @ w)
            w = minimum_norm(G)
            assert w @ G @ w == pytest.approx(best, rel=1e-6, abs=1e-14 * np.abs(G).max())

    def test_two_objectives_in_closed_form(self):
        for seed in range(50):
            G = gram(2, seed=seed)
            share = (G[1, 1] - G[0, 1]) / (G[0, 0] + G[1, 1] - 2 * G[0, 1])
            w = MinNorm()(G, G[0])
            assert float(w[0]) == pytest.approx(float(share.clamp(0, 1)), abs=1e-12)

    @pytest.mark.parametrize("count", [2, 5, 11, 40])
    def test_optimality_conditions(self, count):
        for seed in range(40):
            G = gram(count, dim=1 + seed, seed=seed)  # from rank one on
            w = torch.as_tensor(minimum_norm(G.numpy()))
            assert_on_simplex(w)
            assert excess(G, w) < 1e-12 * G.abs().max()

    @pytest.mark.parametrize("name", HARD)
    def test_hard_matrices_give_points_of_the_simplex(self, name):
        assert_on_simplex(MinNorm()(HARD[name], HARD[name][0]))


class TestFindWeights:
    @pytest.mark.parametrize("count", [2, 3, 5, 8, 11, 20, 40])
    def test_run_to_convergence_it_finds_the_optimum(self, count):
        G = torch.stack([normalized(gram(count, seed=seed)) for seed in range(60)])
        step = 1 / torch.linalg.eigvalsh(G)[:, -1]
        uniform = G.new_full((60, count), 1 / count)
        w, best = descend(G, uniform, step, 4000), min_norm(G)
        value = torch.einsum("bi,bij,bj->b", w, G, w)
        least = torch.einsum("bi,bij,bj->b", best, G, best)
        assert (value - least).abs().max() < 1e-6
        start = torch.einsum("bi,bij,bj->b", uniform, G, uniform)
        assert (start - least).max() > 1e-3, "there was something to find"

    def test_the_defaults_go_most_of_the_way_in_one_round(self):
        G = normalized(gram(5, scales=True, seed=3))
        uniform = G.new_full((5,), 0.2)
        w, best = FindWeights()(G, uniform), MinNorm()(G, uniform)
        start, now, least = (v @ G @ v for v in (uniform, w, best))
        assert least < now < least + 0.2 * (start - least)

    def test_step_zero_leaves_the_weights(self):
        w = torch.tensor([0.3, 0.7])
        assert torch.equal(FindWeights(step=0.0)(torch.eye(2), w), w)

    def test_it_does_not_depend_on_the_scale_of_the_gradients(self):
        G, w = gram(4), project_simplex(torch.arange(4.0).double())
        a, b = FindWeights()(G, w), FindWeights()(1e4 * G, w)
        close(a, b, 1e-5)  # but for the 1e-4 below the root

    @pytest.mark.parametrize("name", HARD)
    def test_hard_matrices_give_points_of_the_simplex(self, name):
        G = HARD[name]
        assert_on_simplex(FindWeights()(G, G.new_full((len(G),), 1 / len(G))))


class TestLeast:
    def test_both_forms_reach_the_bound_and_keep_the_simplex(self):
        corner = torch.tensor([1.0, 0.0, 0.0, 0.0])
        for mixture in (True, False):
            w = Least(0.2, mixture)(corner)
            assert_on_simplex(w)
            torch.testing.assert_close(w.min(), torch.tensor(0.05))
        mixed = Least(0.2)(torch.tensor([0.25, 0.35, 0.4, 0.0]))
        torch.testing.assert_close(mixed, torch.tensor([0.25, 0.33, 0.37, 0.05]))

    def test_the_clip_of_two_weights(self):
        clip = Least(0.002, mixture=False)
        for first in (0.0, 0.0004, 0.3, 0.9999, 1.0):
            w = clip(torch.tensor([first, 1 - first], dtype=torch.float64))
            assert float(w[0]) == pytest.approx(min(max(first, 0.001), 0.999), abs=1e-12)


def vertices(G, bound):
    """All vertices of the feasible set of the programme, by solving for every active set."""
    count = len(G)
    rows = np.vstack([np.eye(count), G])
    right = np.append(np.zeros(count), bound)
    real = np.flatnonzero(np.isfinite(right))
    for active in combinations(real, count - 1):
        A = np.vstack([np.ones(count), rows[list(active)]])
        if abs(np.linalg.det(A)) > 1e-9:
            w = np.linalg.solve(A, np.append(1.0, right[list(active)]))
            if (rows[real] @ w >= right[real] - 1e-9).all():
                yield w


class TestProgramme:
    def test_against_all_vertices(self):
        rng = np.random.default_rng(0)
        for seed, count in product(range(40), (2, 3, 4)):
            G = gram(count, seed=seed).numpy() / count
            bound = np.where(rng.random(count) < 0.3, -np.inf, -rng.random(count))
            gain = rng.normal(size=count)
            *w, fallback = solve(G, gain, bound)
            best = max(gain @ v for v in vertices(G, bound))
            assert fallback == 0
            assert gain @ w == pytest.approx(best, abs=1e-7)
            assert (G @ w >= bound - 1e-7).all()
            assert_on_simplex(np.array(w))

    def test_never_without_a_solution_for_gram_matrices(self):
        for seed, count in product(range(40), (2, 3, 5, 11, 40)):
            dim = (1, count // 2 + 1, 2 * count)[seed % 3]
            G = gram(count, dim=dim, seed=seed, scales=seed % 2 == 1 and dim > count)
            losses = torch.rand(count, generator=torch.Generator().manual_seed(seed)).double()
            w, _, fallback = Preference()(G, losses)
            assert fallback == 0
            assert_on_simplex(w)

    @pytest.mark.parametrize("name", HARD)
    @pytest.mark.parametrize("losses", [[3.0, 2.0, 1.0, 2.0, 2.0], [1.0] * 5])
    def test_hard_matrices_give_points_of_the_simplex(self, name, losses):
        G = HARD[name]
        w, _, fallback = Preference()(G, G.new_tensor(losses[: len(G)]))
        assert_on_simplex(w)
        if name == "negative":  # (G w)_k < 0 for the only members of J*
            assert fallback == 1
            assert torch.equal(w, MinNorm()(G, w))
        elif name != "indefinite":
            assert fallback == 0

    def test_a_matrix_without_a_solution_by_hand(self):
        G = torch.tensor([[-1.0, -1.0], [-1.0, 3.0]], dtype=torch.float64)
        w, mu, fallback = Preference()(G, torch.tensor([2.0, 1.0]).double())
        assert mu > 0.01
        assert fallback == 1  # J* = {1}, and (G w)_1 = -1 everywhere
        assert_on_simplex(w)

    def test_the_sets_by_hand(self):
        # a = (a_1, a_2) with a_1 > 0 > a_2; orthogonal gradients: J = {1}, Jbar = {2}, J* = {1}
        G = torch.diag(torch.tensor([1.0, 2.0])).double()
        losses = torch.tensor([3.0, 1.0]).double()
        a, _ = balancing(losses, torch.ones(2).double())
        assert a[0] > 0 > a[1]
        w, _, _ = Preference()(G, losses)
        torch.testing.assert_close(w, torch.tensor([1.0, 0.0]).double())  # all on the worse loss
        # within the tolerance: the largest total descent, the second gradient is longer
        w, mu, _ = Preference()(G, torch.tensor([1.05, 1.0]).double())
        assert mu < 0.01
        torch.testing.assert_close(w, torch.tensor([0.0, 1.0]).double())
        w, _, _ = Preference(epsilon=1e-5)(G, torch.tensor([1.05, 1.0]).double())
        torch.testing.assert_close(w, torch.tensor([1.0, 0.0]).double())

    def test_dominance_and_star_ratio_change_the_constraints(self):
        G = torch.tensor([[4.0, -0.9], [-0.9, 1.0]]).double()
        losses = torch.tensor([1.0, 0.99]).double()
        printed, all_fall = (Preference(dominance=d)(G, losses).weights for d in (False, True))
        a, _ = balancing(losses, torch.ones(2).double())
        assert (G @ a)[1] < -0.001
        close((G @ printed)[1], (G @ a)[1], 1e-6)
        close((G @ all_fall)[1], 0 * a[1], 1e-6)
        G3 = torch.tensor([[4.0, -1.0, -1.0], [-1.0, 1.0, 0.0], [-1.0, 0.0, 9.0]]).double()
        losses = torch.tensor([1.0, 0.95, 0.2]).double()
        loose = Preference(star_ratio=0.9)(G3, losses).weights
        assert (G3 @ loose)[1] >= -1e-7, "the second is among the worst, and must not rise"

    def test_a_loss_of_zero_is_no_fault(self):
        w, mu, _ = Preference()(gram(3), torch.tensor([0.0, 1.0, 2.0]).double())
        assert_on_simplex(w)
        assert torch.isfinite(mu)


class TestBalancing:
    @pytest.mark.parametrize("count", [2, 5, 40])
    def test_it_is_the_gradient_of_the_imbalance(self, count):
        rng = torch.Generator().manual_seed(count)
        F = torch.rand(count, generator=rng, dtype=torch.float64) + 0.1
        r = torch.rand(count, generator=rng, dtype=torch.float64) + 0.5
        a, _ = balancing(F, r)
        slope = torch.func.grad(lambda x: balancing(x, r)[1])(F)
        torch.testing.assert_close(slope, a / (r * F).sum(), atol=1e-13, rtol=1e-9)
        assert abs(float(a @ F)) < 1e-12

    def test_the_imbalance_falls_along_the_balancing_direction(self):
        rng = torch.Generator().manual_seed(0)
        for _ in range(50):
            centres = torch.randn(3, 6, generator=rng, dtype=torch.float64)
            w = 2 * torch.randn(6, generator=rng, dtype=torch.float64)
            r = torch.rand(3, generator=rng, dtype=torch.float64) + 0.2

            def losses(u, centres=centres):
                return 0.5 * ((u - centres) ** 2).sum(-1)

            a, mu = balancing(losses(w), r)
            direction = a @ (w - centres)
            after = balancing(losses(w - 1e-4 * direction), r)[1]
            promised = -1e-4 * direction @ direction / (r * losses(w)).sum()
            assert after < mu
            assert float(after - mu) == pytest.approx(float(promised), rel=0.05)


def answers(G, w, losses):
    return FindWeights(steps=50)(G, w), MinNorm()(G, w), Preference()(G, losses)


def test_vmap_nested_vmap_and_the_recorder_give_what_the_loop_gives():
    G = torch.stack([gram(3, seed=s) for s in range(6)])
    w = project_simplex(G[:, 0])
    losses = w + 0.5
    loop = [answers(*each) for each in zip(G, w, losses, strict=True)]
    once = vmap(answers)(G, w, losses)
    nested = vmap(vmap(answers))(*(x.unflatten(0, (2, 3)) for x in (G, w, losses)))
    replayed = record(vmap(answers), G.flip(0), w.flip(0), losses.flip(0))(G, w, losses)
    shared = vmap(answers, in_dims=(None, 0, None))(G[0], w, losses[0])
    for i, each in enumerate(loop):
        parts = (each[0], each[1], *each[2])
        for got in (once, replayed, [x.flatten(0, 1) for x in (nested[0], nested[1])]):
            flat = [got[0], got[1], *(got[2] if len(got) > 2 else ())]
            for part, whole in zip(parts, flat, strict=False):
                close(whole[i], part, 1e-14)
    for i in range(6):
        torch.testing.assert_close(shared[0][i], answers(G[0], w[i], losses[0])[0])


def test_what_is_not_finite_stays_in_its_own_problem():
    G = torch.stack([gram(3), torch.full((3, 3), torch.nan).double()])
    w = G.new_full((2, 3), 1 / 3)
    found = (descend(G, w, w[:, 0], 10), min_norm(G), program(G, w, torch.zeros_like(w)))
    for x in found:
        assert torch.isfinite(x[0]).all()
        assert torch.isnan(x[1]).all()


def test_errors_are_one_sentence():
    refuses("FindWeights: step must be nonnegative", FindWeights, step=-1.0)
    refuses("FindWeights: steps must be at least 1", FindWeights, steps=0)
    refuses("Least: share must lie in", Least, 1.0)
    refuses("Preference: ratios must be positive", Preference, ratios=(1.0, 0.0))
    refuses("Preference: epsilon must be nonnegative", Preference, epsilon=-0.1)
    refuses("for each of the 3 objectives", Preference(ratios=(1.0, 2.0)).check, "X", 3)


def test_a_weight_that_the_solver_leaves_below_zero_is_zero(monkeypatch):
    answer = type("Answer", (), {"x": np.array([-1e-9, 0.5, 0.7])})
    monkeypatch.setattr("scipy.optimize.linprog", lambda *_, **__: answer)
    w = solve(np.eye(3), np.ones(3), np.full(3, -np.inf))
    np.testing.assert_allclose(w, [0.0, 0.5 / 1.2, 0.7 / 1.2, 0.0], atol=1e-15)
    assert w.min() == 0.0


def test_a_negative_length_counts_as_zero_and_lengths_below_one_stay():
    G = torch.tensor([[-3.0, 0.0], [0.0, 0.25]], dtype=torch.float64)
    mean = (1e-4**0.5 + (0.25 + 1e-4) ** 0.5) / 2
    close(normalized(G), G / mean**2, 1e-12)
