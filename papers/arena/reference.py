"""The optimum of every problem of the arena, from a solver that sees all rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from fedlib.core import Problem
from fedlib.core.algorithm import Algorithm
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info
from fedlib.core.trace import Array
from fedlib.shapes import Scalar, Vector
from papers.arena.problems import LEVELS, SETS, arena_problem, equal_batch

FAR = 1e4  # a model with a larger entry has diverged


class State(NamedTuple):
    """What a run carries."""

    w: Vector  # the method's model
    inner: Any  # the method's state


@dataclass(frozen=True)
class Stopped:
    """A method up to the round in which its model would not be finite, or large.

        1  a round of the method: its state
        2  if an entry of the model is not finite or above 10,000: the state before, from here on

    Parameters
    ----------
    method : any algorithm.
    """

    method: Algorithm

    def init(self, problem: Problem) -> State:
        """The method's start."""
        inner = self.method.init(problem)
        return State(inner.w, inner)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """The method's."""
        return self.method.draw(problem, rng)

    def round(
        self,
        fed: Federation,
        state: State,
        draw: Draw,
    ) -> tuple[State, Info]:
        """The method's round, unless it diverges."""
        reached, info = self.method.round(fed, state.inner, draw)  # 1
        diverged = ~(reached.w.abs().amax() <= FAR)

        def unless_diverged(old: Tensor, new: Tensor) -> Tensor:
            return torch.where(diverged, old, new)

        inner = pytree.tree_map(unless_diverged, state.inner, reached)  # 2
        return State(inner.w, inner), info


TIGHT = 1e-14  # SLSQP's tolerance of the objective
STEPS = 2000  # most iterations of a solver


@dataclass(frozen=True)
class Resting:
    """No method: the model stays where the problem starts, to be measured there."""

    def init(self, problem: Problem) -> State:
        """The start."""
        return State(problem.w0, ())

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """Nothing is random."""
        del rng
        return Draw(torch.arange(problem.num_clients))

    def round(
        self,
        fed: Federation,
        state: State,
        draw: Draw,
    ) -> tuple[State, Info]:
        """Nothing happens."""
        del draw
        return state, fed.info()


@lru_cache(maxsize=64)
def solved(seed: int, *, name: str, stand_in: int = 0) -> Problem:
    """The problem in float64 whose start is its solution.

    `metrics` also gives `residual`. SLSQP with exact gradients; for the ball an
    accelerated projected gradient method.
    """
    form = "set" if name in SETS else "constraint"
    single = arena_problem(seed, name=name, form=form, stand_in=stand_in)
    problem = doubled(single)
    w = accelerated(problem) if name in SETS else slsqp(problem, LEVELS[name])

    plain_metrics = problem.metrics

    def metrics(w: Tensor, problem: Problem) -> dict[str, Tensor]:
        return {**plain_metrics(w, problem), "residual": residual(problem, w)}

    config = {**problem.config, "form": "solved", "steps": STEPS}
    return replace(problem, w0=w, metrics=metrics, config=config)


def doubled(problem: Problem) -> Problem:
    """The same problem in float64."""
    data = tuple(in_float64(x) for x in problem.data)
    heldout = tuple(in_float64(x) for x in problem.heldout)
    return replace(problem, data=data, heldout=heldout, w0=in_float64(problem.w0))


def in_float64(x: Tensor) -> Tensor:
    """The same numbers in float64; whole numbers stay what they are."""
    return x.double() if x.is_floating_point() else x


def slope(problem: Problem, w: Vector, weights: list[float]) -> Vector:
    """Gradient of a weighted sum of the mean losses."""
    assert problem.gradient is not None
    batch = equal_batch(problem.data)
    return problem.gradient(w, batch, w.new_tensor(weights))


def slsqp(problem: Problem, level: float) -> Vector:
    """The solution of the problem with its constraint, from its start on."""

    def at(x: Array) -> Tensor:
        return torch.from_numpy(np.asarray(x, float))

    def f(x: Array) -> float:
        return float(problem.mean_losses(at(x))[0])

    def grad_f(x: Array) -> Array:
        return slope(problem, at(x), [1.0, 0.0]).numpy()

    def room(x: Array) -> float:
        return level - float(problem.mean_losses(at(x))[1])

    def grad_room(x: Array) -> Array:
        return -slope(problem, at(x), [0.0, 1.0]).numpy()

    constraint = {"type": "ineq", "fun": room, "jac": grad_room}
    answer = scipy.optimize.minimize(
        f,
        problem.w0.numpy(),
        jac=grad_f,
        method="SLSQP",
        constraints=[constraint],
        options={"ftol": TIGHT, "maxiter": STEPS},
    )
    return at(answer.x)


def accelerated(problem: Problem) -> Vector:
    """Projected gradients with momentum, which starts anew when it points uphill."""
    assert problem.set is not None
    X = problem.data[0]
    w = problem.w0
    largest = float(torch.linalg.matrix_norm(X, ord=2))
    step = len(X) / largest**2
    v = w
    theta = 1.0
    for _ in range(STEPS):
        g = slope(problem, v, [1.0])
        u = problem.set.project(v - step * g)
        if float(g @ (u - w)) > 0:
            theta = 1.0
        root = (1 + 4 * theta**2) ** 0.5
        next_theta = (1 + root) / 2
        momentum = (theta - 1) / next_theta
        v = u + momentum * (u - w)
        w = u
        theta = next_theta
    return w


def residual(problem: Problem, w: Vector) -> Scalar:
    """How far `w` is from optimal.

    Smooth losses: |grad f + y grad g| with the best y >= 0, over |grad f| at the start 0. A ball of
    a norm: the Frank-Wolfe gap, which bounds f - f*, over f.
    """
    if problem.set is not None:
        down = slope(problem, w, [1.0])
        gap: Tensor = down @ (w - problem.set.lmo(down))
        return gap / problem.mean_losses(w)[0]
    grad_f = slope(problem, w, [1.0, 0.0])
    grad_g = slope(problem, w, [0.0, 1.0])
    best = -(grad_f @ grad_g) / (grad_g @ grad_g)
    left = grad_f + best.clamp(min=0) * grad_g
    at_start = slope(problem, torch.zeros_like(w), [1.0, 0.0])
    relative: Tensor = left.norm() / at_start.norm()
    return relative
