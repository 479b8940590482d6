"""FedAvg: federated averaging.

McMahan, Moore, Ramage, Hampson, Arcas, *Communication-Efficient Learning of Deep Networks from
Decentralized Data*, AISTATS 2017, Algorithm 1.
"""

from dataclasses import dataclass

from fedlib.checks import Count, Positive
from fedlib.core.client import Client
from fedlib.core.describe import added_field
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info
from fedlib.shapes import Vector
from fedlib.steps.local import SGD, LocalSteps
from fedlib.work.local import LocalWork
from fedlib.work.states import Model


@dataclass(frozen=True)
class FedAvg(LocalWork):
    r"""Federated averaging, which minimizes the mean of the objectives and ignores constraints.

        1  sample n distinct clients S; the server sends w to them
        2  each j in S starts from u = w
        3      E times: u <- u - lr grad f_j(u)
        4  w <- project(mean_j u_j)

    >>> from fedlib import FedAvg, problems, run
    >>> method = FedAvg(lr=0.1, local_steps=2, participants=4)
    >>> run(method, problems.quadratics(), rounds=20).late("g").round(2)
    array([0.45])

    Parameters
    ----------
    lr : float
        Step size of the local steps.
    local_steps : int
        E, the number of local steps in a round.
    participants : int
        n, the number of clients in a round.
    batch_size : int or None
        Number of rows in a minibatch; None for full local gradients.
    local : LocalSteps
        Rule for the local steps, `SGD()` or `Adam()`.

    Differs: all clients have equal weights, because the papers define f as the plain mean over
    clients. A local step uses one minibatch; in the original method it is an epoch.
    """

    lr: Positive
    local_steps: Count
    participants: Count
    batch_size: Count | None = None
    local: LocalSteps = added_field(SGD())

    def local_update(self, client: Client, w: Vector) -> Vector:
        """At the client: make E local steps on the mean of its objectives."""
        return self.local_model(client, w, client.objective_weights(w))  # 2, 3

    def round(
        self,
        fed: Federation,
        state: Model,
        draw: Draw,
    ) -> tuple[Model, Info]:
        clients = fed.clients(draw)
        u = fed.ask(self.local_update, clients, state.w)  # 1-3
        w = fed.project(fed.mean(u, clients))  # 4
        return Model(w), fed.info()
