"""FedSGM: switching gradients for constrained federated optimization.

Two papers describe it. W: Upadhyay, Moon, Hashemi, *Switching Gradient Methods for Constrained
Federated Optimization*, OPT 2025, Algorithm 1 (all clients, unbiased uplink, no memory).
F: *FedSGM: A Unified Framework for Constraint Aware, Bidirectionally Compressed, Multi-step
Federated Optimization*, Algorithm 1 (participation, contractive compression both ways with error
feedback).

Symbol in F -> name here: m of n clients take part -> n of N (`participants`); E -> `local_steps`.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from jaxtyping import Float
from torch import Tensor

from fedlib.checks import Count, Positive, Threshold
from fedlib.compress.compressors import Compressor, Identity
from fedlib.core.client import Client, Reply
from fedlib.core.describe import added_field
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info, Problem
from fedlib.core.sampling import check_work
from fedlib.shapes import PerLoss, Scalar, Vector
from fedlib.steps.local import SGD, LocalSteps
from fedlib.steps.switching import Hard, Switch, loss_weights
from fedlib.work.switching import SwitchingWork


class State(NamedTuple):
    """The state of FedSGM."""

    w: Vector  # the model that every client holds
    x: Vector  # the server's uncompressed, projected model
    residual: Float[Tensor, "N d"]  # e_j, what client j has not sent yet; [N, 0] without memory
    weighted: Vector  # sum over rounds of (1 - sigma_t) w_t
    weight: Scalar  # sum over rounds of (1 - sigma_t)


@dataclass(frozen=True)
class FedSGM(SwitchingWork):
    r"""The federated switching gradient method, for one objective under constraints.

        1   sample n distinct clients S; initially x = w, e_j = 0 for all N clients
        2   each j in S sends g_j(w); the server forms g = mean_j g_j(w) and sends it back
        3   sigma = switch(g - level - tolerance), kept for the whole round
        4   each j in S starts from u = w
        5       E times: u <- u - lr ((1 - sigma) grad f_j(u) + sigma grad g_j(u))
        6       Delta_j = (w - u) / lr
        7       v_j = C_j(e_j + Delta_j) is sent;  e_j <- e_j + Delta_j - v_j        (EF14)
        8   x <- project(x - lr mean_j v_j)
        9   w <- w + C_0(x - w), sent to all N clients                               (primal EF21)
        10  output: the average of w_t with weights 1 - sigma_t (the start of each round)

    >>> from fedlib import FedSGM, problems, run
    >>> method = FedSGM(lr=0.1, local_steps=2, participants=4, tolerance=0.05)
    >>> run(method, problems.quadratics(), rounds=20).late("g").round(2)
    array([0.02])

    Parameters
    ----------
    lr : float
        eta, the step size of the local steps.
    local_steps : int
        E, the number of local steps in a round.
    participants : int
        n, the number of clients in a round.
    tolerance : float
        epsilon; the method switches where g exceeds `level` by more than this number. Infinity:
        it never switches.
    level : float
        c in the constraint `g <= c`; 0 in the papers' experiments.
    switch : Switch
        Rule for sigma, the share of the constraint in a round: `Hard()` or `Soft(beta)`.
    uplink : Compressor
        The clients' compressor C_j: contractive with error feedback, else unbiased.
    downlink : Compressor
        The server's compressor C_0, which must be contractive.
    error_feedback : bool
        Whether clients keep what the uplink dropped; the workshop paper has False.
    batch_size : int or None
        Number of rows in a minibatch; None for full local gradients.
    value_batch_size : int or None
        Number of rows for the constraint value g_j(w); None for all rows.
    resample_for_update : bool
        Whether a second, independent sample of n clients sends the constraint values, as the
        theorems for n < N assume. False is the printed algorithm with one sample.
    local : LocalSteps
        Rule for the local steps, `SGD()` or `Adam()`.

    Differs: the server sends back sigma in place of g, which takes the same 32 bits. The projection
    is onto the problem's set, if it has one; as in the paper, local iterates and w are not
    projected. If the constraints are not means over clients (`Pooled`, `OfMeans`), the clients send
    statistics in line 2, and sigma is multiplied by the slopes, so a step of line 5 follows
    sigma times slopes @ (gradients of the statistics). If there are several constraints, the g of
    lines 3 to 5 is the largest. A client then sends all their values, and receives sigma and the
    index of the largest constraint.

    Reference: F, Algorithm 1 (lines 1-9), section 3.1 (line 10); W, Algorithm 1.
    """

    client_state: ClassVar[tuple[str, ...]] = ("residual",)

    lr: Positive
    local_steps: Count
    participants: Count
    tolerance: Threshold
    level: float = 0.0
    switch: Switch = Hard()
    uplink: Compressor = Identity()
    downlink: Compressor = Identity()
    error_feedback: bool = True
    batch_size: Count | None = None
    value_batch_size: Count | None = None
    resample_for_update: bool = False
    local: LocalSteps = added_field(SGD())

    def init(self, problem: Problem) -> State:
        """Check the problem; all memories start at zero."""
        check_work("FedSGM", problem, self.participants, constrained=True)
        return State(**self.start(problem))

    def weights(
        self,
        share: Scalar,
        constraint_weights: Float[Tensor, "*s"],
    ) -> PerLoss:
        """Weigh the gradients of the losses in a local step; the constraint's share is sigma."""
        return loss_weights(1 - share, constraint_weights)

    def local_update(
        self,
        client: Client,
        sigma: Float[Tensor, "*s"],
    ) -> Vector | Reply:
        """At the client: make E local steps, then compress the sum of their directions.

        `sigma` is the message of `fed.steer`: sigma times the slope of the constraint.
        """
        weights = self.weights(*client.steered(sigma))
        return self.compressed_update(client, weights)  # 4-7

    def round(
        self,
        fed: Federation,
        state: State,
        draw: Draw,
    ) -> tuple[State, Info]:
        w = state.w
        clients = fed.clients(draw, model=w, memory=state.residual)  # 1
        value_clients = fed.value_clients(draw, clients, model=w)
        values = fed.ask(self.constraint_value, value_clients)  # 2
        g, slope = fed.constraint(values, value_clients)  # 2
        sigma = self.switch(g - self.level - self.tolerance)  # 3
        message = fed.steer(sigma, slope)
        answers = fed.ask(self.local_update, clients, message, wire=self.uplink)  # 4-7
        state = self.server_step(fed, state, draw, clients, answers, sigma)  # 8-10
        return state, fed.info(g_hat=g, sigma=sigma)
