"""MGDA: multiple-gradient descent.

Desideri, *Multiple-gradient descent algorithm (MGDA) for multiobjective optimization*, Comptes
Rendus Mathematique 350, 2012.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count, Positive
from fedlib.compress.compressors import Identity
from fedlib.core.client import Client
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info, Problem
from fedlib.core.sampling import check_work, draw_round
from fedlib.weights.gram import gram_of
from fedlib.weights.rules import MinNorm, Weights
from fedlib.work.objectives import WeightedModel, objective_gradients, weight_info


@dataclass(frozen=True)
class MGDA(checks.Checked):
    r"""Multiple-gradient descent: one step along the shortest convex combination of the gradients.

        1  every client sends its M gradients at w;  g_k = their means
        2  lam = weights(G, lam) with G the Gram matrix of the g_k
        3  w <- project(w - lr sum_k lam_k g_k)

    MGDA was written for data in one place. With many clients, the server averages their gradients;
    the step is the same, but bits are counted. The direction of line 3 maximizes, to first order
    and among steps of equal length, the decrease of the objective that falls least.

    Parameters
    ----------
    lr : float
        Step size.
    batch_size : int or None
        Number of rows in a client's batch for each objective; None for full gradients. With
        minibatches, whose noise enters the weights, the direction is biased.
    weights : Weights
        Rule for the objectives' weights: `FindWeights`, `MinNorm` or `FixedWeights`.
    """

    lr: Positive
    batch_size: Count | None = None
    weights: Weights = MinNorm()

    def init(self, problem: Problem) -> WeightedModel:
        """Check the problem; start at its start with equal weights."""
        check_work("MGDA", problem, problem.num_clients, constrained=False)
        return WeightedModel.start(problem)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """Draw a batch for each objective at all clients."""
        return draw_round(
            problem,
            rng,
            participants=problem.num_clients,
            local_steps=problem.num_objectives,
            batch_size=self.batch_size,
        )

    def task_gradients(self, client: Client) -> Float[Tensor, "Md"]:
        """At the client: compute its M gradients, one after another `[M d]`."""
        return objective_gradients(client, client.model).flatten()  # 1

    def round(
        self,
        fed: Federation,
        state: WeightedModel,
        draw: Draw,
    ) -> tuple[WeightedModel, Info]:
        w = fed.broadcast(Identity(), state.w)  # 1
        clients = fed.clients(draw, model=w)
        uploads = fed.ask(self.task_gradients, clients)  # 1
        g = fed.mean(uploads, clients).view(fed.problem.num_objectives, -1)  # 1
        G = gram_of(g)
        lam = self.weights(G, state.weights)  # 2
        w = fed.project(w - self.lr * (lam @ g))  # 3
        return WeightedModel(w, lam), fed.info(**weight_info(G, lam))
