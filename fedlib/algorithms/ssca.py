"""Successive convex approximation by mini-batches, samples split over the clients.

Ye, Cui, *Sample-based and Feature-based Federated Learning via Mini-batch SSCA* (arXiv 2104.06011):
Algorithms 1 and 2 with the surrogates of (7), (11), and their SGD baseline. Paper -> here: I -> N,
N_i of N samples -> the shares pi_i, omega -> w, bar omega -> the best response, c -> `penalty`,
U -> `levels`, lambda -> `ridge`, bar a / t^bar alpha -> `lr`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

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
    draw_batches,
    level_vector,
    raised,
    shares,
    start,
    surrogate,
)
from fedlib.checks import Count, Nonnegative, Positive
from fedlib.core.client import Client
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info, Problem
from fedlib.core.sampling import check_work
from fedlib.steps.schedules import Averaging, PowerLaw, power_law
from fedlib.steps.surrogate import best_response


class Iterate(NamedTuple):
    """What SGD carries from round to round."""

    w: Float[Tensor, "d"]
    t: Float[Tensor, ""]  # rounds done


@dataclass(frozen=True)
class SSCA:
    r"""Mini-batch successive convex approximation, without constraints.

        1  the server sends w to all N clients; each draws a batch without replacement
        2  each client i sends g_i, its batch's mean gradient
        3  g = sum_i pi_i g_i + 2 ridge w, with pi_i client i's share of all samples
        4  f <- (1 - rho_t) f + rho_t (g - 2 tau w)                  (f = 0 before round 1)
        5  w_bar = argmin f' w + tau |w|^2 = -f / 2 tau
        6  w <- (1 - gamma_t) w + gamma_t w_bar

    >>> from fedlib import problems, run
    >>> problem, law = problems.pareto(torch.eye(4).view(4, 1, 1, 4)), PowerLaw(0.9, 0.3)
    >>> run(SSCA(1.0, law, law), problem, rounds=20, progress=False).late("f").round(1)
    array([0.4])

    Parameters
    ----------
    tau : curvature of the surrogates, positive.
    rho, gamma : step sizes of lines 4 and 6, in (0, 1].
    batch_size : B, rows of a client's batch, at most its number of rows; None for all of them.
    ridge : lambda of the term `ridge |w|^2` of the objective.
    debias : whether line 5 divides f by kappa_t = 1 - prod_{s <= t} (1 - rho_s).

    Differs: as in the paper, whose line 5 is not the minimizer of its average (3): the curvature of
    that is kappa_t tau, because the average starts from zero. `debias` gives the exact minimizer.
    With a problem's set, line 5 is the minimizer over the set. Constraints are ignored; of several
    objectives the mean counts.

    Raises
    ------
    ValueError, TypeError
        at construction or in `init`, one sentence, for a parameter out of range.

    Reference: Algorithm 1 with (8), (9); (28)-(31), (35), (36) for the network with a ridge.
    """

    tau: Positive
    rho: Averaging
    gamma: Averaging
    batch_size: Count | None = None
    ridge: Nonnegative = 0.0
    debias: bool = False

    def __post_init__(self) -> None:
        checks.fields(self)
        check_numbers("SSCA", self.tau, self.rho, self.gamma)

    def init(self, problem: Problem) -> State:
        check_work("SSCA", problem, problem.num_clients, self.batch_size)
        return start(problem, 1)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        return draw_batches(problem, rng, 1, self.batch_size)  # 1

    def mean_gradient(self, client: Client, w: Float[Tensor, "d"]) -> Float[Tensor, "d"]:
        """At the client: the gradient of the mean objective on its batch."""
        return client.gradient(w, client.batch(0), client.objective_weights(w))  # 2

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        w, t = state.w, state.t + 1
        rho, gamma = self.rho(t), self.gamma(t)
        sent = fed.ask(self.mean_gradient, fed.clients(draw), w)  # 1, 2
        g = shares(fed.problem) @ sent + 2 * self.ridge * w  # 3
        unused = g.new_zeros(1)  # the surrogate's constant, which changes no minimizer
        new = surrogate(state).averaged(w, g.unsqueeze(0), unused, rho=rho, tau=self.tau)  # 4
        f = (new.debiased() if self.debias else new).linear[0]
        w_bar = fed.project(-f / (2 * self.tau))  # 5
        w = (1 - gamma) * w + gamma * w_bar  # 6
        return State(w, *new, state.factor, t), fed.info(kappa=new.kappa)


@dataclass(frozen=True)
class ConstrainedSSCA:
    r"""Mini-batch successive convex approximation with an exact penalty on constraints.

        1  the server sends w to all N clients; each draws a batch without replacement
        2  each client i sends the mean gradients of its losses on the batch, and of every
               constraint the mean value
        3  g_m, v_m = sum_i pi_i of what was sent, with pi_i client i's share of all samples
        4  the surrogate of loss m, A_m + B_m' w + tau |w|^2, is averaged (all 0 before round 1):
               B_m <- (1 - rho_t) B_m + rho_t (g_m - 2 tau w)
               A_m <- (1 - rho_t) A_m + rho_t (v_m - g_m' w + tau |w|^2)
        5  w_bar, s = argmin objective + c sum_m s_m  subject to  A_m + B_m' w + tau |w|^2 <=
               levels_m + s_m,  s_m >= 0,  for the constraints m
        6  w <- (1 - gamma_t) w + gamma_t w_bar
        7  every `patience` rounds: c <- growth c, if |s| > tolerance

    >>> from fedlib import problems, run
    >>> problem = problems.quadratics(torch.ones(4, 2), torch.zeros(4, 2), level=0.5)
    >>> method = ConstrainedSSCA(1.0, PowerLaw(0.9, 0.3), PowerLaw(0.9, 0.35), penalty=10.0)
    >>> run(method, problem, rounds=20, progress=False).late("distance").round(1)
    array([0.])

    Parameters
    ----------
    tau, rho, gamma, batch_size, debias : as in `SSCA`; `debias` divides A and B by kappa_t.
    penalty : c of round 1, positive.
    levels : U, a number for all constraints or one for each.
    objective : `"problem"`: the surrogate of the problem's objective, its constraints are the
        constraints. `"norm"`: |w|^2 itself, all losses of the problem are constraints (the
        paper's example (37)); their levels are positive.
    growth : factor of line 7, at least 1; 1 keeps the penalty.
    patience : rounds between two looks at the slack.
    tolerance : the slack's norm that leaves the penalty as it is.

    Differs: as in the paper, but for its outer loop over penalties: it restarts Algorithm 2 with
    the next c once that has converged, line 7 goes on from where it is. Line 5 is solved by the
    formula of Lemma 1, and for several constraints by an interior point method on the dual.

    Raises
    ------
    ValueError, TypeError
        at construction or in `init`, one sentence, for a parameter out of range; in `init` for a
        problem with a set, with a pooled constraint, or without any constraint.

    Reference: Algorithm 2 with (11), (12); (37)-(42) and Lemma 1 for `objective="norm"`.
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

    def __post_init__(self) -> None:
        checks.fields(self)
        check_numbers("ConstrainedSSCA", self.tau, self.rho, self.gamma)
        check_penalty("ConstrainedSSCA", self.penalty, self.growth, self.patience, self.tolerance)
        check_levels("ConstrainedSSCA", self.levels, self.objective)

    def init(self, problem: Problem) -> State:
        check_constraints("ConstrainedSSCA", problem, self.levels, self.objective)
        check_work("ConstrainedSSCA", problem, problem.num_clients, self.batch_size)
        return start(problem, problem.num_objectives + problem.num_constraints)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        return draw_batches(problem, rng, 1, self.batch_size)  # 1

    def statistics(self, client: Client, w: Float[Tensor, "d"]) -> Float[Tensor, "s"]:
        """At the client: K gradients, one after another, and the constraints' values."""
        batch = client.batch(0)
        count = client.num_objectives + client.num_constraints
        each = [
            client.gradient(w, batch, one)
            for one in torch.eye(count, dtype=w.dtype, device=w.device)
        ]
        return torch.cat([*each, client.losses(w, batch)[self.free(client.num_objectives) :]])  # 2

    def free(self, objectives: int) -> int:
        """How many of the losses, the first ones, are no constraints."""
        return 0 if self.objective == "norm" else objectives

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        w, t = state.w, state.t + 1
        rho, gamma = self.rho(t), self.gamma(t)
        sent = fed.ask(self.statistics, fed.clients(draw), w)  # 1, 2
        free, d = self.free(fed.problem.num_objectives), w.shape[-1]
        mean = shares(fed.problem) @ sent  # 3
        g = mean[: len(state.constant) * d].view(-1, d)
        v = torch.cat([mean.new_zeros(free), mean[len(state.constant) * d :]])
        new = surrogate(state).averaged(w, g, v, rho=rho, tau=self.tau)  # 4
        best = new.debiased() if self.debias else new
        penalty = self.penalty * state.factor
        found = best_response(  # 5
            best.linear[0] if free else torch.zeros_like(w),
            best.linear[free:],
            best.constant[free:],
            level_vector(self.levels, best.constant[free:]),
            tau=self.tau,
            penalty=penalty,
            curvature=self.tau if free else 1.0,
        )
        w = (1 - gamma) * w + gamma * found.w  # 6
        factor = raised(  # 7
            state.factor,
            found.slack,
            t,
            growth=self.growth,
            patience=self.patience,
            tolerance=self.tolerance,
        )
        info = fed.info(kappa=new.kappa, nu=found.nu, slack=found.slack, penalty=penalty)
        return State(w, *new, factor, t), info


@dataclass(frozen=True)
class MiniBatchSGD:
    r"""Mini-batch SGD over samples, the baseline of `SSCA`: all clients, averaged by their sizes.

        1  the server sends w to all N clients, each starts from u_i = w
        2      E times, on a fresh batch: u_i <- u_i - lr_t (grad f_i(u_i) + 2 ridge u_i)
        3  w <- project(sum_i pi_i u_i), with pi_i client i's share of all samples

    >>> MiniBatchSGD(lr=PowerLaw(0.5, exponent=0.5)).lr(4)  # the step size of round 4
    0.25

    Parameters
    ----------
    lr : step size of round t, a `PowerLaw`.
    local_steps : E.
    batch_size : B, rows of a batch, drawn without replacement; None for all of a client's.
    ridge : lambda of the term `ridge |w|^2` of the objective.

    Differs: as the paper describes it; it gives neither the grid of lr nor how it was searched.

    Raises
    ------
    ValueError, TypeError
        at construction or in `init`, one sentence, for a parameter out of range.

    Reference: section VI of the paper, with McMahan et al. (2017) for E > 1.
    """

    lr: PowerLaw
    local_steps: Count = 1
    batch_size: Count | None = None
    ridge: Nonnegative = 0.0

    def __post_init__(self) -> None:
        checks.fields(self)
        power_law("MiniBatchSGD", "lr", self.lr)

    def init(self, problem: Problem) -> Iterate:
        check_work("MiniBatchSGD", problem, problem.num_clients, self.batch_size)
        return Iterate(problem.w0, problem.w0.new_zeros(()))

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        return draw_batches(problem, rng, self.local_steps, self.batch_size)

    def local_update(
        self, client: Client, w: Float[Tensor, "d"], lr: Float[Tensor, ""]
    ) -> Float[Tensor, "d"]:
        """At the client: E steps from w."""
        u, weights = w, client.objective_weights(w)  # 1
        for step in range(self.local_steps):
            g = client.gradient(u, client.batch(step), weights)
            u = u - lr * (g + 2 * self.ridge * u)  # 2
        return u

    def round(self, fed: Federation, state: Iterate, draw: Draw) -> tuple[Iterate, Info]:
        t = state.t + 1
        u = fed.ask(self.local_update, fed.clients(draw), state.w, self.lr(t))  # 1, 2
        return Iterate(fed.project(shares(fed.problem) @ u), t), fed.info()  # 3
