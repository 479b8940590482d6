"""FedFW: federated Frank-Wolfe with a penalty on the disagreement of the clients' models.

Dadras, Banerjee, Prakhya, Yurtsever, *Federated Frank-Wolfe Algorithm*, ECML PKDD 2024 (arXiv
2408.10090): Algorithm 1 and its variants FedFW+ and FedFW-sto, with partial participation and split
constraints.

Paper's symbol -> here: n clients -> N, p parameters -> d, the probability p -> `participation`,
x-bar -> `w`.
"""

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib.checks import Count, Nonnegative, Share
from fedlib.core.client import Client, Reply
from fedlib.core.describe import added_field
from fedlib.core.federation import Federation
from fedlib.core.problem import ConvexSet, Draw, Info, Problem
from fedlib.core.sampling import active_clients, draw_some_coins, on_active
from fedlib.sets.blocks import PerClient
from fedlib.shapes import Scalar, Vector
from fedlib.steps.schedules import Convex, Schedule, Stochastic
from fedlib.work.oracles import OracleWork

Vectors = Float[Tensor, "k d"]
#: Up to so many clients all of them compute in every round, so that `gap` describes all.
FEW_CLIENTS = 1000


class State(NamedTuple):
    """The state of the methods with a model at every client."""

    w: Vector  # the server's model, the mean of the clients'
    x: Float[Tensor, "N d"]  # the clients' models; their messages tell the server what they are
    extra: Float[Tensor, "N k d"]  # y_i (FedFW+) or d_i (FedFW-sto), k = 1; else k = 0
    t: Scalar  # the number of rounds done


class Penalized(OracleWork):
    """Base of the methods that penalize the distances between the clients' own models.

    A variant of Algorithm 1 overrides `direction`, the query of line 3 to the client's oracle.
    """

    client_state: ClassVar[tuple[str, ...]] = ("extra",)
    extras: ClassVar[int] = 0  # vectors that a client keeps beside its model

    lam0: float
    measure_all: bool | None = None

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """Draw a coin for every client, and the minibatches of those that compute."""
        measure_all = self.measure_all
        if measure_all is None:
            measure_all = problem.num_clients <= FEW_CLIENTS
        if measure_all or self.split is not None:
            return super().draw(problem, rng)
        return draw_some_coins(  # 1
            problem, rng, self.participation, batch_size=self.batch_size
        )

    def init(self, problem: Problem) -> State:
        """Check the problem; all clients begin at its start, with zeros in `extra`."""
        w, t = super().init(problem)
        clients = problem.num_clients
        return State(
            w=w,
            x=w.repeat(clients, 1),
            extra=w.new_zeros(clients, self.extras, problem.dim),
            t=t,
        )

    def penalty(self, t: Scalar) -> Scalar:
        """lam_t."""
        return self.lam0 * self.schedule.growth(t, self.participation)

    @abstractmethod
    def direction(
        self,
        gradient: Vector,
        away: Vector,
        extra: Vectors,
        t: Scalar,
        clients: int,
    ) -> tuple[Vector, Vectors]:
        """Compute g_i from grad f_i(x_i), x_i - w, and the client's `extra`."""

    def local_update(
        self,
        client: Client,
        w: Vector,
        *,
        convex_set: ConvexSet,
        t: Scalar,
        clients: int,
    ) -> Reply:
        """At the client: step on its own model, keep that model, and send the extreme point."""
        x = client.memory[0]
        extra = client.memory[1:]
        gradient = client.gradient(x, client.batch(0), client.objective_weights(w))
        g, extra = self.direction(gradient, x - w, extra, t, clients)  # 3
        s = convex_set.lmo(g)  # 4
        eta = self.schedule.eta(t, self.participation)
        x_next = torch.lerp(x, s, eta)  # 5
        return Reply(
            upload=s,  # 6
            memory=torch.cat([x_next.unsqueeze(0), extra]),
            report=(g * (x - s)).sum(),
        )

    def round(
        self,
        fed: Federation,
        state: State,
        draw: Draw,
    ) -> tuple[State, Info]:
        w = state.w
        t = state.t + 1
        clients = fed.problem.num_clients
        active = active_clients(draw, self.participation)  # 1
        update = partial(self.local_update, t=t, clients=clients)
        memories = (state.x.unsqueeze(1), state.extra)
        s, memory, gap = self.ask(fed, draw, update, w, active, memories)  # 2-6
        eta = self.schedule.eta(t, self.participation)
        all_compute = draw.participants.shape[-1] == clients
        x = state.x
        extra = state.extra
        if not all_compute:
            x = state.x[draw.participants]
            extra = state.extra[draw.participants]
        taking_part = active.to(w.dtype)
        w_next = w + eta * (taking_part @ s - taking_part @ x) / clients  # 7
        x_next = on_active(active, torch.lerp(x, s, eta), x)  # 5, as the server infers it
        extra_next = on_active(active, memory[:, 1:], extra)
        if all_compute:
            distance = torch.linalg.vector_norm(x - w)
            info = fed.info(gap=gap.sum(), distance=distance)
            return State(w_next, x_next, extra_next, t), info
        away = taking_part.sqrt().unsqueeze(1) * (x - w)
        distance = torch.linalg.vector_norm(away)
        info = fed.info(gap=taking_part @ gap, distance=distance)
        x_next = fed.store_memory(state.x, draw, x_next)
        extra_next = fed.store_memory(state.extra, draw, extra_next)
        return State(w_next, x_next, extra_next, t), info


@dataclass(frozen=True)
class FedFW(Penalized):
    r"""Federated Frank-Wolfe with a growing penalty on the disagreement of the clients' models.

        1  t = 1, 2, ...: each client takes part with probability p, by its own coin;
           initially all x_i = w
        2  the server sends w; each such client i:
        3      g_i = grad f_i(x_i) / N + lam_t (x_i - w)
        4      s_i = lmo(g_i), a point of the feasible set that minimizes <g_i, s>
        5      x_i <- (1 - eta_t) x_i + eta_t s_i, kept and never overwritten by w
        6      sends s_i
        7  w <- w + (eta_t / N) sum_i (s_i - x_i), over those who took part, x_i before line 5

    >>> from fedlib import FedFW, L1Ball, problems, run
    >>> problem = problems.pareto(torch.eye(4).view(4, 1, 1, 4)).within(L1Ball(0.5))
    >>> run(FedFW(lam0=0.1), problem, rounds=20).late("f").round(1)
    array([0.4])

    Parameters
    ----------
    lam0 : float
        lambda_0, the penalty's factor.
    participation : float
        Probability p that a client takes part in a round, in (0, 1].
    schedule : Schedule
        Rule for the step size eta_t and the penalty's growth lambda_t / lambda_0: `Convex()`,
        `Nonconvex(rounds)` or `Fixed(step)`.
    batch_size : int or None
        Number of rows in a gradient's minibatch; None, as in the paper, for all rows.
    split : PerClient or None
        If given, a set for each client. The problem's set is the intersection of these sets, and w
        lies in it only in the limit.
    measure_all : bool or None
        Whether `gap` and `distance` describe all N clients. Then every client computes in every
        round, and the answers of those that do not take part are discarded. If False, they
        describe the clients that take part, and few others compute. None stands for True if there
        are at most 1000 clients. With a `split`, all clients compute.

    Info: `gap` is the sum over clients of <g_i, x_i - s_i>, the Frank-Wolfe gap of the penalized
    surrogate (exact for full batches). `distance` is the root of sum_i |x_i - w|^2. Both describe
    the state before the round and sum over all N clients, or over those that take part
    (`measure_all`).

    Differs: if all clients take part, line 7 is the paper's w <- (1 - eta_t) w + eta_t mean_i s_i.
    The paper prints this formula for sampled clients, too, where it is wrong: the paper's (40)
    implies line 7. The server knows the x_i from the messages.

    `init` refuses a problem with constraints, without a feasible set, or with a start outside it.
    """

    lam0: Nonnegative
    participation: Share = 1.0
    schedule: Schedule = Convex()
    batch_size: Count | None = None
    split: PerClient | None = None
    measure_all: bool | None = added_field(None)

    def direction(
        self,
        gradient: Vector,
        away: Vector,
        extra: Vectors,
        t: Scalar,
        clients: int,
    ) -> tuple[Vector, Vectors]:
        """Add the gradient and the penalty."""
        return gradient / clients + self.penalty(t) * away, extra  # 3


@dataclass(frozen=True)
class FedFWPlus(FedFW):
    r"""FedFW+, the augmented Lagrangian form with a multiplier for every client's disagreement.

        1  t = 1, 2, ...: each client takes part with probability p, by its own coin;
           initially all x_i = w, y_i = 0
        2  the server sends w; each such client i:
        3      y_i <- y_i + lambda_0 (x_i - w)
               g_i <- grad f_i(x_i) / N + lam_t (x_i - w) + y_i
        4      s_i = lmo(g_i)
        5      x_i <- (1 - eta_t) x_i + eta_t s_i
        6      sends s_i
        7  w <- w + (eta_t / N) sum_i (s_i - x_i), over those who took part, x_i before line 5

    Parameters
    ----------
    lam0 : float
        lambda_0, the penalty's factor and the step of the multipliers.
    participation : float
        Probability p that a client takes part in a round, in (0, 1].
    schedule : Schedule
        Rule for the step size eta_t and the penalty's growth lambda_t / lambda_0: `Convex()`,
        `Nonconvex(rounds)` or `Fixed(step)`.
    batch_size : int or None
        Number of rows in a gradient's minibatch; None, as in the paper, for all rows.
    split : PerClient or None
        If given, a set for each client. The problem's set is the intersection of these sets, and w
        lies in it only in the limit.
    measure_all : bool or None
        Whether `gap` and `distance` describe all N clients. Then every client computes in every
        round, and the answers of those that do not take part are discarded. If False, they
        describe the clients that take part, and few others compute. None stands for True if there
        are at most 1000 clients. With a `split`, all clients compute.

    Info: `gap` is the sum over clients of <g_i, x_i - s_i>, and `distance` the root of
    sum_i |x_i - w|^2. Both describe the state before the round and sum over all N clients, or
    over those that take part (`measure_all`).

    Differs: line 7 averages over all N clients, also if some do not take part; the paper's formula
    for sampled clients contradicts its (40). A client that does not take part keeps its multiplier.
    The paper does not analyse this variant.
    """

    extras: ClassVar[int] = 1

    def direction(
        self,
        gradient: Vector,
        away: Vector,
        extra: Vectors,
        t: Scalar,
        clients: int,
    ) -> tuple[Vector, Vectors]:
        """Add the gradient, the penalty and the multiplier."""
        y = extra + self.lam0 * away  # 3
        return gradient / clients + self.penalty(t) * away + y[0], y  # 3


@dataclass(frozen=True)
class FedFWSto(Penalized):
    r"""FedFW-sto, which averages minibatch gradients over the rounds.

        1  t = 1, 2, ...: each client takes part with probability p, by its own coin;
           initially all x_i = w, d_i = 0
        2  the server sends w; each such client i draws a minibatch xi_i:
        3      d_i <- (1 - rho_t) d_i + rho_t grad f_i(x_i, xi_i) / N
               g_i <- d_i + lam_t (x_i - w)
        4      s_i = lmo(g_i)
        5      x_i <- (1 - eta_t) x_i + eta_t s_i
        6      sends s_i
        7  w <- w + (eta_t / N) sum_i (s_i - x_i), over those who took part, x_i before line 5

    Parameters
    ----------
    lam0 : float
        lambda_0, the penalty's factor.
    batch_size : int
        Number of rows in a minibatch, drawn with replacement.
    participation : float
        Probability p that a client takes part in a round, in (0, 1].
    schedule : Schedule
        Rule for the step size eta_t, the penalty's growth lambda_t / lambda_0, and rho_t, the
        weight of the newest gradient in the average; the default is Theorem 3's.
    split : PerClient or None
        If given, a set for each client. The problem's set is the intersection of these sets, and w
        lies in it only in the limit.
    measure_all : bool or None
        Whether `gap` and `distance` describe all N clients. Then every client computes in every
        round, and the answers of those that do not take part are discarded. If False, they
        describe the clients that take part, and few others compute. None stands for True if there
        are at most 1000 clients. With a `split`, all clients compute.

    Info: `gap` is the sum over clients of <g_i, x_i - s_i>, and `distance` the root of
    sum_i |x_i - w|^2. Both describe the state before the round and sum over all N clients, or
    over those that take part (`measure_all`).

    Differs: line 7 averages over all N clients, also if some do not take part; the paper's formula
    for sampled clients contradicts its (40). The theorem assumes that all clients take part in
    every round.
    """

    extras: ClassVar[int] = 1

    lam0: Nonnegative
    batch_size: Count
    participation: Share = 1.0
    schedule: Schedule = Stochastic()
    split: PerClient | None = None
    measure_all: bool | None = added_field(None)

    def direction(
        self,
        gradient: Vector,
        away: Vector,
        extra: Vectors,
        t: Scalar,
        clients: int,
    ) -> tuple[Vector, Vectors]:
        """Add the averaged gradient and the penalty."""
        rho = self.schedule.rho(t)
        d = (1 - rho) * extra + rho * gradient / clients  # 3
        return d[0] + self.penalty(t) * away, d  # 3
