"""Several runs as one: algorithms that differ in numbers, problems that differ in tensors."""

import copy
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from numbers import Integral
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.utils import _pytree as pytree

from fedlib import checks
from fedlib.core.algorithm import Algorithm
from fedlib.core.problem import Problem

Tensors = list[Shaped[Tensor, "..."]]


def stack(
    algorithms: Sequence[Algorithm], like: Float[Tensor, "..."]
) -> tuple[Algorithm, dict[str, Float[Tensor, "G"]]]:
    """The first of some algorithms, and the numbers `[G]` in which they differ.

    The numbers are found by the name of a float field (`"lr"`, `"switch.beta"`) and have the dtype
    and device of `like`. Raises ValueError if two algorithms differ in more than floats.
    """
    numbers, template = [floats(a) for a in algorithms], algorithms[0]
    for a, own in zip(algorithms, numbers, strict=True):
        alike = type(a) is type(template) and own.keys() == numbers[0].keys()
        fits = alike and fill(a, numbers[0]) == template
        rule = "differ in float parameters only"
        got = describe_difference(template, a) if not fits else ""
        checks.require(fits, "run", "the algorithms of one grid", rule, got, "run them one by one")
    differing = [k for k in numbers[0] if len({own[k] for own in numbers}) > 1]
    return template, {
        k: torch.tensor([x[k] for x in numbers], dtype=like.dtype, device=like.device)
        for k in differing
    }


def describe_difference(a: Algorithm, b: Algorithm) -> str:
    """A text on how two algorithms differ beyond floats: in their types, or in a first field."""
    if type(a) is not type(b):
        return f"{type(a).__name__} and {type(b).__name__}"
    named = [(f.name, getattr(a, f.name), getattr(b, f.name)) for f in fields(a)]  # type: ignore[arg-type]
    other = [(n, x, y) for n, x, y in named if x != y and {type(x), type(y)} != {float}]
    return "{} {!r:.60} and {!r:.60}".format(*other[0]) if other else "equal ones"


def fill(algorithm: Any, values: Mapping[str, Any], change: Callable[..., Any] = replace) -> Any:
    """Replace the named numbers of an algorithm; inside a run the new values are tensors.

    `change(record, **values)` is `dataclasses.replace`, which calls the constructor and its checks,
    or `change_unchecked`.
    """
    inner: dict[str, dict[str, Any]] = {}
    changes: dict[str, Any] = {}
    for name, value in values.items():
        head, _, rest = name.partition(".")
        if rest:
            inner.setdefault(head, {})[rest] = value
        else:
            changes[head] = value
    for head, deeper in inner.items():
        changes[head] = fill(getattr(algorithm, head), deeper, change)
    return change(algorithm, **changes) if changes else algorithm


def change_unchecked(record: Any, **values: Any) -> Any:
    """A copy of a frozen dataclass with other values, which its constructor does not see."""
    other = copy.copy(record)
    for name, value in values.items():
        object.__setattr__(other, name, value)
    return other


def floats(value: Any, path: tuple[str, ...] = ()) -> dict[str, float]:
    """All float fields of a dataclass and of its ingredients, by dotted name.

    A field declared as float counts even if its value is a whole number, such as 1. Fields marked
    `metadata={"shape": True}` determine shapes and are left out.
    """
    numbers: dict[str, float] = {}
    for f in fields(value):
        x = getattr(value, f.name)
        if is_dataclass(x) and not isinstance(x, type):
            numbers |= floats(x, (*path, f.name))
        elif not f.metadata.get("shape") and _is_float(x, type(value), f.name):
            numbers[".".join((*path, f.name))] = x
    return numbers


def _is_float(x: Any, record: type, name: str) -> bool:
    """Whether a field's value is a float, or a whole number in a field declared as float."""
    if isinstance(x, bool) or not isinstance(x, Integral):
        return isinstance(x, float)
    kinds = _list_kinds(checks.hints(record).get(name))
    return float in kinds and int not in kinds


def _list_kinds(annotation: Any) -> set[Any]:
    """The types that an annotation allows, without what `Annotated` adds."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _list_kinds(parts[0])
    if origin in (typing.Union, types.UnionType):
        return {kind for p in parts for kind in _list_kinds(p)}
    return {annotation}


class StackedProblem:
    """One problem for all seeds, and the tensors in which the seeds differ.

    The functions are the first seed's. Each seed has its own tensors and numbers of the feasible
    set. `own` has a leading axis S; `common` holds once what all seeds share in memory, such as
    their data.
    """

    def __init__(self, problems: Sequence[Problem], device: torch.device) -> None:
        padded = problems if len({p.sizes for p in problems}) == 1 else pad_rows(problems)
        self.form = padded[0].to(device)
        sizes = _differing_numbers(padded)
        self.radii = tuple(sizes[0])  # the numbers in which the feasible sets differ
        trees = list(zip([p.tensors() for p in padded], sizes, strict=True))
        own, common, self.join = partition_leaves(trees)
        self.own: Tensors = [x.to(device) for x in own]
        self.common: Tensors = [x.to(device) for x in common]

    def problem(self, own: Tensors, common: Tensors) -> Problem:
        """The problem of one seed, from its part of `own` and from `common`."""
        tensors, sizes = self.join(own, common)
        problem = self.form.with_tensors(tensors)
        return replace(problem, set=fill(problem.set, sizes)) if sizes else problem


def _differing_numbers(problems: Sequence[Problem]) -> list[dict[str, Shaped[Tensor, ""]]]:
    """The numbers, such as a radius, in which the seeds' feasible sets differ."""
    numbers = [floats(p.set) if p.set is not None else {} for p in problems]
    names = [k for k in numbers[0] if len({own[k] for own in numbers}) > 1]
    dtype = problems[0].w0.dtype
    return [{k: torch.tensor(own[k], dtype=dtype) for k in names} for own in numbers]


def check_same_shapes(problems: Sequence[Problem], seeds: Sequence[int]) -> None:
    """Raise ValueError unless the seeds' problems can be stacked after their rows are padded."""
    first = _shapes(problems[0])
    for p, seed in zip(problems, seeds, strict=True):
        own = _shapes(p)
        for name in first | own:
            fits, which = own.get(name) == first.get(name), f"{name} of {p.name} with seed {seed}"
            rule, remedy = f"be {first.get(name)} as with seed {seeds[0]}", "run the seeds singly"
            checks.require(fits, "run", which, rule, own.get(name), remedy)


def _shapes(problem: Problem) -> dict[str, Any]:
    """The properties that all seeds must share: names, counts, tensors' shapes, type of the set.

    Clients may have different numbers of rows.
    """
    names = [
        *("name", "num_objectives", "num_constraints", "num_clients", "client_weights"),
        *("sequential_clients", "whole_batches", "dropout"),
    ]
    alike = {name: getattr(problem, name) for name in names}
    if (own := problem.set) is not None:
        others = {f.name for f in fields(own)} - floats(own).keys()  # type: ignore[arg-type]
        alike["set"] = (type(own).__name__, {name: getattr(own, name) for name in others})
    tensors = problem.tensors()
    del tensors["rows"]
    for path, x in pytree.tree_flatten_with_path(tensors)[0]:
        name = pytree.keystr(path).removeprefix("['").replace("']", "", 1)
        alike[f"the shape of {name}"] = tuple(x.shape)
    return alike


def pad_rows(problems: Sequence[Problem]) -> list[Problem]:
    """Pad all clients to equally many rows, by repetition; `lengths` has their real sizes."""
    most = max(max(p.sizes) for p in problems)
    padded = []
    for p in problems:
        lengths = torch.tensor(p.sizes, device=p.rows.device)
        place = torch.arange(most, device=p.rows.device)
        places = torch.where(place < lengths.unsqueeze(1), place, 0)
        rows = p.row_numbers(torch.arange(p.num_clients, device=p.rows.device), places)
        padded.append(replace(p, rows=rows, lengths=lengths))
    return padded


def partition_leaves(trees: Sequence[Any]) -> tuple[Tensors, Tensors, Callable[..., Any]]:
    """Split trees of one structure into the stacked leaves that differ, and the shared leaves.

    A leaf is shared if it lies at one place in memory. The third result, `merge(own, shared)`,
    makes a tree from these two parts, or from one entry of the first part and the second part.
    """
    columns = list(zip(*(pytree.tree_leaves(tree) for tree in trees), strict=True))
    spec = pytree.tree_structure(trees[0])
    is_shared = [all(same_memory(x, xs[0]) for x in xs) for xs in columns]

    def merge(own: Tensors, shared: Tensors) -> Any:
        parts = (iter(own), iter(shared))
        return pytree.tree_unflatten([next(parts[which]) for which in is_shared], spec)

    split = list(zip(columns, is_shared, strict=True))
    own = [torch.stack(xs) for xs, shared in split if not shared]
    return own, [xs[0] for xs, shared in split if shared], merge


def same_memory(x: Shaped[Tensor, "..."], y: Shaped[Tensor, "..."]) -> bool:
    """Whether two tensors are the same numbers at the same place in memory."""
    if x is y:
        return True
    form = (x.shape, x.stride(), x.dtype, x.device) == (y.shape, y.stride(), y.dtype, y.device)
    return form and x.numel() > 0 and x.data_ptr() == y.data_ptr()
