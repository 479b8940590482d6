"""FedCMOO-Pref as its authors' code runs it on pictures: losses without dropout, and a guard.

Askin, Sharma, Joshi, Joe-Wong, *Federated Communication-Efficient Multi-Objective Optimization*,
AISTATS 2025. The paper mentions neither. In the code a client evaluates the losses by which the
weights are chosen with all units of the network; and after every round the server evaluates the
training loss on the first clients of its list, and sets the model back if it is not finite or has
grown by half.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from fedlib.algorithms.fedcmoo import FedCMOOPref
from fedlib.compress.compressors import Identity
from fedlib.core import Problem
from fedlib.core.client import Client
from fedlib.core.federation import Federation
from fedlib.core.problem import Batch, Draw, Info
from fedlib.shapes import PerObjective, Scalar, Vector
from fedlib.work.objectives import WeightedModel

PLAIN = "plain"  # the attribute of losses that names those without dropout


def with_plain_values(trained: Problem, plain: Problem) -> Problem:
    """The problem whose losses are trained on, and whose clients can evaluate others.

    Parameters
    ----------
    trained : its losses are those of every gradient, such as `dropped` ones.
    plain : the same data and parameters; its losses are those of `plain_values`.
    """

    def losses(w: Vector, batch: Batch) -> PerObjective:
        return trained.losses(w, batch)

    vars(losses)[PLAIN] = plain.losses
    return replace(trained, losses=losses, config={**trained.config, "values": PLAIN})


def plain_values(client: Client, w: Vector, batch: Batch) -> PerObjective:
    """At the client: its losses without dropout where its problem has such, else its losses."""
    losses = getattr(client.loss_function, PLAIN, client.loss_function)
    values: Tensor = losses(w, batch)
    return values


class State(NamedTuple):
    """What is carried from round to round."""

    w: Vector  # the model
    weights: PerObjective  # lam, the objectives' weights of the last round
    accepted: Scalar  # the guard's loss of the model, infinite at the start


@dataclass(frozen=True)
class GuardedFedCMOOPref(FedCMOOPref):
    r"""`FedCMOOPref` whose server sets the model back when the training loss grows.

        1  w+, lam+ = a round of FedCMOO-Pref from w
        2  the server sends w+ to the first clients of its list; each sends its losses at w+
        3  loss = the mean of these over clients and objectives
        4  if loss is not finite or above ratio accepted: w stays
        5  else: w <- w+, accepted <- loss

    >>> from fedlib import problems, run
    >>> problem = problems.pareto(torch.eye(4).view(2, 1, 2, 4))
    >>> method = GuardedFedCMOOPref(lr=0.1, local_steps=2, participants=2, judges=2, judge_rows=1)
    >>> run(method, problem, rounds=20, progress=False).info["rejected"].sum()
    np.float64(0.0)

    Parameters
    ----------
    ratio : by how much the loss may grow in a round.
    judges : how many of the first clients are asked.
    judge_rows : on how many of its first rows each evaluates its losses.

    All others are those of `FedCMOOPref`. The losses of its line 2 and those of the guard are
    `plain_values`. Reports `rejected`, 1 where the model was set back, and `accepted`.

    Raises
    ------
    ValueError, TypeError
        as `FedCMOOPref`.
    """

    ratio: float = 1.5
    judges: int = 10
    judge_rows: int = 600

    def init(self, problem: Problem) -> State:  # type: ignore[override]
        """Equal weights, and no loss that was accepted."""
        start = super().init(problem)
        return State(start.w, start.weights, start.w.new_full((), torch.inf))

    def loss_values(self, client: Client) -> PerObjective:
        """At the client: its M losses, without dropout."""
        return plain_values(client, client.model, client.value_batch())

    def judged(self, fed: Federation, w: Vector) -> Scalar:
        """The mean loss of a model at the first clients."""
        judges = torch.arange(self.judges, device=w.device)
        rows = torch.arange(self.judge_rows, device=w.device)
        draw = Draw(participants=judges, values=rows.expand(self.judges, -1))
        w = fed.broadcast(Identity(), w, receivers=self.judges)  # 2
        clients = fed.clients(draw, model=w)
        losses: Tensor = fed.ask(self.loss_values, clients)  # 2
        return losses.mean()  # 3

    def round(  # type: ignore[override]
        self, fed: Federation, state: State, draw: Draw
    ) -> tuple[State, Info]:
        start = WeightedModel(state.w, state.weights)
        new, info = super().round(fed, start, draw)  # 1
        loss = self.judged(fed, new.w)  # 2, 3
        good = loss.isfinite() & (loss <= self.ratio * state.accepted)
        w = torch.where(good, new.w, state.w)  # 4, 5
        accepted = torch.where(good, loss, state.accepted)  # 4, 5
        judgement = fed.info(rejected=1 - good.to(w.dtype), accepted=accepted)
        return State(w, new.weights, accepted), {**info, **judgement}
