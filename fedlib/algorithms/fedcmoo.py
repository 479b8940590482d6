"""FedCMOO: federated optimization of several objectives with a compressed Gram matrix.

Askin, Sharma, Joshi, Joe-Wong, *Federated Communication-Efficient Multi-Objective Optimization*,
AISTATS 2025 (arXiv 2410.16398): Algorithms 1-3 and 6 (FedCMOO), 4, 7 and 8 (FedCMOO-Pref), 9 and 10
(the variant of the convergence theorem).

Paper's symbol -> name here: x -> `w`, w -> `lam` (weights), tau -> E (`local_steps`), n of N
clients -> the same, B -> S, eta_c -> `lr`, eta_s -> `server_lr`, beta, K -> fields of FindWeights.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count, Nonnegative, Positive
from fedlib.compress.compressors import Compressor, Identity
from fedlib.compress.sketches import Columns, Wire
from fedlib.core.client import Client
from fedlib.core.describe import added_field
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info, Problem
from fedlib.core.sampling import draw_round
from fedlib.shapes import Jacobian, PerObjective, Vector
from fedlib.steps.local import SGD, LocalSteps
from fedlib.weights.gram import GramEstimate, TwoWay
from fedlib.weights.preference import Preference
from fedlib.weights.rules import FindWeights, FixedWeights, Least, Ratios, Weights
from fedlib.work.objectives import (
    ObjectivesWork,
    WeightedModel,
    objective_gradients,
    weight_info,
)


@dataclass(frozen=True)
class GramWeighted(ObjectivesWork):
    """Base of FedCMOO and FedCMOO-Pref, which differ in how they find the weights.

    The fields are described in `FedCMOO`.
    """

    lr: Positive
    local_steps: Count
    participants: Count
    server_lr: Positive = 1.0
    batch_size: Count | None = None
    gram: GramEstimate = TwoWay()
    shared: Count | None = None
    shared_batch: bool = False
    local: LocalSteps = added_field(SGD())

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """Draw participants, batches for step 1 and for steps 2 .. E, and the sketches' noise.

        `downlink` holds the noise of the server's sketch.
        """
        draw = super().draw(problem, rng)
        size = self.shared or problem.dim
        noise = self.gram.draw(self.participants, problem.num_objectives, size, rng)
        return draw._replace(uplink=noise.up, downlink=noise.down)

    def batches(self, objectives: int) -> int:
        """The number of batches for step 1, plus one for each further step."""
        return self.gradient_batches(objectives) + self.local_steps - 1

    def gradient_batches(self, objectives: int) -> int:
        """The number of batches for step 1; the batches of steps 2 .. E follow them."""
        if self.shared_batch:
            return 1
        return objectives

    def task_gradients(self, client: Client) -> Jacobian:
        """At the client: compute the gradients of its objectives."""
        return objective_gradients(
            client,
            client.model,
            separate_batches=not self.shared_batch,
        )

    def local_update(self, client: Client, lam: PerObjective) -> Vector:
        """At the client: make E steps on the weighted objectives.

        The first step uses the remembered gradients, which the client sent for the Gram matrix.
        """
        next_batch = self.gradient_batches(len(lam))

        def gradient(u: Vector, step: int) -> Vector:
            if step == 0:
                return lam @ client.memory
            return client.gradient(u, client.batch(next_batch + step - 1), lam)

        return self.mean_direction(client, gradient)


@dataclass(frozen=True)
class FedCMOO(GramWeighted):
    r"""Federated multi-objective optimization with weights from a compressed Gram matrix.

        1  sample n distinct clients S; the server sends w to them; initially lam = (1, ..., 1) / M
        2  each j in S: H_j = the gradients of f_j1, ..., f_jM at w, each on a batch of its own
        3  G = estimate of (mean_j H_j) (mean_j H_j)' from what the clients send of their H_j
        4  lam <- weights(G, lam), sent to S
        5  each j in S: u = w - lr sum_k lam_k H_jk, so the first step uses line 2's gradients
        6      E - 1 times: u <- u - lr sum_k lam_k grad f_jk(u)
        7      Delta_j = (w - u) / (E lr) is sent
        8  w <- project(w - server_lr lr E mean_j Delta_j)

    >>> from fedlib import FedCMOO, problems, run
    >>> method = FedCMOO(lr=0.1, local_steps=2, participants=2)
    >>> run(method, problems.pareto(), rounds=20).late("f").round(1)
    array([0.4])

    Parameters
    ----------
    lr : float
        Step size of the clients.
    local_steps : int
        E, the number of local steps in a round.
    participants : int
        n, the number of clients in a round.
    server_lr : float
        Step size of the server; 1 takes the mean of the clients' models.
    batch_size : int or None
        Number of rows in a minibatch; None for full local gradients.
    gram : GramEstimate
        Estimate of G, the Gram matrix of the objectives' gradients, with its sketch: `OneWay`,
        `TwoWay` or `MeanOfGrams`.
    shared : int or None
        Number of parameters, from the first one on, that all objectives share (the encoder); None
        for all. Only these enter G, but the weights multiply the gradients of all parameters.
    shared_batch : bool
        Whether a client computes all M gradients for G on one batch, instead of a batch for each.
    local : LocalSteps
        Rule for the local steps: `SGD()`, or `Adam()`, the paper's rule for QM9 (section D).
    weights : Weights
        Rule for the objectives' weights: `FindWeights`, `MinNorm` or `FixedWeights`; a tuple of
        numbers means `FixedWeights`.

    Differs: if the problem has a feasible set, the server projects onto it, as all methods of this
    library do. The authors' code rolls the model back when the loss grows; this class does not.

    The weights favour objectives with short gradients, so losses of a much larger scale hardly
    fall. `problem.scaled()` brings all losses to one scale first. `init` refuses constraints.

    Reference: Algorithm 1 (all lines), sections 4 and 7 (line 5 and the batches of line 2).
    """

    weights: Weights = FindWeights()

    def __post_init__(self) -> None:
        if isinstance(self.weights, (tuple, list)):
            values = tuple(self.weights)
            checks.value("FedCMOO", "weights", values, Ratios)
            object.__setattr__(self, "weights", FixedWeights(values))
        super().__post_init__()

    def round(
        self,
        fed: Federation,
        state: WeightedModel,
        draw: Draw,
    ) -> tuple[WeightedModel, Info]:
        w = fed.broadcast(Identity(), state.w, receivers=self.participants)  # 1
        clients = fed.clients(draw, model=w)
        shared = self.shared or fed.problem.dim
        G, clients = self.gram(
            fed,
            clients,
            draw.downlink,
            self.task_gradients,
            shared,
        )  # 2, 3
        lam = self.weights(G, state.weights)  # 4
        directions = fed.ask(self.local_update, clients, lam)  # 5-7
        w = self.move(fed, w, fed.mean(directions, clients))  # 8
        return WeightedModel(w, lam), fed.info(**weight_info(G, lam))


@dataclass(frozen=True)
class FedCMOOPref(GramWeighted):
    r"""FedCMOO with a preference: it aims at losses in a given ratio, `r_1 F_1 = ... = r_M F_M`.

        1  sample n distinct clients S; the server sends w to them
        2  each j in S sends its losses f_j1(w), ..., f_jM(w); the server forms their means F
        3  each j in S: H_j = the gradients of its objectives at w, each on a batch of its own
        4  G = estimate of (mean_j H_j) (mean_j H_j)' from what the clients send of their H_j
        5  lam = preference(G, F), then least(lam), sent to S
        6  each j in S: u = w - lr sum_k lam_k H_jk, so the first step uses line 3's gradients
        7      E - 1 times: u <- u - lr sum_k lam_k grad f_jk(u)
        8      Delta_j = (w - u) / (E lr) is sent
        9  w <- project(w - server_lr lr E mean_j Delta_j)

    Parameters
    ----------
    lr : float
        Step size of the clients.
    local_steps : int
        E, the number of local steps in a round.
    participants : int
        n, the number of clients in a round.
    server_lr : float
        Step size of the server; 1 takes the mean of the clients' models.
    batch_size : int or None
        Number of rows in a minibatch; None for full local gradients.
    gram : GramEstimate
        Estimate of G, the Gram matrix of the objectives' gradients, with its sketch: `OneWay`,
        `TwoWay` or `MeanOfGrams`.
    shared : int or None
        Number of parameters, from the first one on, that all objectives share (the encoder); None
        for all. Only these enter G, but the weights multiply the gradients of all parameters.
    shared_batch : bool
        Whether a client computes all M gradients for G on one batch, instead of a batch for each.
    local : LocalSteps
        Rule for the local steps: `SGD()`, or `Adam()`, the paper's rule for QM9 (section D).
    preference : Preference
        Linear program for the weights, with its ratios r.
    least : Least or None
        Rule, if any, that raises small weights. The paper's experiments use `Least(0.2)`, except
        in Fig. 4.
    value_batch_size : int or None
        Number of rows in the batch for the loss values; None for all rows.

    Differs: an indefinite estimate of G can leave the program without a solution. The method then
    takes minimum-norm weights and reports `fallback` 1; the authors' code stops, and the paper does
    not mention the case.

    Reference: Algorithm 7 with Algorithm 8 in line 5.
    """

    preference: Preference = Preference()
    least: Least | None = Least()
    value_batch_size: Count | None = None

    def init(self, problem: Problem) -> WeightedModel:
        self.preference.check("FedCMOOPref", problem.num_objectives)
        return super().init(problem)

    def loss_values(self, client: Client) -> PerObjective:
        """At the client: compute its M losses."""
        return client.losses(client.model, client.value_batch())  # 2

    def round(
        self,
        fed: Federation,
        state: WeightedModel,
        draw: Draw,
    ) -> tuple[WeightedModel, Info]:
        w = fed.broadcast(Identity(), state.w, receivers=self.participants)  # 1
        clients = fed.clients(draw, model=w)
        losses = fed.mean(fed.ask(self.loss_values, clients), clients)  # 2
        shared = self.shared or fed.problem.dim
        G, clients = self.gram(
            fed,
            clients,
            draw.downlink,
            self.task_gradients,
            shared,
        )  # 3, 4
        lam, mu, fallback = self.preference(G, losses)  # 5
        if self.least is not None:
            lam = self.least(lam)  # 5
        directions = fed.ask(self.local_update, clients, lam)  # 6-8
        w = self.move(fed, w, fed.mean(directions, clients))  # 9
        info = fed.info(mu=mu, fallback=fallback, **weight_info(G, lam))
        return WeightedModel(w, lam), info


@dataclass(frozen=True)
class FedCMOOTheory(ObjectivesWork):
    r"""The variant of FedCMOO to which the convergence theorem applies.

        1  sample S (n clients), A_1 and A_2 (n' clients each), independently; lam = (1, ..., 1) / M
        2  each i in A_j, j = 1, 2: compresses every gradient of its H_i at w and sends them
        3  Y_j = their mean over A_j;  G = Y_1 Y_2', unbiased, not symmetric
        4  lam <- project(lam - beta G lam) onto the simplex, sent to S
        5  each j in S starts from u = w
        6      E times: u <- u - lr sum_k lam_k grad f_jk(u), fresh batches
        7      Delta_j = (w - u) / (E lr) is sent
        8  w <- project(w - server_lr lr E mean_j Delta_j)

    Parameters
    ----------
    lr : float
        Step size of the clients.
    local_steps : int
        E, the number of local steps in a round.
    participants : int
        n, the number of clients in a round.
    server_lr : float
        Step size of the server; 1 takes the mean of the clients' models.
    batch_size : int or None
        Number of rows in a minibatch; None for full local gradients.
    step : float
        beta, the step size of the weights.
    gram_participants : int
        n', the number of clients in each of the two samples for the Gram matrix.
    compressor : Compressor
        Unbiased compressor of each gradient that is sent for the Gram matrix, `Identity()` or
        `RandK(fraction)`.

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

    def init(self, problem: Problem) -> WeightedModel:
        name = "FedCMOOTheory"
        clients = problem.num_clients
        checks.count(name, "gram_participants", self.gram_participants, 1, clients)
        unbiased = self.compressor.variance(problem.dim) is not None
        remedy = "take Identity or a scaled RandK"
        checks.require(
            unbiased,
            name,
            "compressor",
            "be unbiased",
            self.compressor,
            remedy,
        )
        return super().init(problem)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """Draw S and its batches; `others` holds A_1 and A_2 with their compressors' noise."""
        count = self.gram_participants
        objectives = problem.num_objectives
        A_1 = self.draw_gram_sample(problem, rng)  # 1
        A_2 = self.draw_gram_sample(problem, rng)  # 1
        draw = super().draw(problem, rng)  # 1
        sketch = Columns(self.compressor)
        noise = sketch.draw(2 * count, objectives, problem.dim, rng)
        if isinstance(noise, Tensor):
            A_1 = A_1._replace(uplink=noise[:count])
            A_2 = A_2._replace(uplink=noise[count:])
        return draw._replace(others=(A_1, A_2))

    def draw_gram_sample(self, problem: Problem, rng: torch.Generator) -> Draw:
        """Draw A_1 or A_2, with a batch for each objective."""
        return draw_round(
            problem,
            rng,
            participants=self.gram_participants,
            local_steps=problem.num_objectives,
            batch_size=self.batch_size,
        )

    def task_gradients(self, client: Client) -> Float[Tensor, "Md"]:
        """At a client of A_1 or A_2: compress each of its gradients; return them in one row."""
        gradients = objective_gradients(client, client.model)
        return Columns(self.compressor)(gradients, client.noise).flatten()  # 2

    def local_update(self, client: Client, lam: PerObjective) -> Vector:
        """At a client of S: make E steps on the weighted objectives."""
        return self.weighted_direction(client, lam)  # 5-7

    def mean_gradients(
        self,
        fed: Federation,
        w: Vector,
        sample: Draw,
    ) -> Jacobian:
        """Y_1 or Y_2, `[M, d]`."""
        objectives = fed.problem.num_objectives
        clients = fed.clients(sample, model=w)
        wire = Wire(Columns(self.compressor), objectives)
        uploads = fed.ask(self.task_gradients, clients, wire=wire)  # 2
        return fed.mean(uploads, clients).view(objectives, -1)  # 3

    def round(
        self,
        fed: Federation,
        state: WeightedModel,
        draw: Draw,
    ) -> tuple[WeightedModel, Info]:
        receivers = self.participants + 2 * self.gram_participants
        w = fed.broadcast(Identity(), state.w, receivers=receivers)  # 1
        A_1, A_2 = draw.others
        Y_1 = self.mean_gradients(fed, w, A_1)
        Y_2 = self.mean_gradients(fed, w, A_2)
        G = Y_1 @ Y_2.mT  # 3
        find_weights = FindWeights(self.step, steps=1, normalize=False)
        lam = find_weights(G, state.weights)  # 4
        clients = fed.clients(draw, model=w)
        directions = fed.ask(self.local_update, clients, lam)  # 5-7
        w = self.move(fed, w, fed.mean(directions, clients))  # 8
        return WeightedModel(w, lam), fed.info(**weight_info(G, lam))
