"""Weights from Gram matrices: against brute force, optimality conditions and each other."""

from itertools import combinations, product

import numpy as np
import pytest
import torch
from torch.func import vmap
from torch.fx.experimental.proxy_tensor import make_fx

from fedlib.solvers.linear_program import program
from fedlib.solvers.min_norm import min_norm, minimum_norm
from fedlib.solvers.simplex import descend, project_simplex
from fedlib.weights import FindWeights, FixedWeights, Least, MinNorm, Preference
from fedlib.weights.rules import normalized
from tests.helpers.expect import close, refuses
from tests.helpers.grams import HARD, assert_on_simplex, gram


class TestProjection:
    def test_one_step_of_findweights_is_the_projection(self):
        G = gram(7)
        w = project_simplex(torch.arange(7.0).double())
        once = FindWeights(step=0.3, steps=1, normalize=False)(G, w)
        close(once, project_simplex(w - 0.3 * G @ w), 1e-15)


def length(w, G):
    """w' G w, the squared length of the combination of gradients."""
    return w @ G @ w


def shortest_on_some_objectives(G):
    """The least squared length, over all sets of objectives whose weights are positive."""
    count = len(G)
    lengths = []
    for size in range(1, count + 1):
        for kept in combinations(range(count), size):
            part = G[np.ix_(kept, kept)]
            x = np.linalg.solve(part, np.ones(size))
            w = x / x.sum()
            if (w >= 0).all():
                lengths.append(length(w, part))
    return min(lengths)


class TestMinNorm:
    def test_against_brute_force_over_supports(self):
        for seed, count in product(range(60), (2, 3, 4)):
            G = gram(count, seed=seed, scales=seed % 2 == 1).numpy()
            expected = shortest_on_some_objectives(G)
            actual = length(minimum_norm(G), G)
            assert actual == pytest.approx(expected, rel=1e-6, abs=1e-14 * np.abs(G).max())

    def test_two_objectives_in_closed_form(self):
        for seed in range(50):
            G = gram(2, seed=seed)
            share = (G[1, 1] - G[0, 1]) / (G[0, 0] + G[1, 1] - 2 * G[0, 1])
            w = MinNorm()(G, G[0])
            assert float(w[0]) == pytest.approx(float(share.clamp(0, 1)), abs=1e-12)

    @pytest.mark.parametrize("name", HARD)
    def test_hard_matrices_give_points_of_the_simplex(self, name):
        assert_on_simplex(MinNorm()(HARD[name], HARD[name][0]))


def lengths(w, G):
    """w' G w of many problems."""
    return torch.einsum("bi,bij,bj->b", w, G, w)


class TestFindWeights:
    @pytest.mark.parametrize("count", [2, 3, 8, 40])
    def test_run_to_convergence_it_finds_the_optimum(self, count):
        G = torch.stack([normalized(gram(count, seed=seed)) for seed in range(60)])
        step = 1 / torch.linalg.eigvalsh(G)[:, -1]
        uniform = G.new_full((60, count), 1 / count)
        w = descend(G, uniform, step, 4000)
        least = lengths(min_norm(G), G)
        assert (lengths(w, G) - least).abs().max() < 1e-6
        assert (lengths(uniform, G) - least).max() > 1e-3, "there was something to find"

    def test_it_does_not_depend_on_the_scale_of_the_gradients(self):
        G = gram(4)
        w = project_simplex(torch.arange(4.0).double())
        close(FindWeights()(G, w), FindWeights()(1e4 * G, w), 1e-5)  # but for 1e-4 below the root

    @pytest.mark.parametrize("name", HARD)
    def test_hard_matrices_give_points_of_the_simplex(self, name):
        G = HARD[name]
        uniform = G.new_full((len(G),), 1 / len(G))
        assert_on_simplex(FindWeights()(G, uniform))


class TestLeast:
    def test_the_clip_of_two_weights(self):
        clip = Least(0.002, mixture=False)
        for share in (0.0, 0.0004, 0.3, 0.9999, 1.0):
            w = clip(torch.tensor([share, 1 - share], dtype=torch.float64))
            assert float(w[0]) == pytest.approx(min(max(share, 0.001), 0.999), abs=1e-12)


def answers(G, w, losses):
    """The weights of all rules for one problem, one after another."""
    preferred = Preference()(G, losses)
    return FindWeights(steps=50)(G, w), MinNorm()(G, w), *preferred


def assert_same(actual, expected):
    for x, y in zip(actual, expected, strict=True):
        close(x, y, 1e-14)


def test_vmap_nested_vmap_and_a_captured_graph_give_what_the_loop_gives():
    G = torch.stack([gram(3, seed=seed) for seed in range(6)])
    w = project_simplex(G[:, 0])
    losses = w + 0.5
    problems = (G, w, losses)
    looped = [answers(*problem) for problem in zip(*problems, strict=True)]
    expected = [torch.stack(parts) for parts in zip(*looped, strict=True)]
    assert_same(vmap(answers)(*problems), expected)
    nested = vmap(vmap(answers))(*(x.unflatten(0, (2, 3)) for x in problems))
    assert_same([x.flatten(0, 1) for x in nested], expected)
    turned = [x.flip(0) for x in problems]
    captured = make_fx(vmap(answers), tracing_mode="fake")(*turned)
    assert_same(captured(*problems), expected)
    shared, *_ = vmap(answers, in_dims=(None, 0, None))(G[0], w, losses[0])
    for i in range(6):
        weights, *_ = answers(G[0], w[i], losses[0])
        torch.testing.assert_close(shared[i], weights)


def test_what_is_not_finite_stays_in_its_own_problem():
    G = torch.stack([gram(3), torch.full((3, 3), torch.nan).double()])
    w = G.new_full((2, 3), 1 / 3)
    solutions = (descend(G, w, w[:, 0], 10), min_norm(G), program(G, w, torch.zeros_like(w)))
    for x in solutions:
        assert torch.isfinite(x[0]).all()
        assert torch.isnan(x[1]).all()


def test_errors_are_one_sentence():
    refuses("Least: share must lie in", Least, 1.0)
    refuses("Preference: ratios[1] must be positive", Preference, ratios=(1.0, 0.0))


def test_a_negative_length_counts_as_zero_and_lengths_below_one_stay():
    G = torch.tensor([[-3.0, 0.0], [0.0, 0.25]], dtype=torch.float64)
    mean = (1e-4**0.5 + (0.25 + 1e-4) ** 0.5) / 2
    close(normalized(G), G / mean**2, 1e-12)


def test_fixed_weights_have_the_precision_of_the_matrix():
    gram = torch.eye(2, dtype=torch.float64)
    weights = FixedWeights((2.0, 1.0))(gram, gram[0])
    assert weights.dtype == torch.float64
    assert weights.tolist() == pytest.approx([2 / 3, 1 / 3], abs=1e-15)


def test_projected_weights_are_clipped_as_two_weights_are():
    least = Least(0.2, mixture=False)
    assert least(torch.tensor([0.95, 0.05])).tolist() == pytest.approx([0.9, 0.1])
    assert least(torch.tensor([0.7, 0.3])).tolist() == pytest.approx([0.7, 0.3])


@pytest.mark.parametrize(
    "rule", [FindWeights(), MinNorm(), FixedWeights((2.0, 1.0)), Preference(ratios=(2.0, 1.0))]
)
def test_weights_stay_on_the_device_of_the_matrix(rule):
    meta = torch.device("meta")  # torch joins none of its tensors with one of the CPU
    for result in rule(torch.ones(2, 2, device=meta), torch.ones(2, device=meta)):
        assert result.device == meta
