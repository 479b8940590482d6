"""What FedSGM is compared with: FedAvg, Penalty-FedAvg, and two methods for data in one place.

References: McMahan, Moore, Ramage, Hampson, Arcas, *Communication-Efficient Learning of Deep
Networks from Decentralized Data*, AISTATS 2017, Algorithm 1 (FedAvg). FedSGM (full paper),
appendix G.1 (Penalty-FedAvg) and Figure 1 (centralized curves). Polyak (1967) for the switching
subgradient method itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.algorithms._central import check_centralized, draw_steps, step_values
from fedlib.checks import Count, Nonnegative, Positive
from fedlib.compress.compressors import Identity
from fedlib.core.client import Client
from fedlib.core.describe import added_field
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info, Problem
from fedlib.core.sampling import check_one_constraint, check_work, draw_round
from fedlib.steps.local import SGD, LocalSteps
from fedlib.steps.switching import Hard, Switch


class State(NamedTuple):
    """All that these methods carry is the model."""

    w: Float[Tensor, "d"]


@dataclass(frozen=True)
class FedAvg:
    r"""Federated averaging of the mean of the objectives; constraints are ignored.

        1  sample n distinct clients S; the server sends w to them
        2  each j in S starts from u = w
        3      E times: u <- u - lr grad f_j(u)
        4  w <- project(mean_j u_j)

    >>> from fedlib import FedAvg, problems, run
    >>> problem = problems.quadratics(torch.ones(4, 2), torch.zeros(4, 2), level=0.5)
    >>> method = FedAvg(lr=0.1, local_steps=2, participants=4)
    >>> run(method, problem, rounds=20, progress=False).late("g").round(2)
    array([0.45])

    Parameters
    ----------
    lr : step size.
    local_steps : E.
    participants : n.
    batch_size : rows of a minibatch, or None for full local gradients.
    local : the steps of line 3, `SGD()` or `Adam()`.

    Differs: clients are weighted equally (the papers' f is the plain mean over clients), and a
    local step is one minibatch, not an epoch.
    """

    lr: Positive
    local_steps: Count
    participants: Count
    batch_size: Count | None = None
    local: LocalSteps = added_field(SGD())

    def __post_init__(self) -> None:
        checks.fields(self)

    def init(self, problem: Problem) -> State:
        check_work("FedAvg", problem, self.participants, self.batch_size, self.batch_size)
        return State(problem.w0)

    def sampling(self) -> dict[str, Any]:
        """What `draw_round` draws for a round."""
        return {
            "participants": self.participants,
            "local_steps": self.local_steps,
            "batch_size": self.batch_size,
        }

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        return draw_round(problem, rng, **self.sampling())  # 1

    def local_update(self, client: Client, w: Float[Tensor, "d"]) -> Float[Tensor, "d"]:
        """At the client: E local steps on the mean of its objectives."""
        weights = client.objective_weights(w)
        return self.local(  # 2, 3
            w, lambda u, t: client.gradient(u, client.batch(t), weights), self.local_steps, self.lr
        )

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        u = fed.ask(self.local_update, fed.clients(draw), state.w)  # 1-3
        return State(fed.project(u.mean(0))), fed.info()  # 4


@dataclass(frozen=True)
class PenaltyFedAvg:
    r"""FedAvg on `f(w) + rho [g(w) - level - tolerance]_+`, the hinge fixed for the round.

        1  sample n distinct clients S
        2  each j in S sends g_j(w); the server forms g = mean_j g_j(w)
        3  on = 1{g > level + tolerance}, sent back
        4  each j in S starts from u = w
        5      E times: u <- u - lr (grad f_j(u) + on rho grad g_j(u))
        6  w <- project(w - mean_j (w - u_j)), sent to all clients

    >>> from fedlib import PenaltyFedAvg, problems, run
    >>> problem = problems.quadratics(torch.ones(4, 2), torch.zeros(4, 2), level=0.5)
    >>> method = PenaltyFedAvg(lr=0.1, local_steps=2, participants=4, tolerance=0.05, rho=2.0)
    >>> run(method, problem, rounds=20, progress=False).late("g").round(2)
    array([-0.06])

    Parameters
    ----------
    lr, local_steps, participants, tolerance, level : as in FedSGM.
    rho : penalty; the run can only end feasible if it exceeds the problem's multiplier.
    batch_size, value_batch_size : as in FedSGM.
    local : the steps of line 5, `SGD()` or `Adam()`.

    Differs: as in the paper's appendix G.1, without its optional compression. Where the problem
    pools statistics (`Pooled`), line 2 sends those, and `on` comes back with their slope's sign.
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

    def __post_init__(self) -> None:
        checks.fields(self)

    def init(self, problem: Problem) -> State:
        sizes = self.batch_size, self.value_batch_size
        check_work("PenaltyFedAvg", problem, self.participants, *sizes)
        check_one_constraint("PenaltyFedAvg", problem)
        return State(problem.w0)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        return draw_round(  # 1
            problem,
            rng,
            participants=self.participants,
            local_steps=self.local_steps,
            batch_size=self.batch_size,
            value_batch_size=self.value_batch_size,
        )

    def constraint_value(self, client: Client) -> Float[Tensor, "*s"]:
        """At the client: g_j(w), or its statistics."""
        return client.constraint(client.model, client.value_batch())

    def local_update(self, client: Client, on: Float[Tensor, ""]) -> Float[Tensor, "d"]:
        """At the client: E local steps on the penalized objective; sends the change.

        `on` in {-1, 0, 1} comes with the sign of the constraint's slope.
        """
        w = client.model  # 4
        weights = torch.stack([torch.ones_like(on), on * self.rho])
        u = self.local(  # 5
            w, lambda u, t: client.gradient(u, client.batch(t), weights), self.local_steps, self.lr
        )
        return w - u

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        clients = fed.clients(draw, model=state.w)  # 1
        g, slope = fed.constraint(fed.ask(self.constraint_value, clients))  # 2
        on = (g > self.level + self.tolerance).to(g.dtype)  # 3
        change = fed.ask(self.local_update, clients, slope * on).mean(0)  # 4, 5
        step = fed.project(state.w - change) - state.w
        return State(state.w + fed.broadcast(Identity(), step)), fed.info(g_hat=g, sigma=on)  # 6


@dataclass(frozen=True)
class SGM:
    r"""Centralized switching (sub)gradient method: all data in one place.

        1  `steps` times, each with fresh values and fresh batches:
        2      sigma = switch(g(w) - level - tolerance)
        3      w <- project(w - lr ((1 - sigma) grad f(w) + sigma grad g(w)))

    Run it on a problem with one client (`neyman_pearson(..., clients=1)`). A round is `steps`
    steps, so that T rounds are the T x E steps of the papers' centralized curves.

    >>> from fedlib import SGM, problems, run
    >>> problem = problems.quadratics(torch.ones(1, 2), torch.zeros(1, 2), level=0.5)
    >>> run(SGM(lr=0.1, tolerance=0.05), problem, rounds=20, progress=False).late("g").round(2)
    array([0.02])

    Parameters
    ----------
    lr, tolerance, level, switch : as in FedSGM.
    steps : steps a round.
    batch_size, value_batch_size : rows of the batch for the gradients and of the one for g(w), both
        drawn anew for every step; None for all rows.

    Differs: nothing crosses a line, so no bits are counted; `sigma` is that of the last step.
    """

    lr: Positive
    tolerance: float
    steps: Count = 1
    level: float = 0.0
    switch: Switch = Hard()
    batch_size: Count | None = None
    value_batch_size: Count | None = None

    def __post_init__(self) -> None:
        checks.fields(self)

    def init(self, problem: Problem) -> State:
        check_centralized("SGM", problem)
        check_work("SGM", problem, 1, self.batch_size, self.value_batch_size)
        return State(problem.w0)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """The batches of every step; the one client takes part."""
        return draw_steps(problem, rng, self.steps, self.batch_size, self.value_batch_size)  # 1

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        """`steps` steps on the pooled data."""
        pool, w = fed.only_client(draw), state.w
        for step in range(self.steps):  # 1
            values = step_values(pool, step, self.steps)
            g, slope = fed.constraint(pool.constraint(w, values).unsqueeze(0))
            sigma = self.switch(g - self.level - self.tolerance)  # 2
            weights = torch.stack([1 - sigma, slope * sigma])
            w = fed.project(w - self.lr * pool.gradient(w, pool.batch(step), weights))  # 3
        return State(w), fed.info(g_hat=g, sigma=sigma)


@dataclass(frozen=True)
class PenaltySGM:
    r"""Centralized penalty method: (sub)gradients of `f(w) + rho [g(w) - level - tolerance]_+`.

        1  `steps` times, each with fresh values and fresh batches:
        2      on = 1{g(w) > level + tolerance}
        3      w <- project(w - lr (grad f(w) + on rho grad g(w)))

    >>> from fedlib import PenaltySGM, problems, run
    >>> problem = problems.quadratics(torch.ones(1, 2), torch.zeros(1, 2), level=0.5)
    >>> method = PenaltySGM(lr=0.1, tolerance=0.05, rho=2.0)
    >>> run(method, problem, rounds=20, progress=False).late("g").round(2)
    array([-0.01])

    Parameters
    ----------
    lr, tolerance, rho, level : as in `PenaltyFedAvg`.
    steps, batch_size, value_batch_size : as in `SGM`, as is what to run it on.

    Differs: nothing crosses a line, so no bits are counted; `sigma` is `on` of the last step.
    """

    lr: Positive
    tolerance: float
    rho: Nonnegative
    steps: Count = 1
    level: float = 0.0
    batch_size: Count | None = None
    value_batch_size: Count | None = None

    def __post_init__(self) -> None:
        checks.fields(self)

    def init(self, problem: Problem) -> State:
        check_centralized("PenaltySGM", problem)
        check_work("PenaltySGM", problem, 1, self.batch_size, self.value_batch_size)
        return State(problem.w0)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """The batches of every step; the one client takes part."""
        return draw_steps(problem, rng, self.steps, self.batch_size, self.value_batch_size)  # 1

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        """`steps` steps on the pooled data."""
        pool, w = fed.only_client(draw), state.w
        for step in range(self.steps):  # 1
            values = step_values(pool, step, self.steps)
            g, slope = fed.constraint(pool.constraint(w, values).unsqueeze(0))
            on = (g - self.level - self.tolerance > 0).to(g.dtype)  # 2
            weights = torch.stack([torch.ones_like(on), slope * on * self.rho])
            w = fed.project(w - self.lr * pool.gradient(w, pool.batch(step), weights))  # 3
        return State(w), fed.info(g_hat=g, sigma=on)
