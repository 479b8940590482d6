"""The counterexample of the FedFW paper: Frank-Wolfe with averaged oracle answers.

Dadras, Banerjee, Prakhya, Yurtsever, *Federated Frank-Wolfe Algorithm*, ECML PKDD 2024 (arXiv
2408.10090), appendix A.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.algorithms._frankwolfe import State, active_clients, ask_oracles, check_feasible, start
from fedlib.checks import Count
from fedlib.core.client import Client, Reply
from fedlib.core.federation import Federation
from fedlib.core.problem import ConvexSet, Draw, Info, Problem
from fedlib.core.sampling import draw_coins
from fedlib.steps.schedules import Convex, Schedule


@dataclass(frozen=True)
class NaiveFW:
    r"""Frank-Wolfe with averaged oracle answers, which does not converge (appendix A).

        1  t = 1, 2, ...: the server sends w to all clients
        2  each client i: s_i = lmo(grad f_i(w))
        3      x_i = (1 - eta_t) w + eta_t s_i, sent as s_i
        4  w <- mean_i x_i

    >>> from fedlib import L1Ball, NaiveFW, problems, run
    >>> problem = problems.pareto(torch.eye(4).view(4, 1, 1, 4)).within(L1Ball(0.5))
    >>> run(NaiveFW(), problem, rounds=20, progress=False).late("f").round(1)
    array([0.4])

    Parameters
    ----------
    schedule : eta_t, as in `FedFW`.
    batch_size : rows of a minibatch for line 2; None: all rows.

    Info: `gap`, the mean of the clients' own Frank-Wolfe gaps at w, before the round.

    Differs: as in the paper, (20).

    Raises
    ------
    ValueError
        in `init`, as `FedFW`.
    """

    schedule: Schedule = Convex()
    batch_size: Count | None = None

    def __post_init__(self) -> None:
        checks.fields(self)

    def init(self, problem: Problem) -> State:
        check_feasible("NaiveFW", problem, None, self.batch_size)
        return start(problem, keeps=False)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        return draw_coins(problem, rng, batch_size=self.batch_size)

    def local_update(
        self, client: Client, w: Float[Tensor, "d"], *, convex_set: ConvexSet
    ) -> Reply:
        """At the client: the extreme point for its gradient at w."""
        g = client.gradient(w, client.batch(0), client.objective_weights(w))
        s = convex_set.lmo(g)  # 2
        return Reply(s, (), g @ (w - s))

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        w, all_of_them = state.w, active_clients(draw, 1.0)  # 1
        s, _, gap = ask_oracles(fed, self.local_update, draw, state.x, w, all_of_them, None)  # 1-3
        eta = self.schedule.eta(state.t + 1, 1.0)
        info = fed.info(gap=gap.mean())
        return state._replace(w=((1 - eta) * w + eta * s).mean(0), t=state.t + 1), info  # 3, 4
