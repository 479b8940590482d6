"""The problems on which the theorems of Federated Frank-Wolfe are held against runs.

All are in float64, and their constants are known: the counterexample of appendix A, multinomial
logistic regression with its least value, and a smooth loss that is not convex.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import sqrt
from typing import Any

import torch
from torch import Tensor

from fedlib import data
from fedlib.core import Problem
from fedlib.core.problem import Batch, ConvexSet, pullback
from fedlib.core.sampling import seeded
from fedlib.data.split import label_windows
from fedlib.metrics import fw_gap
from fedlib.problems import classifier
from fedlib.problems.classification import Samples, linear_model
from fedlib.sets import Ball, Box, L1Ball
from papers.fedfw.feasible_data import SCALES

RADIUS = 10.0  # of the paper's sets
SETS: dict[str, ConvexSet] = {"l1": L1Ball(RADIUS), "l2": Ball(RADIUS)}
# on the digits; labels a client
CLIENTS = 10
LABELS = 3
CERTIFIED = 1e-8  # the Frank-Wolfe gap at which the reference stops
MOST_STEPS = 20_000
SOFTMAX = 0.5  # no second derivative of the cross-entropy by the outputs is larger
SIGMOID = 1 / (6 * sqrt(3))  # the largest second derivative of the sigmoid function


@lru_cache(maxsize=32)
def pair(seed: int) -> Problem:
    r"""Appendix A: $f_1(x)=(x-3)^2$, $f_2(x)=(x+1)^2$ on $[-1,1]$, with the minimizer 1.

    int 0 starts at 0, as in the paper, the others start anywhere. `metrics`: `x`, and `excess`,
    which is $F(x)-F^*=(x-1)^2$.
    """
    start = torch.zeros(1, dtype=torch.float64)
    if seed:
        unit = torch.rand(1, generator=seeded(seed, "split"), dtype=torch.float64)
        start = 2 * unit - 1

    def losses(w: Tensor, batch: Batch) -> Tensor:
        (centre,) = batch.data
        squares = (w - centre).square()
        return (batch.weight @ squares).unsqueeze(0)

    def gradient(w: Tensor, batch: Batch, weights: Tensor) -> Tensor:
        (centre,) = batch.data
        slope = 2 * weights[0] * batch.weight @ (w - centre)
        return slope.unsqueeze(0)

    def metrics(w: Tensor, problem: Problem) -> dict[str, Tensor]:
        del problem
        return {"x": w[0], "excess": (w[0] - 1).square()}

    return Problem(
        name="pair",
        data=(torch.tensor([3.0, -1.0], dtype=torch.float64),),
        rows=torch.arange(2).unsqueeze(1),
        sizes=(1, 1),
        losses=losses,
        gradient=gradient,
        num_objectives=1,
        num_constraints=0,
        w0=start,
        metrics=metrics,
        config={"name": "pair", "start": "0 for seed 0, else by seed"},
    ).within(Box(1.0))


@lru_cache(maxsize=64)
def convex_problem(seed: int, *, norm: str, rows: int) -> Problem:
    """Multinomial logistic regression on 8 x 8 digits, three labels a client, float64.

    `metrics`: `excess`, the loss above the least one on the set, and `fw_gap`, both on all rows.
    """
    digits = data.digits()
    rng = seeded(seed, "split")
    order = torch.randperm(len(digits.y), generator=rng)
    chosen = order[:rows]
    samples = Samples(digits.X[chosen].flatten(1), digits.y[chosen])
    no_test = Samples(samples.X[:1], samples.y[:1])
    table, sizes = label_windows(samples.y, CLIENTS, LABELS, rng)
    model = linear_model(samples.X.shape[1], len(digits.classes))
    problem = classifier(
        samples,
        no_test,
        table,
        model,
        sizes=sizes,
        scale=SCALES["digits"],
        dtype=torch.float64,
        name="digits_regression",
        config={"labels": LABELS, "split_by": "seed", "metrics": "above the least loss"},
    ).within(SETS[norm])
    best = least(problem)
    lowest = problem.losses(best, flattened(problem))[0]

    def metrics(w: Tensor, problem: Problem) -> dict[str, Tensor]:
        lowest, _ = problem.heldout
        (loss,) = problem.mean_losses(w)
        return {"excess": loss - lowest, "fw_gap": fw_gap(problem, w)}

    return replace(problem, metrics=metrics, heldout=(lowest, best))


def flattened(problem: Problem) -> Batch:
    """The rows of all clients as one batch, whose mean losses are F."""
    batch = problem.all_clients()
    columns = tuple(x.flatten(0, 1) for x in batch.data)
    weight = batch.weight.flatten() / problem.num_clients
    return Batch(columns, weight)


def smoothness(problem: Problem, bend: float) -> Tensor:
    """L of every f_i, `[N]`: `bend` times the largest eigenvalue of the mean of (x, 1)(x, 1)'."""
    batch = problem.all_clients()
    x = batch.data[0]
    constant = torch.ones_like(x[..., :1])
    X = torch.cat([x, constant], -1)
    weighted = X * batch.weight.unsqueeze(-1)
    second_moment = X.mT @ weighted
    eigenvalues = torch.linalg.eigvalsh(second_moment)
    largest: Tensor = bend * eigenvalues[:, -1]
    return largest


def least(problem: Problem) -> Tensor:
    """The minimizer of F on the set: accelerated projected gradient descent with restarts.

    It stops when the Frank-Wolfe gap, which bounds F(w) - F*, is below `CERTIFIED`.

    Raises RuntimeError if it never is.
    """
    batch = flattened(problem)
    weight = problem.w0.new_ones(1)
    assert problem.set is not None
    assert problem.gradient is not None
    step = 1 / float(smoothness(problem, SOFTMAX).mean())
    x = y = problem.w0
    pace = 1.0
    for k in range(MOST_STEPS):
        new = problem.set.project(y - step * problem.gradient(y, batch, weight))
        if (y - new) @ (new - x) > 0:  # the momentum points uphill
            pace = 1.0
        next_pace = (1 + sqrt(1 + 4 * pace**2)) / 2
        momentum = (pace - 1) / next_pace
        y = new + momentum * (new - x)
        x = new
        pace = next_pace
        if k % 50 == 49:
            g = problem.gradient(x, batch, weight)
            gap = g @ (x - problem.set.lmo(g))
            if gap <= CERTIFIED:
                return x
    raise RuntimeError(f"least: no gap below {CERTIFIED:g} after {MOST_STEPS} steps.")


def constants(problem: Problem, at: Tensor, bend: float) -> dict[str, Tensor]:
    """What the bounds ask for, with the clients' gradients taken at a point `at` of the set.

    `smooth` L; `dual` and `slope` as in `theory_fw.Constants`; `first`, the norm of the lifted
    gradient at the start; `noise`, a bound on the variance of one row's gradient by |p - y|^2 <= 2.
    """
    n = problem.num_clients
    batch = problem.all_clients()
    slopes = client_gradients(problem, at)
    slopes_at_start = client_gradients(problem, problem.w0)
    square_length = batch.data[0].square().sum(-1) + 1
    mean_square_length = (square_length * batch.weight).sum(1)
    return {
        "smooth": smoothness(problem, bend).amax(),
        "dual": (slopes - slopes.mean(0)).norm() / n,
        "slope": slopes.norm() / n,
        "first": slopes_at_start.norm() / n,
        "noise": 2 * mean_square_length.amax(),
    }


def client_gradients(problem: Problem, w: Tensor) -> Tensor:
    """The gradient of every f_i, `[N, d]`."""
    batch = problem.all_clients()
    weight = w.new_ones(1)
    slopes = []
    for i in range(problem.num_clients):
        columns = tuple(x[i] for x in batch.data)
        of_client = Batch(columns, batch.weight[i])
        slopes.append(
            pullback(
                problem.losses,
                problem.gradient,
                w,
                of_client,
                weight,
            )
        )
    return torch.stack(slopes)


@lru_cache(maxsize=64)
def convex_reference(seed: int, **task: Any) -> Problem:
    """`convex_problem` with its constants as metrics, whatever w is: for a run of one round.

    Beside them `least`, the lowest loss, and `certificate`, the Frank-Wolfe gap where it is taken.
    """
    problem = convex_problem(seed, **task)
    lowest, best = problem.heldout
    known = constants(problem, best, SOFTMAX)
    known["least"] = lowest
    known["certificate"] = fw_gap(problem, best)
    return fixed(problem, known)


def fixed(problem: Problem, values: dict[str, Tensor]) -> Problem:
    """The problem with these values as metrics, whatever the model is."""
    names = tuple(values)

    def metrics(w: Tensor, problem: Problem) -> dict[str, Tensor]:
        del w
        return dict(zip(names, problem.heldout, strict=True))

    config = {**problem.config, "metrics": "constants"}
    return replace(problem, metrics=metrics, heldout=tuple(values.values()), config=config)


@lru_cache(maxsize=64)
def nonconvex_problem(seed: int, *, norm: str, rows: int) -> Problem:
    r"""Digits of 5 and more against the others, loss $1/(1+e^{yz})$ of z = x'w + b, float64.

    Smooth, between 0 and 1, and not convex; three digits a client. `metrics`: `loss` and `fw_gap`,
    both on all rows.
    """
    digits = data.digits()
    rng = seeded(seed, "split")
    order = torch.randperm(len(digits.y), generator=rng)
    chosen = order[:rows]
    pixels = digits.X[chosen].flatten(1).double()
    X = pixels / 8 - 1
    labels = digits.y[chosen]
    y = torch.where(labels >= 5, 1.0, -1.0).double()
    table, sizes = label_windows(labels, CLIENTS, LABELS, rng)

    def margins(w: Tensor, batch: Batch) -> Tensor:
        x, side = batch.data
        return side * (x @ w[:-1] + w[-1])

    def losses(w: Tensor, batch: Batch) -> Tensor:
        values = torch.sigmoid(-margins(w, batch))
        return (batch.weight @ values).unsqueeze(0)

    def gradient(w: Tensor, batch: Batch, weights: Tensor) -> Tensor:
        x, side = batch.data
        s = torch.sigmoid(-margins(w, batch))
        slopes = -weights[0] * batch.weight * side * s * (1 - s)
        return torch.cat([slopes @ x, slopes.sum().unsqueeze(0)])

    def metrics(w: Tensor, problem: Problem) -> dict[str, Tensor]:
        return {"loss": problem.mean_losses(w)[0], "fw_gap": fw_gap(problem, w)}

    config = {
        "name": "sigmoid_loss",
        "clients": CLIENTS,
        "labels": LABELS,
        "rows": rows,
        "split_by": "seed",
    }
    return Problem(
        name="sigmoid_loss",
        data=(X, y),
        rows=table,
        sizes=sizes,
        losses=losses,
        gradient=gradient,
        num_objectives=1,
        num_constraints=0,
        w0=torch.zeros(X.shape[1] + 1, dtype=torch.float64),
        metrics=metrics,
        config=config,
    ).within(SETS[norm])


@lru_cache(maxsize=64)
def nonconvex_reference(seed: int, **task: Any) -> Problem:
    """`nonconvex_problem` with its constants as metrics; `spread` is F(w_1), as no f_i is below 0.

    The clients' gradients are taken at the start: Lemma 2 holds with any point of the set.
    """
    problem = nonconvex_problem(seed, **task)
    known = constants(problem, problem.w0, SIGMOID)
    known["spread"] = problem.mean_losses(problem.w0)[0]
    return fixed(problem, known)
