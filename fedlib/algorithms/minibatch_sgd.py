"""Mini-batch SGD, the baseline of SSCA, with samples or features split over clients.

Ye, Cui, *Sample-based and Feature-based Federated Learning via Mini-batch SSCA* (arXiv 2104.06011),
section VI. The paper states neither its grid of step sizes nor its search.

Paper's symbol -> here: I -> N, N_i of N samples -> the shares pi_i, omega -> w, bar a / t^bar alpha
-> `lr`, lambda -> `ridge`, the fastest client -> `head`.
"""

from dataclasses import dataclass

from fedlib.checks import Count, Nonnegative
from fedlib.core.client import Client
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info, Problem
from fedlib.core.sampling import check_work
from fedlib.shapes import Scalar, Vector
from fedlib.steps.local import SGD
from fedlib.steps.schedules import PowerLaw
from fedlib.vertical import Line
from fedlib.work.features import OverFeatures, exchange, mean_of
from fedlib.work.samples import OverSamples, shares
from fedlib.work.states import Iterate


@dataclass(frozen=True)
class MiniBatchSGD(OverSamples):
    r"""Mini-batch SGD, the baseline of `SSCA`; it weights client models by sample counts.

        1  the server sends w to all N clients, each starts from u_i = w
        2      E times, on a fresh batch: u_i <- u_i - lr_t (grad f_i(u_i) + 2 ridge u_i)
        3  w <- project(sum_i pi_i u_i), with pi_i client i's share of all samples

    Parameters
    ----------
    lr : PowerLaw
        Step size of round t.
    local_steps : int
        E, the number of local steps in a round.
    batch_size : int or None
        B, the number of rows in a batch, drawn without replacement; None for all rows.
    ridge : float
        lambda, the factor of the term `lambda |w|^2` that is added to the objective.

    Reference: section VI of the paper, with McMahan et al. (2017) for E > 1.
    """

    lr: PowerLaw
    local_steps: Count = 1
    batch_size: Count | None = None
    ridge: Nonnegative = 0.0

    def init(self, problem: Problem) -> Iterate:
        check_work("MiniBatchSGD", problem, problem.num_clients, self.batch_size)
        return Iterate.start(problem)

    def local_update(
        self,
        client: Client,
        w: Vector,
        lr: Scalar,
    ) -> Vector:
        """At the client: make E steps from w."""
        weights = client.objective_weights(w)

        def gradient(u: Vector, step: int) -> Vector:
            gradient = client.gradient(u, client.batch(step), weights)
            return gradient + 2 * self.ridge * u

        return SGD()(w, gradient, self.local_steps, lr)  # 1, 2

    def round(
        self,
        fed: Federation,
        state: Iterate,
        draw: Draw,
    ) -> tuple[Iterate, Info]:
        t = state.t + 1
        clients = fed.clients(draw)
        u = fed.ask(self.local_update, clients, state.w, self.lr(t))  # 1, 2
        w = fed.project(shares(fed.problem) @ u)  # 3
        return Iterate(w, t), fed.info()


@dataclass(frozen=True)
class VerticalSGD(OverFeatures):
    r"""Mini-batch SGD, the baseline of `VerticalSSCA` with the same messages.

        1  the server draws a batch of B samples without replacement and sends every client i their
               numbers, w_0 and w_i
        2  each client i sends h_i for every sample of the batch to all other clients
        3  each client i sends the gradient by w_i, summed over the batch
        4  client `head` also sends the gradient by w_0, summed over the batch
        5  g = (what was sent, put together) / B + 2 ridge w
        6  w <- project(w - lr_t g)

    Parameters
    ----------
    lr : PowerLaw
        Step size of round t.
    batch_size : int or None
        B, the number of samples in a batch, drawn from the pool without replacement; None for all.
    ridge : float
        lambda, the factor of the term `lambda |w|^2` that is added to the objective.
    head : int
        Number, 1 .. I, of the client that also sends the gradient of the common parameters.

    Reference: section VI of the paper, after the feature-based methods that it cites.
    """

    lr: PowerLaw
    batch_size: Count | None = None
    ridge: Nonnegative = 0.0
    head: Count = 1

    def init(self, problem: Problem) -> Iterate:
        self.check(problem)
        return Iterate.start(problem)

    def round(
        self,
        fed: Federation,
        state: Iterate,
        draw: Draw,
    ) -> tuple[Iterate, Info]:
        line = Line(fed)
        w = state.w
        t = state.t + 1
        gradients, _ = exchange(line, w, draw, mean_of(fed.problem), self.head)  # 1-4
        g = gradients[0] + 2 * self.ridge * w  # 5
        w = fed.project(w - self.lr(t) * g)  # 6
        return Iterate(w, t), line.info()
