"""What the low-rank study runs: FedFW with a look at every message, and a clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import vmap

from fedlib.algorithms.fedfw import FedFW
from fedlib.core import Problem
from fedlib.core.federation import Federation
from fedlib.core.problem import ConvexSet, Draw, Info
from fedlib.sets import Box, NuclearBall
from fedlib.sets.vertices import wire_of
from fedlib.work.states import Model


class Tap:
    """An engine, and what arrived through it."""

    def __init__(self, fed: Federation) -> None:
        self.fed = fed
        self.arrived: list[Tensor] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.fed, name)

    def ask(self, *arguments: Any, **options: Any) -> Any:
        answer = self.fed.ask(*arguments, **options)
        self.arrived.append(answer[0])
        return answer


@dataclass(frozen=True)
class Watched:
    """FedFW, and a look at every message of its rounds.

    Info beside the method's own, over the clients of a round: `most` and `fewest`, entries that are
    not 0; `second`, the largest ratio of a message's second singular value to its first (nuclear
    ball, else 0); `off`, the largest distance of an entry from the nearer end of a box (else 0);
    `wire`, the largest distance of an entry from what its wire format gives back.
    """

    method: FedFW

    def init(self, problem: Problem) -> Any:
        return self.method.init(problem)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        return self.method.draw(problem, rng)

    def round(
        self,
        fed: Federation,
        state: Any,
        draw: Draw,
    ) -> tuple[Any, Info]:
        tap: Any = Tap(fed)
        state, info = self.method.round(tap, state, draw)
        (messages,) = tap.arrived
        assert fed.problem.set is not None
        return state, info | looked_at(messages, fed.problem.set)


def looked_at(s: Float[Tensor, "N d"], convex_set: ConvexSet) -> dict[str, Tensor]:
    wire = wire_of(convex_set, s.shape[-1])
    back = vmap(lambda x: wire.decode(wire.encode(x), x))(s)
    count = (s != 0).sum(1).to(s.dtype)
    zero = torch.zeros_like(s[0, 0])
    looks = {
        "most": count.amax(),
        "fewest": count.amin(),
        "second": zero,
        "off": zero,
        "wire": (back - s).abs().amax(),
    }
    if isinstance(convex_set, NuclearBall):
        matrices = s.view(-1, convex_set.rows, convex_set.columns)
        values = torch.linalg.svdvals(matrices)
        ratios = values[:, 1] / values[:, 0]
        looks["second"] = ratios.amax()
    if isinstance(convex_set, Box):
        assert convex_set.high is not None
        from_low = (s - convex_set.low).abs()
        from_high = (s - convex_set.high).abs()
        looks["off"] = torch.minimum(from_low, from_high).amax()
    return looks


@dataclass(frozen=True)
class Clock:
    """No method: every round times a set's two oracles on one and the same random vector.

    Info: `lmo` and `project`, seconds of CPU time; `reached`, the value of <g, s> as a share of
    that of the best extreme point. The first round also warms up. Works on a CPU.
    """

    repeats: int = 1

    def init(self, problem: Problem) -> Model:
        return Model(problem.w0)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        vector = torch.randn(1, problem.dim, generator=rng)
        return Draw(torch.arange(problem.num_clients), chance=vector)

    def round(
        self,
        fed: Federation,
        state: Model,
        draw: Draw,
    ) -> tuple[Model, Info]:
        assert isinstance(draw.chance, Tensor)
        assert isinstance(fed.problem.set, NuclearBall)
        x = draw.chance[0].to(state.w)
        ball = fed.problem.set
        s, lmo = self.timed(ball.lmo, x)
        _, project = self.timed(ball.project, x)
        largest = torch.linalg.matrix_norm(x.view(ball.rows, -1), ord=2)
        best = ball.radius * largest
        info = fed.info(
            reached=-(x @ s) / best,
            lmo=torch.tensor(lmo),
            project=torch.tensor(project),
        )
        return state, info

    def timed(self, oracle: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, float]:
        began = time.process_time()
        for _ in range(self.repeats):
            answer = oracle(x)
        seconds = time.process_time() - began
        return answer, seconds / self.repeats
