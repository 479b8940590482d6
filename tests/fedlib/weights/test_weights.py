"""Weights from Gram matrices: against brute force, optimality conditions and each other."""

from itertools import combinations

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
from tests.helpers.expect import close
from tests.helpers.grams import HARD, assert_on_simplex, gram
from tests.helpers.problems import double


def shortest_on_some_objectives(G):
    """The least w' G w, over all sets of objectives whose weights are positive."""
    lengths = []
    for size in range(1, len(G) + 1):
        for support in combinations(range(len(G)), size):
            block = G[np.ix_(support, support)]
            x = np.linalg.solve(block, np.ones(size))
            w = x / x.sum()
            if (w >= 0).all():
                lengths.append(w @ block @ w)
    return min(lengths)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_minimum_norm_weights_against_brute_force(count):
    for seed in range(60):
        G = gram(count, seed=seed, scales=seed % 2 == 1).numpy()
        w = minimum_norm(G)
        scale = np.abs(G).max()
        assert w @ G @ w == pytest.approx(
            shortest_on_some_objectives(G),
            rel=1e-6,
            abs=1e-14 * scale,
        )


@pytest.mark.parametrize("G", HARD.values(), ids=HARD)
@pytest.mark.parametrize("rule", [MinNorm(), FindWeights()])
def test_hard_matrices_give_points_of_the_simplex(rule, G):
    uniform = G.new_full((len(G),), 1 / len(G))
    assert_on_simplex(rule(G, uniform))


def lengths(w, G):
    """w' G w of many problems."""
    return torch.einsum("bi,bij,bj->b", w, G, w)


@pytest.mark.parametrize("count", [2, 3, 8, 40])
def test_run_to_convergence_findweights_finds_the_optimum(count):
    G = torch.stack([normalized(gram(count, seed=seed)) for seed in range(60)])
    step = 1 / torch.linalg.eigvalsh(G)[:, -1]
    uniform = G.new_full((60, count), 1 / count)
    w = descend(G, uniform, step, 4000)
    least = lengths(min_norm(G), G)
    assert (lengths(w, G) - least).abs().max() < 1e-6
    assert (lengths(uniform, G) - least).max() > 1e-3, "there was something to find"


def test_one_step_of_findweights_is_the_projection():
    G = gram(7)
    w = project_simplex(torch.arange(7.0).double())
    rule = FindWeights(step=0.3, steps=1, normalize=False)
    close(rule(G, w), project_simplex(w - 0.3 * G @ w), 1e-15)


def test_findweights_does_not_depend_on_the_scale_of_the_gradients():
    G = gram(4)
    w = project_simplex(torch.arange(4.0).double())
    close(FindWeights()(G, w), FindWeights()(1e4 * G, w), 1e-5)  # but for 1e-4 below the root


def test_a_negative_length_counts_as_zero_and_lengths_below_one_stay():
    G = double([-3.0, 0.0], [0.0, 0.25])
    mean = (1e-4**0.5 + (0.25 + 1e-4) ** 0.5) / 2
    close(normalized(G), G / mean**2)


@pytest.mark.parametrize("share", [0.0, 0.0004, 0.3, 0.9999, 1.0])
@pytest.mark.parametrize("least", [0.002, 0.2])
def test_the_least_of_two_weights_is_a_clip(share, least):
    w = Least(least, mixture=False)(double(share, 1 - share))
    clipped = min(max(share, least / 2), 1 - least / 2)
    close(w, double(clipped, 1 - clipped))


def test_fixed_weights_have_the_precision_of_the_matrix():
    G = torch.eye(2).double()
    close(FixedWeights((2.0, 1.0))(G, G[0]), double(2 / 3, 1 / 3), 1e-15)


def answers(G, w, losses):
    """The weights of all rules for one problem, one after another."""
    preferred = Preference()(G, losses)
    return FindWeights(steps=50)(G, w), MinNorm()(G, w), *preferred


GRAMS = torch.stack([gram(3, seed=seed) for seed in range(6)])
BEFORE = project_simplex(GRAMS[:, 0])
PROBLEMS = (GRAMS, BEFORE, BEFORE + 0.5)


def nested(*problems):
    """Maps in a map."""
    results = vmap(vmap(answers))(*(x.unflatten(0, (2, 3)) for x in problems))
    return [x.flatten(0, 1) for x in results]


def captured(*problems):
    """A map that was captured with other problems."""
    flipped = [x.flip(0) for x in problems]
    return make_fx(vmap(answers), tracing_mode="fake")(*flipped)(*problems)


@pytest.mark.parametrize("mapped", [vmap(answers), nested, captured])
def test_maps_and_captured_graphs_give_what_the_loop_gives(mapped):
    looped = [answers(*problem) for problem in zip(*PROBLEMS, strict=True)]
    expected = [torch.stack(results) for results in zip(*looped, strict=True)]
    for actual, looped_result in zip(mapped(*PROBLEMS), expected, strict=True):
        close(actual, looped_result, 1e-14)


def test_a_matrix_may_be_shared_by_many_weights():
    shared, *_ = vmap(answers, in_dims=(None, 0, None))(GRAMS[0], BEFORE, BEFORE[0])
    for weights, w in zip(shared, BEFORE, strict=True):
        expected, *_ = answers(GRAMS[0], w, BEFORE[0])
        torch.testing.assert_close(weights, expected)


def test_what_is_not_finite_stays_in_its_own_problem():
    G = torch.stack([gram(3), torch.full((3, 3), torch.nan).double()])
    w = G.new_full((2, 3), 1 / 3)
    for x in (descend(G, w, w[:, 0], 10), min_norm(G), program(G, w, torch.zeros_like(w))):
        assert torch.isfinite(x[0]).all()
        assert torch.isnan(x[1]).all()


@pytest.mark.parametrize(
    "rule",
    [FindWeights(), MinNorm(), FixedWeights((2.0, 1.0)), Preference(ratios=(2.0, 1.0))],
)
def test_weights_stay_on_the_device_of_the_matrix(rule):
    meta = torch.device("meta")  # torch joins none of its tensors with one of the CPU
    for result in rule(torch.ones(2, 2, device=meta), torch.ones(2, device=meta)):
        assert result.device == meta
