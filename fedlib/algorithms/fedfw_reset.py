"""FedFW as its authors published it in code: local models are overwritten in every round.

Dadras, Banerjee, Prakhya, Yurtsever, *Federated Frank-Wolfe Algorithm*, ECML PKDD 2024 (arXiv
2408.10090); the published code differs from Algorithm 1, which is `FedFW`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.algorithms._frankwolfe import (
    State,
    active_clients,
    ask_oracles,
    check_feasible,
    check_parameters,
    on_active,
    start,
)
from fedlib.checks import Count, Nonnegative, Share
from fedlib.core.client import Client, Reply
from fedlib.core.federation import Federation
from fedlib.core.problem import ConvexSet, Draw, Info, Problem
from fedlib.core.sampling import draw_coins
from fedlib.steps.schedules import Convex, Schedule


@dataclass(frozen=True)
class FedFWReset:
    r"""FedFW of the published code: several steps from w in every round, then a mean of models.

        1  round t = 1, 2, ...: each client takes part with probability `participation`
        2  the server sends w; each such client i starts from x_i = w
        3      E times, s = (t - 1) E + 1, ..., t E: g_i = grad f_i(x_i) / N + lam_s (x_i - w)
        4          v_i = lmo(g_i)
        5          x_i <- (1 - eta_s) x_i + eta_s v_i
        6      sends x_i
        7  w <- mean_i x_i, over those who took part

    >>> from fedlib import FedFWReset, L1Ball, problems, run
    >>> problem = problems.pareto(torch.eye(4).view(4, 1, 1, 4)).within(L1Ball(0.5))
    >>> run(FedFWReset(0.1, local_steps=2), problem, rounds=20, progress=False).late("f").round(1)
    array([0.4])

    Parameters
    ----------
    lam0, participation, batch_size : as in `FedFW`.
    local_steps : E; with one step it is `NaiveFW`, because x_i - w is 0 in line 3.
    schedule : eta_s and lam_s / lambda_0, as in `FedFW`, by local steps in place of rounds.

    Info: `gap` as in `FedFW`, of the first of the local steps; `distance` is 0, no client keeps a
    model.

    Differs: from the paper in lines 2, 3 and 7, as the authors' code does; for comparison only.

    Raises
    ------
    ValueError, TypeError
        as `FedFW`.
    """

    lam0: Nonnegative
    participation: Share = 1.0
    schedule: Schedule = Convex()
    batch_size: Count | None = None
    local_steps: Count = 1

    def __post_init__(self) -> None:
        checks.fields(self)
        check_parameters("FedFWReset", self.lam0, self.participation)

    def init(self, problem: Problem) -> State:
        check_feasible("FedFWReset", problem, None, self.batch_size)
        return start(problem, keeps=False)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        return draw_coins(  # 1
            problem, rng, local_steps=self.local_steps, batch_size=self.batch_size
        )

    def local_update(
        self,
        client: Client,
        w: Float[Tensor, "d"],
        *,
        convex_set: ConvexSet,
        t: Float[Tensor, ""],
        clients: int,
    ) -> Reply:
        """At the client: E steps from w; it sends where they end."""
        x = w  # 2
        gaps = []
        for step in range(self.local_steps):
            now = (t - 1) * self.local_steps + step + 1
            lam = self.lam0 * self.schedule.growth(now, self.participation)
            eta = self.schedule.eta(now, self.participation)
            gradient = client.gradient(x, client.batch(step), client.objective_weights(w))
            g = gradient / clients + lam * (x - w)  # 3
            v = convex_set.lmo(g)  # 4
            gaps.append((g * (x - v)).sum())
            x = torch.lerp(x, v, eta)  # 5
        return Reply(x, (), gaps[0])  # 6

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        w, active = state.w, active_clients(draw, self.participation)  # 1
        update = partial(self.local_update, t=state.t + 1, clients=fed.problem.num_clients)
        x, _, gap = ask_oracles(fed, update, draw, state.x, w, active, None, dense=True)  # 2-6
        moved = on_active(active, x - w, torch.zeros_like(x)).sum(0) / active.sum().clamp(min=1)
        info = fed.info(gap=gap.sum(), distance=torch.zeros_like(state.t))
        return state._replace(w=w + moved, t=state.t + 1), info  # 7
