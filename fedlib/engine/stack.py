"""Several runs as one: algorithms that differ in numbers, problems that differ in tensors."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.utils import _pytree as pytree

from fedlib import checks
from fedlib.core.algorithm import Algorithm
from fedlib.core.describe import is_float
from fedlib.core.problem import Problem
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


def stack(
    algorithms: Sequence[Algorithm], w: Float[Tensor, "..."]
) -> tuple[Algorithm, dict[str, Float[Tensor, "G"]]]:
    """The first of some algorithms, and the numbers `[G]` in which they differ.

    The numbers are found by the name of a float field (`"lr"`, `"switch.beta"`) and have the dtype
    and device of `w`. Raises ValueError if two algorithms differ in more than floats.
    """
    template = algorithms[0]
    numbers = [floats(algorithm) for algorithm in algorithms]
    for algorithm, point in zip(algorithms, numbers, strict=True):
        fits = type(algorithm) is type(template) and point.keys() == numbers[0].keys()
        if not fits or fill(algorithm, numbers[0]) != template:
            raise ValueError(
                checks.sentence(
                    "run",
                    "the algorithms of one grid",
                    "differ in float parameters only",
                    describe_difference(template, algorithm),
                    "run them one by one",
                )
            )
    hyper = {}
    for name, values in differing_numbers(numbers).items():
        hyper[name] = w.new_tensor(values)
    return template, hyper


def differing_numbers(points: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    """The names whose numbers are not equal in all points, with the numbers."""
    differing = {}
    for name in points[0]:
        values = [point[name] for point in points]
        if len(set(values)) > 1:
            differing[name] = values
    return differing


def describe_difference(a: Algorithm, b: Algorithm) -> str:
    """A text on how two algorithms differ beyond floats: in their types, or in a first field."""
    if type(a) is not type(b):
        return f"{type(a).__name__} and {type(b).__name__}"
    for field in fields(a):  # type: ignore[arg-type]
        x = getattr(a, field.name)
        y = getattr(b, field.name)
        are_floats = type(x) is float and type(y) is float
        if x != y and not are_floats:
            return f"{field.name} {x!r:.60} and {y!r:.60}"
    return "equal ones"


def fill(
    algorithm: Any,
    values: Mapping[str, Any],
    change: Callable[..., Any] = replace,
) -> Any:
    """Replace the named numbers of an algorithm; inside a run the new values are tensors.

    `change(record, **values)` is `dataclasses.replace`, which calls the constructor and its checks,
    or `change_unchecked`.
    """
    inner: dict[str, dict[str, Any]] = {}
    changes: dict[str, Any] = {}
    for name, value in values.items():
        ingredient, _, inner_name = name.partition(".")
        if inner_name:
            inner.setdefault(ingredient, {})[inner_name] = value
        else:
            changes[name] = value
    for ingredient, inner_values in inner.items():
        changes[ingredient] = fill(getattr(algorithm, ingredient), inner_values, change)
    return change(algorithm, **changes) if changes else algorithm


def change_unchecked(record: Any, **values: Any) -> Any:
    """A copy of a frozen dataclass with other values, which its constructor does not see."""
    changed = copy.copy(record)
    for name, value in values.items():
        object.__setattr__(changed, name, value)
    return changed


def floats(value: Any, path: tuple[str, ...] = ()) -> dict[str, float]:
    """All float fields of a dataclass and of its ingredients, by dotted name.

    A field declared as float counts even if its value is a whole number, such as 1. Fields marked
    `metadata={"shape": True}` determine shapes and are left out.
    """
    numbers: dict[str, float] = {}
    for field in fields(value):
        x = getattr(value, field.name)
        if is_dataclass(x) and not isinstance(x, type):
            numbers.update(floats(x, (*path, field.name)))
        elif not field.metadata.get("shape") and is_float(x, type(value), field.name):
            dotted_name = ".".join((*path, field.name))
            numbers[dotted_name] = x
    return numbers


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
        return replace(problem, set=fill(problem.set, set_numbers))


def _set_numbers(problems: Sequence[Problem]) -> list[dict[str, Shaped[Tensor, ""]]]:
    """The numbers, such as a radius, in which the seeds' feasible sets differ."""
    sets = [problem.set for problem in problems]
    numbers = [{} if convex_set is None else floats(convex_set) for convex_set in sets]
    names = differing_numbers(numbers)
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
        names = {field.name for field in fields(convex_set)} - floats(convex_set).keys()
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
        padded.append(replace(problem, rows=rows, lengths=lengths))
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
