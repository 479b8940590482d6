"""Local work on several objectives, whose gradients are weighted anew in every round."""

from typing import NamedTuple

import torch
from torch import Tensor

from fedlib import checks
from fedlib.core.client import Client
from fedlib.core.federation import Federation
from fedlib.core.problem import Batch, Draw, Info, Problem
from fedlib.core.sampling import check_work, draw_round
from fedlib.core.trees import index_tree
from fedlib.shapes import Gram, Jacobian, PerObjective, Vector
from fedlib.steps.local import Gradient
from fedlib.work.local import LocalWork


class WeightedModel(NamedTuple):
    """The state of methods that weigh several objectives."""

    w: Vector  # the model
    weights: PerObjective  # lam, the objectives' weights of the last round

    @classmethod
    def start(cls, problem: Problem) -> "WeightedModel":
        """The problem's start with equal weights."""
        count = problem.num_objectives
        return cls(problem.w0, problem.w0.new_full((count,), 1 / count))


class ObjectivesWork(LocalWork):
    """Base of methods in which sampled clients make local steps on weighted objectives.

    Parameters
    ----------
    lr : float
        Step size of the local steps.
    local_steps : int
        E, the number of local steps in a round.
    participants : int
        n, the number of clients in a round.
    server_lr : float
        Step size of the server; 1 takes the mean of the clients' models.
    batch_size : int or None
        Number of rows in a minibatch; None for all rows of the client.
    value_batch_size : int or None
        Number of rows in a separate batch for loss values; None for all rows of the client.
    shared : int or None
        Number of parameters, from the first one on, that all objectives share; None for all.
    local : LocalSteps
        Rule for the local steps, `SGD()` or `Adam()`.
    """

    server_lr: float
    shared: int | None = None

    def init(self, problem: Problem) -> WeightedModel:
        """Check the problem; start at its start with equal weights."""
        name = type(self).__name__
        check_work(name, problem, self.participants, constrained=False)
        if self.shared is not None:
            checks.count(
                name,
                "shared",
                self.shared,
                1,
                problem.dim,
                "the model's parameters",
            )
        return WeightedModel.start(problem)

    def batches(self, objectives: int) -> int:  # noqa: ARG002 - some methods need one for each
        """The number of minibatches that a participant draws."""
        return self.local_steps

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """Draw the participants and their minibatches."""
        settings = self.sampling()
        settings["local_steps"] = self.batches(problem.num_objectives)
        return draw_round(problem, rng, **settings)  # 1

    def mean_direction(self, client: Client, gradient: Gradient) -> Vector:
        """At the client: make E local steps from the model and return their mean direction."""
        u = self.local(client.model, gradient, self.local_steps, self.lr)
        return self.direction_to(u, client)

    def weighted_direction(
        self,
        client: Client,
        lam: PerObjective,
    ) -> Vector:
        """At the client: the mean direction of E local steps on the weighted objectives."""
        u = self.local_model(client, client.model, lam)
        return self.direction_to(u, client)

    def direction_to(self, u: Vector, client: Client) -> Vector:
        """At the client: the mean direction of the E local steps from the model to `u`."""
        return (client.model - u) / (self.local_steps * self.lr)

    def move(
        self,
        fed: Federation,
        w: Vector,
        delta: Vector,
    ) -> Vector:
        """Make the server's step along a mean direction."""
        return fed.project(w - self.server_lr * self.lr * self.local_steps * delta)


def first_batches(client: Client, count: int) -> tuple[Batch, int | None]:
    """The client's first `count` batches, and the axis that `client.each` maps over.

    If the client uses all its rows, there is one batch and the axis is None.
    """
    batches = client.state.batches
    if not isinstance(batches, Batch):
        return client.batch(0), None
    return index_tree(batches, slice(count)), 0


def objective_gradients(
    client: Client,
    w: Vector,
    *,
    separate_batches: bool = True,
) -> Jacobian:
    """At the client: compute the gradients `[M, d]` of its objectives at `w`.

    With `separate_batches`, objective k is differentiated on batch k of the round, else on batch 0.
    """
    count = client.num_objectives
    batch: Batch = client.batch(0)
    axis: int | None = None
    if separate_batches:
        batch, axis = first_batches(client, count)
    losses = count + client.num_statistics
    each_objective = torch.eye(count, losses, dtype=w.dtype, device=w.device)
    mapped = client.each(client.gradient, (None, axis, 0))
    gradients: Tensor = mapped(w, batch, each_objective)
    return gradients


def weight_info(
    gram: Gram,
    weights: PerObjective,
) -> Info:
    """Report the weights, and the squared norm of the direction that they predict."""
    report: Info = {"direction": weights @ (gram @ weights)}
    for k in range(len(weights)):
        report[f"weight_{k + 1}"] = weights[k]
    return report
