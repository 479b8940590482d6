"""Scalarized: federated averaging on a fixed mean of several objectives.

A baseline of the paper on FedCMOO (Askin, Sharma, Joshi, Joe-Wong, *Federated
Communication-Efficient Multi-Objective Optimization*, AISTATS 2025, section 7).
"""

from dataclasses import dataclass
from functools import partial

import torch

from fedlib import checks
from fedlib.checks import Count, Positive
from fedlib.compress.compressors import Identity
from fedlib.core.client import Client
from fedlib.core.describe import added_field
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info, Problem
from fedlib.shapes import PerObjective, Vector
from fedlib.steps.local import SGD, LocalSteps
from fedlib.weights.rules import FixedWeights
from fedlib.work.objectives import ObjectivesWork, WeightedModel


@dataclass(frozen=True)
class Scalarized(ObjectivesWork):
    r"""FedAvg on a mean of the objectives with fixed weights, and with a server step.

        1  sample n distinct clients S; the server sends w to them
        2  each j in S starts from u = w
        3      E times: u <- u - lr (1 / M) sum_k grad f_jk(u)
        4      Delta_j = (w - u) / (E lr) is sent
        5  w <- project(w - server_lr lr E mean_j Delta_j)

    This method is `FedCMOO` with fixed weights and without the Gram matrix. If `task` is k, all
    weight is on objective k; this is the single-task baseline of multi-task methods.

    Parameters
    ----------
    lr : float
        Step size of the clients.
    local_steps : int
        E, the number of local steps in a round.
    participants : int
        n, the number of clients in a round.
    server_lr : float
        Step size of the server; 1 takes the mean of the clients' models.
    batch_size : int or None
        Number of rows in a minibatch; None for full local gradients.
    task : int or None
        Number of the only objective, counted from 1; None for the mean of all.
    local : LocalSteps
        Rule for the local steps, `SGD()` or `Adam()`.
    weights : tuple of float
        The objectives' relative weights; if left out, they are equal.
    """

    lr: Positive
    local_steps: Count
    participants: Count
    server_lr: Positive = 1.0
    batch_size: Count | None = None
    task: Count | None = None
    local: LocalSteps = added_field(SGD())
    weights: tuple[Positive, ...] = added_field(())

    def init(self, problem: Problem) -> WeightedModel:
        state = super().init(problem)
        if self.weights:
            checks.require(
                self.task is None,
                "Scalarized",
                "weights",
                "be given without task",
                self.weights,
            )
            unused_gram = torch.diag(state.weights)
            weights = FixedWeights(self.weights)(unused_gram, state.weights)
            return state._replace(weights=weights)
        if self.task is not None:
            count = problem.num_objectives
            note = "the problem's objectives"
            checks.count("Scalarized", "task", self.task, high=count, note=note)
            basis = torch.eye(count).to(problem.w0)
            task_weights = basis[self.task - 1]
            return state._replace(weights=task_weights)
        return state

    def local_update(self, client: Client, lam: PerObjective) -> Vector:
        """At the client: make E local steps on its weighted objectives."""
        return self.weighted_direction(client, lam)  # 2-4

    def round(
        self,
        fed: Federation,
        state: WeightedModel,
        draw: Draw,
    ) -> tuple[WeightedModel, Info]:
        w = fed.broadcast(Identity(), state.w, receivers=self.participants)  # 1
        # clients know the weights, which are part of the method, so they are not sent
        update = partial(self.local_update, lam=state.weights)
        clients = fed.clients(draw, model=w)
        directions = fed.ask(update, clients)  # 2-4
        w = self.move(fed, w, fed.mean(directions, clients))  # 5
        return WeightedModel(w, state.weights), fed.info()
