"""FedFW as in its authors' code, which differs from the paper's Algorithm 1.

Dadras, Banerjee, Prakhya, Yurtsever, *Federated Frank-Wolfe Algorithm*, ECML PKDD 2024 (arXiv
2408.10090), and the code that its authors published.
"""

from dataclasses import dataclass
from functools import partial

import torch

from fedlib.checks import Count, Nonnegative, Share
from fedlib.core.client import Client, Reply
from fedlib.core.federation import Federation
from fedlib.core.problem import ConvexSet, Draw, Info
from fedlib.core.sampling import active_clients, on_active
from fedlib.shapes import Scalar, Vector
from fedlib.steps.schedules import Convex, Schedule
from fedlib.work.oracles import OracleWork
from fedlib.work.states import Iterate


@dataclass(frozen=True)
class FedFWReset(OracleWork):
    r"""FedFW as in the authors' code: a round makes several steps from w and averages the models.

        1  round t = 1, 2, ...: each client takes part with probability p
        2  the server sends w; each such client i starts from x_i = w
        3      E times, s = (t - 1) E + 1, ..., t E: g_i = grad f_i(x_i) / N + lam_s (x_i - w)
        4          v_i = lmo(g_i)
        5          x_i <- (1 - eta_s) x_i + eta_s v_i
        6      sends x_i
        7  w <- mean_i x_i, over those who took part

    Parameters
    ----------
    lam0 : float
        lambda_0, the penalty's factor.
    participation : float
        Probability p that a client takes part in a round, in (0, 1].
    schedule : Schedule
        Rule for the step size eta_s and the penalty's growth lambda_s / lambda_0, where s counts
        local steps: `Convex()`, `Nonconvex(rounds)` or `Fixed(step)`.
    batch_size : int or None
        Number of rows in a gradient's minibatch; None for all rows.
    local_steps : int
        E; with one step the method is `NaiveFW`, because the penalty has no effect.

    Info: `gap` is the sum over clients of <g_i, x_i - v_i> at the first local step. `distance` is
    always 0, because no client keeps a model.

    Differs: lines 2, 3 and 7 follow the authors' code, not the paper. Use it for comparison only.
    """

    lam0: Nonnegative
    participation: Share = 1.0
    schedule: Schedule = Convex()
    batch_size: Count | None = None
    local_steps: Count = 1

    def local_update(
        self,
        client: Client,
        w: Vector,
        *,
        convex_set: ConvexSet,
        t: Scalar,
        clients: int,
    ) -> Reply:
        """At the client: make E steps from w and send the last point."""
        x = w  # 2
        weights = client.objective_weights(w)
        gaps = []
        for step in range(self.local_steps):
            s = (t - 1) * self.local_steps + step + 1
            gradient = client.gradient(x, client.batch(step), weights)
            penalty = self.lam0 * self.schedule.growth(s, self.participation)
            g = gradient / clients + penalty * (x - w)  # 3
            v = convex_set.lmo(g)  # 4
            gaps.append((g * (x - v)).sum())
            eta = self.schedule.eta(s, self.participation)
            x = torch.lerp(x, v, eta)  # 5
        return Reply(upload=x, memory=(), report=gaps[0])  # 6

    def round(
        self,
        fed: Federation,
        state: Iterate,
        draw: Draw,
    ) -> tuple[Iterate, Info]:
        w = state.w
        t = state.t + 1
        active = active_clients(draw, self.participation)  # 1
        update = partial(self.local_update, t=t, clients=fed.problem.num_clients)
        x, _, gap = self.ask(fed, draw, update, w, active, dense=True)  # 2-6
        changes = on_active(active, x - w, torch.zeros_like(x))
        count = active.sum().clamp(min=1)
        mean_change = changes.sum(0) / count
        info = fed.info(gap=gap.sum(), distance=torch.zeros_like(t))
        return Iterate(w + mean_change, t), info  # 7
