"""What the two oracles of the nuclear ball take, in seconds of one core."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count, Seed
from fedlib.core import Problem
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info
from papers.arena.problems import arena_problem


class Ticks(NamedTuple):
    """The clock carries nothing."""

    w: Tensor  # [d]


@dataclass(frozen=True)
class Clock:
    """No method: every round times a set's two oracles on one and the same random vector.

    Info: `lmo` and `project`, seconds of CPU time of a call, the mean of `repeats`. The first round
    also warms up. Works on a CPU, on a problem whose clients go one after another.
    """

    repeats: Count = 20

    def __post_init__(self) -> None:
        checks.fields(self)

    def init(self, problem: Problem) -> Ticks:
        """The start, where it stays."""
        return Ticks(problem.w0)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """A random direction."""
        vector = torch.randn(1, problem.dim, generator=rng)
        return Draw(torch.arange(problem.num_clients), chance=vector)

    def round(self, fed: Federation, state: Ticks, draw: Draw) -> tuple[Ticks, Info]:
        """Both oracles."""
        assert isinstance(draw.chance, Tensor)
        assert fed.problem.set is not None
        x, ball = draw.chance[0], fed.problem.set
        found = {"lmo": self.timed(ball.lmo, x), "project": self.timed(ball.project, x)}
        return state, fed.info(**{k: torch.tensor(v) for k, v in found.items()})

    def timed(self, oracle: Callable[[Tensor], Tensor], x: Tensor) -> float:
        """Seconds of a call."""
        began = time.process_time()
        for _ in range(self.repeats):
            oracle(x)
        return (time.process_time() - began) / self.repeats


def clock_problem(seed: Seed, *, name: str) -> Problem:
    """The problem in its set form, for an engine that takes one client after another."""
    checks.arguments(clock_problem, locals())
    return replace(arena_problem(seed, name=name, form="set"), sequential_clients=True)
