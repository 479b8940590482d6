"""Successive convex approximation with mini-batches; samples or features are split over clients.

Ye, Cui, *Sample-based and Feature-based Federated Learning via Mini-batch SSCA* (arXiv 2104.06011):
Algorithms 1 and 2 (samples) with the surrogates (7), (11), Algorithms 3 and 4 (features) with the
surrogates (15), (22), and their SGD baselines. The server's half is the same for samples and
features. Every message between clients that hold features crosses a `vertical.Line`.

Paper's symbol -> here: I -> N, N_i of N samples -> the shares pi_i, omega -> w, with features
(w_0, w_1, ..., w_I): the common parameters and those of each client; h_{m,i} -> h_i, one for all
losses m; bar omega -> the best response, c -> `penalty`, U -> `levels`, lambda -> `ridge`,
bar a / t^bar alpha -> `lr`, the fastest client -> `head`.
"""

from dataclasses import dataclass
from math import prod
from typing import Annotated, Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count, Nonnegative, Positive
from fedlib.core.client import Client
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info, Problem, objective_weights
from fedlib.core.sampling import check_work
from fedlib.solvers.interior_point import best_response
from fedlib.steps.schedules import Averaging, PowerLaw
from fedlib.steps.surrogate import Surrogate
from fedlib.vertical import Line, check_vertical

Vector = Float[Tensor, "d"]
Scalar = Float[Tensor, ""]

#: One level for all constraints, or one level for each.
Levels = float | Annotated[tuple[float, ...], checks.SOME]
NO_LOSS = slice(0)
#: A number that is at least 1.
Growth = Annotated[float, checks.between(1, name="Growth")]


class State(NamedTuple):
    """The server's state in the SSCA methods."""

    w: Vector
    linear: Float[Tensor, "K d"]  # the averaged surrogates
    constant: Float[Tensor, "K"]
    left: Scalar  # prod (1 - rho)
    factor: Scalar  # the product of all increases of the penalty
    t: Scalar  # the number of rounds done

    @classmethod
    def start(cls, problem: Problem, losses: int) -> "State":
        """The problem's start with zero surrogates of `losses` losses, at round 0."""
        w = problem.w0
        return cls(w, *Surrogate.zero(w, losses), w.new_ones(()), w.new_zeros(()))

    @property
    def surrogate(self) -> Surrogate:
        """The averaged surrogates."""
        return Surrogate(self.linear, self.constant, self.left)


class Iterate(NamedTuple):
    """The server's state in SGD."""

    w: Vector
    t: Scalar  # the number of rounds done


class OverSamples(checks.Checked):
    """Base of the methods over samples: all clients draw batches of distinct rows."""

    batch_size: Count | None
    local_steps: int = 1

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """Draw each step's batches for all clients; the rows of a batch are distinct."""
        who, sizes = torch.arange(problem.num_clients), problem.sizes
        if self.batch_size is None:
            return Draw(participants=who)  # 1
        shape = (self.local_steps, self.batch_size)
        if len(set(sizes)) == 1:
            return Draw(who, batches=distinct(sizes[0], (len(sizes), *shape), rng))
        return Draw(who, batches=torch.stack([distinct(size, shape, rng) for size in sizes]))


class OverFeatures(checks.Checked):
    """Base of the methods over features: each client has some features of every pooled sample."""

    batch_size: Count | None
    head: Count

    def check(self, problem: Problem) -> None:
        """Raise ValueError or TypeError unless features are divided, and head and batch fit."""
        who = type(self).__name__
        most = check_vertical(who, problem).composite.clients
        checks.count(who, "head", self.head, 1, most, "the problem's clients")
        size, most = self.batch_size or 1, problem.sizes[0]
        checks.count(who, "batch_size", size, 1, most, "the problem's samples")

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """Draw distinct samples of the pool for all clients; take all if `batch_size` is None."""
        count, size = problem.sizes[0], self.batch_size
        samples = torch.arange(count) if size is None else distinct(count, (size,), rng)  # 1
        return Draw(participants=torch.zeros(1, dtype=torch.int64), batches=samples.view(1, 1, -1))


@dataclass(frozen=True)
class FreeServer(checks.Checked):
    """The parameters and the server's half of SSCA without constraints."""

    tau: Positive
    rho: Averaging
    gamma: Averaging
    batch_size: Count | None = None
    ridge: Nonnegative = 0.0
    debias: bool = False

    def server_step(self, fed: Federation, state: State, g: Vector) -> tuple[State, Scalar]:
        """Average the surrogate, minimize it, move w; return the new state and kappa."""
        w, t = state.w, state.t + 1
        rho, gamma = self.rho(t), self.gamma(t)
        unused = g.new_zeros(1)  # the surrogate's constant, which does not change the minimizer
        average = state.surrogate.averaged(w, g.unsqueeze(0), unused, rho=rho, tau=self.tau)
        f = (average.debiased() if self.debias else average).linear[0]
        w_bar = fed.project(-f / (2 * self.tau))
        w = (1 - gamma) * w + gamma * w_bar
        return State(w, *average, state.factor, t), average.kappa


@dataclass(frozen=True)
class PenaltyServer:
    """The parameters and the server's half of SSCA with constraints."""

    tau: Positive
    rho: Averaging
    gamma: Averaging
    penalty: Positive
    batch_size: Count | None = None
    levels: Levels = 0.0
    objective: Literal["problem", "norm"] = "problem"
    growth: Growth = 1.0
    patience: Count = 100
    tolerance: Nonnegative = 1e-3
    debias: bool = False

    def __post_init__(self) -> None:
        checks.fields(self)
        if self.objective == "norm":
            kind = Positive | tuple[Positive, ...]
            checks.value(type(self).__name__, "levels", self.levels, kind)

    def free(self, objectives: int) -> int:
        """The number of losses, counted from the first, that are not constraints."""
        return 0 if self.objective == "norm" else objectives

    def start(self, problem: Problem) -> State:
        """The first state; raises ValueError for a problem whose constraints do not fit."""
        who, losses = type(self).__name__, problem.num_objectives + problem.num_constraints
        count = losses - self.free(problem.num_objectives)
        one = self.objective == "norm" or problem.num_objectives == 1
        checks.require(one, who, "the problem", "have one objective", problem.num_objectives)
        remedy = 'pass objective="norm" to constrain its losses'
        checks.require(count, who, "the problem", "have a constraint", problem.name, remedy)
        free, rule = not (problem.set or problem.pooled), "have no set and no pooled constraint"
        checks.require(free, who, "the problem", rule, problem.name)
        fits = not isinstance(self.levels, tuple) or len(self.levels) == count
        rule = f"hold {count} numbers (the constraints of {problem.name})"
        checks.require(fits, who, "levels", rule, self.levels)
        return State.start(problem, losses)

    def server_step(
        self, state: State, g: Float[Tensor, "K d"], values: Float[Tensor, "M"]
    ) -> tuple[State, Info]:
        """Average the surrogates, solve the penalty problem, move w; return state and report.

        `values` are the values of the M constraints, which are the last of the K losses.
        """
        w, t = state.w, state.t + 1
        rho, gamma, free = self.rho(t), self.gamma(t), len(g) - len(values)
        v = torch.cat([values.new_zeros(free), values])
        average = state.surrogate.averaged(w, g, v, rho=rho, tau=self.tau)
        best = average.debiased() if self.debias else average
        levels = torch.as_tensor(self.levels, dtype=w.dtype, device=w.device)
        penalty = self.penalty * state.factor
        response = best_response(
            best.linear[0] if free else torch.zeros_like(w),
            best.linear[free:],
            best.constant[free:],
            levels.expand_as(values),
            tau=self.tau,
            penalty=penalty,
            curvature=self.tau if free else 1.0,
        )
        w = (1 - gamma) * w + gamma * response.w
        due = (t % self.patience == 0) & (response.slack.norm() > self.tolerance)
        factor = torch.where(due, state.factor * self.growth, state.factor)
        report = {"nu": response.nu, "slack": response.slack, "penalty": penalty}
        return State(w, *average, factor, t), {"kappa": average.kappa, **report}


@dataclass(frozen=True)
class SSCA(FreeServer, OverSamples):
    r"""Mini-batch successive convex approximation without constraints; clients hold samples.

        1  the server sends w to all N clients; each draws a batch without replacement
        2  each client i sends g_i, its batch's mean gradient
        3  g = sum_i pi_i g_i + 2 ridge w, with pi_i client i's share of all samples
        4  f <- (1 - rho_t) f + rho_t (g - 2 tau w)                  (f = 0 before round 1)
        5  w_bar = argmin f' w + tau |w|^2 = -f / 2 tau
        6  w <- (1 - gamma_t) w + gamma_t w_bar

    >>> from fedlib import problems, run
    >>> problem, law = problems.pareto(torch.eye(4).view(4, 1, 1, 4)), PowerLaw(0.9, 0.3)
    >>> run(SSCA(1.0, law, law), problem, rounds=20).late("f").round(1)
    array([0.4])

    Parameters
    ----------
    tau : the curvature of the surrogates.
    rho, gamma : the step sizes of the surrogates' average and of w, each a `PowerLaw` in (0, 1].
    batch_size : B, the number of rows in a batch, drawn without replacement; None for all rows.
    ridge : lambda, the factor of the term `lambda |w|^2` that is added to the objective.
    debias : whether the surrogate is divided by its weight kappa_t = 1 - prod_{s <= t} (1 - rho_s).

    Differs: by default there is no difference. The paper's line 5 does not minimize its average
    (3): the average starts from zero, so its curvature is kappa_t tau. With `debias`, line 5 is the
    exact minimizer. If the problem has a feasible set, line 5 minimizes over this set. Constraints
    are ignored, and several objectives count by their mean.

    Reference: Algorithm 1 with (8), (9); (28)-(31), (35), (36) for the network with a ridge.
    """

    def init(self, problem: Problem) -> State:
        check_work("SSCA", problem, problem.num_clients, self.batch_size)
        return State.start(problem, 1)

    def mean_gradient(self, client: Client, w: Vector) -> Vector:
        """At the client: compute the gradient of the mean objective on its batch."""
        return client.gradient(w, client.batch(0), client.objective_weights(w))  # 2

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        sent = fed.ask(self.mean_gradient, fed.clients(draw), state.w)  # 1, 2
        g = shares(fed.problem) @ sent + 2 * self.ridge * state.w  # 3
        state, kappa = self.server_step(fed, state, g)  # 4-6
        return state, fed.info(kappa=kappa)


@dataclass(frozen=True)
class ConstrainedSSCA(PenaltyServer, OverSamples):
    r"""Mini-batch successive convex approximation with an exact penalty on the constraints.

        1  the server sends w to all N clients; each draws a batch without replacement
        2  each client i sends the mean gradients of its losses on the batch, and the mean value of
               every constraint
        3  g_m, v_m = sum_i pi_i of what was sent, with pi_i client i's share of all samples
        4  the surrogate of loss m, A_m + B_m' w + tau |w|^2, is averaged (all 0 before round 1):
               B_m <- (1 - rho_t) B_m + rho_t (g_m - 2 tau w)
               A_m <- (1 - rho_t) A_m + rho_t (v_m - g_m' w + tau |w|^2)
        5  w_bar, s = argmin objective + c sum_m s_m  subject to  A_m + B_m' w + tau |w|^2 <=
               levels_m + s_m,  s_m >= 0,  for the constraints m
        6  w <- (1 - gamma_t) w + gamma_t w_bar
        7  every `patience` rounds: c <- growth c, if |s| > tolerance

    Parameters
    ----------
    tau, rho, gamma, batch_size, debias : as in `SSCA`; `debias` divides all surrogates.
    penalty : c, the factor of the penalty in round 1.
    levels : U, the upper bound of all constraints, or one bound for each.
    objective : `"problem"` minimizes the surrogate of the problem's objective, `"norm"` minimizes
        |w|^2 and treats all losses as constraints with positive levels (the paper's example (37)).
    growth : the factor of one increase of the penalty, at least 1.
    patience : the number of rounds between two checks of the slack, the excess of the surrogates
        over `levels`.
    tolerance : a check increases the penalty if the slack's norm exceeds this number.

    Differs: the paper's outer loop restarts Algorithm 2 with the next penalty c after convergence;
    line 7 continues from the current w. For one constraint, line 5 is solved by the formula of
    Lemma 1; for several, by an interior point method on the dual.

    `init` refuses a problem with a set, with a pooled constraint, or without any constraint.

    Reference: Algorithm 2 with (11), (12); (37)-(42) and Lemma 1 for `objective="norm"`.
    """

    def init(self, problem: Problem) -> State:
        check_work("ConstrainedSSCA", problem, problem.num_clients, self.batch_size)
        return self.start(problem)

    def statistics(self, client: Client, w: Vector) -> Float[Tensor, "s"]:
        """At the client: compute the K gradients, one after another, and the constraint values."""
        batch = client.batch(0)
        count = client.num_objectives + client.num_constraints
        each = torch.eye(count, dtype=w.dtype, device=w.device)
        gradients = [client.gradient(w, batch, one) for one in each]
        values = client.losses(w, batch)[self.free(client.num_objectives) :]
        return torch.cat([*gradients, values])  # 2

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        sent = fed.ask(self.statistics, fed.clients(draw), state.w)  # 1, 2
        mean = shares(fed.problem) @ sent  # 3
        size = state.linear.numel()
        g, values = mean[:size].view_as(state.linear), mean[size:]
        state, report = self.server_step(state, g, values)  # 4-7
        return state, fed.info(**report)


@dataclass(frozen=True)
class MiniBatchSGD(OverSamples):
    r"""Mini-batch SGD, the baseline of `SSCA`; it weights client models by sample counts.

        1  the server sends w to all N clients, each starts from u_i = w
        2      E times, on a fresh batch: u_i <- u_i - lr_t (grad f_i(u_i) + 2 ridge u_i)
        3  w <- project(sum_i pi_i u_i), with pi_i client i's share of all samples

    Parameters
    ----------
    lr : the step size of round t.
    local_steps : E, as in `FedAvg`.
    batch_size, ridge : as in `SSCA`.

    Differs: there is no difference. The paper states neither its grid of lr nor its search.

    Reference: section VI of the paper, with McMahan et al. (2017) for E > 1.
    """

    lr: PowerLaw
    local_steps: Count = 1
    batch_size: Count | None = None
    ridge: Nonnegative = 0.0

    def init(self, problem: Problem) -> Iterate:
        check_work("MiniBatchSGD", problem, problem.num_clients, self.batch_size)
        return Iterate(problem.w0, problem.w0.new_zeros(()))

    def local_update(self, client: Client, w: Vector, lr: Scalar) -> Vector:
        """At the client: make E steps from w."""
        u, weights = w, client.objective_weights(w)  # 1
        for step in range(self.local_steps):
            g = client.gradient(u, client.batch(step), weights)
            u = u - lr * (g + 2 * self.ridge * u)  # 2
        return u

    def round(self, fed: Federation, state: Iterate, draw: Draw) -> tuple[Iterate, Info]:
        t = state.t + 1
        u = fed.ask(self.local_update, fed.clients(draw), state.w, self.lr(t))  # 1, 2
        return Iterate(fed.project(shares(fed.problem) @ u), t), fed.info()  # 3


def distinct(size: int, shape: tuple[int, ...], rng: torch.Generator) -> Int[Tensor, "*b B"]:
    """Numbers below `size`, distinct along the last axis; all ordered choices are equally likely.

    Small choices are drawn with replacement; of equal numbers, all but the first are drawn again
    until none are left. Only equality matters here, so no choice is preferred to another.
    """
    count = shape[-1]
    if 4 * count > size:
        rows = [torch.randperm(size, generator=rng)[:count] for _ in range(prod(shape[:-1]))]
        return torch.stack(rows).view(shape)
    flat = torch.randint(size, shape, generator=rng).view(-1, count)
    while True:
        ordered, where = flat.sort(stable=True)
        row, column = (ordered[:, 1:] == ordered[:, :-1]).nonzero(as_tuple=True)
        if not len(row):
            return flat.view(shape)
        flat[row, where[row, column + 1]] = torch.randint(size, row.shape, generator=rng)


def shares(problem: Problem) -> Float[Tensor, "N"]:
    """Each client's share of all samples, which is N_i / N in the paper."""
    sizes = problem.lengths
    if not isinstance(sizes, Tensor):
        sizes = torch.tensor(problem.sizes, device=problem.rows.device)
    counts = sizes.to(problem.w0.dtype)
    return counts / counts.sum()


@dataclass(frozen=True)
class VerticalSSCA(FreeServer, OverFeatures):
    r"""Mini-batch successive convex approximation without constraints; clients hold features.

        1  the server draws a batch of B samples without replacement and sends every client i their
               numbers, w_0 and w_i
        2  each client i sends h_i for every sample of the batch to all other clients
        3  each client i sends the gradient by w_i, summed over the batch
        4  client `head` also sends the gradient by w_0, summed over the batch
        5  g = (what was sent, put together) / B + 2 ridge w
        6  f <- (1 - rho_t) f + rho_t (g - 2 tau w)                  (f = 0 before round 1)
        7  w_bar = argmin f' w + tau |w|^2 = -f / 2 tau
        8  w <- (1 - gamma_t) w + gamma_t w_bar

    >>> from fedlib import PowerLaw, VerticalSSCA, run
    >>> from fedlib.testing.examples import divided_features
    >>> method = VerticalSSCA(tau=0.1, rho=PowerLaw(0.9, 0.3), gamma=PowerLaw(0.9, 0.35))
    >>> run(method, divided_features(), rounds=5).late("f").round(2)
    array([0.03])

    Parameters
    ----------
    tau, rho, gamma, batch_size, ridge, debias : as in `SSCA`; the batch is drawn from the pool of
        samples.
    head : the number, 1 .. I, of the client that also sends the gradient of the common parameters.

    Differs: the differences of `SSCA` apply here, too. Line 3 needs the labels at every client; the
    paper does not say this.

    Reference: Algorithm 3 with (15)-(19); (28)-(31), (33)-(36) for the network with a ridge.
    """

    head: Count = 1

    def init(self, problem: Problem) -> State:
        self.check(problem)
        return State.start(problem, 1)

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        line, w = Line(fed), state.w
        gradients, _ = exchange(line, w, draw, mean_of(fed.problem), self.head)  # 1-4
        g = gradients[0] + 2 * self.ridge * w  # 5
        state, kappa = self.server_step(fed, state, g)  # 6-8
        return state, line.info(kappa=kappa)


@dataclass(frozen=True)
class ConstrainedVerticalSSCA(PenaltyServer, OverFeatures):
    r"""Mini-batch successive convex approximation with an exact penalty; clients hold features.

        1  the server draws a batch of B samples without replacement and sends every client i their
               numbers, w_0 and w_i
        2  each client i sends h_i for every sample of the batch to all other clients
        3  each client i sends the gradients of all losses by w_i, summed over the batch
        4  client `head` also sends the gradients by w_0 and the value of every constraint, summed
               over the batch
        5  g_m, v_m = (what was sent, put together) / B
        6  the surrogate of loss m, A_m + B_m' w + tau |w|^2, is averaged (all 0 before round 1):
               B_m <- (1 - rho_t) B_m + rho_t (g_m - 2 tau w)
               A_m <- (1 - rho_t) A_m + rho_t (v_m - g_m' w + tau |w|^2)
        7  w_bar, s = argmin objective + c sum_m s_m  subject to  A_m + B_m' w + tau |w|^2 <=
               levels_m + s_m,  s_m >= 0,  for the constraints m
        8  w <- (1 - gamma_t) w + gamma_t w_bar
        9  every `patience` rounds: c <- growth c, if |s| > tolerance

    Parameters
    ----------
    tau, rho, gamma, batch_size, head : as in `VerticalSSCA`.
    penalty, levels, objective, growth, patience, tolerance, debias : as in `ConstrainedSSCA`.

    Differs: the differences of `ConstrainedSSCA` and `VerticalSSCA` apply here, too.

    Reference: Algorithm 4 with (22)-(24); (37)-(42) and Lemma 1 for `objective="norm"`.
    """

    head: Count = 1

    def init(self, problem: Problem) -> State:
        self.check(problem)
        return self.start(problem)

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        line, w = Line(fed), state.w
        each = torch.eye(len(state.constant), dtype=w.dtype, device=w.device)
        constraints = slice(self.free(fed.problem.num_objectives), None)
        g, values = exchange(line, w, draw, each, self.head, constraints)  # 1-5
        state, report = self.server_step(state, g, values)  # 6-9
        return state, line.info(**report)


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
    lr : the step size of round t.
    batch_size, ridge, head : as in `VerticalSSCA`.

    Differs: there is no difference. The paper states neither its grid of lr nor its search.

    Reference: section VI of the paper, after the feature-based methods that it cites.
    """

    lr: PowerLaw
    batch_size: Count | None = None
    ridge: Nonnegative = 0.0
    head: Count = 1

    def init(self, problem: Problem) -> Iterate:
        self.check(problem)
        return Iterate(problem.w0, problem.w0.new_zeros(()))

    def round(self, fed: Federation, state: Iterate, draw: Draw) -> tuple[Iterate, Info]:
        line, w, t = Line(fed), state.w, state.t + 1
        gradients, _ = exchange(line, w, draw, mean_of(fed.problem), self.head)  # 1-4
        g = gradients[0] + 2 * self.ridge * w  # 5
        return Iterate(fed.project(w - self.lr(t) * g), t), line.info()  # 6


def mean_of(problem: Problem) -> Float[Tensor, "1 K"]:
    """The weights `[1, K]` of the mean of all objectives."""
    counts = problem.num_objectives, problem.num_constraints
    return objective_weights(*counts, problem.w0).unsqueeze(0)


def exchange(
    line: Line,
    w: Vector,
    draw: Draw,
    weights: Float[Tensor, "k K"],
    head: int,
    valued: slice = NO_LOSS,
) -> tuple[Float[Tensor, "k d"], Float[Tensor, "V"]]:
    """Exchange a round's messages between clients that hold features; return the mean gradients.

    Returns the gradients `[k, d]` of the mean over the batch of `weights [k, K] @ losses`, and the
    means of the losses named by `valued`, which client `head` sends with the gradient by w_0.
    """
    assert isinstance(draw.batches, Tensor)
    form, samples = line.problem.composite, draw.batches[0, 0]
    w_0, *blocks = form.parameters.split(w)
    received, parties = {}, {}
    for i in form.numbers:
        received[i] = line.to_client(i, "samples, head, block", samples, w_0, blocks[i - 1])
        parties[i] = line.problem.party(i, received[i][0])
    heard: tuple[Tensor, ...] = ()
    for i in form.numbers:
        heard += line.to_others(i, "embeddings", parties[i].embedding(received[i][2]))
    sums: list[Tensor] = []
    for i in form.numbers:
        _, own_0, own_i = received[i]
        g = parties[i].gradients(own_0, own_i, heard, weights)
        sums += line.to_server(i, "gradient of the block", g)
    own_0 = received[head][1]
    first, values = line.to_server(
        head,
        "gradient of the head",
        parties[head].head_gradients(own_0, heard, weights),
        parties[head].values(own_0, heard)[valued],
    )
    return form.parameters.join([first, *sums]) / len(samples), values / len(samples)
