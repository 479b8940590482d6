"""Stacking algorithms that differ in numbers only, so that a grid advances as one computation."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from numbers import Integral
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.core.algorithm import Algorithm

Path = tuple[str, ...]


def stack(
    algorithms: Sequence[Algorithm], like: Float[Tensor, "..."]
) -> tuple[Algorithm, dict[str, Float[Tensor, "G"]]]:
    """The common form of some algorithms and the numbers in which they differ.

    Returns the first algorithm as template and, per differing float field (`"lr"`,
    `"switch.beta"`), its values `[G]` with the dtype and device of `like`.

    Raises
    ------
    ValueError
        if two of them differ in more than floats.
    """
    leaves = [floats(a) for a in algorithms]
    template = algorithms[0]
    for a, numbers in zip(algorithms, leaves, strict=True):
        alike = type(a) is type(template) and numbers.keys() == leaves[0].keys()
        if not alike or fill(a, leaves[0]) != template:
            raise ValueError(
                "run: the algorithms of one grid may differ in float parameters only, got "
                f"{difference(template, a)}; run them one by one."
            )
    differing = [k for k in leaves[0] if len({numbers[k] for numbers in leaves}) > 1]
    return template, {
        k: torch.tensor([x[k] for x in leaves], dtype=like.dtype, device=like.device)
        for k in differing
    }


def difference(a: Algorithm, b: Algorithm) -> str:
    """In what two algorithms differ, floats aside: their types, or the first field."""
    if type(a) is not type(b):
        return f"{type(a).__name__} and {type(b).__name__}"
    for f in fields(a):  # type: ignore[arg-type]
        x, y = getattr(a, f.name), getattr(b, f.name)
        if x != y and not (isinstance(x, float) and isinstance(y, float)):
            return f"{f.name} {x!r:.60} and {y!r:.60}"
    return "equal ones"


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


def floats(value: Any, path: Path = ()) -> dict[str, float]:
    """All float fields of a dataclass by dotted name, those of its ingredients included.

    A field that is declared a float counts as one whatever number stands in it, 1 as much as 1.0.
    Fields marked `metadata={"shape": True}` decide shapes and stay what they are.
    """
    found: dict[str, float] = {}
    for f in fields(value):
        x = getattr(value, f.name)
        if is_dataclass(x) and not isinstance(x, type):
            found |= floats(x, (*path, f.name))
        elif not f.metadata.get("shape") and _is_float(x, type(value), f.name):
            found[".".join((*path, f.name))] = x
    return found


def _is_float(x: Any, record: type, name: str) -> bool:
    """Whether the value of a field is a float, or a whole number where a float is declared."""
    if isinstance(x, bool) or not isinstance(x, Integral):
        return isinstance(x, float)
    kinds = _kinds(_annotations(record).get(name))
    return float in kinds and int not in kinds


@cache
def _annotations(record: type) -> dict[str, Any]:
    """The annotations of a record; none if one of them names what cannot be found."""
    try:
        return checks.hints(record)
    except NameError:  # a class that is defined inside a function, say
        return {}


def _kinds(annotation: Any) -> set[Any]:
    """The types among which an annotation lets choose, without what `Annotated` adds."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _kinds(parts[0])
    if origin in (typing.Union, types.UnionType):
        return {kind for part in parts for kind in _kinds(part)}
    return {annotation}
