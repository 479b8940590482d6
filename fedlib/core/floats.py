"""The float fields of records such as algorithms and sets: read, compared, and replaced by name.

A name is that of a field (`"lr"`), or of an ingredient and its field (`"switch.beta"`).
"""

import copy
import dataclasses
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from numbers import Integral
from typing import Any

from fedlib import checks


def floats(record: Any, path: tuple[str, ...] = ()) -> dict[str, float]:
    """All float fields of a dataclass and of its ingredients, by dotted name.

    A field declared as float counts even if its value is a whole number, such as 1. Fields marked
    `metadata={"shape": True}` determine shapes and are left out.
    """
    numbers: dict[str, float] = {}
    for field in dataclasses.fields(record):
        x = getattr(record, field.name)
        if is_dataclass(x) and not isinstance(x, type):
            numbers.update(floats(x, (*path, field.name)))
        elif not field.metadata.get("shape") and is_float(x, type(record), field.name):
            dotted_name = ".".join((*path, field.name))
            numbers[dotted_name] = x
    return numbers


def is_float(x: Any, record: type, name: str) -> bool:
    """Whether a field's value is a float, or a whole number in a field declared as float."""
    if isinstance(x, bool) or not isinstance(x, Integral):
        return isinstance(x, float)
    allowed = _allowed_types(checks.hints(record).get(name))
    return float in allowed and int not in allowed


def _allowed_types(annotation: Any) -> set[Any]:
    """The types that an annotation allows, without what `Annotated` adds."""
    origin = typing.get_origin(annotation)
    members = typing.get_args(annotation)
    if origin is typing.Annotated:
        return _allowed_types(members[0])
    if origin in (typing.Union, types.UnionType):
        return set[Any]().union(*map(_allowed_types, members))
    return {annotation}


def differing_floats(points: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    """The names whose numbers are not equal in all points, with the numbers."""
    differing = {}
    for name in points[0]:
        values = [point[name] for point in points]
        if len(set(values)) > 1:
            differing[name] = values
    return differing


def fill(
    record: Any,
    values: Mapping[str, Any],
    change: Callable[..., Any] = dataclasses.replace,
) -> Any:
    """Replace the named numbers of a record; inside a run the new values are tensors.

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
        changes[ingredient] = fill(getattr(record, ingredient), inner_values, change)
    return change(record, **changes) if changes else record


def change_unchecked(record: Any, **values: Any) -> Any:
    """A copy of a frozen dataclass with other values, which its constructor does not see."""
    changed = copy.copy(record)
    for name, value in values.items():
        object.__setattr__(changed, name, value)
    return changed
