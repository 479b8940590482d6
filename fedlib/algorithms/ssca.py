"""SSCA: mini-batch successive convex approximation, with samples or features split over clients.

Ye, Cui, *Sample-based and Feature-based Federated Learning via Mini-batch SSCA* (arXiv 2104.06011):
Algorithm 1 (samples) with the surrogate (7), and Algorithm 3 (features) with the surrogate (15).
The server's half is the same. Every message between clients that hold features crosses a
`vertical.Line`.

Paper's symbol -> here: I -> N, N_i of N samples -> the shares pi_i, omega -> w, with features
(w_0, w_1, ..., w_I): the common parameters and those of each client; h_{m,i} -> h_i, one for all
losses m; bar omega -> the best response, lambda -> `ridge`, the fastest client -> `head`.
"""

from dataclasses import dataclass

from fedlib import checks
from fedlib.checks import Count, Nonnegative, Positive
from fedlib.core.client import Client
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info, Problem
from fedlib.core.sampling import check_work
from fedlib.shapes import Scalar, Vector
from fedlib.steps.schedules import Averaging
from fedlib.vertical import Line
from fedlib.work.features import OverFeatures, exchange, mean_of
from fedlib.work.samples import OverSamples, shares
from fedlib.work.surrogates import SurrogateState


@dataclass(frozen=True)
class FreeServer(checks.Checked):
    """The parameters and the server's half of SSCA without constraints.

    The fields are described in `SSCA`.
    """

    tau: Positive
    rho: Averaging
    gamma: Averaging
    batch_size: Count | None = None
    ridge: Nonnegative = 0.0
    debias: bool = False

    def server_step(
        self,
        fed: Federation,
        state: SurrogateState,
        g: Vector,
    ) -> tuple[SurrogateState, Scalar]:
        """Average the surrogate, minimize it, move w; return the new state and kappa."""
        w = state.w
        t = state.t + 1
        gamma = self.gamma(t)
        unused = g.new_zeros(1)  # the surrogate's constant, which does not change the minimizer
        average = state.surrogate.averaged(
            w,
            g.unsqueeze(0),
            unused,
            rho=self.rho(t),
            tau=self.tau,
        )
        minimized = average
        if self.debias:
            minimized = average.debiased()
        f = minimized.linear[0]
        w_bar = fed.project(-f / (2 * self.tau))
        w = (1 - gamma) * w + gamma * w_bar
        return SurrogateState(w, *average, factor=state.factor, t=t), average.kappa


@dataclass(frozen=True)
class SSCA(FreeServer, OverSamples):
    r"""Mini-batch successive convex approximation without constraints; clients hold samples.

        1  the server sends w to all N clients; each draws a batch without replacement
        2  each client i sends g_i, its batch's mean gradient
        3  g = sum_i pi_i g_i + 2 ridge w, with pi_i client i's share of all samples
        4  f <- (1 - rho_t) f + rho_t (g - 2 tau w)                  (f = 0 before round 1)
        5  w_bar = argmin f' w + tau |w|^2 = -f / 2 tau
        6  w <- (1 - gamma_t) w + gamma_t w_bar

    >>> import torch
    >>> from fedlib import SSCA, PowerLaw, problems, run
    >>> problem = problems.pareto(torch.eye(4).view(4, 1, 1, 4))
    >>> method = SSCA(tau=1.0, rho=PowerLaw(0.9, 0.3), gamma=PowerLaw(0.9, 0.3))
    >>> run(method, problem, rounds=20).late("f").round(1)
    array([0.4])

    Parameters
    ----------
    tau : float
        Curvature of the surrogates.
    rho : PowerLaw
        Step size of the surrogates' average, in (0, 1].
    gamma : PowerLaw
        Step size of w, in (0, 1].
    batch_size : int or None
        B, the number of rows in a batch, drawn without replacement; None for all rows.
    ridge : float
        lambda, the factor of the term `lambda |w|^2` that is added to the objective.
    debias : bool
        Whether the surrogate is divided by its weight kappa_t = 1 - prod_{s <= t} (1 - rho_s).

    Differs: with `debias`, line 5 minimizes the average (3) exactly. The paper's line 5, which is
    the default, does not: the average starts from zero, so its curvature is kappa_t tau. If the
    problem has a feasible set, line 5 minimizes over this set. Constraints are ignored, and several
    objectives count by their mean.

    Reference: Algorithm 1 with (8), (9); (28)-(31), (35), (36) for the network with a ridge.
    """

    def init(self, problem: Problem) -> SurrogateState:
        check_work("SSCA", problem, problem.num_clients, self.batch_size)
        return SurrogateState.start(problem, 1)

    def mean_gradient(self, client: Client, w: Vector) -> Vector:
        """At the client: compute the gradient of the mean objective on its batch."""
        return client.gradient(w, client.batch(0), client.objective_weights(w))  # 2

    def round(
        self,
        fed: Federation,
        state: SurrogateState,
        draw: Draw,
    ) -> tuple[SurrogateState, Info]:
        clients = fed.clients(draw)
        gradients = fed.ask(self.mean_gradient, clients, state.w)  # 1, 2
        g = shares(fed.problem) @ gradients + 2 * self.ridge * state.w  # 3
        state, kappa = self.server_step(fed, state, g)  # 4-6
        return state, fed.info(kappa=kappa)


@dataclass(frozen=True)
class VerticalSSCA(FreeServer, OverFeatures):
    r"""Mini-batch successive convex approximation without constraints; clients hold features.

        1  the server draws a batch of B samples without replacement and sends every client i their
               numbers, w_0 and w_i
        2  each client i sends h_i for every sample of the batch to all other clients
        3  each client i sends the gradient by w_i, summed over the batch
        4  client `head` also sends the gradient by w_0, summed over the batch
        5  g = (what was sent, put together) / B + 2 ridge w
        6  f <- (1 - rho_t) f + rho_t (g - 2 tau w)                  (f = 0 before round 1)
        7  w_bar = argmin f' w + tau |w|^2 = -f / 2 tau
        8  w <- (1 - gamma_t) w + gamma_t w_bar

    >>> from fedlib import PowerLaw, VerticalSSCA, run
    >>> from fedlib.testing.examples import divided_features
    >>> method = VerticalSSCA(tau=0.1, rho=PowerLaw(0.9, 0.3), gamma=PowerLaw(0.9, 0.35))
    >>> run(method, divided_features(), rounds=5).late("f").round(2)
    array([0.03])

    Parameters
    ----------
    tau : float
        Curvature of the surrogates.
    rho : PowerLaw
        Step size of the surrogates' average, in (0, 1].
    gamma : PowerLaw
        Step size of w, in (0, 1].
    batch_size : int or None
        B, the number of samples in a batch, drawn from the pool without replacement; None for all.
    ridge : float
        lambda, the factor of the term `lambda |w|^2` that is added to the objective.
    debias : bool
        Whether the surrogate is divided by its weight kappa_t = 1 - prod_{s <= t} (1 - rho_s).
    head : int
        Number, 1 .. I, of the client that also sends the gradient of the common parameters.

    Differs: line 3 needs the labels at every client; the paper does not say this. With `debias`,
    line 7 minimizes the average exactly; the paper's line 7, which is the default, does not. If the
    problem has a feasible set, line 7 minimizes over this set. Constraints are ignored, and several
    objectives count by their mean.

    Reference: Algorithm 3 with (15)-(19); (28)-(31), (33)-(36) for the network with a ridge.
    """

    head: Count = 1

    def init(self, problem: Problem) -> SurrogateState:
        self.check(problem)
        return SurrogateState.start(problem, 1)

    def round(
        self,
        fed: Federation,
        state: SurrogateState,
        draw: Draw,
    ) -> tuple[SurrogateState, Info]:
        line = Line(fed)
        weights = mean_of(fed.problem)
        gradients, _ = exchange(line, state.w, draw, weights, self.head)  # 1-4
        g = gradients[0] + 2 * self.ridge * state.w  # 5
        state, kappa = self.server_step(fed, state, g)  # 6-8
        return state, line.info(kappa=kappa)
