"""NaiveFW: Frank-Wolfe with averaged oracle answers, which does not converge.

Dadras, Banerjee, Prakhya, Yurtsever, *Federated Frank-Wolfe Algorithm*, ECML PKDD 2024 (arXiv
2408.10090), appendix A.
"""

from dataclasses import dataclass

from fedlib.checks import Count
from fedlib.core.client import Client, Reply
from fedlib.core.federation import Federation
from fedlib.core.problem import ConvexSet, Draw, Info
from fedlib.core.sampling import active_clients
from fedlib.shapes import Vector
from fedlib.steps.schedules import Convex, Schedule
from fedlib.work.oracles import OracleWork
from fedlib.work.states import Iterate


@dataclass(frozen=True)
class NaiveFW(OracleWork):
    r"""Frank-Wolfe with averaged oracle answers, which does not converge (FedFW paper, appendix A).

        1  t = 1, 2, ...: the server sends w to all clients
        2  each client i: s_i = lmo(grad f_i(w))
        3      x_i = (1 - eta_t) w + eta_t s_i, sent as s_i
        4  w <- mean_i x_i

    Parameters
    ----------
    schedule : Schedule
        Rule for the step size eta_t: `Convex()`, `Nonconvex(rounds)` or `Fixed(step)`.
    batch_size : int or None
        Number of rows in a gradient's minibatch; None for all rows.

    Info: `gap` is the mean of the clients' own Frank-Wolfe gaps at w before the round.

    Reference: the paper's (20).
    """

    schedule: Schedule = Convex()
    batch_size: Count | None = None

    def local_update(
        self,
        client: Client,
        w: Vector,
        *,
        convex_set: ConvexSet,
    ) -> Reply:
        """At the client: find the extreme point for its gradient at w."""
        g = client.gradient(w, client.batch(0), client.objective_weights(w))
        s = convex_set.lmo(g)  # 2
        gap = g @ (w - s)
        return Reply(upload=s, memory=(), report=gap)

    def round(
        self,
        fed: Federation,
        state: Iterate,
        draw: Draw,
    ) -> tuple[Iterate, Info]:
        w = state.w
        t = state.t + 1
        everyone = active_clients(draw, 1.0)
        s, _, gap = self.ask(fed, draw, self.local_update, w, everyone)  # 1-3
        eta = self.schedule.eta(t, 1.0)
        models = (1 - eta) * w + eta * s  # 3
        return Iterate(models.mean(0), t), fed.info(gap=gap.mean())  # 4
