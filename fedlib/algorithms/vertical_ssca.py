"""Successive convex approximation by mini-batches, features split over the clients.

Ye, Cui, *Sample-based and Feature-based Federated Learning via Mini-batch SSCA* (arXiv 2104.06011):
Algorithms 3 and 4 with the quadratic surrogates of (15), (22), and their feature-based SGD
baseline. Every message crosses a `vertical.Line`, the server's half is that of `ssca.py`.

Paper -> here: omega -> w = (w_0, w_1, ..., w_I), the common parameters and those of each client;
h_{m,i} -> h_i, one for all losses m; bar omega -> the best response, c -> `penalty`, U -> `levels`,
lambda -> `ridge`, bar a / t^bar alpha -> `lr`, the fastest client -> `head`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from fedlib import checks
from fedlib.algorithms._ssca import (
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
from fedlib.federation import Federation
from fedlib.schedules import PowerLaw, power_law
from fedlib.surrogate import best_response
from fedlib.types import Draw, Info, Problem
from fedlib.vertical import Line, Message, check_vertical

__all__ = ["ConstrainedVerticalSSCA", "State", "VerticalSGD", "VerticalSSCA", "messages"]


class Iterate(NamedTuple):
    """What SGD carries from round to round."""

    w: Tensor  # [d]
    t: Tensor  # rounds done


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

    tau: float
    rho: PowerLaw
    gamma: PowerLaw
    batch_size: int | None = None
    ridge: float = 0.0
    debias: bool = False
    head: int = 1

    def __post_init__(self) -> None:
        """Check the parameters alone."""
        check_numbers("VerticalSSCA", self.tau, self.rho, self.gamma)
        checks.nonnegative("VerticalSSCA", "ridge", self.ridge)

    def init(self, problem: Problem) -> State:
        """Check against the problem; the zero surrogate."""
        check_batch("VerticalSSCA", problem, self.batch_size, self.head)
        return start(problem, 1)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """One batch for all clients."""
        return draw_samples(problem, rng, self.batch_size)  # 1

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        """One round at the server."""
        return self.round_over(Line(fed), state, draw)

    def round_over(self, line: Line, state: State, draw: Draw) -> tuple[State, Info]:
        """One round at the server, over a line that may be recorded."""
        w, t = state.w, state.t + 1
        rho, gamma = self.rho(t), self.gamma(t)
        gradients, _ = exchange(line, w, draw, mean_objective(line.problem, w), self.head)  # 1-4
        g = gradients + 2 * self.ridge * w  # 5
        unused = g.new_zeros(1)  # the surrogate's constant, which changes no minimizer
        new = surrogate(state).averaged(w, g, unused, rho=rho, tau=self.tau)  # 6
        f = (new.debiased() if self.debias else new).linear[0]
        w_bar = line.fed.project(-f / (2 * self.tau))  # 7
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

    tau: float
    rho: PowerLaw
    gamma: PowerLaw
    penalty: float
    batch_size: int | None = None
    levels: float | tuple[float, ...] = 0.0
    objective: str = "problem"
    growth: float = 1.0
    patience: int = 100
    tolerance: float = 1e-3
    debias: bool = False
    head: int = 1

    def __post_init__(self) -> None:
        """Check the parameters alone."""
        who = "ConstrainedVerticalSSCA"
        check_numbers(who, self.tau, self.rho, self.gamma)
        check_penalty(who, self.penalty, self.growth, self.patience, self.tolerance)
        check_levels(who, self.levels, self.objective)

    def init(self, problem: Problem) -> State:
        """Check against the problem; the zero surrogates."""
        check_constraints("ConstrainedVerticalSSCA", problem, self.levels, self.objective)
        check_batch("ConstrainedVerticalSSCA", problem, self.batch_size, self.head)
        return start(problem, problem.num_objectives + problem.num_constraints)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """One batch for all clients."""
        return draw_samples(problem, rng, self.batch_size)  # 1

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        """One round at the server."""
        return self.round_over(Line(fed), state, draw)

    def round_over(self, line: Line, state: State, draw: Draw) -> tuple[State, Info]:
        """One round at the server, over a line that may be recorded."""
        w, t = state.w, state.t + 1
        rho, gamma = self.rho(t), self.gamma(t)
        free = 0 if self.objective == "norm" else line.problem.num_objectives
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


@dataclass(frozen=True)
class VerticalSGD:
    r"""Mini-batch SGD over features, the baseline of `VerticalSSCA`, with the same messages.

        1  the server draws a batch of B samples without replacement and sends every client i their
               numbers, w_0 and w_i
        2  each client i sends h_i, of every sample of the batch, to all other clients
        3  each client i sends the gradient by w_i, summed over the batch
        4  client `head` also sends the gradient by w_0, summed over the batch
        5  g = (what was sent, put together) / B + 2 ridge w
        6  w <- project(w - lr_t g)

    Parameters
    ----------
    lr : step size of round t, a `PowerLaw`.
    batch_size, ridge, head : as in `VerticalSSCA`.

    Differs: as the paper describes it; it gives neither the grid of lr nor how it was searched.

    Raises
    ------
    ValueError, TypeError
        as `VerticalSSCA`.

    Reference: section VI of the paper, after the feature-based methods that it cites.
    """

    lr: PowerLaw
    batch_size: int | None = None
    ridge: float = 0.0
    head: int = 1

    def __post_init__(self) -> None:
        """Check the parameters alone."""
        power_law("VerticalSGD", "lr", self.lr)
        checks.nonnegative("VerticalSGD", "ridge", self.ridge)

    def init(self, problem: Problem) -> Iterate:
        """Check against the problem."""
        check_batch("VerticalSGD", problem, self.batch_size, self.head)
        return Iterate(problem.w0, problem.w0.new_zeros(()))

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """One batch for all clients."""
        return draw_samples(problem, rng, self.batch_size)  # 1

    def round(self, fed: Federation, state: Iterate, draw: Draw) -> tuple[Iterate, Info]:
        """One round at the server."""
        return self.round_over(Line(fed), state, draw)

    def round_over(self, line: Line, state: Iterate, draw: Draw) -> tuple[Iterate, Info]:
        """One round at the server, over a line that may be recorded."""
        w, t = state.w, state.t + 1
        gradients, _ = exchange(line, w, draw, mean_objective(line.problem, w), self.head)  # 1-4
        g = gradients[0] + 2 * self.ridge * w  # 5
        return Iterate(line.fed.project(w - self.lr(t) * g), t), line.info()  # 6


NO_VALUES = slice(0, 0)


def exchange(
    line: Line,
    w: Tensor,
    draw: Draw,
    weights: Tensor,
    head: int,
    valued: slice = NO_VALUES,
) -> tuple[Tensor, Tensor]:
    """All messages of a round, and what the server makes of them.

    Returns the gradients `[k, d]` of the mean over the batch of `weights [k, K] @ losses`, and the
    means of the losses named by `valued`, which client `head` sends with the gradient by w_0.
    """
    form, samples = line.problem.composite, draw_of(draw)
    w_0, *own = form.parameters.split(w)
    told = {
        i: line.to_client(i, "samples, head, block", samples, w_0, own[i - 1]) for i in form.numbers
    }
    party = {i: line.problem.party(i, told[i][0]) for i in form.numbers}
    heard: tuple[Tensor, ...] = ()
    for i in form.numbers:
        _, _, w_i = told[i]
        heard += line.to_others(i, "embeddings", party[i].embedding(w_i))
    sums: list[Tensor] = []
    for i in form.numbers:
        _, mine_0, w_i = told[i]
        sums += line.to_server(
            i, "gradient of the block", party[i].gradients(mine_0, w_i, heard, weights)
        )
    _, mine_0, _ = told[head]
    first, values = line.to_server(
        head,
        "gradient of the head",
        party[head].head_gradients(mine_0, heard, weights),
        party[head].values(mine_0, heard)[valued],
    )
    return form.parameters.join([first, *sums]) / len(samples), values / len(samples)


def mean_objective(problem: Problem, w: Tensor) -> Tensor:
    """The weights `[1, K]` of the mean of all objectives."""
    counts = problem.num_objectives, problem.num_constraints
    shares = [1 / counts[0]] * counts[0] + [0.0] * counts[1]
    return torch.tensor([shares], dtype=w.dtype, device=w.device)


def draw_samples(problem: Problem, rng: torch.Generator, batch_size: int | None) -> Draw:
    """Distinct samples of the pool, the same for all clients; all of them for None."""
    count = problem.sizes[0]
    samples = (
        torch.arange(count)
        if batch_size is None
        else torch.randperm(count, generator=rng)[:batch_size]
    )
    return Draw(participants=torch.zeros(1, dtype=torch.int64), batches=samples.view(1, 1, -1))


def draw_of(draw: Draw) -> Tensor:
    """The samples `[B]` of a draw of `draw_samples`."""
    if not isinstance(draw.batches, Tensor):
        raise ValueError("vertical: the draw must name the samples; see draw_samples().")
    return draw.batches[0, 0]


def check_batch(who: str, problem: Problem, batch_size: int | None, head: int) -> None:
    """Check a round's work against the problem.

    Raises
    ------
    ValueError, TypeError
        for a problem whose features are not divided among clients, more rows than samples, or a
        head that is no client.
    """
    form = check_vertical(who, problem).composite
    checks.count(who, "head", head, 1, form.clients, "the problem's clients")
    if batch_size is not None:
        checks.count(who, "batch_size", batch_size, 1, problem.sizes[0], "the problem's samples")


def messages(
    algorithm: VerticalSSCA | ConstrainedVerticalSSCA | VerticalSGD,
    problem: Problem,
    rng: torch.Generator,
) -> list[Message]:
    """Everything that is sent in one round of an algorithm, in order."""
    log: list[Message] = []
    state, draw = algorithm.init(problem), algorithm.draw(problem, rng)
    algorithm.round_over(Line(Federation(problem), log), state, draw)  # type: ignore[arg-type]
    return log
