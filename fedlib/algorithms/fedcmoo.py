"""FedCMOO and its baselines: federated optimization of several objectives.

Askin, Sharma, Joshi, Joe-Wong, *Federated Communication-Efficient Multi-Objective Optimization*,
AISTATS 2025 (arXiv 2410.16398): Algorithms 1-3 and 6 (FedCMOO), 4, 7 and 8 (FedCMOO-Pref), 9 and 10
(the variant of the convergence theorem). The baselines follow that paper's descriptions
(Algorithm 5, sections 2 and 7): Yang, Liu, Liu, Liu, Momma, *Federated Multi-Objective Learning*,
NeurIPS 2023 (FSMGDA); FedAvg on the mean of the objectives; Desideri, *Multiple-gradient descent
algorithm*, Comptes Rendus 2012 (MGDA).

Paper's symbol -> name here: x -> `w`, w -> `lam` (weights), tau -> E (`local_steps`), n of N
clients -> the same, B -> S, eta_c -> `lr`, eta_s -> `server_lr`, beta, K -> fields of FindWeights.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

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
from fedlib.core.problem import Batch, Draw, Info, Problem
from fedlib.core.sampling import check_work, draw_round
from fedlib.steps.local import SGD, Gradient, LocalSteps
from fedlib.weights.gram import GramEstimate, TwoWay, gram_of
from fedlib.weights.preference import Preference
from fedlib.weights.rules import (
    FindWeights,
    FixedWeights,
    Least,
    MinNorm,
    Ratios,
    Weights,
)

Vector = Float[Tensor, "d"]


class State(NamedTuple):
    """The state of all methods of this file."""

    w: Vector  # the model
    weights: Float[Tensor, "M"]  # lam, the objectives' weights of the last round


class Weighted(checks.Checked):
    """Base of all methods of this file: their first state, draw, local steps and server step."""

    lr: float
    local_steps: int
    participants: int
    server_lr: float
    batch_size: int | None
    value_batch_size: int | None = None
    shared: int | None = None
    local: LocalSteps = SGD()

    def init(self, problem: Problem) -> State:
        """Check the problem; start at its start with equal weights."""
        who, count = type(self).__name__, problem.num_objectives
        participants = getattr(self, "participants", problem.num_clients)
        check_work(who, problem, participants, constrained=False)
        checks.count(who, "shared", self.shared or 1, 1, problem.dim, "the model's parameters")
        return State(problem.w0, problem.w0.new_full((count,), 1 / count))

    def batches(self, tasks: int) -> int:  # noqa: ARG002 - of some methods it depends on them
        """The number of minibatches that a participant draws."""
        return self.local_steps

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """Draw the participants and their minibatches."""
        return draw_round(  # 1
            problem,
            rng,
            participants=self.participants,
            local_steps=self.batches(problem.num_objectives),
            batch_size=self.batch_size,
            value_batch_size=self.value_batch_size,
        )

    def update(self, client: Client, gradient: Gradient) -> Vector:
        """At the client: make E local steps from the model and return their mean direction."""
        u = self.local(client.model, gradient, self.local_steps, self.lr)
        return (client.model - u) / (self.local_steps * self.lr)

    def move(self, fed: Federation, w: Vector, delta: Vector) -> Vector:
        """Make the server's step along a mean direction."""
        return fed.project(w - self.server_lr * self.lr * self.local_steps * delta)


def task_batches(client: Client, count: int) -> tuple[Batch, int | None]:
    """The client's first `count` batches, and the axis that `client.each` maps over.

    If the client uses all its rows, there is one batch and the axis is None.
    """
    batches = client.state.batches
    if not isinstance(batches, Batch):
        return client.batch(0), None
    return select(batches, slice(count)), 0


def select(batches: Batch, index: int | slice) -> Batch:
    """Select one of several batches on a leading axis, or a slice of them."""
    return Batch(tuple(x[index] for x in batches.data), batches.weight[index])


def task_gradients(client: Client, w: Vector, separate: bool = True) -> Float[Tensor, "M d"]:
    """At the client: compute the gradients `[M, d]` of its objectives at `w`.

    With `separate`, objective k is differentiated on batch k of the round, else on batch 0.
    """
    count = client.num_objectives
    batch, axis = task_batches(client, count) if separate else (client.batch(0), None)
    each = torch.eye(count, dtype=w.dtype, device=w.device)
    gradients: Tensor = client.each(client.gradient, (None, axis, 0))(w, batch, each)
    return gradients


def weight_info(gram: Float[Tensor, "M M"], weights: Float[Tensor, "M"]) -> Info:
    """Report the weights, and the squared norm of the direction that they predict."""
    each = {f"weight_{k}": weights[k - 1] for k in range(1, len(weights) + 1)}
    return {"direction": weights @ (gram @ weights), **each}


@dataclass(frozen=True)
class GramWeighted(Weighted):
    """Base of FedCMOO and FedCMOO-Pref, which differ in how they find the weights."""

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
        draw, size = super().draw(problem, rng), self.shared or problem.dim
        noise = self.gram.draw(self.participants, problem.num_objectives, size, rng)
        return draw._replace(uplink=noise.up, downlink=noise.down)

    def batches(self, tasks: int) -> int:
        """The number of batches for step 1, plus one for each further step."""
        return self.first_batches(tasks) + self.local_steps - 1

    def first_batches(self, tasks: int) -> int:
        """The number of batches for step 1; the batches of steps 2 .. E follow them."""
        return 1 if self.shared_batch else tasks

    def task_gradients(self, client: Client) -> Float[Tensor, "M d"]:
        """At the client: compute the gradients of its objectives."""
        return task_gradients(client, client.model, not self.shared_batch)

    def local_update(self, client: Client, lam: Float[Tensor, "M"]) -> Vector:
        """At the client: make E steps on the weighted objectives.

        The first step uses the remembered gradients, which the client sent for the Gram matrix.
        """
        before = self.first_batches(len(lam))

        def gradient(u: Tensor, step: int) -> Tensor:
            if step == 0:
                return lam @ client.memory
            return client.gradient(u, client.batch(before + step - 1), lam)

        return self.update(client, gradient)


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
    lr, server_lr : the step sizes of clients and server; `server_lr` 1 takes the mean of the
        clients' models.
    local_steps, participants, batch_size : as in `FedAvg`.
    gram : the estimate of G, the Gram matrix of the objectives' gradients, with its sketch:
        `OneWay`, `TwoWay` or `MeanOfGrams`.
    weights : the rule for the objectives' weights: `FindWeights`, `MinNorm` or `FixedWeights`; a
        tuple of numbers means `FixedWeights`.
    shared : how many parameters, from the first one on, all objectives share (the encoder); None
        for all. Only these enter G, but the weights multiply the gradients of all parameters.
    shared_batch : whether a client computes all M gradients for G on one batch, instead of a
        batch for each.
    local : the rule for the local steps: `SGD()`, or `Adam()`, the paper's rule for QM9 (section
        D).

    Differs: if the problem has a feasible set, the server projects onto it, as all methods of this
    library do. The authors' code rolls the model back when the loss grows; this class does not.

    The weights favour objectives with short gradients, so losses of a much larger scale hardly
    fall. `problem.scaled()` brings all losses to one scale first. `init` refuses constraints.

    Reference: Algorithm 1 (all lines), sections 4 and 7 (line 5 and the batches of line 2).
    """

    weights: Weights = FindWeights()

    def __post_init__(self) -> None:
        if isinstance(self.weights, (tuple, list)):
            given = tuple(self.weights)
            checks.value("FedCMOO", "weights", given, Ratios)
            object.__setattr__(self, "weights", FixedWeights(given))
        super().__post_init__()

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        w = fed.broadcast(Identity(), state.w, receivers=self.participants)  # 1
        clients, shared = fed.clients(draw, model=w), self.shared or fed.problem.dim
        G, clients = self.gram(fed, clients, draw.downlink, self.task_gradients, shared)  # 2, 3
        lam = self.weights(G, state.weights)  # 4
        delta = fed.mean(fed.ask(self.local_update, clients, lam), clients)  # 5-7
        return State(self.move(fed, w, delta), lam), fed.info(**weight_info(G, lam))  # 8


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
    lr, server_lr, local_steps, participants, batch_size, gram, shared, shared_batch, local : as in
        `FedCMOO`.
    preference : the linear program for the weights, with its ratios r.
    least : the rule, if any, that raises small weights. The paper's experiments use `Least(0.2)`,
        except in Fig. 4.
    value_batch_size : the number of rows in the batch for the loss values; None for all rows.

    Differs: an indefinite estimate of G can leave the program without a solution. The method then
    takes minimum-norm weights and reports `fallback` 1; the authors' code stops, and the paper does
    not mention the case.

    Reference: Algorithm 7 with Algorithm 8 in line 5.
    """

    preference: Preference = Preference()
    least: Least | None = Least()
    value_batch_size: Count | None = None

    def init(self, problem: Problem) -> State:
        self.preference.check("FedCMOOPref", problem.num_objectives)
        return super().init(problem)

    def loss_values(self, client: Client) -> Float[Tensor, "M"]:
        """At the client: compute its M losses."""
        return client.losses(client.model, client.value_batch())  # 2

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        w = fed.broadcast(Identity(), state.w, receivers=self.participants)  # 1
        clients, shared = fed.clients(draw, model=w), self.shared or fed.problem.dim
        losses = fed.mean(fed.ask(self.loss_values, clients), clients)  # 2
        G, clients = self.gram(fed, clients, draw.downlink, self.task_gradients, shared)  # 3, 4
        lam, mu, fallback = self.preference(G, losses)  # 5
        lam = lam if self.least is None else self.least(lam)  # 5
        delta = fed.mean(fed.ask(self.local_update, clients, lam), clients)  # 6-8
        info = fed.info(mu=mu, fallback=fallback, **weight_info(G, lam))
        return State(self.move(fed, w, delta), lam), info  # 9


@dataclass(frozen=True)
class FedCMOOTheory(Weighted):
    r"""The variant of FedCMOO to which the convergence theorem applies.

        1  sample S (n clients), A_1 and A_2 (n' clients each), independently; lam = (1, ..., 1) / M
        2  each i in A_j, j = 1, 2: compresses every gradient of its H_i at w and sends them
        3  Y_j = their mean over A_j;  G = Y_1 Y_2', unbiased, not symmetric
        4  lam <- project(lam - step G lam) onto the simplex, sent to S
        5  each j in S starts from u = w
        6      E times: u <- u - lr sum_k lam_k grad f_jk(u), fresh batches
        7      Delta_j = (w - u) / (E lr) is sent
        8  w <- project(w - server_lr lr E mean_j Delta_j)

    Parameters
    ----------
    lr, server_lr, local_steps, participants, batch_size : as in `FedCMOO`.
    step : beta, the step size of the weights.
    gram_participants : n', the number of clients in each of the two samples for the Gram matrix.
    compressor : the unbiased compressor of each gradient that is sent for the Gram matrix,
        `Identity()` or `RandK(fraction)`.

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

    def init(self, problem: Problem) -> State:
        most = problem.num_clients
        checks.count("FedCMOOTheory", "gram_participants", self.gram_participants, 1, most)
        unbiased = self.compressor.variance(problem.dim) is not None
        rule, remedy = "be unbiased", "take Identity or a scaled RandK"
        checks.require(unbiased, "FedCMOOTheory", "compressor", rule, self.compressor, remedy)
        return super().init(problem)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """Draw S and its batches; `others` holds A_1 and A_2 with their compressors' noise."""
        size, tasks, count = self.batch_size, problem.num_objectives, self.gram_participants
        both = [
            draw_round(problem, rng, participants=count, local_steps=tasks, batch_size=size)  # 1
            for _ in range(2)
        ]
        main = super().draw(problem, rng)  # 1
        noise = Columns(self.compressor).draw(2 * count, tasks, problem.dim, rng)
        halves = (noise[:count], noise[count:]) if isinstance(noise, Tensor) else ((), ())
        return main._replace(
            others=tuple(a._replace(uplink=x) for a, x in zip(both, halves, strict=True))
        )

    def task_gradients(self, client: Client) -> Float[Tensor, "Md"]:
        """At a client of A_1 or A_2: compress each of its gradients; return them in one row."""
        sketch = Columns(self.compressor)
        return sketch(task_gradients(client, client.model), client.noise).flatten()  # 2

    def local_update(self, client: Client, lam: Float[Tensor, "M"]) -> Vector:
        """At a client of S: make E steps on the weighted objectives."""
        return self.update(client, lambda u, t: client.gradient(u, client.batch(t), lam))  # 5-7

    def mean_gradients(self, fed: Federation, w: Vector, some: Draw) -> Float[Tensor, "M d"]:
        """Y_1 or Y_2, `[M, d]`."""
        tasks = fed.problem.num_objectives
        wire = Wire(Columns(self.compressor), tasks)
        clients = fed.clients(some, model=w)
        sent = fed.ask(self.task_gradients, clients, wire=wire)  # 2
        return fed.mean(sent, clients).view(tasks, -1)  # 3

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        receivers = self.participants + 2 * self.gram_participants
        w = fed.broadcast(Identity(), state.w, receivers=receivers)  # 1
        Y = [self.mean_gradients(fed, w, some) for some in draw.others]
        G = Y[0] @ Y[1].mT  # 3
        lam = FindWeights(self.step, steps=1, normalize=False)(G, state.weights)  # 4
        clients = fed.clients(draw, model=w)
        delta = fed.mean(fed.ask(self.local_update, clients, lam), clients)  # 5-7
        return State(self.move(fed, w, delta), lam), fed.info(**weight_info(G, lam))  # 8


@dataclass(frozen=True)
class FSMGDA(Weighted):
    r"""Federated stochastic MGDA: it trains every objective separately and weights the updates.

        1  sample n distinct clients S; the server sends w to them
        2  each j in S, each objective k by itself: u = w
        3      E times: u <- u - lr grad f_jk(u), batches of its own
        4      Delta_jk = (w - u) / (E lr)
        5  all M updates are sent;  Delta_k = mean_j Delta_jk
        6  lam = weights(G, lam) with G the Gram matrix of the Delta_k, then least(lam)
        7  w <- project(w - server_lr lr E sum_k lam_k Delta_k)

    Parameters
    ----------
    lr, server_lr, local_steps, participants, batch_size, shared : as in `FedCMOO`.
    local : the rule for the local steps, `SGD()`, or `Adam()` with moments for each objective.
    weights : the rule that finds the weights from the Gram matrix of the mean updates.
    least : as in `FedCMOOPref`. For two objectives the authors' code clips the weights at 0.001,
        which is `Least(0.002, mixture=False)`.
    """

    lr: Positive
    local_steps: Count
    participants: Count
    server_lr: Positive = 1.0
    batch_size: Count | None = None
    weights: Weights = MinNorm()
    least: Least | None = None
    shared: Count | None = None
    local: LocalSteps = added_field(SGD())

    def batches(self, tasks: int) -> int:
        """E batches for each objective, one objective after another."""
        return tasks * self.local_steps

    def local_updates(self, client: Client) -> Float[Tensor, "Md"]:
        """At the client: compute the M updates, one after another `[M d]`."""
        tasks, steps = client.num_objectives, self.local_steps
        own, axis = task_batches(client, tasks * steps)
        if axis is not None:  # [M, E, ...]
            data = tuple(x.reshape(tasks, steps, *x.shape[1:]) for x in own.data)
            own = Batch(data, own.weight.reshape(tasks, steps, -1))

        def alone(batches: Batch, task: Tensor) -> Tensor:
            def gradient(u: Tensor, e: int) -> Tensor:
                return client.gradient(u, batches if axis is None else select(batches, e), task)

            return self.update(client, gradient)  # 2-4

        each = torch.eye(tasks, dtype=client.model.dtype, device=client.model.device)
        updates: Tensor = client.each(alone, (axis, 0))(own, each)
        return updates.flatten()

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        w = fed.broadcast(Identity(), state.w, receivers=self.participants)  # 1
        clients = fed.clients(draw, model=w)
        sent = fed.ask(self.local_updates, clients)  # 2-5
        delta = fed.mean(sent, clients).view(fed.problem.num_objectives, -1)  # 5
        G = gram_of(delta[:, : self.shared or fed.problem.dim])
        lam = self.weights(G, state.weights)  # 6
        lam = lam if self.least is None else self.least(lam)  # 6
        return State(self.move(fed, w, lam @ delta), lam), fed.info(**weight_info(G, lam))  # 7


@dataclass(frozen=True)
class Scalarized(Weighted):
    r"""FedAvg on a mean of the objectives with fixed weights, and with a server step.

        1  sample n distinct clients S; the server sends w to them
        2  each j in S starts from u = w
        3      E times: u <- u - lr (1 / M) sum_k grad f_jk(u)
        4      Delta_j = (w - u) / (E lr) is sent
        5  w <- project(w - server_lr lr E mean_j Delta_j)

    This method is `FedCMOO` with fixed weights and without the Gram matrix. If `task` is k, all
    weight is on objective k; this is the single-task baseline of multi-task methods.

    Parameters
    ----------
    lr, server_lr, local_steps, participants, batch_size, local : as in `FedCMOO`.
    task : the number of the only objective, counted from 1; None for the mean of all.
    weights : the objectives' relative weights; if left out, they are equal.
    """

    lr: Positive
    local_steps: Count
    participants: Count
    server_lr: Positive = 1.0
    batch_size: Count | None = None
    task: Count | None = None
    local: LocalSteps = added_field(SGD())
    weights: tuple[Positive, ...] = added_field(())

    def init(self, problem: Problem) -> State:
        state = super().init(problem)
        if self.weights:
            fits = self.task is None
            checks.require(fits, "Scalarized", "weights", "be given without task", self.weights)
            own = torch.zeros(len(state.weights), len(state.weights)).to(problem.w0)
            state = state._replace(weights=FixedWeights(self.weights)(own, state.weights))
        if self.task is None:
            return state
        tasks = problem.num_objectives
        checks.count("Scalarized", "task", self.task, high=tasks, note="the problem's objectives")
        return state._replace(weights=torch.eye(tasks).to(problem.w0)[self.task - 1])

    def local_update(self, client: Client, lam: Float[Tensor, "M"]) -> Vector:
        """At the client: make E local steps on its weighted objectives."""
        return self.update(client, lambda u, t: client.gradient(u, client.batch(t), lam))  # 2-4

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        w = fed.broadcast(Identity(), state.w, receivers=self.participants)  # 1
        # clients know the weights, which are part of the method, so they are not sent
        update = partial(self.local_update, lam=state.weights)
        clients = fed.clients(draw, model=w)
        delta = fed.mean(fed.ask(update, clients), clients)  # 2-4
        return State(self.move(fed, w, delta), state.weights), fed.info()  # 5


@dataclass(frozen=True)
class MGDA(Weighted):
    r"""Multiple-gradient descent: one step along the shortest convex combination of the gradients.

        1  every client sends its M gradients at w;  g_k = their means
        2  lam = weights(G, lam) with G the Gram matrix of the g_k
        3  w <- project(w - lr sum_k lam_k g_k)

    MGDA was written for data in one place. With many clients, the server averages their gradients;
    the step is the same, but bits are counted. The direction of line 3 maximizes, to first order
    and among steps of equal length, the decrease of the objective that falls least.

    Parameters
    ----------
    lr : the step size.
    batch_size : the number of rows in a client's batch for each objective, or None for full
        gradients. With minibatches, whose noise enters the weights, the direction is biased.
    weights : the rule for the objectives' weights.
    """

    lr: Positive
    batch_size: Count | None = None
    weights: Weights = MinNorm()

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """Draw a batch for each objective at all clients."""
        return draw_round(
            problem,
            rng,
            participants=problem.num_clients,
            local_steps=problem.num_objectives,
            batch_size=self.batch_size,
        )

    def task_gradients(self, client: Client) -> Float[Tensor, "Md"]:
        """At the client: compute its M gradients, one after another `[M d]`."""
        return task_gradients(client, client.model).flatten()  # 1

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        w = fed.broadcast(Identity(), state.w)  # 1
        clients = fed.clients(draw, model=w)
        sent = fed.ask(self.task_gradients, clients)  # 1
        g = fed.mean(sent, clients).view(fed.problem.num_objectives, -1)  # 1
        G = gram_of(g)
        lam = self.weights(G, state.weights)  # 2
        w = fed.project(w - self.lr * (lam @ g))  # 3
        return State(w, lam), fed.info(**weight_info(G, lam))
