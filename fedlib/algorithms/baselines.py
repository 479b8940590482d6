"""Baselines of FedSGM and FedCMOO: averaging, penalties, and methods for data in one place.

References: McMahan, Moore, Ramage, Hampson, Arcas, *Communication-Efficient Learning of Deep
Networks from Decentralized Data*, AISTATS 2017, Algorithm 1 (FedAvg). FedSGM (full paper),
appendix G.1 (Penalty-FedAvg) and Figure 1 (centralized curves). Polyak (1967) introduced the
switching subgradient method.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count, Nonnegative, Positive, Share
from fedlib.compress.compressors import Identity
from fedlib.core.client import Client
from fedlib.core.describe import added_field
from fedlib.core.federation import Federation
from fedlib.core.problem import Batch, Draw, Info, Problem
from fedlib.core.sampling import check_work, draw_round
from fedlib.steps.local import SGD, LocalSteps
from fedlib.steps.switching import Hard, Switch, loss_weights

Scalar = Float[Tensor, ""]


class State(NamedTuple):
    """The state of these methods, which is the model alone."""

    w: Float[Tensor, "d"]


class LocalWork(checks.Checked):
    """Base of the averaging methods: a sample of clients makes local steps in every round."""

    local_steps: int
    participants: int
    batch_size: int | None
    value_batch_size: int | None = None

    def init(self, problem: Problem) -> State:
        """Check that the problem has enough clients; return the first state."""
        check_work(type(self).__name__, problem, self.participants)
        return State(problem.w0)

    def sampling(self) -> dict[str, Any]:
        """The arguments of `draw_round`."""
        return {
            "participants": self.participants,
            "local_steps": self.local_steps,
            "batch_size": self.batch_size,
            "value_batch_size": self.value_batch_size,
        }

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """Draw the participants and their batches."""
        return draw_round(problem, rng, **self.sampling())  # 1


@dataclass(frozen=True)
class FedAvg(LocalWork):
    r"""Federated averaging, which minimizes the mean of the objectives and ignores constraints.

        1  sample n distinct clients S; the server sends w to them
        2  each j in S starts from u = w
        3      E times: u <- u - lr grad f_j(u)
        4  w <- project(mean_j u_j)

    >>> from fedlib import FedAvg, problems, run
    >>> method = FedAvg(lr=0.1, local_steps=2, participants=4)
    >>> run(method, problems.quadratics(), rounds=20).late("g").round(2)
    array([0.45])

    Parameters
    ----------
    lr : the step size of the local steps.
    local_steps : E, the number of local steps in a round.
    participants : n, the number of clients in a round.
    batch_size : the number of rows in a minibatch, or None for full local gradients.
    local : the rule for the local steps, `SGD()` or `Adam()`.

    Differs: all clients have equal weights, because the papers define f as the plain mean over
    clients. A local step uses one minibatch; in the original method it is an epoch.
    """

    lr: Positive
    local_steps: Count
    participants: Count
    batch_size: Count | None = None
    local: LocalSteps = added_field(SGD())

    def local_update(self, client: Client, w: Float[Tensor, "d"]) -> Float[Tensor, "d"]:
        """At the client: make E local steps on the mean of its objectives."""
        weights = client.objective_weights(w)
        return self.local(  # 2, 3
            w, lambda u, t: client.gradient(u, client.batch(t), weights), self.local_steps, self.lr
        )

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        clients = fed.clients(draw)
        u = fed.ask(self.local_update, clients, state.w)  # 1-3
        return State(fed.project(fed.mean(u, clients))), fed.info()  # 4


@dataclass(frozen=True)
class PenaltyFedAvg(LocalWork):
    r"""FedAvg on `f(w) + rho [g(w) - level - tolerance]_+`, its hinge on or off for a whole round.

        1  sample n distinct clients S
        2  each j in S sends g_j(w); the server forms g = mean_j g_j(w)
        3  on = 1{g > level + tolerance}, sent back
        4  each j in S starts from u = w
        5      E times: u <- u - lr (grad f_j(u) + on rho grad g_j(u))
        6  w <- project(w - mean_j (w - u_j)), sent to all clients

    Parameters
    ----------
    lr, local_steps, participants, batch_size, local : as in `FedAvg`.
    tolerance, level, value_batch_size : as in `FedSGM`.
    rho : the penalty factor; a run can only end feasible if rho exceeds the constraint's Lagrange
        multiplier.

    Differs: the optional compression of the paper's appendix G.1 is left out. If the problem pools
    statistics (`Pooled`), the clients send these statistics in line 2, and `on` is multiplied by
    the sign of their slope. If there are several constraints, g is the largest, as in `FedSGM`.
    """

    lr: Positive
    local_steps: Count
    participants: Count
    tolerance: float
    rho: Nonnegative
    level: float = 0.0
    batch_size: Count | None = None
    value_batch_size: Count | None = None
    local: LocalSteps = added_field(SGD())

    def init(self, problem: Problem) -> State:
        check_work("PenaltyFedAvg", problem, self.participants, constrained=True)
        return super().init(problem)

    def constraint_value(self, client: Client) -> Float[Tensor, "*s"]:
        """At the client: return g_j(w), or the statistics for it."""
        return client.constraint(client.model, client.value_batch())

    def local_update(self, client: Client, on: Float[Tensor, "*C"]) -> Float[Tensor, "d"]:
        """At the client: make E local steps on the penalized objective, and send the change.

        `on` in {-1, 0, 1} is multiplied by the sign of the constraint's slope. If there are several
        constraints, `on` is 0 for all but the largest.
        """
        w = client.model  # 4
        weights = loss_weights(w.new_ones(()), on * self.rho)
        u = self.local(  # 5
            w, lambda u, t: client.gradient(u, client.batch(t), weights), self.local_steps, self.lr
        )
        return w - u

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        clients = fed.clients(draw, model=state.w)  # 1
        g, slope = fed.constraint(fed.ask(self.constraint_value, clients), clients)  # 2
        on = (g > self.level + self.tolerance).to(g.dtype)  # 3
        change = fed.mean(fed.ask(self.local_update, clients, slope * on), clients)  # 4, 5
        step = fed.project(state.w - change) - state.w
        return State(state.w + fed.broadcast(Identity(), step)), fed.info(g_hat=g, sigma=on)  # 6


class Centralized(checks.Checked):
    """Base of the methods for data in one place: one client draws fresh batches for every step."""

    steps: int
    batch_size: int | None
    value_batch_size: int | None

    def init(self, problem: Problem) -> Any:
        """Check that the problem has one client, which holds all data."""
        who = type(self).__name__
        check_work(who, problem, 1, constrained=True)
        remedy, n = "build it with clients=1", problem.num_clients
        checks.require(n == 1, who, "problem", "have one client with all data", n, remedy)
        fits = not problem.whole_batches
        checks.require(fits, who, "problem", "draw batches with replacement", "whole_batches")
        return State(problem.w0)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """Draw every step's batches; those for loss values lie one after another in `values`."""
        size = self.value_batch_size
        return draw_round(  # 1
            problem,
            rng,
            participants=1,
            local_steps=self.steps,
            batch_size=self.batch_size,
            value_batch_size=None if size is None else self.steps * size,
        )

    def values(self, pool: Client, step: int) -> Batch:
        """The batch on which a step computes loss values; all rows if no batch size is set."""
        rows = pool.value_batch()
        if self.value_batch_size is None:
            return rows
        part = slice(step * self.value_batch_size, (step + 1) * self.value_batch_size)
        return Batch(tuple(x[part] for x in rows.data), self.steps * rows.weight[part])


class Descent(Centralized):
    """Base of the methods that step along a weighted sum of the two gradients."""

    lr: float

    @abstractmethod
    def weigh(self, g: Scalar, slope: Float[Tensor, "*C"]) -> tuple[Scalar, Float[Tensor, "K"]]:
        """Compute `sigma` and the weights of grad f and grad g from g and its slope."""

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        """Make `steps` steps on the pooled data."""
        pool, w = fed.only_client(draw), state.w
        for step in range(self.steps):  # 1
            values = pool.constraint(w, self.values(pool, step))
            g, slope = fed.constraint(values.unsqueeze(0))
            sigma, weights = self.weigh(g, slope)  # 2
            w = fed.project(w - self.lr * pool.gradient(w, pool.batch(step), weights))  # 3
        return State(w), fed.info(g_hat=g, sigma=sigma)


@dataclass(frozen=True)
class SGM(Descent):
    r"""The switching (sub)gradient method with all data in one place.

        1  `steps` times, each with fresh values and fresh batches:
        2      sigma = switch(g(w) - level - tolerance)
        3      w <- project(w - lr ((1 - sigma) grad f(w) + sigma grad g(w)))

    Run this method on a problem with one client (`neyman_pearson(..., clients=1)`). A round makes
    `steps` steps; with E steps a round, T rounds make the T x E steps of the papers' curves.

    >>> from fedlib import SGM, problems, run
    >>> problem = problems.quadratics(torch.ones(1, 2), torch.zeros(1, 2), level=0.5)
    >>> run(SGM(lr=0.1, tolerance=0.05), problem, rounds=20).late("g").round(2)
    array([0.02])

    Parameters
    ----------
    lr : the step size.
    tolerance, level, switch : as in `FedSGM`.
    steps : the number of steps in a round. The problem must have one client.
    batch_size, value_batch_size : the numbers of rows in the batch for the gradients and in the
        batch for g(w), both drawn anew for every step; None for all rows.

    Differs: no message is sent, so no bits are counted. The reported `sigma` is the last step's.
    """

    lr: Positive
    tolerance: float
    steps: Count = 1
    level: float = 0.0
    switch: Switch = Hard()
    batch_size: Count | None = None
    value_batch_size: Count | None = None

    def weigh(self, g: Scalar, slope: Float[Tensor, "*C"]) -> tuple[Scalar, Float[Tensor, "K"]]:
        """Select the objective's gradient or the constraint's, by the switch."""
        sigma = self.switch(g - self.level - self.tolerance)  # 2
        return sigma, loss_weights(1 - sigma, slope * sigma)


@dataclass(frozen=True)
class PenaltySGM(Descent):
    r"""(Sub)gradient steps on `f(w) + rho [g(w) - level - tolerance]_+` with all data in one place.

        1  `steps` times, each with fresh values and fresh batches:
        2      on = 1{g(w) > level + tolerance}
        3      w <- project(w - lr (grad f(w) + on rho grad g(w)))

    Parameters
    ----------
    lr, tolerance, rho, level : as in `PenaltyFedAvg`.
    steps, batch_size, value_batch_size : as in `SGM`.

    Differs: no message is sent, so no bits are counted. The reported `sigma` is the last `on`.
    """

    lr: Positive
    tolerance: float
    rho: Nonnegative
    steps: Count = 1
    level: float = 0.0
    batch_size: Count | None = None
    value_batch_size: Count | None = None

    def weigh(self, g: Scalar, slope: Float[Tensor, "*C"]) -> tuple[Scalar, Float[Tensor, "K"]]:
        """Take the objective's gradient, and add the constraint's where it is violated."""
        on = (g - self.level - self.tolerance > 0).to(g.dtype)  # 2
        return on, loss_weights(torch.ones_like(on), slope * on * self.rho)


class ConExState(NamedTuple):
    """State of ConEx."""

    w: Float[Tensor, "d"]  # the iterate w_t
    center: Float[Tensor, "d"]  # the proximal centre u
    before: Float[Tensor, "d"]  # w_{t-1}
    value: Float[Tensor, ""]  # phi_1(w_{t-1})
    slope: Float[Tensor, "d"]  # the gradient of phi_1 at w_{t-1}
    model: Float[Tensor, ""]  # l_{t-1}, the last linear model's value
    y: Float[Tensor, ""]  # the multiplier
    total: Float[Tensor, "d"]  # sum of gamma_t w_{t+1}, scaled so that the last gamma is 1
    weight: Float[Tensor, ""]  # sum of gamma_t, scaled in the same way
    step: Float[Tensor, ""]  # inner steps done since the last restart


@dataclass(frozen=True)
class ConEx(Centralized):
    r"""Constraint extrapolation inside a proximal-point loop, with all data in one place.

    With phi_0(w) = f(w) + mu_0 |w - u|^2 and phi_1(w) = g(w) + mu_1 |w - u|^2:

        1  `steps` times a round, each with fresh batches:
        2      every `inner_steps` steps: u <- the average of line 7, w <- u, start inner loop anew
        3      l_t = phi_1(w_{t-1}) + <grad phi_1(w_{t-1}), w_t - w_{t-1}>   (first: phi_1(w_0))
        4      s_t = (1 + theta) l_t - theta l_{t-1} - level - tolerance     (first: l_{-1} = l_0)
        5      y <- max(0, y + dual_lr s_t)
        6      w_{t+1} = project(w_t - lr (grad phi_0(w_t) + y grad phi_1(w_t)))
        7      average of w_1, ..., w_{t+1} with weights gamma_t = theta^-t
        8  output: the average of the inner loop under way

    >>> from fedlib import ConEx, problems, run
    >>> problem = problems.quadratics(torch.ones(1, 2), torch.zeros(1, 2), level=0.5)
    >>> method = ConEx(lr=0.1, dual_lr=0.1, tolerance=0.05)
    >>> run(method, problem, rounds=50).late("distance").round(1)
    array([0.])

    Parameters
    ----------
    lr : the step size of the model, 1 / eta in the source (Boob, Deng, Lan, 2023).
    dual_lr : the step size of the multiplier, 1 / tau in the source.
    tolerance, level : the constraint is g <= level + tolerance.
    theta : the factor of the extrapolation. The output averages the models of the inner loop with
        the weights theta^-t.
    inner_steps : the number of steps between two moves of the proximal centre.
    prox : mu_0, the weight of the proximal term of f.
    constraint_prox : mu_1, the weight of the proximal term of g; it may be 0 if g is convex.
    steps : the number of steps in a round; E for the centralized curves of the FedSGM papers.
    batch_size, value_batch_size : as in `SGM`, but grad g is taken on the batch for g.

    Run this method on a problem with one client. The metrics describe w_t, not the average.

    Differs: the step sizes are constant, and theta = gamma = 1 as in the source unless `theta` is
    smaller. A restart keeps the multiplier. One batch yields both the value and the gradient of g;
    the source draws two. No message is sent, so no bits are counted.

    Reference: Boob, Deng, Lan, *Stochastic first-order methods for convex and nonconvex functional
    constrained optimization*, Mathematical Programming 197, 2023: ConEx, and the proximal-point
    method around it. The full FedSGM paper names ConEx as a baseline of its Figure 7, but states
    no settings.
    """

    lr: Positive
    dual_lr: Positive
    tolerance: float
    level: float = 0.0
    theta: Share = 1.0
    inner_steps: Count = 100
    prox: Nonnegative = 0.05
    constraint_prox: Nonnegative = 0.05
    steps: Count = 1
    batch_size: Count | None = None
    value_batch_size: Count | None = None

    def init(self, problem: Problem) -> ConExState:
        """Check the problem; the multiplier starts at 0."""
        w = super().init(problem).w
        zero, none = w.new_zeros(()), torch.zeros_like(w)
        return ConExState(w, w, w, zero, none, zero, zero, none, zero, zero)

    def round(self, fed: Federation, state: ConExState, draw: Draw) -> tuple[ConExState, Info]:
        """Make `steps` steps on the pooled data."""
        pool, now = fed.only_client(draw), state
        for step in range(self.steps):  # 1
            now = self.restarted(now)
            w, moved = now.w, now.w - now.center
            values = self.values(pool, step)
            g, sign = fed.constraint(pool.constraint(w, values).unsqueeze(0))
            phi = g + self.constraint_prox * moved @ moved
            only_g = loss_weights(torch.zeros_like(g), sign)
            slope = pool.gradient(w, values, only_g) + 2 * self.constraint_prox * moved
            first = now.step == 0
            model = torch.where(first, phi, now.value + now.slope @ (w - now.before))  # 3
            last = torch.where(first, model, now.model)
            s = (1 + self.theta) * model - self.theta * last - self.level - self.tolerance  # 4
            y = (now.y + self.dual_lr * s).clamp(min=0)  # 5
            grad = pool.gradient(w, pool.batch(step), pool.objective_weights(w))
            grad = grad + 2 * self.prox * moved + y * slope
            after = fed.project(w - self.lr * grad)  # 6
            total, weight = self.theta * now.total + after, self.theta * now.weight + 1  # 7
            now = ConExState(
                after, now.center, w, phi, slope, model, y, total, weight, now.step + 1
            )
        return now, fed.info(g_hat=g, sigma=y)

    def restarted(self, now: ConExState) -> ConExState:
        """Start a new inner loop if the last one is complete; else return the state unchanged."""
        done = now.step >= self.inner_steps  # 2
        center = torch.where(done, self.output(now), now.center)
        fresh = torch.where(done, 0.0, 1.0).to(now.step.dtype)
        return now._replace(
            w=torch.where(done, center, now.w),
            center=center,
            total=fresh * now.total,
            weight=fresh * now.weight,
            step=fresh * now.step,
        )

    def output(self, state: ConExState) -> Float[Tensor, "d"]:
        """The average `[d]` of the current inner loop; before its first step the centre."""
        started = state.weight > 0
        return torch.where(started, state.total / state.weight.clamp(min=1), state.center)  # 8
