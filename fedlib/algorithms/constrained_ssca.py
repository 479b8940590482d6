"""ConstrainedSSCA: successive convex approximation with an exact penalty on the constraints.

Ye, Cui, *Sample-based and Feature-based Federated Learning via Mini-batch SSCA* (arXiv 2104.06011):
Algorithm 2 (samples) with the surrogate (11), and Algorithm 4 (features) with the surrogate (22).
The server's half is the same. Every message between clients that hold features crosses a
`vertical.Line`.

Paper's symbol -> here: I -> N, N_i of N samples -> the shares pi_i, omega -> w, with features
(w_0, w_1, ..., w_I): the common parameters and those of each client; h_{m,i} -> h_i, one for all
losses m; bar omega -> the best response, c -> `penalty`, U -> `levels`, the fastest client ->
`head`.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count, Nonnegative, Positive
from fedlib.core.client import Client
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info, Problem
from fedlib.core.sampling import check_work
from fedlib.shapes import Vector
from fedlib.solvers.interior_point import best_response
from fedlib.steps.schedules import Averaging
from fedlib.vertical import Line
from fedlib.work.features import OverFeatures, exchange
from fedlib.work.samples import OverSamples, shares
from fedlib.work.surrogates import SurrogateState

#: One level for all constraints, or one level for each.
Levels = float | Annotated[tuple[float, ...], checks.SOME]
#: A number that is at least 1.
Growth = Annotated[float, checks.between(1, name="Growth")]


@dataclass(frozen=True)
class PenaltyServer:
    """The parameters and the server's half of SSCA with constraints.

    The fields are described in `ConstrainedSSCA`.
    """

    tau: Positive
    rho: Averaging
    gamma: Averaging
    penalty: Positive
    batch_size: Count | None = None
    levels: Levels = 0.0
    objective: Literal["problem", "norm"] = "problem"
    growth: Growth = 1.0
    patience: Count = 100
    tolerance: Nonnegative = 1e-3
    debias: bool = False

    def __post_init__(self) -> None:
        checks.fields(self)
        if self.objective == "norm":
            positive = Positive | tuple[Positive, ...]
            checks.value(type(self).__name__, "levels", self.levels, positive)

    def free(self, objectives: int) -> int:
        """The number of losses, counted from the first, that are not constraints."""
        if self.objective == "norm":
            return 0
        return objectives

    def start(self, problem: Problem) -> SurrogateState:
        """The first state; raises ValueError for a problem whose constraints do not fit."""
        name = type(self).__name__
        losses = problem.num_objectives + problem.num_constraints
        count = losses - self.free(problem.num_objectives)
        checks.require(
            self.objective == "norm" or problem.num_objectives == 1,
            name,
            "the problem",
            "have one objective",
            problem.num_objectives,
        )
        checks.require(
            count,
            name,
            "the problem",
            "have a constraint",
            problem.name,
            'pass objective="norm" to constrain its losses',
        )
        checks.require(
            not (problem.set or problem.pooled),
            name,
            "the problem",
            "have no set and no pooled constraint",
            problem.name,
        )
        checks.require(
            not isinstance(self.levels, tuple) or len(self.levels) == count,
            name,
            "levels",
            f"hold {count} numbers (the constraints of {problem.name})",
            self.levels,
        )
        return SurrogateState.start(problem, losses)

    def server_step(
        self,
        state: SurrogateState,
        g: Float[Tensor, "K d"],
        values: Float[Tensor, "M"],
    ) -> tuple[SurrogateState, Info]:
        """Average the surrogates, solve the penalty problem, move w; return state and report.

        `values` are the values of the M constraints, which are the last of the K losses.
        """
        w = state.w
        t = state.t + 1
        gamma = self.gamma(t)
        free = len(g) - len(values)
        average = state.surrogate.averaged(
            w,
            g,
            torch.cat([values.new_zeros(free), values]),
            rho=self.rho(t),
            tau=self.tau,
        )
        surrogate = average
        if self.debias:
            surrogate = average.debiased()
        objective = surrogate.linear[0] if free else torch.zeros_like(w)
        levels = torch.as_tensor(self.levels, dtype=w.dtype, device=w.device)
        penalty = self.penalty * state.factor
        response = best_response(
            objective,
            surrogate.linear[free:],
            surrogate.constant[free:],
            levels.expand_as(values),
            tau=self.tau,
            penalty=penalty,
            curvature=self.tau if free else 1.0,
        )
        w = (1 - gamma) * w + gamma * response.w
        violation = response.slack.norm()
        due = (t % self.patience == 0) & (violation > self.tolerance)
        factor = torch.where(due, state.factor * self.growth, state.factor)
        report = {
            "kappa": average.kappa,
            "nu": response.nu,
            "slack": response.slack,
            "penalty": penalty,
        }
        return SurrogateState(w, *average, factor=factor, t=t), report


@dataclass(frozen=True)
class ConstrainedSSCA(PenaltyServer, OverSamples):
    r"""Mini-batch successive convex approximation with an exact penalty on the constraints.

        1  the server sends w to all N clients; each draws a batch without replacement
        2  each client i sends the mean gradients of its losses on the batch, and the mean value of
               every constraint
        3  g_m, v_m = sum_i pi_i of what was sent, with pi_i client i's share of all samples
        4  the surrogate of loss m, A_m + B_m' w + tau |w|^2, is averaged (all 0 before round 1):
               B_m <- (1 - rho_t) B_m + rho_t (g_m - 2 tau w)
               A_m <- (1 - rho_t) A_m + rho_t (v_m - g_m' w + tau |w|^2)
        5  w_bar, s = argmin objective + c sum_m s_m  subject to  A_m + B_m' w + tau |w|^2 <=
               levels_m + s_m,  s_m >= 0,  for the constraints m
        6  w <- (1 - gamma_t) w + gamma_t w_bar
        7  every `patience` rounds: c <- growth c, if |s| > tolerance

    Parameters
    ----------
    tau : float
        Curvature of the surrogates.
    rho : PowerLaw
        Step size of the surrogates' average, in (0, 1].
    gamma : PowerLaw
        Step size of w, in (0, 1].
    penalty : float
        c, the factor of the penalty in round 1.
    batch_size : int or None
        B, the number of rows in a batch, drawn without replacement; None for all rows.
    levels : float or tuple of float
        U, the upper bound of all constraints, or one bound for each.
    objective : "problem" or "norm"
        `"problem"` minimizes the surrogate of the problem's objective, `"norm"` minimizes |w|^2 and
        treats all losses as constraints with positive levels (the paper's example (37)).
    growth : float
        Factor of one increase of the penalty, at least 1.
    patience : int
        Number of rounds between two checks of the slack, the excess of the surrogates over
        `levels`.
    tolerance : float
        A check increases the penalty if the slack's norm exceeds this number.
    debias : bool
        Whether all surrogates are divided by their weight kappa_t = 1 - prod_{s <= t} (1 - rho_s).

    Differs: the paper's outer loop restarts Algorithm 2 with the next penalty c after convergence;
    line 7 continues from the current w. For one constraint, line 5 is solved by the formula of
    Lemma 1; for several, by an interior point method on the dual.

    `init` refuses a problem with a set, with a pooled constraint, or without any constraint.

    Reference: Algorithm 2 with (11), (12); (37)-(42) and Lemma 1 for `objective="norm"`.
    """

    def init(self, problem: Problem) -> SurrogateState:
        check_work("ConstrainedSSCA", problem, problem.num_clients, self.batch_size)
        return self.start(problem)

    def statistics(self, client: Client, w: Vector) -> Float[Tensor, "s"]:
        """At the client: compute the K gradients, one after another, and the constraint values."""
        batch = client.batch(0)
        losses = client.num_objectives + client.num_constraints
        each_loss = torch.eye(losses, dtype=w.dtype, device=w.device)
        gradients = [client.gradient(w, batch, loss) for loss in each_loss]
        values = client.losses(w, batch)[self.free(client.num_objectives) :]
        return torch.cat([*gradients, values])  # 2

    def round(
        self,
        fed: Federation,
        state: SurrogateState,
        draw: Draw,
    ) -> tuple[SurrogateState, Info]:
        clients = fed.clients(draw)
        statistics = fed.ask(self.statistics, clients, state.w)  # 1, 2
        mean = shares(fed.problem) @ statistics  # 3
        size = state.linear.numel()
        g = mean[:size].view_as(state.linear)
        state, report = self.server_step(state, g, mean[size:])  # 4-7
        return state, fed.info(**report)


@dataclass(frozen=True)
class ConstrainedVerticalSSCA(PenaltyServer, OverFeatures):
    r"""Mini-batch successive convex approximation with an exact penalty; clients hold features.

        1  the server draws a batch of B samples without replacement and sends every client i their
               numbers, w_0 and w_i
        2  each client i sends h_i for every sample of the batch to all other clients
        3  each client i sends the gradients of all losses by w_i, summed over the batch
        4  client `head` also sends the gradients by w_0 and the value of every constraint, summed
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
    tau : float
        Curvature of the surrogates.
    rho : PowerLaw
        Step size of the surrogates' average, in (0, 1].
    gamma : PowerLaw
        Step size of w, in (0, 1].
    penalty : float
        c, the factor of the penalty in round 1.
    batch_size : int or None
        B, the number of samples in a batch, drawn from the pool without replacement; None for all.
    levels : float or tuple of float
        U, the upper bound of all constraints, or one bound for each.
    objective : "problem" or "norm"
        `"problem"` minimizes the surrogate of the problem's objective, `"norm"` minimizes |w|^2 and
        treats all losses as constraints with positive levels (the paper's example (37)).
    growth : float
        Factor of one increase of the penalty, at least 1.
    patience : int
        Number of rounds between two checks of the slack, the excess of the surrogates over
        `levels`.
    tolerance : float
        A check increases the penalty if the slack's norm exceeds this number.
    debias : bool
        Whether all surrogates are divided by their weight kappa_t = 1 - prod_{s <= t} (1 - rho_s).
    head : int
        Number, 1 .. I, of the client that also sends the gradient of the common parameters.

    Differs: the paper's outer loop restarts Algorithm 4 with the next penalty c after convergence;
    line 9 continues from the current w. For one constraint, line 7 is solved by the formula of
    Lemma 1; for several, by an interior point method on the dual. Line 3 needs the labels at every
    client; the paper does not say this.

    `init` refuses a problem with a set, with a pooled constraint, or without any constraint.

    Reference: Algorithm 4 with (22)-(24); (37)-(42) and Lemma 1 for `objective="norm"`.
    """

    head: Count = 1

    def init(self, problem: Problem) -> SurrogateState:
        self.check(problem)
        return self.start(problem)

    def round(
        self,
        fed: Federation,
        state: SurrogateState,
        draw: Draw,
    ) -> tuple[SurrogateState, Info]:
        line = Line(fed)
        w = state.w
        each_loss = torch.eye(len(state.constant), dtype=w.dtype, device=w.device)
        constraints = slice(self.free(fed.problem.num_objectives), None)
        g, values = exchange(line, w, draw, each_loss, self.head, constraints)  # 1-5
        state, report = self.server_step(state, g, values)  # 6-9
        return state, line.info(**report)
