"""FedSGM whose local step is a trust-region policy step, for constrained Markov decision processes.

*FedSGM: A Unified Framework for Constraint Aware, Bidirectionally Compressed, Multi-step Federated
Optimization* (F), Algorithm 1 and its experiments on constrained cartpole. The paper says that the
local step is TRPO and no more; what is filled in here is named below.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple, cast

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import grad, vjp

from fedlib import checks
from fedlib.checks import Count, Fraction, Nonnegative, Positive, Threshold
from fedlib.compress.compressors import Compressor, Identity, check_compressors
from fedlib.core.client import Client, Reply
from fedlib.core.describe import added_field
from fedlib.core.federation import Federation
from fedlib.core.problem import Batch, Draw, Info, Problem
from fedlib.core.sampling import check_work, draw_round
from fedlib.shapes import Scalar, Vector
from fedlib.steps.switching import Hard, Switch
from papers.fedsgm.cartpole.simulator import CartPole
from papers.fedsgm.cartpole.trpo import (
    Episodes,
    advantages,
    backtrack,
    conjugate_gradient,
    cosine_basis,
    cosine_features,
    normalized,
    ridge,
)

# the critics: width, penalty, unit of the returns
COSINES = 100
RIDGE = 1e-3
SCALE = 100.0
# line search
BACKTRACK = 0.7
TRIALS = 6


class State(NamedTuple):
    """What the method carries from round to round."""

    w: Vector  # the policy that every client holds
    x: Vector  # the server's uncompressed policy
    residual: Float[Tensor, "N d"]  # e_j; [N, 0] without memory
    critics: Float[Tensor, "F 2"]  # the common critics of reward and cost
    basis: Float[Tensor, "k1 100"]  # frequencies and phases of the critics' features, never changed


@dataclass(frozen=True)
class PolicyFedSGM(checks.Checked):
    r"""FedSGM with one TRPO step as the local update (E = 1, step size 1).

        1   sample n distinct clients S; initially x = w, e_j = 0, critics 0
        2   each j in S runs its environments with w and sends g_j = (mean cost) - d_j
        3   sigma = switch(mean_j g_j - tolerance), sent back; the critics are common already
        4   each j in S: A_r, A_c = generalized advantages of reward and cost, each normalized;
            A = (1 - sigma) A_r - sigma A_c
        5       s = natural gradient: (F + damping I) s = C(grad E[log pi A]), conjugate gradient
        6       u = w + scale s, scale = sqrt(2 kl_limit / s F s), times 0.7^i for the first
                i < 6 with KL(w, u) <= kl_limit, or u = w
        7       Delta_j = w - u
        8       v_j = C_j(e_j + Delta_j) is sent;  e_j <- e_j + Delta_j - v_j
        9       fits its own critics to the returns it saw, sends them; the mean is sent to all N
        10  x <- x - mean_j v_j
        11  w <- w + C_0(x - w), sent to all N clients

    With one client, n = 1 and no compression it is the centralized method.

    >>> from fedlib import TopK
    >>> PolicyFedSGM(participants=10, tolerance=0.0).remembers
    False
    >>> PolicyFedSGM(participants=10, tolerance=0.0, uplink=TopK(0.5)).remembers
    True

    Parameters
    ----------
    participants : n.
    tolerance : switching threshold epsilon; infinite: the constraint is ignored.
    switch : `Hard()` or `Soft(beta)`.
    uplink, downlink : C_j and C_0, both contractive.
    error_feedback : whether clients keep what the uplink dropped.
    kl_limit : trust region.
    damping : added to the Fisher matrix F.
    cg_steps : iterations of conjugate gradient.
    curvature_states : how many of a client's states F and the KL divergence are averaged over.
    discount, gae : gamma and lambda.
    on_gradient : C of line 5, which compresses the policy gradient before anything is made of it;
        deterministic.

    Differs: the paper gives no detail of its TRPO step; kl_limit, damping, line search (on the KL
    divergence alone: the switched direction is no ascent direction of one objective), advantages
    and critics (ridge regression on random cosine features of state and time, one for reward and
    one for cost, uncompressed, outside of d) are choices of this library.

    Raises ValueError or TypeError at construction for a parameter out of range; in `init` for one
    that does not fit the problem, or a problem without a simulator.

    Reference: F, Algorithm 1 with E = 1; Schulman et al., ICML 2015, for lines 5 and 6.
    """

    client_state: ClassVar[tuple[str, ...]] = ("residual",)

    participants: Count
    tolerance: Threshold
    switch: Switch = Hard()
    uplink: Compressor = Identity()
    downlink: Compressor = Identity()
    error_feedback: bool = True
    kl_limit: Positive = 0.01
    damping: Nonnegative = 0.1
    cg_steps: Count = 10
    curvature_states: Count = 100
    discount: Fraction = 1.0
    gae: Fraction = 0.97
    on_gradient: Compressor = added_field(Identity())

    def init(self, problem: Problem) -> State:
        """Check against the problem; memories and critics are zero."""
        method_name = "PolicyFedSGM"
        sim = problem.simulator
        rule = "be simulated (Problem.simulator)"
        remedy = "use FedSGM for losses over rows"
        checks.require(
            sim is not None,
            method_name,
            "problem",
            rule,
            problem.name,
            remedy,
        )
        check_work(method_name, problem, self.participants, constrained=True)
        check_compressors(
            method_name,
            self.uplink,
            self.downlink,
            self.error_feedback,
            problem.dim,
        )
        w = problem.w0
        sample = sim.chance(1, torch.Generator().manual_seed(0))[0].to(w)
        states = sim.episodes(w, sample).states
        inputs = sim.inputs(states)
        most = inputs[:-1, ..., 0].numel()
        rule = f"be at most the {most} samples of a client"
        fits = self.curvature_states <= most
        checks.require(
            fits,
            method_name,
            "curvature_states",
            rule,
            self.curvature_states,
        )
        basis = cosine_basis(inputs.shape[-1], COSINES, w)
        width = cosine_features(inputs[0, 0], basis).shape[-1]
        critics = w.new_zeros(width, 2)
        memory = problem.dim if self.remembers else 0
        residual = w.new_zeros(problem.num_clients, memory)
        return State(w, w, residual, critics, basis)

    @property
    def remembers(self) -> bool:
        """Whether clients need a memory."""
        return self.error_feedback and not isinstance(self.uplink, Identity)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """Participants, their simulators' randomness and the compressors'."""
        draw = draw_round(  # 1
            problem,
            rng,
            participants=self.participants,
            uplink=self.uplink,
            downlink=self.downlink,
        )
        chance = problem.simulator.chance(self.participants, rng)
        return draw._replace(chance=chance)

    def constraint_value(self, client: Client) -> Scalar:
        """At the client: mean cost of an episode minus its budget."""
        rows = client.value_batch()
        episodes = Batch((*rows.data, client.chance), rows.weight)
        return client.constraint(client.model, episodes)

    def local_update(
        self,
        client: Client,
        sigma: Scalar,
        *,
        critics: Float[Tensor, "F 2"],
        basis: Float[Tensor, "k1 width"],
    ) -> Vector | Reply:
        """At the client: one natural-gradient step on the switched advantage, compressed."""
        sim = cast(CartPole, client.simulator)
        episodes = sim.episodes(client.model, client.chance)
        (A_r, _), (A_c, _) = self._returns(sim, episodes, critics, basis)
        A = (1 - sigma) * normalized(A_r) - sigma * normalized(A_c)  # 4
        delta = -self._policy_step(client.model, sim, episodes, A)  # 5-7
        if not self.remembers:
            return self.uplink(delta, client.noise)
        v = self.uplink(client.memory + delta, client.noise)  # 8
        return Reply(upload=v, memory=client.memory + delta - v)  # 8

    def _policy_step(
        self,
        w: Vector,
        sim: CartPole,
        episodes: Episodes,
        advantage: Float[Tensor, "T e"],
    ) -> Vector:
        """The natural-gradient step on an advantage, within the trust region."""
        states = episodes.states[:-1]
        flat = states.transpose(0, 1).flatten(0, 1)  # environment after environment
        stride = flat.shape[0] // self.curvature_states
        curvature_states = flat[::stride][: self.curvature_states]
        outputs_before = sim.policy(w, curvature_states)

        def surrogate(u: Tensor) -> Tensor:
            log_prob = sim.head.log_prob(sim.policy(u, states), episodes.action)
            return (log_prob * advantage).mean()

        def product(v: Tensor) -> Tensor:  # (F + damping I) v
            change = sim.policy_change(w, v, curvature_states)  # J v
            weighed = sim.head.fisher(outputs_before, change)
            pull_back = vjp(lambda u: sim.policy(u, curvature_states), w)[1]
            curved: Tensor = pull_back(weighed / len(weighed))[0]
            return curved + self.damping * v

        def divergence(move: Tensor) -> Tensor:
            outputs = sim.policy(w + move, curvature_states)
            return sim.head.kl(outputs_before, outputs).mean()

        ascent = self.on_gradient(grad(surrogate)(w), ())
        s, remainder = conjugate_gradient(product, ascent, self.cg_steps)  # 5
        Fs = ascent - remainder - self.damping * s
        sFs = (s @ Fs).clamp_min(1e-12)
        full = (2 * self.kl_limit / sFs).sqrt() * s
        return backtrack(divergence, full, self.kl_limit, BACKTRACK, TRIALS)  # 6

    def fit_critics(
        self,
        client: Client,
        *,
        critics: Float[Tensor, "F 2"],
        basis: Float[Tensor, "k1 width"],
    ) -> Float[Tensor, "F 2"]:
        """At the client: its own critics, fitted to the returns that it saw."""
        sim = cast(CartPole, client.simulator)
        episodes = sim.episodes(client.model, client.chance)
        (_, R_r), (_, R_c) = self._returns(sim, episodes, critics, basis)
        returns = torch.stack([R_r.flatten(), R_c.flatten()], -1)
        features = cosine_features(sim.inputs(episodes.states), basis)
        of_steps = features[:-1].flatten(0, 1)
        return ridge(of_steps, returns / SCALE, RIDGE)  # 9

    def _returns(
        self,
        sim: CartPole,
        episodes: Episodes,
        critics: Tensor,
        basis: Tensor,
    ) -> list[tuple[Tensor, Tensor]]:
        """Advantages and returns of reward and of cost, by the critics of the last round."""
        features = cosine_features(sim.inputs(episodes.states), basis)
        values = SCALE * features @ critics
        estimate = partial(
            advantages,
            ended=episodes.ended,
            discount=self.discount,
            gae=self.gae,
        )
        of_reward = estimate(episodes.reward, values[..., 0])
        of_cost = estimate(episodes.cost, values[..., 1])
        return [of_reward, of_cost]

    def round(
        self,
        fed: Federation,
        state: State,
        draw: Draw,
    ) -> tuple[State, Info]:
        w = state.w
        critics = state.critics
        basis = state.basis
        clients = fed.clients(draw, model=w, memory=state.residual)  # 1
        g, _ = fed.constraint(fed.ask(self.constraint_value, clients))  # 2
        sigma = self.switch(g - self.tolerance)  # 3
        # every client holds the critics and their basis already
        update = partial(self.local_update, critics=critics, basis=basis)
        fit = partial(self.fit_critics, critics=critics, basis=basis)
        v = fed.ask(update, clients, sigma, wire=self.uplink)  # 4-8
        residual = state.residual
        if self.remembers:
            v, e = v
            residual = fed.store_memory(residual, draw, e)
        fitted = fed.ask(fit, clients).mean(0)  # 9
        critics = fed.broadcast(Identity(), fitted.flatten()).view_as(critics)  # 9
        x = state.x - v.mean(0)  # 10
        w_next = w + fed.broadcast(self.downlink, x - w, draw.downlink)  # 11
        return State(w_next, x, residual, critics, basis), fed.info(g_hat=g, sigma=sigma)
