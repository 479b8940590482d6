"""Constrained cartpole: balance a pole, keep the cart off five intervals (FedSGM, Figures 3, 4)."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from fedlib.checks import Count, Seed, counted
from fedlib.core.describe import describe
from fedlib.core.problem import Batch, Problem
from fedlib.core.sampling import seeded
from fedlib.shapes import Scalar, Vector
from papers.fedsgm.cartpole.trpo import Episodes, Gaussian

GRAVITY = 9.8
CART = 1.0
POLE = 0.1
HALF_LENGTH = 0.5
FORCE = 10.0
TAU = 0.02
MAX_X = 2.4
MAX_ANGLE = 12 * math.pi / 180
HORIZON = 200
CENTRES = (-2.3, -1.2, 0.0, 1.2, 2.3)
HALF_WIDTH = 0.1
SAFE_ANGLE = 6 * math.pi / 180


def step(state: Float[Tensor, "*b 4"], force: Float[Tensor, "*b"]) -> Float[Tensor, "*b 4"]:
    """One time step: position, velocity, angle and angular velocity under a force in newton."""
    x, v, angle, spin = state.unbind(-1)
    cos = torch.cos(angle)
    sin = torch.sin(angle)
    mass = CART + POLE
    push = (force + POLE * HALF_LENGTH * spin * spin * sin) / mass
    inertia = HALF_LENGTH * (4 / 3 - POLE * cos * cos / mass)
    turn = (GRAVITY * sin - cos * push) / inertia  # angular acceleration
    pull = push - POLE * HALF_LENGTH / mass * turn * cos  # acceleration of the cart
    next_x = x + TAU * v
    next_v = v + TAU * pull
    next_angle = angle + TAU * spin
    next_spin = spin + TAU * turn
    return torch.stack([next_x, next_v, next_angle, next_spin], -1)


def forbidden(state: Float[Tensor, "*b 4"]) -> Bool[Tensor, "*b"]:
    """Whether a state costs 1: the cart in a forbidden interval, or the pole beyond 6 degrees."""
    x = state[..., 0]
    angle = state[..., 2]
    centres = torch.tensor(CENTRES, dtype=x.dtype, device=x.device)
    distances = (x.unsqueeze(-1) - centres).abs()
    close = (distances <= HALF_WIDTH + 1e-7).any(-1)
    tilted = angle.abs() > SAFE_ANGLE
    return close | tilted


def ends(state: Float[Tensor, "*b 4"]) -> tuple[Bool[Tensor, "*b"], Bool[Tensor, "*b"]]:
    """Whether the cart has left the track, and whether the pole has fallen."""
    x = state[..., 0]
    angle = state[..., 2]
    return x.abs() > MAX_X, angle.abs() > MAX_ANGLE


HIDDEN = 128
SIZES = (4 * HIDDEN, HIDDEN, HIDDEN * HIDDEN, HIDDEN, HIDDEN * 2, 2)
START_LOG_STD = -0.5
LAST_SCALE = 0.01


def parameters(rng: torch.Generator) -> Vector:
    """A start of the policy network 4-128-128-2, 17,410 numbers.

    Hidden layers uniform in +-1/sqrt(inputs), the last one a hundred times smaller, so that actions
    start alike; the log deviation starts at -0.5.
    """
    inputs = (4, 4, HIDDEN, HIDDEN, HIDDEN, HIDDEN)
    blocks = []
    for size, fan_in in zip(SIZES, inputs, strict=True):
        unit = 2 * torch.rand(size, generator=rng) - 1
        blocks.append(unit / math.sqrt(fan_in))
    blocks[4] = blocks[4] * LAST_SCALE
    blocks[5] = torch.tensor([0.0, START_LOG_STD])
    return torch.cat(blocks)


def tanh(x: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
    """2 sigmoid(2 x) - 1, several times as fast as `torch.tanh` in float32 on a CPU."""
    return 2 * torch.sigmoid(2 * x) - 1


def _layers(w: Float[Tensor, "*b d"]) -> tuple[Tensor, ...]:
    """Matrices `[out, in]` and biases of the three layers, in the order of `models.ravel`."""
    A, a, B, b, C, c = torch.split(w, list(SIZES), dim=-1)
    batch_shape = w.shape[:-1]
    A = A.view(*batch_shape, HIDDEN, 4)
    B = B.view(*batch_shape, HIDDEN, HIDDEN)
    C = C.view(*batch_shape, 2, HIDDEN)
    return A, a, B, b, C, c


def _seen(state: Float[Tensor, "*b s"]) -> Float[Tensor, "*b 4"]:
    """What the network sees: the angle five times enlarged, the clock left out."""
    x, v, angle, spin = state[..., :4].unbind(-1)
    return torch.stack([x, v, 5 * angle, spin], -1)


@dataclass(frozen=True)
class CartPole:
    """Parallel environments of 200-step episodes, restarting when they end.

    A state here is the four numbers of the physics and the step within the episode. The force is
    the action clipped to [-1, 1], times 10 N.

    >>> CartPole(environments=2).chance(3, torch.Generator()).shape
    torch.Size([3, 200, 2, 5])

    Parameters
    ----------
    steps : T, at least 200, so that every first episode ends.
    environments : e of them a client; `steps * environments` samples a round.
    """

    steps: Annotated[int, counted(HORIZON)] = HORIZON
    environments: Count = 5
    head: ClassVar[Gaussian] = Gaussian()  # the distribution over actions

    def chance(self, clients: int, rng: torch.Generator) -> Float[Tensor, "n T e 5"]:
        """Per step: where an episode would start (4), and the quantile of the action (1)."""
        return torch.rand(
            clients,
            self.steps,
            self.environments,
            5,
            generator=rng,
        )

    def episodes(self, w: Vector, chance: Float[Tensor, "T e 5"]) -> Episodes:
        """One client's steps."""
        policies = w.unsqueeze(0)
        groups = chance.unsqueeze(0).unsqueeze(0)
        log = simulate(policies, groups)[0, 0]
        past = log[:-1]
        ended = (past[..., 7] > 0).to(log.dtype)
        earlier = ended.cumsum(0) - ended
        return Episodes(
            states=log[..., :5],
            action=past[..., 5],
            reward=torch.ones_like(ended),
            cost=past[..., 6],
            ended=ended,
            first=(earlier == 0).to(log.dtype),
        )

    def totals(self, w: Vector, chance: Float[Tensor, "T e 5"]) -> tuple[Scalar, Scalar]:
        """The mean reward and the mean cost of an episode."""
        episodes = self.episodes(w, chance)
        reward = episodes.per_episode(episodes.reward)
        return reward, episodes.per_episode(episodes.cost)

    def losses(self, w: Vector, batch: Batch) -> Float[Tensor, "2"]:
        """Minus the mean reward of an episode, and its mean cost beyond the client's budget."""
        budget, chance = batch.data
        reward, cost = self.totals(w, chance)
        return torch.stack([-reward, cost - budget[0]])

    def policy(self, w: Vector, states: Float[Tensor, "*b s"]) -> Float[Tensor, "*b 2"]:
        """The network's two outputs."""
        A, a, B, b, C, c = _layers(w)
        h = tanh(_seen(states) @ A.T + a)
        k = tanh(h @ B.T + b)
        return k @ C.T + c

    def policy_change(
        self,
        w: Vector,
        v: Vector,
        states: Float[Tensor, "*b s"],
    ) -> Float[Tensor, "*b 2"]:
        """The derivative of `policy` by `w` along `v`."""
        A, a, B, b, C, _ = _layers(w)
        dA, da, dB, db, dC, dc = _layers(v)
        seen = _seen(states)
        h = tanh(seen @ A.T + a)
        dz = seen @ dA.T + da
        dh = (1 - h * h) * dz
        k = tanh(h @ B.T + b)
        dy = dh @ B.T + h @ dB.T + db
        dk = (1 - k * k) * dy
        return dk @ C.T + k @ dC.T + dc

    def inputs(self, states: Float[Tensor, "*b s"]) -> Float[Tensor, "*b 5"]:
        """Position, velocity, angle, angular velocity and time, scaled to order one."""
        x, v, angle, spin, time = states.unbind(-1)
        return torch.stack([x / MAX_X, v, angle / MAX_ANGLE, spin, time / HORIZON], -1)


@torch.library.custom_op("fedlib::cartpole", mutates_args=())
def simulate(w: Tensor, chance: Tensor) -> Tensor:
    """Simulate b policies, each in k groups of e environments.

    One operation for `vmap` and for graph capture: two hundred dependent steps would be thousands
    of nodes there. Its own `vmap` rule lets clients that share a policy share its matrix products.

    Parameters
    ----------
    w : `[b, d]`.
    chance : `[b, k, T, e, 5]`, uniform in [0, 1).

    Returns
    -------
    `[b, k, T + 1, e, 8]`: the state before the step (4), the step within the episode, the action,
    the cost of the step (of the state that it leads to), and whether the episode ended with it.
    Only the first five are meant in the last row.
    """
    b, k, steps, e, _ = chance.shape
    A, a, B, bias, C, c = _layers(w)
    At = A.mT
    Bt = B.mT
    Ct = C.mT
    a = a.unsqueeze(1)
    bias = bias.unsqueeze(1)
    c = c.unsqueeze(1)
    draws = chance.permute(2, 0, 1, 3, 4).reshape(steps, b, k * e, 5)
    starts = 0.1 * draws[..., :4] - 0.05
    quantiles = draws[..., 4].clamp(1e-6, 1 - 1e-6)
    log = w.new_zeros(steps + 1, b, k * e, 8)
    state = starts[0]
    time = w.new_zeros(b, k * e)
    for t in range(steps):
        h = tanh(torch.baddbmm(a, _seen(state), At))
        h = tanh(torch.baddbmm(bias, h, Bt))
        outputs = torch.baddbmm(c, h, Ct)
        action = CartPole.head.sample(outputs, quantiles[t])
        entry = log[t]
        entry[..., :4] = state
        entry[..., 4] = time
        entry[..., 5] = action
        force = FORCE * action.clamp(-1, 1)
        state = step(state, force)
        time = time + 1
        out_of_track, fallen = ends(state)
        over = out_of_track | fallen | (time >= HORIZON)
        entry[..., 6] = forbidden(state)
        entry[..., 7] = over
        fresh = starts[(t + 1) % steps]
        state = torch.where(over.unsqueeze(-1), fresh, state)
        time = time * ~over
    log[steps, ..., :4] = state
    log[steps, ..., 4] = time
    by_group = log.view(steps + 1, b, k, e, 8)
    return by_group.permute(1, 2, 0, 3, 4).contiguous()


@simulate.register_fake
def _(w: Tensor, chance: Tensor) -> Tensor:
    b, k, steps, e, _ = chance.shape
    return w.new_empty(b, k, steps + 1, e, 8)


@simulate.register_vmap
def _(
    info: object,
    in_dims: tuple[int | None, ...],
    w: Tensor,
    chance: Tensor,
) -> tuple[Tensor, int]:
    w_dim, chance_dim = in_dims
    size = cast(int, getattr(info, "batch_size"))  # noqa: B009
    if chance_dim is None:
        chances = chance.unsqueeze(0).expand(size, *chance.shape)
    else:
        chances = chance.movedim(chance_dim, 0)
    b, k = chances.shape[1:3]
    if w_dim is None:  # one policy for all: more environments
        groups = chances.movedim(0, 1).flatten(1, 2)  # [b, size k, ...]
        log = simulate(w, groups)
        return log.unflatten(1, (size, k)), 1
    policies = w.movedim(w_dim, 0).flatten(0, 1)  # [size b, d]
    groups = chances.flatten(0, 1)
    log = simulate(policies, groups)
    return log.unflatten(0, (size, b)), 0


def cartpole(
    seed: Seed,
    *,
    clients: Count = 10,
    environments: Count = 5,
    evaluation: Count = 50,
) -> Problem:
    """The federated problem: maximize the reward, keep the mean cost over clients within budget.

    Objective `f_j = -E[sum of rewards]`, constraint `g_j = E[sum of costs] - d_j`, no discount;
    clients differ in `d_j` only, evenly spaced on [25, 35]. `metrics` are `reward` and `cost` over
    episodes whose randomness is fixed for the seed. In float32.

    Parameters
    ----------
    seed : of the policy's start and of the evaluation's randomness.
    clients : N.
    environments : parallel environments a client, 200 samples each a round.
    evaluation : episodes of an evaluation.
    """
    simulator = CartPole(environments=environments)
    rng = seeded(seed, "split")
    w0 = parameters(rng)
    fixed = torch.rand(HORIZON, evaluation, 5, generator=rng)
    budgets = torch.linspace(25.0, 35.0, clients) if clients > 1 else torch.tensor([30.0])
    config = {
        "name": "cartpole",
        "clients": clients,
        "budgets": [25.0, 35.0],
        "simulator": describe(simulator),
        "evaluation": evaluation,
    }
    return Problem(
        name="cartpole",
        data=(budgets,),
        rows=torch.arange(clients).unsqueeze(1),
        sizes=(1,) * clients,
        losses=simulator.losses,
        num_objectives=1,
        num_constraints=1,
        w0=w0,
        metrics=_metrics,
        heldout=(fixed,),
        simulator=simulator,
        config=config,
    )


def _metrics(w: Vector, problem: Problem) -> dict[str, Tensor]:
    simulator = cast(CartPole, problem.simulator)
    reward, cost = simulator.totals(w, problem.heldout[0])
    return {"reward": reward, "cost": cost}
