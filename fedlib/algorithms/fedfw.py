"""Federated Frank-Wolfe: clients ask a linear minimization oracle and send one extreme point.

Dadras, Banerjee, Prakhya, Yurtsever, *Federated Frank-Wolfe Algorithm*, ECML PKDD 2024 (arXiv
2408.10090): Algorithm 1 and its variants FedFW+ and FedFW-sto, with partial participation and split
constraints.

Paper -> here: n clients -> N, p parameters -> d, participation p -> `participation`, x-bar -> `w`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.algorithms._frankwolfe import (
    State,
    check_feasible,
    check_parameters,
    server_round,
    start,
)
from fedlib.checks import Count, Nonnegative, Share
from fedlib.core.client import Client, Reply
from fedlib.core.federation import Federation
from fedlib.core.problem import ConvexSet, Draw, Info, Problem
from fedlib.core.sampling import draw_coins
from fedlib.sets.blocks import PerClient
from fedlib.steps.schedules import Convex, Schedule, Stochastic


@dataclass(frozen=True)
class FedFW:
    r"""Federated Frank-Wolfe with a growing penalty on disagreement.

        1  t = 1, 2, ...: each client takes part with probability `participation`, by its own coin;
           initially all x_i = w
        2  the server sends w; each such client i:
        3      g_i = grad f_i(x_i) / N + lam_t (x_i - w)
        4      s_i = lmo(g_i), a point of the feasible set that minimizes <g_i, s>
        5      x_i <- (1 - eta_t) x_i + eta_t s_i, kept and never overwritten by w
        6      sends s_i
        7  w <- w + eta_t / N sum_i (s_i - x_i), over those who took part, x_i before line 5

    >>> from fedlib import FedFW, L1Ball, problems, run
    >>> problem = problems.pareto(torch.eye(4).view(4, 1, 1, 4)).within(L1Ball(0.5))
    >>> run(FedFW(lam0=0.1), problem, rounds=20, progress=False).late("f").round(1)
    array([0.4])

    Parameters
    ----------
    lam0 : lambda_0, the penalty's factor.
    participation : the probability p of line 1.
    schedule : eta_t and lam_t / lambda_0: `Convex()`, `Nonconvex(rounds)`, `Fixed(step)`.
    batch_size : rows of a minibatch for line 3; None, as in the paper: all rows.
    split : a set for each client in place of the common one; the problem's set is
        their intersection, in which w then lies only in the limit.

    Info: `gap`, the sum over clients of <g_i, x_i - s_i>, is the Frank-Wolfe gap of the penalized
    surrogate (exact for full batches); `distance` is the root of sum_i |x_i - w|^2; both before the
    round. They are sums over all N clients, which is why lines 3 and 4 are computed for everybody
    and only dropped for who does not take part.

    Differs: line 7 is, for all clients, the paper's w <- (1 - eta_t) w + eta_t mean_i s_i; for some
    of them the paper prints the same, which is wrong (its own (40) gives line 7). The server knows
    the x_i from the messages.

    Raises
    ------
    ValueError, TypeError
        at construction for a parameter out of range; in `init` for a problem without a feasible
        set, with constraints, or with a start outside the set.
    """

    lam0: Nonnegative
    participation: Share = 1.0
    schedule: Schedule = Convex()
    batch_size: Count | None = None
    split: PerClient | None = None

    def __post_init__(self) -> None:
        checks.fields(self)
        check_parameters("FedFW", self.lam0, self.participation)

    def init(self, problem: Problem) -> State:
        """Check against the problem; all clients start at the problem's start."""
        check_feasible("FedFW", problem, self.split, self.batch_size)
        return start(problem)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        return draw_coins(problem, rng, batch_size=self.batch_size)  # 1

    def local_update(
        self,
        client: Client,
        w: Float[Tensor, "d"],
        *,
        convex_set: ConvexSet,
        t: Float[Tensor, ""],
        clients: int,
    ) -> Reply:
        """At the client: one step on its own model; it keeps that, and sends the extreme point."""
        x = client.memory
        lam = self.lam0 * self.schedule.growth(t, self.participation)
        eta = self.schedule.eta(t, self.participation)
        gradient = client.gradient(x, client.batch(0), client.objective_weights(w))
        g = gradient / clients + lam * (x - w)  # 3
        s = convex_set.lmo(g)  # 4
        return Reply(s, torch.lerp(x, s, eta), (g * (x - s)).sum())  # 5, 6

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        update = partial(self.local_update, t=state.t + 1, clients=fed.problem.num_clients)
        return server_round(self, fed, state, draw, update)  # 1, 2, 7


@dataclass(frozen=True)
class FedFWPlus:
    r"""FedFW+, the augmented Lagrangian form: a multiplier for every client's disagreement.

        1  t = 1, 2, ...: each client takes part with probability `participation`, by its own coin;
           initially all x_i = w, y_i = 0
        2  the server sends w; each such client i:
        3      y_i <- y_i + lambda_0 (x_i - w)
        4      g_i = grad f_i(x_i) / N + lam_t (x_i - w) + y_i
        5      s_i = lmo(g_i)
        6      x_i <- (1 - eta_t) x_i + eta_t s_i
        7      sends s_i
        8  w <- w + eta_t / N sum_i (s_i - x_i), over those who took part, x_i before line 6

    >>> from fedlib import FedFWPlus, L1Ball, problems, run
    >>> problem = problems.pareto(torch.eye(4).view(4, 1, 1, 4)).within(L1Ball(0.5))
    >>> run(FedFWPlus(lam0=0.1), problem, rounds=20, progress=False).late("f").round(1)
    array([0.4])

    Parameters
    ----------
    lam0 : lambda_0, the penalty's factor and the step of the multipliers.
    participation, schedule, batch_size, split : as in `FedFW`.

    Info: `gap` and `distance` as in `FedFW`, the gap with line 4's direction.

    Differs: as `FedFW`. Who does not take part keeps its multiplier too. The paper has no analysis
    of this variant.

    Raises
    ------
    ValueError, TypeError
        as `FedFW`.
    """

    lam0: Nonnegative
    participation: Share = 1.0
    schedule: Schedule = Convex()
    batch_size: Count | None = None
    split: PerClient | None = None

    def __post_init__(self) -> None:
        checks.fields(self)
        check_parameters("FedFWPlus", self.lam0, self.participation)

    def init(self, problem: Problem) -> State:
        """Check against the problem; all clients start at its start, with multiplier 0."""
        check_feasible("FedFWPlus", problem, self.split, self.batch_size)
        return start(problem, extra=True)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        return draw_coins(problem, rng, batch_size=self.batch_size)  # 1

    def local_update(
        self,
        client: Client,
        w: Float[Tensor, "d"],
        *,
        convex_set: ConvexSet,
        t: Float[Tensor, ""],
        clients: int,
    ) -> Reply:
        """At the client: multiplier and model move; it sends the extreme point."""
        x, y = client.memory
        y = y + self.lam0 * (x - w)  # 3
        lam = self.lam0 * self.schedule.growth(t, self.participation)
        eta = self.schedule.eta(t, self.participation)
        gradient = client.gradient(x, client.batch(0), client.objective_weights(w))
        g = gradient / clients + lam * (x - w) + y  # 4
        s = convex_set.lmo(g)  # 5
        return Reply(s, torch.stack([torch.lerp(x, s, eta), y]), (g * (x - s)).sum())  # 6, 7

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        update = partial(self.local_update, t=state.t + 1, clients=fed.problem.num_clients)
        return server_round(self, fed, state, draw, update)  # 1, 2, 8


@dataclass(frozen=True)
class FedFWSto:
    r"""FedFW-sto: minibatch gradients, averaged over the rounds.

        1  t = 1, 2, ...: each client takes part with probability `participation`, by its own coin;
           initially all x_i = w, d_i = 0
        2  the server sends w; each such client i draws a minibatch:
        3      d_i <- (1 - rho_t) d_i + rho_t grad f_i(x_i; minibatch) / N
        4      g_i = d_i + lam_t (x_i - w)
        5      s_i = lmo(g_i)
        6      x_i <- (1 - eta_t) x_i + eta_t s_i
        7      sends s_i
        8  w <- w + eta_t / N sum_i (s_i - x_i), over those who took part, x_i before line 6

    >>> from fedlib import FedFWSto, L1Ball, problems, run
    >>> problem = problems.pareto(torch.eye(4).view(4, 1, 1, 4)).within(L1Ball(0.5))
    >>> run(FedFWSto(lam0=0.1, batch_size=1), problem, rounds=20, progress=False).late("f").round(1)
    array([0.4])

    Parameters
    ----------
    lam0, participation, split : as in `FedFW`.
    batch_size : rows of a minibatch, drawn with replacement.
    schedule : eta_t, lam_t / lambda_0 and rho_t; Theorem 3's by default.

    Info: `gap` and `distance` as in `FedFW`, the gap with line 4's direction.

    Differs: as `FedFW`. The theorem is for all clients in every round.

    Raises
    ------
    ValueError, TypeError
        as `FedFW`.
    """

    lam0: Nonnegative
    batch_size: Count
    participation: Share = 1.0
    schedule: Schedule = Stochastic()
    split: PerClient | None = None

    def __post_init__(self) -> None:
        checks.fields(self)
        check_parameters("FedFWSto", self.lam0, self.participation)

    def init(self, problem: Problem) -> State:
        """Check against the problem; all clients start at its start, with d_i = 0."""
        check_feasible("FedFWSto", problem, self.split, self.batch_size)
        return start(problem, extra=True)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        return draw_coins(problem, rng, batch_size=self.batch_size)  # 1

    def local_update(
        self,
        client: Client,
        w: Float[Tensor, "d"],
        *,
        convex_set: ConvexSet,
        t: Float[Tensor, ""],
        clients: int,
    ) -> Reply:
        """At the client: averaged gradient and model move; it sends the extreme point."""
        x, d = client.memory
        rho = self.schedule.rho(t)
        gradient = client.gradient(x, client.batch(0), client.objective_weights(w))
        d = (1 - rho) * d + rho * gradient / clients  # 3
        g = d + self.lam0 * self.schedule.growth(t, self.participation) * (x - w)  # 4
        s = convex_set.lmo(g)  # 5
        eta = self.schedule.eta(t, self.participation)
        return Reply(s, torch.stack([torch.lerp(x, s, eta), d]), (g * (x - s)).sum())  # 6, 7

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        update = partial(self.local_update, t=state.t + 1, clients=fed.problem.num_clients)
        return server_round(self, fed, state, draw, update)  # 1, 2, 8
