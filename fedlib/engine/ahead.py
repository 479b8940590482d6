"""The draws of many rounds at once: the numbers that one draw after another would give.

In long runs of small rounds, drawing a round takes as long as computing it. Methods whose rounds
draw participants and nothing else, by `draw_round`, are therefore drawn many rounds at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import Any, NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from fedlib.core import sampling
from fedlib.core.algorithm import Algorithm
from fedlib.core.problem import Draw, Problem


class Samples(NamedTuple):
    """All that the rounds of a method draw: `each` times a sample, `taken` of `size` clients."""

    size: int
    taken: int
    each: int

    def draws(self, rngs: Sequence[torch.Generator], rounds: int) -> Draw:
        """What `draw_round` gives in so many rounds with each generator, `[rounds, S, ...]`."""
        found = permuted(self.size, self.taken, rngs, rounds * self.each)
        each = found.view(len(rngs), rounds, self.each, -1).permute(2, 1, 0, 3).contiguous()
        who, *again = each.unbind()
        return Draw(who, value_clients=again[0] if again else ())


def samples(algorithm: Algorithm, problem: Problem) -> Samples | None:
    """What a method draws, if that is samples of clients alone; None if it is, or may be, more.

    Its `draw` is called with a stand-in of `draw_round`, which notes its arguments, and of the
    generator, which is good for nothing else: a `draw` that gives back what the stand-in gave
    does what `draw_round` does with these arguments.
    """
    plain = getattr(algorithm.draw, "__func__", None)
    if not isinstance(plain, FunctionType):
        return None
    if plain.__globals__.get("draw_round") is not sampling.draw_round:
        return None
    nothing: Any = object()
    result = Draw(torch.empty(0))
    calls: list[dict[str, Any]] = []

    def noted(of: Problem, rng: Any, **settings: Any) -> Draw:
        calls.append(settings)
        return result if of is problem and rng is nothing else Draw(torch.empty(0))

    known = {**plain.__globals__, "draw_round": noted}
    draw = FunctionType(
        plain.__code__, known, plain.__name__, plain.__defaults__, plain.__closure__
    )
    draw.__kwdefaults__ = plain.__kwdefaults__
    try:
        alone = draw(algorithm, problem, nothing) is result and len(calls) == 1
    except Exception:  # whatever it does with a generator that is none
        return None
    return _of(problem, **calls[0]) if alone else None


def _of(problem: Problem, participants: int, resample: bool = False, **more: Any) -> Samples | None:
    """What `draw_round` draws by some arguments, if that is samples of clients alone."""
    if more.get("batch_size") is not None or more.get("value_batch_size") is not None:
        return None
    for way in ("uplink", "downlink"):
        rng = torch.Generator()
        noise = more.get(way, sampling.IDENTITY).draw(participants, problem.dim, rng)
        if noise != ():
            return None
    return Samples(problem.num_clients, participants, 1 + resample)


def permuted(
    size: int, count: int, rngs: Sequence[torch.Generator], times: int
) -> Int[Tensor, "S T n"]:
    """`sampling.sample(size, count)`, so many times with each generator."""
    each = [sampling.sample(size, count, rng) for rng in rngs for _ in range(times)]
    return torch.stack(each).view(len(rngs), times, -1)
