"""MultiFedSGM: switching gradients for several objectives under constraints.

This method is ours; no paper describes it. It composes the switching, the compression and the
output of FedSGM (*FedSGM: A Unified Framework for Constraint Aware, Bidirectionally Compressed,
Multi-step Federated Optimization*, Algorithm 1) with the objectives' weights of FedCMOO (Askin,
Sharma, Joshi, Joe-Wong, *Federated Communication-Efficient Multi-Objective Optimization*, AISTATS
2025, Algorithms 1-3).
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count, Positive, Threshold
from fedlib.compress.compressors import Compressor, Identity
from fedlib.core.client import Client, Reply
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info, Problem
from fedlib.core.sampling import check_work, draw_round
from fedlib.shapes import Jacobian, PerObjective, Scalar, Vector
from fedlib.steps.local import SGD, LocalSteps
from fedlib.steps.switching import Hard, Switch, loss_weights
from fedlib.weights.gram import GramEstimate, TwoWay
from fedlib.weights.rules import FixedWeights, Ratios, Weights
from fedlib.work.objectives import objective_gradients, weight_info
from fedlib.work.switching import SwitchingWork


class State(NamedTuple):
    """The state of MultiFedSGM: that of FedSGM, and the objectives' weights."""

    w: Vector  # the model that every client holds
    x: Vector  # the server's uncompressed, projected model
    residual: Float[Tensor, "N d"]  # e_j, what client j has not sent yet; [N, 0] without memory
    weighted: Vector  # sum over rounds of (1 - sigma_t) w_t
    weight: Scalar  # sum over rounds of (1 - sigma_t)
    lam: PerObjective  # the objectives' weights of the last round


@dataclass(frozen=True)
class MultiFedSGM(SwitchingWork):
    r"""The federated switching gradient method for several objectives under constraints.

        1   sample n distinct clients S; initially x = w, e_j = 0 for all N clients, lam = 1 / M
        2   each j in S sends g_j(w), and for G what the estimate needs of H_j, the gradients of its
            objectives at w;  g = mean_j g_j(w),  G = estimate of (mean_j H_j) (mean_j H_j)'
        3   sigma = switch(g - level - tolerance);  lam <- weights(G, lam);  both sent to S
        4   each j in S starts from u = w
        5       E times: u <- u - lr ((1 - sigma) sum_k lam_k grad f_jk(u) + sigma grad g_j(u))
        6       Delta_j = (w - u) / lr
        7       v_j = C_j(e_j + Delta_j) is sent;  e_j <- e_j + Delta_j - v_j
        8   x <- project(x - lr mean_j v_j)
        9   w <- w + C_0(x - w), sent to all N clients
        10  output: the average of w_t with weights 1 - sigma_t (the start of each round)

    With fixed weights, G and lam are not sent: every client knows the weights, and the method is
    FedSGM on the weighted objective. With one objective it is FedSGM.

    >>> from fedlib import MultiFedSGM, problems, run
    >>> method = MultiFedSGM(0.02, local_steps=2, participants=4, tolerance=0.01, weights=(3, 1))
    >>> problem = problems.constrained_pareto()
    >>> run(method, problem, rounds=100).late("distance").round(1)
    array([0.])

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
    weights : Weights or None
        Rule for the objectives' weights: `FindWeights`, `MinNorm` or `FixedWeights`; a tuple of
        numbers means `FixedWeights`, and None means equal weights.
    gram : GramEstimate
        Estimate of G, if the weights are not fixed: `OneWay`, `TwoWay` or `MeanOfGrams`.
    level : float
        c in the constraint `g <= c`.
    switch : Switch
        Rule for sigma, the share of the constraint in a round: `Hard()` or `Soft(beta)`.
    uplink : Compressor
        The clients' compressor C_j: contractive with error feedback, else unbiased.
    downlink : Compressor
        The server's compressor C_0, which must be contractive.
    error_feedback : bool
        Whether clients keep what the uplink dropped.
    batch_size : int or None
        Number of rows in a minibatch; None for full local gradients. The gradients of line 2 have
        batches of their own, one for each objective.
    value_batch_size : int or None
        Number of rows for the constraint value g_j(w); None for all rows.
    resample_for_update : bool
        Whether a second, independent sample of n clients sends the constraint values.
    local : LocalSteps
        Rule for the local steps, `SGD()` or `Adam()`.

    If there are several constraints, the g of lines 3 to 5 is the largest. A client then sends all
    their values, and receives sigma and the index of the largest constraint. If the constraints are
    not means over clients (`Pooled`, `OfMeans`), the clients send statistics in line 2, and sigma
    is multiplied by the slopes, so line 5 follows the gradients of the statistics. A round never
    branches on a number, so G is estimated in every round, also where sigma is 1 and the weights do
    not matter.
    """

    client_state: ClassVar[tuple[str, ...]] = ("residual",)

    lr: Positive
    local_steps: Count
    participants: Count
    tolerance: Threshold
    weights: Weights | None = None
    gram: GramEstimate = TwoWay()
    level: float = 0.0
    switch: Switch = Hard()
    uplink: Compressor = Identity()
    downlink: Compressor = Identity()
    error_feedback: bool = True
    batch_size: Count | None = None
    value_batch_size: Count | None = None
    resample_for_update: bool = False
    local: LocalSteps = SGD()

    def __post_init__(self) -> None:
        if isinstance(self.weights, (tuple, list)):
            relative = tuple(self.weights)
            checks.value("MultiFedSGM", "weights", relative, Ratios)
            object.__setattr__(self, "weights", FixedWeights(relative))
        super().__post_init__()

    @property
    def fixed(self) -> bool:
        """Whether the objectives' weights are the same in all rounds."""
        return self.weights is None or isinstance(self.weights, FixedWeights)

    def init(self, problem: Problem) -> State:
        """Check the problem; all memories start at zero, and the weights are equal or fixed."""
        check_work("MultiFedSGM", problem, self.participants)
        count = problem.num_constraints
        rule = "have at least one constraint"
        checks.require(count, "MultiFedSGM", "problem", rule, count, "without any, take FedCMOO")
        objectives = problem.num_objectives
        lam = problem.w0.new_full((objectives,), 1 / objectives)
        if isinstance(self.weights, FixedWeights):
            unused_gram = torch.diag(lam)
            lam = self.weights(unused_gram, lam)
        return State(**self.start(problem), lam=lam)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """Draw participants, batches and noise; `others` holds those for the Gram matrix."""
        settings = self.sampling()
        if self.fixed:
            return draw_round(problem, rng, **settings)  # 1
        objectives = problem.num_objectives
        settings["local_steps"] = self.local_steps + objectives
        draw = draw_round(problem, rng, **settings)  # 1
        noise = self.gram.draw(self.participants, objectives, problem.dim, rng)
        for_gram = Draw(draw.participants, uplink=noise.up, downlink=noise.down)
        if isinstance(draw.batches, Tensor):
            step_batches, gram_batches = draw.batches.tensor_split([self.local_steps], 1)
            for_gram = for_gram._replace(batches=gram_batches)
            draw = draw._replace(batches=step_batches)
        return draw._replace(others=(for_gram,))

    def objective_gradients(self, client: Client) -> Jacobian:
        """At the client: compute H_j, the gradients of its objectives."""
        return objective_gradients(client, client.model)  # 2

    def local_update(
        self,
        client: Client,
        sigma: Float[Tensor, "*s"],
        lam: PerObjective,
    ) -> Vector | Reply:
        """At the client: make E local steps, then compress the sum of their directions.

        `sigma` is the message of `fed.steer`: sigma times the slope of the constraint.
        """
        share, constraint_weights = client.steered(sigma)
        weights = loss_weights((1 - share) * lam, constraint_weights)
        return self.compressed_update(client, weights)  # 4-7

    def find_weights(
        self,
        fed: Federation,
        state: State,
        draw: Draw,
    ) -> tuple[PerObjective, Info]:
        """Estimate the Gram matrix; return the new weights and their report."""
        (for_gram,) = draw.others
        clients = fed.clients(for_gram, model=state.w)
        dim = fed.problem.dim
        G, _ = self.gram(fed, clients, for_gram.downlink, self.objective_gradients, dim)  # 2
        assert self.weights is not None
        lam = self.weights(G, state.lam)  # 3
        return lam, weight_info(G, lam)

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
        lam = state.lam
        report: Info = {}
        if self.fixed:
            update = partial(self.local_update, lam=lam)
            answers = fed.ask(update, clients, message, wire=self.uplink)  # 4-7
        else:
            lam, report = self.find_weights(fed, state, draw)  # 2, 3
            answers = fed.ask(self.local_update, clients, message, lam, wire=self.uplink)  # 4-7
        state = self.server_step(fed, state, draw, clients, answers, sigma)  # 8-10
        info = fed.info(g_hat=g, sigma=sigma, **report)
        return state._replace(lam=lam), info
