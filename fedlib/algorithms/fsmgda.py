"""FSMGDA: federated multiple-gradient descent with an update for every objective.

Yang, Liu, Liu, Liu, Momma, *Federated Multi-Objective Learning*, NeurIPS 2023, as the paper on
FedCMOO describes it (Askin, Sharma, Joshi, Joe-Wong, AISTATS 2025, Algorithm 5, sections 2 and 7).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib.checks import Count, Positive
from fedlib.compress.compressors import Identity
from fedlib.core.client import Client
from fedlib.core.describe import added_field
from fedlib.core.federation import Federation
from fedlib.core.problem import Batch, Draw, Info
from fedlib.core.trees import index_tree
from fedlib.shapes import PerObjective, Vector
from fedlib.steps.local import SGD, LocalSteps
from fedlib.weights.gram import gram_of
from fedlib.weights.rules import Least, MinNorm, Weights
from fedlib.work.objectives import (
    ObjectivesWork,
    WeightedModel,
    first_batches,
    weight_info,
)


@dataclass(frozen=True)
class FSMGDA(ObjectivesWork):
    r"""Federated stochastic MGDA: it trains every objective separately and weights the updates.

        1  sample n distinct clients S; the server sends w to them
        2  each j in S, each objective k by itself: u = w
        3      E times: u <- u - lr grad f_jk(u), batches of its own
        4      Delta_jk = (w - u) / (E lr)
        5  all M updates are sent;  Delta_k = mean_j Delta_jk
        6  lam = weights(G, lam) with G the Gram matrix of the Delta_k, then least(lam)
        7  w <- project(w - server_lr lr E sum_k lam_k Delta_k)

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
    weights : Weights
        Rule that finds the weights from the Gram matrix of the mean updates.
    least : Least or None
        Rule, if any, that raises small weights. For two objectives the authors' code of FedCMOO
        clips the weights at 0.001, which is `Least(0.002, mixture=False)`.
    shared : int or None
        Number of parameters, from the first one on, that all objectives share (the encoder); None
        for all. Only these enter G, but the weights multiply the updates of all parameters.
    local : LocalSteps
        Rule for the local steps, `SGD()`, or `Adam()` with moments for each objective.
    """

    lr: Positive
    local_steps: Count
    participants: Count
    server_lr: Positive = 1.0
    batch_size: Count | None = None
    weights: Weights = MinNorm()
    least: Least | None = None
    shared: Count | None = None
    local: LocalSteps = added_field(SGD())

    def batches(self, objectives: int) -> int:
        """E batches for each objective, one objective after another."""
        return objectives * self.local_steps

    def local_updates(self, client: Client) -> Float[Tensor, "Md"]:
        """At the client: compute the M updates, one after another `[M d]`."""
        objectives = client.num_objectives
        batches, axis = first_batches(client, objectives * self.local_steps)
        if axis is not None:  # [M E, ...] -> [M, E, ...]
            batches = batches_by_objective(batches, objectives, self.local_steps)

        def update(batches: Batch, objective: PerObjective) -> Vector:
            def gradient(u: Vector, step: int) -> Vector:
                batch = batches
                if axis is not None:
                    batch = index_tree(batches, step)
                return client.gradient(u, batch, objective)

            return self.mean_direction(client, gradient)  # 2-4

        w = client.model
        each_objective = torch.eye(objectives, dtype=w.dtype, device=w.device)
        updates: Tensor = client.each(update, (axis, 0))(batches, each_objective)
        return updates.flatten()

    def round(
        self,
        fed: Federation,
        state: WeightedModel,
        draw: Draw,
    ) -> tuple[WeightedModel, Info]:
        w = fed.broadcast(Identity(), state.w, receivers=self.participants)  # 1
        clients = fed.clients(draw, model=w)
        uploads = fed.ask(self.local_updates, clients)  # 2-5
        delta = fed.mean(uploads, clients).view(fed.problem.num_objectives, -1)  # 5
        shared = self.shared or fed.problem.dim
        G = gram_of(delta[:, :shared])
        lam = self.weights(G, state.weights)  # 6
        if self.least is not None:
            lam = self.least(lam)  # 6
        w = self.move(fed, w, lam @ delta)  # 7
        return WeightedModel(w, lam), fed.info(**weight_info(G, lam))


def batches_by_objective(
    batches: Batch,
    objectives: int,
    steps: int,
) -> Batch:
    """Split the leading axis `[M E]` of batches into `[M, E]`."""
    data = tuple(tensor.reshape(objectives, steps, *tensor.shape[1:]) for tensor in batches.data)
    weight = batches.weight.reshape(objectives, steps, -1)
    return Batch(data, weight)
