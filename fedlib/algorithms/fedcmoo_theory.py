"""FedCMOO as its convergence theorem has it: unbiased compression, two samples, one weight step.

Askin, Sharma, Joshi, Joe-Wong, *Federated Communication-Efficient Multi-Objective Optimization*,
AISTATS 2025 (arXiv 2410.16398), Algorithms 9 and 10. Letters as in `fedlib.algorithms.fedcmoo`.
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
    task_gradients,
    weight_info,
)
from fedlib.checks import Count, Nonnegative, Positive
from fedlib.compress.compressors import Compressor, Identity
from fedlib.compress.sketches import Columns, Wire
from fedlib.core.client import Client
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info, Problem
from fedlib.core.sampling import draw_round
from fedlib.weights.rules import FindWeights


@dataclass(frozen=True)
class FedCMOOTheory:
    r"""The variant of FedCMOO that the convergence theorem is about.

        1  sample S (n clients), A_1 and A_2 (n' clients each), independently; lam = (1, ..., 1) / M
        2  each i in A_j, j = 1, 2: compresses every gradient of its H_i at w and sends them
        3  Y_j = their mean over A_j;  G = Y_1 Y_2', unbiased, not symmetric
        4  lam <- project(lam - step G lam) onto the simplex, sent to S
        5  each j in S starts from u = w
        6      E times: u <- u - lr sum_k lam_k grad f_jk(u), fresh batches
        7      Delta_j = (w - u) / (E lr) is sent
        8  w <- project(w - server_lr lr E mean_j Delta_j)

    >>> from fedlib import FedCMOOTheory, problems, run
    >>> problem = problems.pareto(torch.eye(4).view(2, 1, 2, 4))
    >>> method = FedCMOOTheory(lr=0.1, local_steps=2, participants=2, step=0.1, gram_participants=2)
    >>> run(method, problem, rounds=20, progress=False).late("f").round(1)
    array([0.4])

    Parameters
    ----------
    lr, server_lr, local_steps, participants, batch_size : as in `FedCMOO`.
    step : beta, of the one step of line 4.
    gram_participants : n'.
    compressor : unbiased (`Identity()`, `RandK(fraction)`), applied to one gradient at a time.

    Raises
    ------
    ValueError, TypeError
        as `FedCMOO`; in `init` also for a compressor that is biased.

    Reference: Algorithms 9 (lines 2, 3) and 10.
    """

    lr: Positive
    local_steps: Count
    participants: Count
    step: Nonnegative
    gram_participants: Count
    server_lr: Positive = 1.0
    batch_size: Count | None = None
    compressor: Compressor = Identity()

    def __post_init__(self) -> None:
        checks.fields(self)
        check_numbers("FedCMOOTheory", self.lr, self.server_lr, self.local_steps, self.participants)

    def init(self, problem: Problem) -> State:
        """Check against the problem; equal weights."""
        most = problem.num_clients
        checks.count("FedCMOOTheory", "gram_participants", self.gram_participants, 1, most)
        if self.compressor.variance(problem.dim) is None:
            raise ValueError(
                f"FedCMOOTheory: compressor must be unbiased, got {self.compressor!r}; "
                "take Identity or a scaled RandK."
            )
        return check_problem("FedCMOOTheory", problem, self.participants, self.batch_size)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """S and its batches; A_1 and A_2, with what they compress with, as `others`."""
        size, tasks, count = self.batch_size, problem.num_objectives, self.gram_participants
        both = [
            draw_round(problem, rng, participants=count, local_steps=tasks, batch_size=size)  # 1
            for _ in range(2)
        ]
        main = draw_round(  # 1
            problem,
            rng,
            participants=self.participants,
            local_steps=self.local_steps,
            batch_size=size,
        )
        noise = Columns(self.compressor).draw(2 * count, tasks, problem.dim, rng)
        halves = (noise[:count], noise[count:]) if isinstance(noise, Tensor) else ((), ())
        return main._replace(
            others=tuple(a._replace(uplink=x) for a, x in zip(both, halves, strict=True))
        )

    def task_gradients(self, client: Client) -> Float[Tensor, "Md"]:
        """At a client of A_1 or A_2: its gradients, each compressed, in one row."""
        sketch = Columns(self.compressor)
        return sketch(task_gradients(client, client.model), client.noise).flatten()  # 2

    def local_update(self, client: Client, lam: Float[Tensor, "M"]) -> Float[Tensor, "d"]:
        """At a client of S: E steps on the weighted objectives."""
        u = client.model  # 5
        for step in range(self.local_steps):
            u = u - self.lr * client.gradient(u, client.batch(step), lam)  # 6
        return (client.model - u) / (self.local_steps * self.lr)  # 7

    def mean_gradients(
        self, fed: Federation, w: Float[Tensor, "d"], some: Draw
    ) -> Float[Tensor, "M d"]:
        """Y_1 or Y_2, `[M, d]`."""
        tasks = fed.problem.num_objectives
        wire = Wire(Columns(self.compressor), tasks)
        sent = fed.ask(self.task_gradients, fed.clients(some, model=w), wire=wire)  # 2
        mean: Tensor = sent.mean(0).view(tasks, -1)  # 3
        return mean

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        told = self.participants + 2 * self.gram_participants
        w = fed.broadcast(Identity(), state.w, receivers=told)  # 1
        Y = [self.mean_gradients(fed, w, some) for some in draw.others]
        G = Y[0] @ Y[1].mT  # 3
        lam = FindWeights(self.step, steps=1, normalize=False)(G, state.weights)  # 4
        clients = fed.clients(draw, model=w)
        delta = fed.ask(self.local_update, clients, lam).mean(0)  # 5-7
        w = fed.project(w - self.server_lr * self.lr * self.local_steps * delta)  # 8
        return State(w, lam), fed.info(**weight_info(G, lam))
