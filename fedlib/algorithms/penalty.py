"""Penalty methods: averaging and centralized descent on the objective plus a penalty.

*FedSGM: A Unified Framework for Constraint Aware, Bidirectionally Compressed, Multi-step Federated
Optimization*, appendix G.1 (Penalty-FedAvg) and Figure 1 (the centralized curves).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib.checks import Count, Nonnegative, Positive
from fedlib.compress.compressors import Identity
from fedlib.core.client import Client
from fedlib.core.describe import added_field
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info, Problem
from fedlib.core.sampling import check_work
from fedlib.shapes import PerLoss, Scalar, Vector
from fedlib.steps.local import SGD, LocalSteps
from fedlib.steps.switching import loss_weights
from fedlib.work.centralized import Descent
from fedlib.work.local import LocalWork
from fedlib.work.states import Model


@dataclass(frozen=True)
class PenaltyFedAvg(LocalWork):
    r"""FedAvg on `f(w) + rho [g(w) - level - tolerance]_+`, its hinge on or off for a whole round.

        1  sample n distinct clients S
        2  each j in S sends g_j(w); the server forms g = mean_j g_j(w)
        3  h = 1{g > level + tolerance}, sent back
        4  each j in S starts from u = w
        5      E times: u <- u - lr (grad f_j(u) + h rho grad g_j(u))
        6  w <- project(w - mean_j (w - u_j)), sent to all clients

    Parameters
    ----------
    lr : float
        Step size of the local steps.
    local_steps : int
        E, the number of local steps in a round.
    participants : int
        n, the number of clients in a round.
    tolerance : float
        epsilon; the hinge is on if g exceeds `level` by more than this number.
    rho : float
        Penalty factor; a run can only end feasible if rho exceeds the constraint's Lagrange
        multiplier.
    level : float
        c in the constraint `g <= c`.
    batch_size : int or None
        Number of rows in a minibatch; None for full local gradients.
    value_batch_size : int or None
        Number of rows for the constraint value g_j(w); None for all rows.
    local : LocalSteps
        Rule for the local steps, `SGD()` or `Adam()`.

    Differs: if the constraints are not means over clients (`Pooled`, `OfMeans`), the clients send
    statistics in line 2, and `on` is multiplied by their slopes. If there are several constraints,
    the g of lines 3 and 5 is the largest.
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

    def init(self, problem: Problem) -> Model:
        check_work("PenaltyFedAvg", problem, self.participants, constrained=True)
        return Model(problem.w0)

    def constraint_value(self, client: Client) -> Float[Tensor, "*s"]:
        """At the client: return g_j(w), or the statistics for it."""
        return client.constraint(client.model, client.value_batch())

    def local_update(self, client: Client, on: Float[Tensor, "*C"]) -> Vector:
        """At the client: make E local steps on the penalized objective, and send the change.

        `on` in {0, 1} is multiplied by the constraint's slope, so if there are several constraints,
        it is 0 for all but the largest.
        """
        w = client.model  # 4
        weights = loss_weights(w.new_ones(()), on * self.rho)
        return w - self.local_model(client, w, weights)  # 5

    def round(
        self,
        fed: Federation,
        state: Model,
        draw: Draw,
    ) -> tuple[Model, Info]:
        w = state.w
        clients = fed.clients(draw, model=w)  # 1
        values = fed.ask(self.constraint_value, clients)  # 2
        g, slope = fed.constraint(values, clients)  # 2
        on = (g > self.level + self.tolerance).to(g.dtype)  # 3
        changes = fed.ask(self.local_update, clients, slope * on)  # 4, 5
        step = fed.project(w - fed.mean(changes, clients)) - w
        w = w + fed.broadcast(Identity(), step)  # 6
        return Model(w), fed.info(g_hat=g, sigma=on)


@dataclass(frozen=True)
class PenaltySGM(Descent):
    r"""(Sub)gradient steps on `f(w) + rho [g(w) - level - tolerance]_+` with all data in one place.

        1  E times, each with fresh values and fresh batches:
        2      h = 1{g(w) > level + tolerance}
        3      w <- project(w - lr (grad f(w) + h rho grad g(w)))

    Run this method on a problem with one client, such as `neyman_pearson(..., clients=1)`.

    Parameters
    ----------
    lr : float
        Step size.
    tolerance : float
        epsilon; the hinge is on if g exceeds `level` by more than this number.
    rho : float
        Penalty factor; a run can only end feasible if rho exceeds the constraint's Lagrange
        multiplier.
    steps : int
        E, the number of steps in a round. The problem must have one client.
    level : float
        c in the constraint `g <= c`.
    batch_size : int or None
        Number of rows in the batch for the gradients, drawn anew for every step; None for all.
    value_batch_size : int or None
        Number of rows in the batch for g(w), drawn anew for every step; None for all.

    Differs: no message is sent, so no bits are counted. The reported `sigma` is the last `on`.
    """

    lr: Positive
    tolerance: float
    rho: Nonnegative
    steps: Count = 1
    level: float = 0.0
    batch_size: Count | None = None
    value_batch_size: Count | None = None

    def weigh(
        self,
        g: Scalar,
        slope: Float[Tensor, "*C"],
    ) -> tuple[Scalar, PerLoss]:
        """Take the objective's gradient, and add the constraint's where it is violated."""
        excess = g - self.level - self.tolerance
        on = (excess > 0).to(g.dtype)  # 2
        return on, loss_weights(torch.ones_like(on), slope * on * self.rho)
