"""Successive convex approximation by mini-batches, features split over the clients.

Ye, Cui, *Sample-based and Feature-based Federated Learning via Mini-batch SSCA* (arXiv 2104.06011):
Algorithms 3 and 4 with the quadratic surrogates of (15), (22); their SGD baseline is in
`vertical_sgd.py`. Every message crosses a `vertical.Line`, the server's half is that of `ssca.py`.

Paper -> here: omega -> w = (w_0, w_1, ..., w_I), the common parameters and those of each client;
h_{m,i} -> h_i, one for all losses m; bar omega -> the best response, c -> `penalty`, U -> `levels`,
lambda -> `ridge`, the fastest client -> `head`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from fedlib import checks
from fedlib.algorithms._ssca import (
    Growth,
    Levels,
    Objective,
    State,
    check_constraints,
    check_levels,
    check_numbers,
    check_penalty,
    level_vector,
    raised,
    start,
    surrogate,
)
from fedlib.algorithms._vertical import check_batch, draw_samples, exchange, mean_objective
from fedlib.checks import Count, Nonnegative, Positive
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info, Problem
from fedlib.steps.schedules import Averaging
from fedlib.steps.surrogate import best_response
from fedlib.vertical.line import Line


@dataclass(frozen=True)
class VerticalSSCA:
    r"""Mini-batch successive convex approximation over features, without constraints.

        1  the server draws a batch of B samples without replacement and sends every client i their
               numbers, w_0 and w_i
        2  each client i sends h_i, of every sample of the batch, to all other clients
        3  each client i sends the gradient by w_i, summed over the batch
        4  client `head` also sends the gradient by w_0, summed over the batch
        5  g = (what was sent, put together) / B + 2 ridge w
        6  f <- (1 - rho_t) f + rho_t (g - 2 tau w)                  (f = 0 before round 1)
        7  w_bar = argmin f' w + tau |w|^2 = -f / 2 tau
        8  w <- (1 - gamma_t) w + gamma_t w_bar

    >>> from fedlib import PowerLaw, VerticalSSCA, run
    >>> from fedlib.testing.examples import network
    >>> method = VerticalSSCA(tau=0.1, rho=PowerLaw(0.9, 0.3), gamma=PowerLaw(0.9, 0.35))
    >>> run(method, network(), rounds=5, progress=False).late("accuracy").round(1)
    array([0.3])

    Parameters
    ----------
    tau : curvature of the surrogates, positive.
    rho, gamma : step sizes of lines 6 and 8, in (0, 1].
    batch_size : B, at most the number of samples; None for all of them.
    ridge : lambda of the term `ridge |w|^2` of the objective.
    debias : whether line 7 divides f by kappa_t = 1 - prod_{s <= t} (1 - rho_s).
    head : the client of line 4, 1 .. I.

    Differs: as `SSCA`. Line 3 needs the labels at every client, which the paper does not say.

    Raises
    ------
    ValueError, TypeError
        at construction or in `init`, one sentence, for a parameter out of range, or a problem whose
        features are not divided among clients.

    Reference: Algorithm 3 with (15)-(19); (28)-(31), (33)-(36) for the network with a ridge.
    """

    tau: Positive
    rho: Averaging
    gamma: Averaging
    batch_size: Count | None = None
    ridge: Nonnegative = 0.0
    debias: bool = False
    head: Count = 1

    def __post_init__(self) -> None:
        checks.fields(self)
        check_numbers("VerticalSSCA", self.tau, self.rho, self.gamma)

    def init(self, problem: Problem) -> State:
        check_batch("VerticalSSCA", problem, self.batch_size, self.head)
        return start(problem, 1)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        return draw_samples(problem, rng, self.batch_size)  # 1

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        line, w, t = Line(fed), state.w, state.t + 1
        rho, gamma = self.rho(t), self.gamma(t)
        gradients, _ = exchange(line, w, draw, mean_objective(fed.problem, w), self.head)  # 1-4
        g = gradients + 2 * self.ridge * w  # 5
        unused = g.new_zeros(1)  # the surrogate's constant, which changes no minimizer
        new = surrogate(state).averaged(w, g, unused, rho=rho, tau=self.tau)  # 6
        f = (new.debiased() if self.debias else new).linear[0]
        w_bar = fed.project(-f / (2 * self.tau))  # 7
        w = (1 - gamma) * w + gamma * w_bar  # 8
        return State(w, *new, state.factor, t), line.info(kappa=new.kappa)


@dataclass(frozen=True)
class ConstrainedVerticalSSCA:
    r"""Mini-batch successive convex approximation over features, with an exact penalty.

        1  the server draws a batch of B samples without replacement and sends every client i their
               numbers, w_0 and w_i
        2  each client i sends h_i, of every sample of the batch, to all other clients
        3  each client i sends the gradients by w_i of all losses, summed over the batch
        4  client `head` also sends the gradients by w_0, and of every constraint the value, summed
               over the batch
        5  g_m, v_m = (what was sent, put together) / B
        6  the surrogate of loss m, A_m + B_m' w + tau |w|^2, is averaged (all 0 before round 1):
               B_m <- (1 - rho_t) B_m + rho_t (g_m - 2 tau w)
               A_m <- (1 - rho_t) A_m + rho_t (v_m - g_m' w + tau |w|^2)
        7  w_bar, s = argmin objective + c sum_m s_m  subject to  A_m + B_m' w + tau |w|^2 <=
               levels_m + s_m,  s_m >= 0,  for the constraints m
        8  w <- (1 - gamma_t) w + gamma_t w_bar
        9  every `patience` rounds: c <- growth c, if |s| > tolerance

    >>> from fedlib import PowerLaw, run
    >>> from fedlib.testing.examples import network
    >>> law = PowerLaw(0.9, 0.3)
    >>> method = ConstrainedVerticalSSCA(0.1, law, law, 1e3, levels=1.0, objective="norm")
    >>> run(method, network(), rounds=20, progress=False).late("loss").round(1)
    array([1.])

    Parameters
    ----------
    tau, rho, gamma, batch_size, debias, head : as in `VerticalSSCA`; `debias` divides A and B by
        kappa_t.
    penalty : c of round 1, positive.
    levels : U, a number for all constraints or one for each.
    objective : `"problem"` or `"norm"`, as in `ConstrainedSSCA`.
    growth : factor of line 9, at least 1; 1 keeps the penalty.
    patience : rounds between two looks at the slack.
    tolerance : the slack's norm that leaves the penalty as it is.

    Differs: as `ConstrainedSSCA` and `VerticalSSCA`.

    Raises
    ------
    ValueError, TypeError
        as both of them.

    Reference: Algorithm 4 with (22)-(24); (37)-(42) and Lemma 1 for `objective="norm"`.
    """

    tau: Positive
    rho: Averaging
    gamma: Averaging
    penalty: Positive
    batch_size: Count | None = None
    levels: Levels = 0.0
    objective: Objective = "problem"
    growth: Growth = 1.0
    patience: Count = 100
    tolerance: Nonnegative = 1e-3
    debias: bool = False
    head: Count = 1

    def __post_init__(self) -> None:
        checks.fields(self)
        who = "ConstrainedVerticalSSCA"
        check_numbers(who, self.tau, self.rho, self.gamma)
        check_penalty(who, self.penalty, self.growth, self.patience, self.tolerance)
        check_levels(who, self.levels, self.objective)

    def init(self, problem: Problem) -> State:
        check_constraints("ConstrainedVerticalSSCA", problem, self.levels, self.objective)
        check_batch("ConstrainedVerticalSSCA", problem, self.batch_size, self.head)
        return start(problem, problem.num_objectives + problem.num_constraints)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        return draw_samples(problem, rng, self.batch_size)  # 1

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        line, w, t = Line(fed), state.w, state.t + 1
        rho, gamma = self.rho(t), self.gamma(t)
        free = 0 if self.objective == "norm" else fed.problem.num_objectives
        each = torch.eye(len(state.constant), dtype=w.dtype, device=w.device)
        g, values = exchange(line, w, draw, each, self.head, slice(free, None))  # 1-5
        v = torch.cat([values.new_zeros(free), values])
        new = surrogate(state).averaged(w, g, v, rho=rho, tau=self.tau)  # 6
        best = new.debiased() if self.debias else new
        penalty = self.penalty * state.factor
        found = best_response(  # 7
            best.linear[0] if free else torch.zeros_like(w),
            best.linear[free:],
            best.constant[free:],
            level_vector(self.levels, best.constant[free:]),
            tau=self.tau,
            penalty=penalty,
            curvature=self.tau if free else 1.0,
        )
        w = (1 - gamma) * w + gamma * found.w  # 8
        factor = raised(  # 9
            state.factor,
            found.slack,
            t,
            growth=self.growth,
            patience=self.patience,
            tolerance=self.tolerance,
        )
        info = line.info(kappa=new.kappa, nu=found.nu, slack=found.slack, penalty=penalty)
        return State(w, *new, factor, t), info
