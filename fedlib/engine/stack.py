"""Runs as one: algorithms that differ in numbers, problems that differ in tensors."""

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

    By the name of a float field (`"lr"`, `"switch.beta"`), with the dtype and device of `like`.

    Raises ValueError if two of them differ in more than floats.
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
    """In what two algorithms differ, floats aside: their types, or the first field."""
    if type(a) is not type(b):
        return f"{type(a).__name__} and {type(b).__name__}"
    named = [(f.name, getattr(a, f.name), getattr(b, f.name)) for f in fields(a)]  # type: ignore[arg-type]
    other = [(n, x, y) for n, x, y in named if x != y and {type(x), type(y)} != {float}]
    return "{} {!r:.60} and {!r:.60}".format(*other[0]) if other else "equal ones"


def fill(algorithm: Any, values: Mapping[str, Any]) -> Any:
    """The algorithm with the named numbers replaced (by tensors, inside the run)."""
    inner: dict[str, dict[str, Any]] = {}
    changes: dict[str, Any] = {}
    for name, value in values.items():
        head, _, rest = name.partition(".")
        if rest:
            inner.setdefault(head, {})[rest] = value
        else:
            changes[head] = value
    for head, deeper in inner.items():
        changes[head] = fill(getattr(algorithm, head), deeper)
    return replace(algorithm, **changes) if changes else algorithm


def floats(value: Any, path: tuple[str, ...] = ()) -> dict[str, float]:
    """All float fields of a dataclass by dotted name, those of its ingredients included.

    A field that is declared a float counts as one whatever number stands in it, 1 as much as 1.0.
    Fields marked `metadata={"shape": True}` decide shapes and stay what they are.
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
    """Whether the value of a field is a float, or a whole number where a float is declared."""
    if isinstance(x, bool) or not isinstance(x, Integral):
        return isinstance(x, float)
    kinds = _list_kinds(checks.hints(record).get(name))
    return float in kinds and int not in kinds


def _list_kinds(annotation: Any) -> set[Any]:
    """The types among which an annotation lets choose, without what `Annotated` adds."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _list_kinds(parts[0])
    if origin in (typing.Union, types.UnionType):
        return {kind for p in parts for kind in _list_kinds(p)}
    return {annotation}


class StackedProblem:
    """One form of problem for all seeds, and the tensors in which they differ.

    Functions are those of the first seed; tensors, and the numbers of the feasible set, are each
    seed's own. `own` has a leading axis S; `common` is what all seeds have at one place in memory,
    such as their data, once.
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
        """The problem of one seed, of its part of `own` and of `common`."""
        tensors, sizes = self.join(own, common)
        problem = self.form.with_tensors(tensors)
        return replace(problem, set=fill(problem.set, sizes)) if sizes else problem


def _differing_numbers(problems: Sequence[Problem]) -> list[dict[str, Shaped[Tensor, ""]]]:
    """The numbers of each seed's feasible set in which these differ, such as a radius."""
    numbers = [floats(p.set) if p.set is not None else {} for p in problems]
    names = [k for k in numbers[0] if len({own[k] for own in numbers}) > 1]
    dtype = problems[0].w0.dtype
    return [{k: torch.tensor(own[k], dtype=dtype) for k in names} for own in numbers]


def check_same_shapes(problems: Sequence[Problem], seeds: Sequence[int]) -> None:
    """Raise ValueError unless the seeds' problems can be stacked, once their rows are padded."""
    first = _shapes(problems[0])
    for p, seed in zip(problems, seeds, strict=True):
        own = _shapes(p)
        for name in first | own:
            fits, which = own.get(name) == first.get(name), f"{name} of {p.name} with seed {seed}"
            rule, remedy = f"be {first.get(name)} as with seed {seeds[0]}", "run the seeds singly"
            checks.require(fits, "run", which, rule, own.get(name), remedy)


def _shapes(problem: Problem) -> dict[str, Any]:
    """The properties that all seeds must share: names, counts, tensors' shapes, the set's kind.

    The number of rows a client is not among them.
    """
    names = [
        *("name", "num_objectives", "num_constraints", "num_clients", "client_weights"),
        *("sequential_clients", "whole_batches"),
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
    """The problems with equally many rows a client, by repetition, and `lengths` that say so."""
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
    """Split trees of one structure into leaves that differ, stacked, and leaves that all share.

    A leaf is shared if it lies at one place in memory. The third result, `merge(own, shared)`,
    makes a tree of those two parts, or of one entry of the first and the second.
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
    """Whether two tensors are the same numbers at the same place."""
    if x is y:
        return True
    form = (x.shape, x.stride(), x.dtype, x.device) == (y.shape, y.stride(), y.dtype, y.device)
    return form and x.numel() > 0 and x.data_ptr() == y.data_ptr()
