"""What the faults of checkpoints share: runs of all examples, and a run's numbers as one text."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

import fedlib as fl
from fedlib.testing.examples import examples

ROUNDS = 60


@dataclass(frozen=True)
class Run:
    """A call of `fedlib.run`; calling this carries it out."""

    name: str
    algorithms: Any
    problem: Any
    options: dict[str, Any]

    def __call__(self, **more: Any) -> str:
        """All numbers of the run, as a digest; `more` are options such as `checkpoint`."""
        options = {"progress": False, **self.options, **more}
        return numbers(fl.run(self.algorithms, self.problem, **options))


def runs() -> list[Run]:
    """A run of every example: every other one with two seeds, every third of them a grid."""
    found = []
    every = [example for group in examples().values() for example in group]
    for place, (algorithm, problem) in enumerate(every):
        seeds = [3, 8] if place % 2 else [place]
        options = {"rounds": ROUNDS, "seeds": seeds, "evaluate_every": 1 + place % 4}
        many = algorithm
        if place % 3 == 0 and hasattr(algorithm, "lr") and isinstance(algorithm.lr, float):
            many = [algorithm, replace(algorithm, lr=algorithm.lr / 2)]
        name = f"{place} {type(algorithm).__name__} on {problem.name}"
        found.append(Run(name, many, problem, options))
    return found


def numbers(traces: Any) -> str:
    """SHA-256 of curves, states and outputs."""
    made = hashlib.sha256()
    for trace in traces if isinstance(traces, list) else [traces]:
        for part in (trace.metrics, trace.info):
            for name in sorted(part):
                made.update(name.encode() + part[name].tobytes())
        for leaf in pytree.tree_leaves(trace.state):
            made.update(leaf.contiguous().view(-1).view(torch.uint8).numpy().tobytes())
        if trace.output is not None:
            made.update(np.ascontiguousarray(trace.output).tobytes())
    return made.hexdigest()


def quietly(attempt: Callable[[], str]) -> tuple[str, str]:
    """What a call gave, or nothing and what it said."""
    try:
        return attempt(), ""
    except Exception as error:
        return "", f"{type(error).__name__}: {error}"
