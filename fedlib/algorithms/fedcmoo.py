"""FedCMOO: several objectives, weighted before the clients train, and one update a client.

Askin, Sharma, Joshi, Joe-Wong, *Federated Communication-Efficient Multi-Objective Optimization*,
AISTATS 2025 (arXiv 2410.16398): Algorithms 1-3 and 6 (FedCMOO), 4, 7 and 8 (FedCMOO-Pref).

Paper -> here: x -> `w`, w -> `lam` (weights), tau -> E (`local_steps`), n of N clients -> the same,
B -> S, eta_c -> `lr`, eta_s -> `server_lr`, beta and K -> fields of `FindWeights`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.algorithms._multi import (
    State,
    check_numbers,
    check_problem,
    draw_tasks,
    shared_part,
    task_gradients,
    weight_info,
    weighted_gradient,
)
from fedlib.checks import Count, Positive
from fedlib.compress.compressors import Identity
from fedlib.core.client import Client
from fedlib.core.describe import added_field
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info, Problem
from fedlib.steps.local import SGD, LocalSteps
from fedlib.weights.gram import GramEstimate, TwoWay
from fedlib.weights.preference import Preference
from fedlib.weights.rules import FindWeights, Least, Weights


@dataclass(frozen=True)
class FedCMOO:
    r"""Federated multi-objective optimization with weights from a compressed Gram matrix.

        1  sample n distinct clients S; the server sends w to them; initially lam = (1, ..., 1) / M
        2  each j in S: H_j = the gradients of f_j1, ..., f_jM at w, each on a batch of its own
        3  G = estimate of (mean_j H_j) (mean_j H_j)' from what the clients send of their H_j
        4  lam <- weights(G, lam), sent to S
        5  each j in S: u = w - lr sum_k lam_k H_jk, the gradients of line 2 as the first step
        6      E - 1 times: u <- u - lr sum_k lam_k grad f_jk(u)
        7      Delta_j = (w - u) / (E lr) is sent
        8  w <- project(w - server_lr lr E mean_j Delta_j)

    >>> from fedlib import FedCMOO, problems, run
    >>> problem = problems.pareto(torch.eye(4).view(2, 1, 2, 4))
    >>> method = FedCMOO(lr=0.1, local_steps=2, participants=2)
    >>> run(method, problem, rounds=20, progress=False).late("f").round(1)
    array([0.4])

    Parameters
    ----------
    lr, server_lr : client and server step size.
    local_steps : E.
    participants : n.
    batch_size : rows of every minibatch, or None for full local gradients.
    gram : how G is estimated (`OneWay`, `TwoWay`, `MeanOfGrams`), and in it the sketch.
    weights : the rule of line 4, `FindWeights` or `MinNorm`.
    shared : the first parameters of the model, which all objectives share (the encoder): they alone
        enter G; None for all. The weights multiply the gradients of all parameters.
    shared_batch : one batch for all objectives in line 2, in place of one each.
    local : the steps of lines 5 and 6, `SGD()`, or `Adam()` as the paper trains on QM9 (section D).

    Differs: projection onto the problem's set, if it has one, as everywhere in this library; the
    authors' code rolls the model back when the loss grows, which is not done here.

    Raises
    ------
    ValueError, TypeError
        at construction for a parameter out of range; in `init` for one that does not fit the
        problem, or a problem with constraints.

    Reference: Algorithm 1 (all lines), sections 4 and 7 (line 5 and the batches of line 2).
    """

    lr: Positive
    local_steps: Count
    participants: Count
    server_lr: Positive = 1.0
    batch_size: Count | None = None
    gram: GramEstimate = TwoWay()
    weights: Weights = FindWeights()
    shared: Count | None = None
    shared_batch: bool = False
    local: LocalSteps = added_field(SGD())

    def __post_init__(self) -> None:
        checks.fields(self)
        check_numbers("FedCMOO", self.lr, self.server_lr, self.local_steps, self.participants)

    def init(self, problem: Problem) -> State:
        """Check against the problem; equal weights."""
        return check_problem(
            "FedCMOO", problem, self.participants, self.batch_size, shared=self.shared
        )

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """Participants, the batches of lines 2 and 6 one after another, and the sketches' noise."""
        return draw_tasks(  # 1
            problem,
            rng,
            gram=self.gram,
            participants=self.participants,
            local_steps=self.local_steps,
            batch_size=self.batch_size,
            shared=self.shared,
            shared_batch=self.shared_batch,
        )

    def task_gradients(self, client: Client) -> Float[Tensor, "M d"]:
        """At the client: the gradients of its objectives."""
        return task_gradients(client, client.model, not self.shared_batch)  # 2

    def local_update(self, client: Client, lam: Float[Tensor, "M"]) -> Float[Tensor, "d"]:
        """At the client: E steps on the weighted objectives, the first with what it remembers."""
        gradient = weighted_gradient(client, lam, self.shared_batch)
        u = self.local(client.model, gradient, self.local_steps, self.lr)  # 5, 6
        return (client.model - u) / (self.local_steps * self.lr)  # 7

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        w = fed.broadcast(Identity(), state.w, receivers=self.participants)  # 1
        clients = fed.clients(draw, model=w)
        shared = shared_part(self.shared, fed.problem)
        G, clients = self.gram(fed, clients, draw.downlink, self.task_gradients, shared)  # 2, 3
        lam = self.weights(G, state.weights)  # 4
        delta = fed.ask(self.local_update, clients, lam).mean(0)  # 5-7
        w = fed.project(w - self.server_lr * self.lr * self.local_steps * delta)  # 8
        return State(w, lam), fed.info(**weight_info(G, lam))


@dataclass(frozen=True)
class FedCMOOPref:
    r"""FedCMOO towards a preference: the losses in a given ratio, `r_1 F_1 = ... = r_M F_M`.

        1  sample n distinct clients S; the server sends w to them
        2  each j in S sends its losses f_j1(w), ..., f_jM(w); the server forms their means F
        3  each j in S: H_j = the gradients of its objectives at w, each on a batch of its own
        4  G = estimate of (mean_j H_j) (mean_j H_j)' from what the clients send of their H_j
        5  lam = preference(G, F), then least(lam), sent to S
        6  each j in S: u = w - lr sum_k lam_k H_jk, the gradients of line 3 as the first step
        7      E - 1 times: u <- u - lr sum_k lam_k grad f_jk(u)
        8      Delta_j = (w - u) / (E lr) is sent
        9  w <- project(w - server_lr lr E mean_j Delta_j)

    >>> from fedlib import FedCMOOPref, problems, run
    >>> problem = problems.pareto(torch.eye(4).view(2, 1, 2, 4))
    >>> method = FedCMOOPref(lr=0.1, local_steps=2, participants=2)
    >>> run(method, problem, rounds=20, progress=False).late("f").round(1)
    array([0.4])

    Parameters
    ----------
    lr, server_lr, local_steps, participants, batch_size, gram, shared, shared_batch, local : as in
        `FedCMOO`.
    preference : the linear programme of line 5 and its ratios r.
    least : the smallest weight, or None; the paper's experiments have `Least(0.2)` but for Fig. 4.
    value_batch_size : rows of the batch for the losses of line 2, or None for all of the client's.

    Differs: where an indefinite estimate leaves the programme without a solution, minimum-norm
    weights take its place and the round reports `fallback` 1 (the paper is silent, the code stops).

    Raises
    ------
    ValueError, TypeError
        as `FedCMOO`; in `init` also for a number of ratios other than M.

    Reference: Algorithm 7 with Algorithm 8 in line 5.
    """

    lr: Positive
    local_steps: Count
    participants: Count
    server_lr: Positive = 1.0
    batch_size: Count | None = None
    gram: GramEstimate = TwoWay()
    preference: Preference = Preference()
    least: Least | None = Least()
    shared: Count | None = None
    shared_batch: bool = False
    value_batch_size: Count | None = None
    local: LocalSteps = added_field(SGD())

    def __post_init__(self) -> None:
        checks.fields(self)
        check_numbers("FedCMOOPref", self.lr, self.server_lr, self.local_steps, self.participants)

    def init(self, problem: Problem) -> State:
        """Check against the problem; equal weights."""
        self.preference.check("FedCMOOPref", problem.num_objectives)
        sizes = self.batch_size, self.value_batch_size
        return check_problem("FedCMOOPref", problem, self.participants, *sizes, shared=self.shared)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """Participants, the batches of lines 2, 3 and 7, and the sketches' noise."""
        return draw_tasks(  # 1
            problem,
            rng,
            gram=self.gram,
            participants=self.participants,
            local_steps=self.local_steps,
            batch_size=self.batch_size,
            value_batch_size=self.value_batch_size,
            shared=self.shared,
            shared_batch=self.shared_batch,
        )

    def loss_values(self, client: Client) -> Float[Tensor, "M"]:
        """At the client: its M losses."""
        return client.losses(client.model, client.value_batch())  # 2

    def task_gradients(self, client: Client) -> Float[Tensor, "M d"]:
        """At the client: the gradients of its objectives."""
        return task_gradients(client, client.model, not self.shared_batch)  # 3

    def local_update(self, client: Client, lam: Float[Tensor, "M"]) -> Float[Tensor, "d"]:
        """At the client: E steps on the weighted objectives, the first with what it remembers."""
        gradient = weighted_gradient(client, lam, self.shared_batch)
        u = self.local(client.model, gradient, self.local_steps, self.lr)  # 6, 7
        return (client.model - u) / (self.local_steps * self.lr)  # 8

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        w = fed.broadcast(Identity(), state.w, receivers=self.participants)  # 1
        clients = fed.clients(draw, model=w)
        losses = fed.ask(self.loss_values, clients).mean(0)  # 2
        shared = shared_part(self.shared, fed.problem)
        G, clients = self.gram(fed, clients, draw.downlink, self.task_gradients, shared)  # 3, 4
        lam, mu, fallback = self.preference(G, losses)  # 5
        lam = lam if self.least is None else self.least(lam)  # 5
        delta = fed.ask(self.local_update, clients, lam).mean(0)  # 6-8
        w = fed.project(w - self.server_lr * self.lr * self.local_steps * delta)  # 9
        return State(w, lam), fed.info(mu=mu, fallback=fallback, **weight_info(G, lam))
