"""What FedCMOO is compared with: FSMGDA, FedAvg on the mean of the objectives, centralized MGDA.

References: Yang, Liu, Liu, Liu, Momma, *Federated Multi-Objective Learning*, NeurIPS 2023 (FSMGDA);
Desideri, *Multiple-gradient descent algorithm*, Comptes Rendus 2012 (MGDA); both as Askin, Sharma,
Joshi, Joe-Wong, AISTATS 2025, write and run them (Algorithm 5, sections 2 and 7).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.algorithms._multi import (
    State,
    check_numbers,
    check_problem,
    shared_part,
    task_batch,
    task_gradients,
    weight_info,
)
from fedlib.checks import Count, Positive
from fedlib.compress.compressors import Identity
from fedlib.core.client import Client
from fedlib.core.describe import added_field
from fedlib.core.federation import Federation
from fedlib.core.problem import Batch, Draw, Info, Problem
from fedlib.core.sampling import draw_round
from fedlib.steps.local import SGD, LocalSteps
from fedlib.weights.gram import gram_of
from fedlib.weights.rules import Least, MinNorm, Weights


@dataclass(frozen=True)
class FSMGDA:
    r"""Federated stochastic MGDA: every objective trains by itself, the updates are weighted.

        1  sample n distinct clients S; the server sends w to them
        2  each j in S, each objective k by itself: u = w
        3      E times: u <- u - lr grad f_jk(u), batches of its own
        4      Delta_jk = (w - u) / (E lr)
        5  all M updates are sent;  Delta_k = mean_j Delta_jk
        6  lam = weights(G, lam) with G the Gram matrix of the Delta_k, then least(lam)
        7  w <- project(w - server_lr lr E sum_k lam_k Delta_k)

    >>> from fedlib import FSMGDA, problems, run
    >>> problem = problems.pareto(torch.eye(4).view(2, 1, 2, 4))
    >>> method = FSMGDA(lr=0.1, local_steps=2, participants=2)
    >>> run(method, problem, rounds=20, progress=False).late("f").round(1)
    array([0.4])

    Parameters
    ----------
    lr, server_lr, local_steps, participants, batch_size, shared : as in `FedCMOO`.
    local : the steps of line 3, `SGD()` or `Adam()`, whose moments every objective has for itself.
    weights : the rule of line 6.
    least : the smallest weight, or None; for two objectives the authors' code clips at 0.001,
        `Least(0.002, mixture=False)`.

    Raises
    ------
    ValueError, TypeError
        at construction for a parameter out of range; in `init` for one that does not fit the
        problem, or a problem with constraints.
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

    def __post_init__(self) -> None:
        checks.fields(self)
        check_numbers("FSMGDA", self.lr, self.server_lr, self.local_steps, self.participants)

    def init(self, problem: Problem) -> State:
        """Check against the problem; equal weights."""
        return check_problem(
            "FSMGDA", problem, self.participants, self.batch_size, shared=self.shared
        )

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """Participants, and E batches an objective, one objective after another."""
        return draw_round(  # 1
            problem,
            rng,
            participants=self.participants,
            local_steps=problem.num_objectives * self.local_steps,
            batch_size=self.batch_size,
        )

    def local_updates(self, client: Client) -> Float[Tensor, "Md"]:
        """At the client: the M updates, one after another `[M d]`."""
        tasks, steps = client.num_objectives, self.local_steps
        own, axis = task_batch(client, 0, tasks * steps)
        if axis is not None:  # [M, E, ...]
            data = tuple(x.reshape(tasks, steps, *x.shape[1:]) for x in own.data)
            own = Batch(data, own.weight.reshape(tasks, steps, -1))

        def alone(batches: Batch, task: Tensor) -> Tensor:
            def gradient(u: Tensor, e: int) -> Tensor:
                batch = batches
                if axis is not None:
                    batch = Batch(tuple(x[e] for x in batches.data), batches.weight[e])
                return client.gradient(u, batch, task)

            u = self.local(client.model, gradient, steps, self.lr)  # 2, 3
            return (client.model - u) / (steps * self.lr)  # 4

        each = torch.eye(tasks, dtype=client.model.dtype, device=client.model.device)
        updates: Tensor = client.each(alone, (axis, 0))(own, each)
        return updates.flatten()

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        w = fed.broadcast(Identity(), state.w, receivers=self.participants)  # 1
        sent = fed.ask(self.local_updates, fed.clients(draw, model=w))  # 2-5
        delta = sent.mean(0).view(fed.problem.num_objectives, -1)  # 5
        G = gram_of(delta[:, : shared_part(self.shared, fed.problem)])
        lam = self.weights(G, state.weights)  # 6
        lam = lam if self.least is None else self.least(lam)  # 6
        w = fed.project(w - self.server_lr * self.lr * self.local_steps * (lam @ delta))  # 7
        return State(w, lam), fed.info(**weight_info(G, lam))


@dataclass(frozen=True)
class Scalarized:
    r"""FedAvg on the mean of the objectives, with a server step: equal weights in every round.

        1  sample n distinct clients S; the server sends w to them
        2  each j in S starts from u = w
        3      E times: u <- u - lr (1 / M) sum_k grad f_jk(u)
        4      Delta_j = (w - u) / (E lr) is sent
        5  w <- project(w - server_lr lr E mean_j Delta_j)

    It is `FedCMOO` with weights that do not move, without the Gram matrix. With `task` k all weight
    is on objective k: the single-task training that multi-task methods are compared with.

    >>> from fedlib import Scalarized, problems, run
    >>> problem = problems.pareto(torch.eye(4).view(2, 1, 2, 4))
    >>> method = Scalarized(lr=0.1, local_steps=2, participants=2)
    >>> run(method, problem, rounds=20, progress=False).late("f").round(1)
    array([0.4])

    Parameters
    ----------
    lr, server_lr, local_steps, participants, batch_size : as in `FedCMOO`.
    local : the steps of line 3, `SGD()` or `Adam()`.
    task : the number of the only objective, from 1; None for the mean of all.

    Raises
    ------
    ValueError, TypeError
        as `FSMGDA`; in `init` also for an objective that there is not.
    """

    lr: Positive
    local_steps: Count
    participants: Count
    server_lr: Positive = 1.0
    batch_size: Count | None = None
    task: Count | None = None
    local: LocalSteps = added_field(SGD())

    def __post_init__(self) -> None:
        checks.fields(self)
        check_numbers("Scalarized", self.lr, self.server_lr, self.local_steps, self.participants)

    def init(self, problem: Problem) -> State:
        """Check against the problem; the fixed weights."""
        state = check_problem("Scalarized", problem, self.participants, self.batch_size)
        if self.task is None:
            return state
        tasks = problem.num_objectives
        checks.count("Scalarized", "task", self.task, high=tasks, note="the problem's objectives")
        return state._replace(weights=torch.eye(tasks).to(problem.w0)[self.task - 1])

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        return draw_round(  # 1
            problem,
            rng,
            participants=self.participants,
            local_steps=self.local_steps,
            batch_size=self.batch_size,
        )

    def local_update(self, client: Client, lam: Float[Tensor, "M"]) -> Float[Tensor, "d"]:
        """At the client: E local steps on its weighted objectives."""
        u = self.local(  # 2, 3
            client.model,
            lambda u, t: client.gradient(u, client.batch(t), lam),
            self.local_steps,
            self.lr,
        )
        return (client.model - u) / (self.local_steps * self.lr)  # 4

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        w = fed.broadcast(Identity(), state.w, receivers=self.participants)  # 1
        # the weights are part of the method and not sent
        update = partial(self.local_update, lam=state.weights)
        delta = fed.ask(update, fed.clients(draw, model=w)).mean(0)  # 2-4
        w = fed.project(w - self.server_lr * self.lr * self.local_steps * delta)  # 5
        return State(w, state.weights), fed.info()


@dataclass(frozen=True)
class MGDA:
    r"""Multiple-gradient descent: one step along the shortest convex combination of gradients.

        1  every client sends its M gradients at w;  g_k = their means
        2  lam = weights(G, lam) with G the Gram matrix of the g_k
        3  w <- project(w - lr sum_k lam_k g_k)

    The method for all data in one place; with many clients their gradients are averaged, which is
    the same up to the bits. Along the direction of line 3 the objective that falls least falls
    most (to first order, for a step of its length).

    >>> from fedlib import MGDA, problems, run
    >>> problem = problems.pareto(torch.eye(4).view(2, 1, 2, 4))
    >>> run(MGDA(lr=0.1), problem, rounds=20, progress=False).late("f").round(1)
    array([0.4])

    Parameters
    ----------
    lr : step size.
    batch_size : rows of a client's batch for each objective, or None for full gradients. With
        minibatches the direction is biased: the weights depend on the same noise.
    weights : the rule of line 2, the exact minimizer by default.

    Raises
    ------
    ValueError, TypeError
        as `FSMGDA`.
    """

    lr: Positive
    batch_size: Count | None = None
    weights: Weights = MinNorm()

    def __post_init__(self) -> None:
        checks.fields(self)

    def init(self, problem: Problem) -> State:
        """Check against the problem; equal weights."""
        return check_problem("MGDA", problem, problem.num_clients, self.batch_size)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """All clients, and a batch for each objective."""
        return draw_round(
            problem,
            rng,
            participants=problem.num_clients,
            local_steps=problem.num_objectives,
            batch_size=self.batch_size,
        )

    def task_gradients(self, client: Client) -> Float[Tensor, "Md"]:
        """At the client: its M gradients, one after another `[M d]`."""
        return task_gradients(client, client.model).flatten()  # 1

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        """One step at the server."""
        w = fed.broadcast(Identity(), state.w)  # 1
        sent = fed.ask(self.task_gradients, fed.clients(draw, model=w))  # 1
        g = sent.mean(0).view(fed.problem.num_objectives, -1)  # 1
        G = gram_of(g)
        lam = self.weights(G, state.weights)  # 2
        w = fed.project(w - self.lr * (lam @ g))  # 3
        return State(w, lam), fed.info(**weight_info(G, lam))
