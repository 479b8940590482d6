"""Wrong oracles for Federated Frank-Wolfe: a share of the gap, an additive error, and noise."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedlib.algorithms.fedfw import FedFW
from fedlib.checks import Nonnegative, Share
from fedlib.core.client import Client, Reply
from fedlib.core.problem import ConvexSet, Draw, Problem


@dataclass(frozen=True)
class Towards:
    """A set whose oracle knows the asker's model x and stops short of the best point.

    Of the gap <g, x - s*> its answer attains the share `quality`, less `slip`, and at least 0. The
    answer is a point of the set if x is one.
    """

    inner: ConvexSet
    x: Tensor
    quality: float
    slip: float | Tensor

    def project(self, x: Tensor) -> Tensor:
        return self.inner.project(x)

    def contains(self, x: Tensor, tol: float = 1e-6) -> Tensor:
        return self.inner.contains(x, tol)

    def lmo(self, direction: Tensor) -> Tensor:
        """The point of the way from x to the right answer that has just the allowed error."""
        right = self.inner.lmo(direction)
        gap = direction @ (self.x - right)
        share = self.quality - self.slip / torch.where(gap > 0, gap, torch.ones_like(gap))
        return self.x + share.clamp(min=0) * (right - self.x)


@dataclass(frozen=True)
class InexactFW(FedFW):
    """FedFW whose clients' oracles are as wrong as they may be.

    Parameters
    ----------
    quality : m, the share of its client's gap that every answer attains: the multiplicative error.
    slip : additive error of the oracles of all clients together, each having an equal part.
    fall : the additive error is `slip` times this power of the step size: 0, the same in all
        rounds; 1, falling as analyses of Frank-Wolfe methods ask for.

    Differs: the paper only says that such errors are tolerated. The step sizes are those for exact
    oracles. An answer is no extreme point, so the number of bits sent means nothing here.
    """

    quality: Share = 1.0
    slip: Nonnegative = 0.0
    fall: Nonnegative = 0.0

    def local_update(
        self,
        client: Client,
        w: Tensor,
        *,
        convex_set: ConvexSet,
        t: Tensor,
        clients: int,
    ) -> Reply:
        slip = self.slip * self.schedule.eta(t, self.participation) ** self.fall / clients
        wrong = Towards(convex_set, client.memory[0], self.quality, slip)
        return super().local_update(
            client,
            w,
            convex_set=wrong,
            t=t,
            clients=clients,
        )


@dataclass(frozen=True)
class NoisyFW(FedFW):
    """FedFW whose clients add Gaussian noise to what they ask their oracles, as for privacy.

    Parameters
    ----------
    noise : standard deviation of the noise in every entry of g_i.

    Its `gap` is the additive error of the oracles of all clients together: the sum over them of
    <g_i, s_i - s*>, where s* is the answer without noise.
    """

    noise: Nonnegative = 0.0

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """The method's, and the noise of each client in `uplink`, for its messages need none."""
        draw = super().draw(problem, rng)
        shape = problem.num_clients, problem.dim
        return draw._replace(uplink=torch.randn(shape, generator=rng, dtype=torch.float64))

    def local_update(
        self,
        client: Client,
        w: Tensor,
        *,
        convex_set: ConvexSet,
        t: Tensor,
        clients: int,
    ) -> Reply:
        x = client.memory[0]
        gradient = client.gradient(x, client.batch(0), client.objective_weights(w))
        g, extra = self.direction(
            gradient,
            x - w,
            client.memory[1:],
            t,
            clients,
        )
        assert isinstance(client.noise, Tensor)
        s = convex_set.lmo(g + self.noise * client.noise)
        x_next = torch.lerp(x, s, self.schedule.eta(t, self.participation))
        return Reply(
            upload=s,
            memory=torch.cat([x_next.unsqueeze(0), extra]),
            report=(g * (s - convex_set.lmo(g))).sum(),
        )
