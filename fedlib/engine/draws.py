"""The draws of all runs in one call of `run`; every run draws as it does alone."""

from collections.abc import Sequence

import torch
from jaxtyping import Shaped
from torch import Tensor
from torch.utils import _pytree as pytree

from fedlib import checks
from fedlib.core.algorithm import Algorithm
from fedlib.core.problem import Draw, Problem
from fedlib.core.sampling import draw_many, draw_with_coin


class Draws:
    """The draws of some rounds for all seeds and grid points, on the run's device.

    `algorithms` are the grid points whose draws are made, or one for all if they draw alike;
    `problems` are those of the seeds.
    """

    def __init__(
        self,
        algorithms: Sequence[Algorithm],
        problems: Sequence[Problem],
        seeds: Sequence[int],
        device: torch.device,
    ) -> None:
        self.algorithms = algorithms
        self.problems = problems
        self.seeds = seeds
        self.device = device

    @property
    def differ(self) -> bool:
        """Whether the points of the grid draw differently."""
        return len(self.algorithms) > 1

    def __call__(self, rngs: Sequence[torch.Generator], rounds: int) -> Draw:
        """Draw some rounds, `[rounds, S, ...]`, or `[rounds, G, S, ...]` if the draws differ."""
        count = len(self.seeds)
        drawn = []
        for index, algorithm in enumerate(self.algorithms):
            of_point = rngs[index * count : (index + 1) * count]
            drawn.append(self._of_point(algorithm, of_point, rounds))
        together = drawn[0]
        if self.differ:
            together = pytree.tree_map(lambda *parts: stack_alike(parts, 1), *drawn)
        return pytree.tree_map(self._send, together)  # type: ignore[no-any-return]

    def _of_point(
        self,
        algorithm: Algorithm,
        rngs: Sequence[torch.Generator],
        rounds: int,
    ) -> Draw:
        """The draws of one algorithm for all seeds, `[rounds, S, ...]`."""
        many = draw_many(algorithm, self.problems, rngs, rounds)
        if many is not None:
            return many
        draws = []
        for _ in range(rounds):
            for problem, rng in zip(self.problems, rngs, strict=True):
                draws.append(draw_with_coin(algorithm, problem, rng))
        return stack_draws(draws, rounds)

    def _send(self, x: Shaped[Tensor, "..."]) -> Shaped[Tensor, "..."]:
        """Move a tensor to the run's device; a GPU copies it while the CPU continues."""
        if self.device.type == "cuda":
            return x.pin_memory().to(self.device, non_blocking=True)
        return x.to(self.device)


def stack_draws(draws: Sequence[Draw], rounds: int) -> Draw:
    """Stack the draws of some rounds and all seeds as one `[rounds, S, ...]`."""

    def stacked(*parts: Shaped[Tensor, "..."]) -> Shaped[Tensor, "..."]:
        return stack_alike(parts, 0).view(rounds, -1, *parts[0].shape)

    return pytree.tree_map(stacked, *draws)  # type: ignore[no-any-return]


def stack_alike(parts: Sequence[Shaped[Tensor, "..."]], axis: int) -> Shaped[Tensor, "..."]:
    """Stack parts of draws; raises ValueError unless they have one shape."""
    shapes = [list(shape) for shape in {x.shape for x in parts}]
    remedy = "run the seeds and the points of a grid one by one"
    name = "draws of all seeds and grid points"
    checks.require(len(shapes) == 1, "run", name, "have one shape", shapes[:2], remedy)
    return torch.stack(list(parts), axis)
