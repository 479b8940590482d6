"""Federated Frank-Wolfe: each client calls a linear minimization oracle, sends an extreme point.

Dadras, Banerjee, Prakhya, Yurtsever, *Federated Frank-Wolfe Algorithm*, ECML PKDD 2024 (arXiv
2408.10090): Algorithm 1 and its variants FedFW+ and FedFW-sto, with partial participation and split
constraints; the scheme of its appendix A that does not converge; and the authors' published code,
which differs from Algorithm 1.

Paper's symbol -> here: n clients -> N, p parameters -> d, participation p -> `participation`,
x-bar -> `w`.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.utils import _pytree as pytree

from fedlib import checks
from fedlib.checks import Count, Nonnegative, Share
from fedlib.core.client import Client, Reply
from fedlib.core.federation import Federation
from fedlib.core.problem import ConvexSet, Draw, Info, Problem
from fedlib.core.sampling import active_clients, check_work, draw_coins, on_active
from fedlib.sets.blocks import PerClient
from fedlib.sets.vertices import wire_of
from fedlib.steps.schedules import Convex, Schedule, Stochastic

Scalar = Float[Tensor, ""]
Vector = Float[Tensor, "d"]
Vectors = Float[Tensor, "k d"]


class State(NamedTuple):
    """The state of the methods with a model at every client."""

    w: Float[Tensor, "d"]  # the server's model, the mean of the clients'
    x: Float[Tensor, "N d"]  # the clients' models; their messages tell the server what they are
    extra: Float[Tensor, "N k d"]  # y_i (FedFW+) or d_i (FedFW-sto), k = 1; else k = 0
    t: Float[Tensor, ""]  # the number of rounds done


class Common(NamedTuple):
    """The state of the methods with one common model."""

    w: Float[Tensor, "d"]
    t: Float[Tensor, ""]  # the number of rounds done


class FrankWolfe(checks.Checked):
    """Base of the family: it checks the set, draws the coins and calls every client's oracle."""

    schedule: Schedule
    batch_size: int | None
    participation: float = 1.0
    local_steps: int = 1
    split: PerClient | None = None

    def init(self, problem: Problem) -> Any:
        """Check that the problem has a feasible set; all clients share one model."""
        who, n = type(self).__name__, problem.num_clients
        check_work(who, problem, n, constrained=False)
        rule, remedy = "have a feasible set that contains its start", "build it with problem.within"
        inside = problem.set is not None and bool(problem.set.contains(problem.w0))
        checks.require(inside, who, "problem", rule, problem.name, remedy)
        of = (0,) * n if self.split is None else self.split.of
        checks.require(len(of) == n, who, "split.of", f"have an entry for each of {n} clients", of)
        return Common(problem.w0, problem.w0.new_zeros(()))

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """Draw a coin and the rows of the minibatches for every client."""
        return draw_coins(  # 1
            problem, rng, local_steps=self.local_steps, batch_size=self.batch_size
        )

    def ask(
        self,
        fed: Federation,
        draw: Draw,
        update: Callable[..., Any],
        w: Float[Tensor, "d"],
        active: Bool[Tensor, "N"],
        memory: Float[Tensor, "N m d"] | tuple[()] = (),
        dense: bool = False,
    ) -> Any:
        """Send w and run `update(client, w, convex_set=...)` at each client, with its own set.

        Returns what `fed.ask` returns. Uploads are extreme points in their set's wire format, or
        vectors if they are `dense`. Clients with the same set are asked together.
        """

        def ask(convex_set: ConvexSet, draw: Draw, active: Bool[Tensor, "n"]) -> Any:
            wire = None if dense else wire_of(convex_set, fed.problem.dim)
            own = partial(update, convex_set=convex_set)
            return fed.ask(own, fed.clients(draw, memory=memory), w, wire=wire, active=active)

        if self.split is None:
            assert fed.problem.set is not None
            return ask(fed.problem.set, draw, active)
        answers, order = [], []
        for convex_set, members in self.split.groups():
            who = torch.tensor(members, device=active.device)
            theirs = pytree.tree_map(lambda x, who=who: x[who], draw)
            answers.append(ask(convex_set, theirs, active[who]))
            order.append(who)
        back = torch.cat(order).argsort()
        return pytree.tree_map(lambda *parts: torch.cat(parts)[back], *answers)


class Penalized(FrankWolfe):
    """Base of the methods that penalize the distances between the clients' own models.

    A variant of Algorithm 1 overrides `direction`, the query of line 3 to the client's oracle.
    """

    client_state: ClassVar[tuple[str, ...]] = ("extra",)
    extras: ClassVar[int] = 0  # vectors that a client keeps beside its model

    lam0: float

    def init(self, problem: Problem) -> State:
        """Check the problem; all clients begin at its start, with zeros in `extra`."""
        w, t = super().init(problem)
        n = problem.num_clients
        return State(w, w.repeat(n, 1), w.new_zeros(n, self.extras, problem.dim), t)

    def penalty(self, t: Scalar) -> Scalar:
        """lam_t."""
        return self.lam0 * self.schedule.growth(t, self.participation)

    @abstractmethod
    def direction(
        self, gradient: Vector, away: Vector, extra: Vectors, t: Scalar, clients: int
    ) -> tuple[Vector, Vectors]:
        """Compute g_i from grad f_i(x_i), x_i - w, and the client's `extra`."""

    def local_update(
        self, client: Client, w: Vector, *, convex_set: ConvexSet, t: Scalar, clients: int
    ) -> Reply:
        """At the client: step on its own model, keep that model, and send the extreme point."""
        x, extra = client.memory[0], client.memory[1:]
        gradient = client.gradient(x, client.batch(0), client.objective_weights(w))
        g, extra = self.direction(gradient, x - w, extra, t, clients)  # 3
        s = convex_set.lmo(g)  # 4
        x_next = torch.lerp(x, s, self.schedule.eta(t, self.participation))  # 5
        return Reply(s, torch.cat([x_next.unsqueeze(0), extra]), (g * (x - s)).sum())  # 6

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        w, x, t = state.w, state.x, state.t + 1
        active = active_clients(draw, self.participation)  # 1
        memory = torch.cat([x.unsqueeze(1), state.extra], 1)
        update = partial(self.local_update, t=t, clients=fed.problem.num_clients)
        s, new, gap = self.ask(fed, draw, update, w, active, memory)  # 2-6
        who, eta = active.to(w.dtype), self.schedule.eta(t, self.participation)
        w_next = w + eta * (who @ s - who @ x) / fed.problem.num_clients  # 7
        x_next = on_active(active, torch.lerp(x, s, eta), x)  # 5, as the server infers it
        extra = on_active(active, new[:, 1:], state.extra)
        info = fed.info(gap=gap.sum(), distance=torch.linalg.vector_norm(x - w))
        return State(w_next, x_next, extra, t), info


@dataclass(frozen=True)
class FedFW(Penalized):
    r"""Federated Frank-Wolfe with a growing penalty on the disagreement of the clients' models.

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
    >>> run(FedFW(lam0=0.1), problem, rounds=20).late("f").round(1)
    array([0.4])

    Parameters
    ----------
    lam0 : lambda_0, the penalty's factor.
    participation : the probability p that a client takes part in a round.
    schedule : the rule for the step size eta_t and the penalty's growth lambda_t / lambda_0:
        `Convex()`, `Nonconvex(rounds)` or `Fixed(step)`.
    batch_size : the number of rows in a gradient's minibatch; None, as in the paper, for all rows.
    split : if given, a set for each client. The problem's set is the intersection of these sets,
        and w lies in it only in the limit.

    Info: `gap` is the sum over clients of <g_i, x_i - s_i>, the Frank-Wolfe gap of the penalized
    surrogate (exact for full batches). `distance` is the root of sum_i |x_i - w|^2. Both describe
    the state before the round and sum over all N clients. Lines 3 and 4 are therefore computed for
    all clients, and discarded for those that do not take part.

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

    def direction(
        self, gradient: Vector, away: Vector, extra: Vectors, t: Scalar, clients: int
    ) -> tuple[Vector, Vectors]:
        """Add the gradient and the penalty."""
        return gradient / clients + self.penalty(t) * away, extra  # 3


@dataclass(frozen=True)
class FedFWPlus(FedFW):
    r"""FedFW+, the augmented Lagrangian form with a multiplier for every client's disagreement.

        1  t = 1, 2, ...: each client takes part with probability `participation`, by its own coin;
           initially all x_i = w, y_i = 0
        2  the server sends w; each such client i:
        3      y_i <- y_i + lambda_0 (x_i - w)
               g_i <- grad f_i(x_i) / N + lam_t (x_i - w) + y_i
        4      s_i = lmo(g_i)
        5      x_i <- (1 - eta_t) x_i + eta_t s_i
        6      sends s_i
        7  w <- w + eta_t / N sum_i (s_i - x_i), over those who took part, x_i before line 5

    Parameters
    ----------
    lam0 : lambda_0, the penalty's factor and the step of the multipliers.
    participation, schedule, batch_size, split : as in `FedFW`.

    Info: `gap` and `distance` are those of `FedFW`; the gap uses this method's g_i.

    Differs: the differences of `FedFW` apply here, too. A client that does not take part keeps its
    multiplier. The paper does not analyse this variant.
    """

    extras: ClassVar[int] = 1

    def direction(
        self, gradient: Vector, away: Vector, extra: Vectors, t: Scalar, clients: int
    ) -> tuple[Vector, Vectors]:
        """Add the gradient, the penalty and the multiplier."""
        y = extra + self.lam0 * away  # 3
        return gradient / clients + self.penalty(t) * away + y[0], y  # 3


@dataclass(frozen=True)
class FedFWSto(Penalized):
    r"""FedFW-sto, which averages minibatch gradients over the rounds.

        1  t = 1, 2, ...: each client takes part with probability `participation`, by its own coin;
           initially all x_i = w, d_i = 0
        2  the server sends w; each such client i draws a minibatch:
        3      d_i <- (1 - rho_t) d_i + rho_t grad f_i(x_i; minibatch) / N
               g_i <- d_i + lam_t (x_i - w)
        4      s_i = lmo(g_i)
        5      x_i <- (1 - eta_t) x_i + eta_t s_i
        6      sends s_i
        7  w <- w + eta_t / N sum_i (s_i - x_i), over those who took part, x_i before line 5

    Parameters
    ----------
    lam0, participation, split : as in `FedFW`.
    batch_size : the number of rows in a minibatch, drawn with replacement.
    schedule : the rule for eta_t and lambda_t, as in `FedFW`, and for rho_t, the weight of the
        newest gradient in the average; the default is Theorem 3's.

    Info: `gap` and `distance` are those of `FedFW`; the gap uses this method's g_i.

    Differs: the differences of `FedFW` apply here, too. The theorem assumes that all clients take
    part in every round.
    """

    extras: ClassVar[int] = 1

    lam0: Nonnegative
    batch_size: Count
    participation: Share = 1.0
    schedule: Schedule = Stochastic()
    split: PerClient | None = None

    def direction(
        self, gradient: Vector, away: Vector, extra: Vectors, t: Scalar, clients: int
    ) -> tuple[Vector, Vectors]:
        """Add the averaged gradient and the penalty."""
        rho = self.schedule.rho(t)
        d = (1 - rho) * extra + rho * gradient / clients  # 3
        return d[0] + self.penalty(t) * away, d  # 3


@dataclass(frozen=True)
class FedFWReset(FrankWolfe):
    r"""FedFW as in the authors' code: a round makes several steps from w and averages the models.

        1  round t = 1, 2, ...: each client takes part with probability `participation`
        2  the server sends w; each such client i starts from x_i = w
        3      E times, s = (t - 1) E + 1, ..., t E: g_i = grad f_i(x_i) / N + lam_s (x_i - w)
        4          v_i = lmo(g_i)
        5          x_i <- (1 - eta_s) x_i + eta_s v_i
        6      sends x_i
        7  w <- mean_i x_i, over those who took part

    Parameters
    ----------
    lam0, participation, batch_size : as in `FedFW`.
    local_steps : E; with one step the method is `NaiveFW`, because the penalty has no effect.
    schedule : the rule for eta_s and lambda_s as in `FedFW`; s counts local steps.

    Info: `gap` is that of `FedFW` at the first local step. `distance` is always 0, because no
    client keeps a model.

    Differs: lines 2, 3 and 7 follow the authors' code, not the paper. Use it for comparison only.
    """

    lam0: Nonnegative
    participation: Share = 1.0
    schedule: Schedule = Convex()
    batch_size: Count | None = None
    local_steps: Count = 1

    def local_update(
        self, client: Client, w: Vector, *, convex_set: ConvexSet, t: Scalar, clients: int
    ) -> Reply:
        """At the client: make E steps from w and send the last point."""
        x, p, gaps = w, self.participation, []  # 2
        for step in range(self.local_steps):
            s = (t - 1) * self.local_steps + step + 1
            gradient = client.gradient(x, client.batch(step), client.objective_weights(w))
            g = gradient / clients + self.lam0 * self.schedule.growth(s, p) * (x - w)  # 3
            v = convex_set.lmo(g)  # 4
            gaps.append((g * (x - v)).sum())
            x = torch.lerp(x, v, self.schedule.eta(s, p))  # 5
        return Reply(x, (), gaps[0])  # 6

    def round(self, fed: Federation, state: Common, draw: Draw) -> tuple[Common, Info]:
        w, active = state.w, active_clients(draw, self.participation)  # 1
        update = partial(self.local_update, t=state.t + 1, clients=fed.problem.num_clients)
        x, _, gap = self.ask(fed, draw, update, w, active, dense=True)  # 2-6
        moved = on_active(active, x - w, torch.zeros_like(x)).sum(0) / active.sum().clamp(min=1)
        info = fed.info(gap=gap.sum(), distance=torch.zeros_like(state.t))
        return Common(w + moved, state.t + 1), info  # 7


@dataclass(frozen=True)
class NaiveFW(FrankWolfe):
    r"""Frank-Wolfe with averaged oracle answers, which does not converge (FedFW paper, appendix A).

        1  t = 1, 2, ...: the server sends w to all clients
        2  each client i: s_i = lmo(grad f_i(w))
        3      x_i = (1 - eta_t) w + eta_t s_i, sent as s_i
        4  w <- mean_i x_i

    Parameters
    ----------
    schedule, batch_size : as in `FedFW`.

    Info: `gap` is the mean of the clients' own Frank-Wolfe gaps at w before the round.

    Differs: there is no difference; this method is the paper's (20).
    """

    schedule: Schedule = Convex()
    batch_size: Count | None = None

    def local_update(self, client: Client, w: Vector, *, convex_set: ConvexSet) -> Reply:
        """At the client: find the extreme point for its gradient at w."""
        g = client.gradient(w, client.batch(0), client.objective_weights(w))
        s = convex_set.lmo(g)  # 2
        return Reply(s, (), g @ (w - s))

    def round(self, fed: Federation, state: Common, draw: Draw) -> tuple[Common, Info]:
        w, t = state.w, state.t + 1
        s, _, gap = self.ask(fed, draw, self.local_update, w, active_clients(draw, 1.0))  # 1-3
        eta = self.schedule.eta(t, 1.0)
        return Common(((1 - eta) * w + eta * s).mean(0), t), fed.info(gap=gap.mean())  # 3, 4
