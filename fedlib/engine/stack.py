"""Several problems as one: those of the seeds, which differ in tensors."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor
from torch.utils import _pytree as pytree

from fedlib import checks
from fedlib.core.floats import differing_floats, fill, floats
from fedlib.core.problem import Problem
from fedlib.engine.surroundings import without_inference
from fedlib.shapes import AnyTensor

Tensors = list[AnyTensor]
#: Attributes of a problem that all seeds must share.
SHARED = (
    "name",
    "num_objectives",
    "num_constraints",
    "num_clients",
    "client_weights",
    "sequential_clients",
    "whole_batches",
    "dropout",
)


def problems_of_seeds(
    problem: Problem | Callable[[int], Problem],
    seeds: Sequence[int],
) -> list[Problem]:
    """The problem of each seed, whose tensors autograd can follow; some may be one object.

    Raises TypeError unless a function that makes problems takes the seed alone; ValueError unless
    the problems can be stacked.
    """
    if isinstance(problem, Problem):
        problems = [problem] * len(seeds)
    else:
        problems = [make_problem(problem, seed) for seed in seeds]
    usable = {id(problem): without_inference(problem) for problem in problems}
    problems = [usable[id(problem)] for problem in problems]
    check_same_shapes(problems, seeds)
    return problems


def make_problem(problem: Callable[[int], Problem], seed: int) -> Problem:
    """The problem of a seed; raises TypeError unless the function takes the seed alone."""
    try:
        problem_of_seed = problem(seed)
    except TypeError as error:
        rule = f"be a Problem, or a function of the seed alone ({error})"
        raise TypeError(checks.sentence("run", "problem", rule, problem)) from error
    checks.value("run", f"problem({seed})", problem_of_seed, Problem)
    return problem_of_seed


class StackedProblem:
    """One problem for all seeds, and the tensors in which the seeds differ.

    The functions are the first seed's. Each seed has its own tensors and numbers of the feasible
    set. `own` has a leading axis S; `common` holds once what all seeds share in memory, such as
    their data.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        device: torch.device,
    ) -> None:
        if len({problem.sizes for problem in problems}) > 1:
            problems = pad_rows(problems)
        self.form = problems[0].to(device)
        trees = zip(
            [problem.tensors() for problem in problems],
            _set_numbers(problems),
            strict=True,
        )
        stacked, shared, self.join = partition_leaves(list(trees))
        self.own: Tensors = [x.to(device) for x in stacked]
        self.common: Tensors = [x.to(device) for x in shared]

    def problem(self, of_seed: Tensors, common: Tensors) -> Problem:
        """The problem of one seed, from its part of `own` and from `common`."""
        tensors, set_numbers = self.join(of_seed, common)
        problem = self.form.with_tensors(tensors)
        if not set_numbers:
            return problem
        return dataclasses.replace(problem, set=fill(problem.set, set_numbers))


def _set_numbers(problems: Sequence[Problem]) -> list[dict[str, Shaped[Tensor, ""]]]:
    """The numbers, such as a radius, in which the seeds' feasible sets differ."""
    sets = [problem.set for problem in problems]
    numbers = [{} if convex_set is None else floats(convex_set) for convex_set in sets]
    names = differing_floats(numbers)
    dtype = problems[0].w0.dtype
    return [{name: torch.tensor(seed[name], dtype=dtype) for name in names} for seed in numbers]


def check_same_shapes(
    problems: Sequence[Problem],
    seeds: Sequence[int],
) -> None:
    """Raise ValueError unless the seeds' problems can be stacked after their rows are padded."""
    expected = _shapes(problems[0])
    for problem, seed in zip(problems, seeds, strict=True):
        shapes = _shapes(problem)
        for name in expected | shapes:
            checks.require(
                shapes.get(name) == expected.get(name),
                "run",
                f"{name} of {problem.name} with seed {seed}",
                f"be {expected.get(name)} as with seed {seeds[0]}",
                shapes.get(name),
                "run the seeds singly",
            )


def _shapes(problem: Problem) -> dict[str, Any]:
    """The properties that all seeds must share: names, counts, tensors' shapes, type of the set.

    Clients may have different numbers of rows.
    """
    shapes = {name: getattr(problem, name) for name in SHARED}
    convex_set: Any = problem.set
    if convex_set is not None:
        names = {field.name for field in dataclasses.fields(convex_set)} - floats(convex_set).keys()
        settings = {name: getattr(convex_set, name) for name in names}
        shapes["set"] = (type(convex_set).__name__, settings)
    tensors = problem.tensors()
    del tensors["rows"]
    for path, x in pytree.tree_flatten_with_path(tensors)[0]:
        name = pytree.keystr(path).removeprefix("['").replace("']", "", 1)
        shapes[f"the shape of {name}"] = tuple(x.shape)
    return shapes


def pad_rows(problems: Sequence[Problem]) -> list[Problem]:
    """Pad all clients to equally many rows, by repetition; `lengths` has their real sizes."""
    most = max(max(problem.sizes) for problem in problems)
    padded = []
    for problem in problems:
        device = problem.rows.device
        lengths = torch.tensor(problem.sizes, device=device)
        position = torch.arange(most, device=device)
        positions = torch.where(position < lengths.unsqueeze(1), position, 0)
        clients = torch.arange(problem.num_clients, device=device)
        rows = problem.row_numbers(clients, positions)
        padded.append(dataclasses.replace(problem, rows=rows, lengths=lengths))
    return padded


def partition_leaves(trees: Sequence[Any]) -> tuple[Tensors, Tensors, Callable[..., Any]]:
    """Split trees of one structure into the stacked leaves that differ, and the shared leaves.

    A leaf is shared if it lies at one place in memory. The third result, `merge(stacked, shared)`,
    makes a tree from these two lists, or from one entry of the first list and the second list.
    """
    structure = pytree.tree_structure(trees[0])
    stacked: Tensors = []
    shared: Tensors = []
    is_shared = []
    for leaves in zip(*map(pytree.tree_leaves, trees), strict=True):
        has_one_place = all(same_memory(leaf, leaves[0]) for leaf in leaves)
        is_shared.append(has_one_place)
        if has_one_place:
            shared.append(leaves[0])
        else:
            stacked.append(torch.stack(leaves))

    def merge(stacked: Tensors, shared: Tensors) -> Any:
        stacked_leaves = iter(stacked)
        shared_leaves = iter(shared)
        leaves = [
            next(shared_leaves if has_one_place else stacked_leaves) for has_one_place in is_shared
        ]
        return pytree.tree_unflatten(leaves, structure)

    return stacked, shared, merge


def same_memory(x: AnyTensor, y: AnyTensor) -> bool:
    """Whether two tensors are the same numbers at the same place in memory."""
    if x is y:
        return True
    if x.shape != y.shape or x.stride() != y.stride():
        return False
    if x.dtype != y.dtype or x.device != y.device:
        return False
    return x.numel() > 0 and x.data_ptr() == y.data_ptr()
