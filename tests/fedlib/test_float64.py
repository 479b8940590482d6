"""No computation in float64 passes through float32, and float32 agrees with float64.

A spy looks at every operation of torch: a float32 tensor that comes from none, unless all it holds
are whole numbers, is a detour that loses digits. Random draws are what they are, some in float32.
"""

import itertools
from functools import cache
from importlib import import_module

import pytest
import torch
from problems import np_problem
from randoms import generator
from randoms import numbers as normal
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from fedlib import compress, metrics, models, problems, sets, steps, weights
from fedlib.compress.sketches import Columns
from fedlib.core import Loop
from fedlib.core.problem import Batch, pullback
from fedlib.problems.classification import Samples, linear_model
from fedlib.problems.fairness import Rows
from fedlib.sets.vertices import gauge_of, wire_of
from fedlib.testing.examples import examples
from fedlib.weights import gram, rules
from papers.fedsgm.cartpole import trpo
from papers.fedsgm.cartpole.trpo import Gaussian, Logits

SURROGATE = import_module("fedlib.steps.surrogate")
SINGLE = torch.float32
THIRD = 1 / 3  # no float32 is equal to it


class Spy(TorchDispatchMode):
    """Collects the operations that make a float32 tensor from none."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        given = pytree.tree_leaves((args, kwargs))
        drawn = function in (torch.ops.aten.rand.generator, torch.ops.aten.randn.generator)
        if not drawn and not any(isinstance(x, Tensor) and x.dtype == SINGLE for x in given):
            made = (x for x in pytree.tree_leaves(out) if isinstance(x, Tensor))
            if any(x.dtype == SINGLE and not bool((x == x.round()).all()) for x in made):
                self.found.append(str(function))
        return out


def spied(function, *arguments):
    """What a function gives, once it made no float32 that loses digits."""
    with Spy() as spy:
        found = function(*arguments)
    assert spy.found == []
    return found


def numbers(tree):
    """The tensors of numbers in a tree, in float64."""
    leaves = (x for x in pytree.tree_leaves(tree) if isinstance(x, Tensor))
    return [x.double() for x in leaves if x.is_floating_point()]


def doubled(tree):
    """The same tree, its floats in float64."""

    def one(x):
        return x.double() if isinstance(x, Tensor) and x.is_floating_point() else x

    return pytree.tree_map(one, tree)


def wide(problem):
    """The same problem in float64."""
    made = {k: doubled(v) for k, v in problem.tensors().items()}
    return problem.with_tensors(made)


def test_the_spy_sees_a_detour():
    flags, whole = torch.tensor([True, True]), torch.tensor([1, 3])
    detours = (
        lambda: torch.where(flags, THIRD, -THIRD).double(),
        lambda: (flags / whole).double(),
        lambda: torch.full((2,), THIRD, dtype=torch.float64).float(),
        lambda: flags * THIRD,
    )
    for detour in detours:
        with Spy() as spy:
            detour()
        assert spy.found
    assert spied(lambda: torch.where(flags, 1.0, 0.0).double()).tolist() == [1, 1]


def set_cases():
    x, flat = normal(6), normal(6, seed=1)
    kinds = {
        "ball": sets.Ball(THIRD),
        "box": sets.Box(-THIRD, 0.7),
        "l1": sets.L1Ball(THIRD),
        "simplex": sets.Simplex(THIRD),
        "nuclear": sets.NuclearBall(THIRD, 2, 3),
        "blocks": sets.Blocks((sets.L1Ball(THIRD), sets.Ball(0.7)), (4, 2)),
    }
    for name, kind in kinds.items():

        def whole(x, kind=kind):
            s, wire = kind.lmo(x), wire_of(kind, 6)
            back = wire.decode(wire.encode(s), x)
            inside = kind.contains(s), kind.contains(x)
            return kind.project(x), s, back, gauge_of(kind, x), inside

        yield name, whole, (x,)
        yield f"{name}, again", whole, (5 * flat,)


def compressor_cases():
    x, jacobian = normal(8), normal(3, 40)
    for c in (compress.Identity(), compress.TopK(0.4), compress.RandK(0.4), compress.Rounding(3)):
        noise = c.draw(1, 8, generator())
        own = noise[0] if len(noise) else ()
        yield repr(c), lambda x, c=c, n=own: (c(x, n), c.decode(c.encode(c(x, n), n), x, n)), (x,)
    for s in (
        *(compress.Exact(), compress.Largest(), compress.Masked(), compress.LowRank()),
        Columns(compress.RandK(0.3)),
    ):
        noise = s.draw(1, 3, 40, generator())
        own = noise[0] if len(noise) else ()
        yield repr(s), lambda x, s=s, n=own: s(x, n), (jacobian,)


def weight_cases():
    rows = normal(3, 5)
    G, w = rows @ rows.T, torch.tensor([0.5, 0.25, 0.25])
    yield "find weights", weights.FindWeights(step=0.01, steps=50), (G, w)
    yield "min norm", weights.MinNorm(), (G, w)
    yield "least", weights.Least(0.1), (w,)
    yield "least, projected", weights.Least(0.1, mixture=False), (w,)
    yield "preference", weights.Preference(ratios=(1.0, 2.0, 3.1)), (G, w + 1)
    yield "project simplex", rules.project_simplex, (normal(4, 3),)
    yield "normalized", rules.normalized, (G,)
    each = normal(4, 3, 3)
    yield "combine", gram.combine, (each @ each.mT, normal(4, 3, 5), each)


def step_cases():
    t, z = torch.tensor(7.0), normal(9)
    for rule in (steps.PowerLaw(0.7, 0.3), steps.Convex(), steps.Nonconvex(50), steps.Stochastic()):
        names = [n for n in ("eta", "growth", "rho") if hasattr(rule, n)]

        def whole(t, rule=rule, names=names):
            share = (0.8,)
            each = [getattr(rule, n)(t, *share[: n != "rho"]) for n in names]
            return each or rule(t)

        yield repr(rule), whole, (t,)
    yield "hard", steps.Hard(), (z,)
    yield "soft", steps.Soft(THIRD), (z,)
    w, B, A = normal(5), normal(3, 5, seed=2), normal(3, seed=3)

    def response(w, B, A):
        mean = SURROGATE.Surrogate.zero(w, 3).averaged(w, B, A, rho=0.3, tau=0.7)
        options = {"tau": 0.7, "penalty": 3.1, "curvature": 0.9}
        return mean, mean.debiased(), SURROGATE.best_response(w, B, A, A - 0.1, **options)

    yield "surrogate", response, (w, B, A)


def policy_cases():
    u, chance = normal(7, 2), torch.rand(7, generator=generator())
    for head in (Gaussian(), Logits()):

        def whole(u, v, chance, head=head):
            action = head.sample(u, chance)
            return action, head.log_prob(u, action), head.kl(u, v), head.fisher(u, v)

        yield repr(head), whole, (u, normal(7, 2, seed=1), chance)
    amount, ended = normal(9, 2), (normal(9, 2) > 1).float()
    yield "advantages", lambda *x: trpo.advantages(*x, 0.97, 0.9), (amount, normal(10, 2), ended)
    yield "normalized advantages", trpo.normalized, (amount,)
    A = normal(5, 5)
    definite = A @ A.T + torch.eye(5)
    yield "gradient", lambda A, b: trpo.conjugate_gradient(lambda x: A @ x, b, 4), (definite, A[0])
    yield "search", lambda s: trpo.backtrack(lambda x: x @ x, s, 0.1, 0.7, 9), (normal(5),)
    features = trpo.cosine_features
    yield "features", lambda z: features(z, trpo.cosine_basis(3, 4, z)), (normal(6, 3),)
    yield "ridge", lambda X, y: trpo.ridge(X, y, 0.01), (normal(9, 3), normal(9, 2))


CASES = {
    name: (function, arguments)
    for name, function, arguments in itertools.chain(
        *(set_cases(), compressor_cases(), weight_cases()),
        *(step_cases(), policy_cases()),
    )
}


@pytest.mark.parametrize("name", CASES)
def test_a_function_stays_in_float64_and_agrees_with_float32(name):
    function, arguments = CASES[name]
    double = numbers(spied(function, *doubled(arguments)))
    single = numbers(function(*arguments))
    assert len(double) == len(single) > 0
    for a, b in zip(double, single, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@cache
def makers(dtype=SINGLE):
    """A small problem of every kind, in float32; `dtype` is for those that keep it in mind."""
    X, y = normal(60, 4), torch.arange(60) % 3
    rows, sizes = torch.arange(60).view(5, 12), (12, 11, 7, 5, 3)
    some = Samples(X, y)
    people = Rows(X, (y > 0).float(), (normal(60, seed=4) > 0).float())
    clients = [(X[a:b], X[a:b, 0]) for a, b in ((0, 7), (7, 10), (10, 40))]
    square = lambda r: r.mean((r.output.squeeze(-1) - r.target) ** 2)  # noqa: E731
    linear = models.mlp((4, 1))
    return {
        "quadratics": problems.quadratics(normal(7, 3), normal(7, 3), level=THIRD),
        "pareto": problems.pareto(normal(5, 3, 2, 4)),
        "neyman pearson": np_problem(dtype=torch.float32),
        "softmax": problems.softmax_regression(X, y, rows, 3),
        "softmax, constrained": problems.softmax_regression(X, y, rows, 3, constrained=(1,)),
        "network": problems.mlp_classification(X, y, rows, 4, 3, rng=generator()),
        "classifier": problems.classifier(
            some, some, rows, linear_model(4, 3), sizes=sizes, dtype=dtype
        ),
        "fairness": problems.fairness(people, people, clients=3, hidden=(5,)),
        "own": problems.from_clients(clients, module=linear, objective=square, constraint=square),
    }


KINDS = (
    *("quadratics", "pareto", "neyman pearson", "softmax"),
    *("softmax, constrained", "network", "classifier", "fairness", "own"),
)


@pytest.mark.parametrize("name", KINDS)
def test_a_problem_stays_in_float64_and_agrees_with_float32(name):
    problem, double = makers()[name], wide(makers(torch.float64)[name])
    shift = 0.1 * normal(problem.dim, seed=5)

    def whole(p, w):
        count = p.num_objectives + p.num_constraints
        batch = p.all_clients()
        one = Batch(tuple(x[0] for x in batch.data), batch.weight[0])
        weight = torch.ones_like(w[:1]).expand(count) / 3
        slope = pullback(p.losses, p.gradient, w, one, weight)
        mean = metrics.mean_gradient(p, w)
        return batch.weight, p.mean_losses(w), slope, p.metrics(w, p), mean

    found = numbers(spied(whole, double, double.w0 + shift.double()))
    for a, b in zip(found, numbers(whole(problem, problem.w0 + shift)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)


# policies act on cart pole, which is in float32 throughout
@pytest.mark.parametrize("name", sorted(examples()))
def test_a_round_stays_in_float64(name):
    for algorithm, problem in examples()[name]:
        assert problem.w0.dtype == torch.float64
        state = spied(algorithm.init, problem)
        draw = algorithm.draw(problem, generator())
        after, info = spied(algorithm.round, Loop(problem), state, draw)
        spied(problem.metrics, after.w, problem)
        assert after.w.dtype == torch.float64
        assert {x.dtype for x in numbers(info)} <= {torch.float64}
