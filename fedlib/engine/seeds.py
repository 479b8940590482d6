"""The problems of several seeds as one problem, whose tensors have an axis of seeds."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor
from torch.utils import _pytree as pytree

from fedlib import checks
from fedlib.core.problem import Problem
from fedlib.core.trees import partition_leaves
from fedlib.engine.grid import fill, floats

Tensors = list[Shaped[Tensor, "..."]]


class StackedProblem:
    """One form of problem for all seeds, and the tensors in which they differ.

    Functions are those of the first seed; tensors, and the numbers of the feasible set, are each
    seed's own. `own` has a leading axis S; `common` is what all seeds have at one place in memory,
    such as their data, once.
    """

    def __init__(self, problems: Sequence[Problem], device: torch.device) -> None:
        same = len({p.sizes for p in problems}) == 1
        shapes = problems if same else padded(problems)
        self.form = shapes[0].to(device)
        sizes = _sets(shapes)
        self.radii = tuple(sizes[0])  # the numbers in which the feasible sets differ
        trees = zip([p.tensors() for p in shapes], sizes, strict=True)
        parts = partition_leaves([*trees])
        self.own: Tensors = [x.to(device) for x in parts[0]]
        self.common: Tensors = [x.to(device) for x in parts[1]]
        self.together = parts[2]

    def problem(self, own: Tensors, common: Tensors) -> Problem:
        """The problem of one seed, of its part of `own` and of `common`."""
        tensors, sizes = self.together(own, common)
        problem = self.form.with_tensors(tensors)
        return replace(problem, set=fill(problem.set, sizes)) if sizes else problem


def _sets(problems: Sequence[Problem]) -> list[dict[str, Shaped[Tensor, ""]]]:
    """The numbers of each seed's feasible set in which these differ, such as a radius."""
    first = problems[0].set
    numbers = [floats(p.set) if p.set is not None else {} for p in problems]
    names = [k for k in numbers[0] if len({own[k] for own in numbers}) > 1] if first else []
    like = problems[0].w0
    return [{k: torch.tensor(own[k], dtype=like.dtype) for k in names} for own in numbers]


def made(problem: Callable[[int], Problem], seed: int) -> Problem:
    """The problem of a seed."""
    try:
        inspect.signature(problem).bind(seed)
    except TypeError as error:
        rule = f"be a Problem, or a function of the seed alone ({error})"
        raise TypeError(checks.sentence("run", "problem", rule, problem)) from None
    except ValueError:  # some that are not of Python do not tell what they take
        pass
    found = problem(seed)
    if not isinstance(found, Problem):
        raise TypeError(checks.sentence("run", f"problem({seed})", "give a Problem", found))
    return found


def check_same_shapes(problems: Sequence[Problem], seeds: Sequence[int]) -> None:
    """Raise ValueError unless the seeds' problems can be stacked, once their rows are padded."""
    first = _shapes(problems[0])
    for p, seed in zip(problems, seeds, strict=False):
        own = _shapes(p)
        for name in {**first, **own}:
            if own.get(name) != first.get(name):
                raise ValueError(
                    "run: the problems of all seeds must have equal shapes, but for the clients' "
                    f"rows; {name} of {p.name} is {own.get(name)} with seed {seed} and "
                    f"{first.get(name)} with seed {seeds[0]}; run the seeds one by one."
                )
        for name in ("name", "num_objectives", "num_constraints", "sequential_clients"):
            one, other = getattr(problems[0], name), getattr(p, name)
            if one != other:
                raise ValueError(
                    f"run: the problems of all seeds must agree in {name}, it is {other!r} of seed "
                    f"{seed} and {one!r} of seed {seeds[0]}."
                )
        check_same_sets(problems[0].set, p.set, seed)


def check_same_sets(first: Any, other: Any, seed: int) -> None:
    """Raise ValueError unless two feasible sets are the same but for numbers such as a radius."""
    alike = type(first) is type(other)
    if alike and first is not None and first != other:
        alike = fill(other, floats(first)) == first
    if not alike:
        raise ValueError(
            "run: the feasible sets of all seeds must be the same but for numbers, that of seed "
            f"{seed} is {other!r:.80}; run the seeds one by one."
        )


def _shapes(problem: Problem) -> dict[str, tuple[int, ...]]:
    """All shapes of a problem's tensors, by name, but the number of rows a client."""
    whole = {**problem.tensors(), "clients": problem.rows[:, 0]}
    del whole["rows"]
    leaves = pytree.tree_flatten_with_path(whole)[0]
    return {
        pytree.keystr(path).removeprefix("['").replace("']", "", 1): tuple(x.shape)
        for path, x in leaves
    }


def padded(problems: Sequence[Problem]) -> list[Problem]:
    """The problems with equally many rows a client, by repetition, and `lengths` that say so."""
    most = max(p.rows.shape[1] for p in problems)
    whole = []
    for p in problems:
        more = p.rows[:, :1].expand(-1, most - p.rows.shape[1])
        rows, lengths = torch.cat([p.rows, more], 1), torch.tensor(p.sizes, device=p.rows.device)
        whole.append(replace(p, rows=rows, lengths=lengths))
    return whole
