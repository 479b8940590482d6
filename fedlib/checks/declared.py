"""What a field or an argument takes, declared once, in its annotation.

A record of hyperparameters says `lr: Positive`, `local_steps: Count`, `switch: Switch`, and its
`__post_init__` calls `checks.fields(self)`; a function calls `checks.arguments(function, locals())`
in its first line. What an annotation asks for:

- `Annotated[X, Takes(check)]` (`Positive`, `Count`, ...): what the check says;
- `bool`, `int`, `float`, `str`: a flag, a whole number, a finite number, a text, and nothing that
  Python would take for one; a `Literal`: one of its values;
- a class or a runtime protocol: an instance, not the class itself;
- `Float[Tensor, "N d"]` and the like: a tensor of such entries and axes;
- `X | Y`: one of them; `tuple[X, ...]`, `Sequence[X]`: every entry; a
  `Callable`: something to call.

Annotations that say something else are not checked here. A tensor passes where a number is meant,
because the run loop stacks hyperparameters that were checked when each record was made.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from numbers import Integral
from typing import Annotated, Any, Literal, Union

from jaxtyping import AbstractArray
from torch import Tensor

from fedlib.checks import tensors, values

Check = Callable[[str, str, object], None]


@dataclass(frozen=True)
class Takes:
    """The check of a field, in its annotation: `check(who, name, value)` raises one sentence."""

    check: Check


def _threshold(who: str, name: str, value: object) -> None:
    if isinstance(value, Tensor) or value != math.inf:
        values.number(who, name, value)


Number = Annotated[float, Takes(values.number)]
Positive = Annotated[float, Takes(values.positive)]
Nonnegative = Annotated[float, Takes(values.nonnegative)]
#: In (0, 1].
Share = Annotated[float, Takes(partial(values.in_range, low=0, high=1, open_low=True))]
#: In [0, 1].
Fraction = Annotated[float, Takes(partial(values.in_range, low=0, high=1))]
#: A finite number, or infinity for "never".
Threshold = Annotated[float, Takes(_threshold)]
#: 1, 2, ...
Count = Annotated[int, Takes(values.count)]
#: 0, 1, 2, ...
Whole = Annotated[int, Takes(partial(values.count, low=0))]


def fields(record: Any) -> None:
    """Check all fields of a dataclass against their annotations.

    Raises
    ------
    TypeError, ValueError
        one sentence that names the class and the first field that does not fit.
    """
    kind: Any = type(record)
    for name, annotation in hints(kind).items():
        if hasattr(record, name):
            value(kind.__name__, name, getattr(record, name), annotation)


def arguments(function: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Check what a function was given, `locals()` in its first line, against its annotations.

    Raises
    ------
    TypeError, ValueError
        one sentence that names the function and the first argument that does not fit.
    """
    for name, annotation in hints(function).items():
        if name in given and name != "return":
            value(function.__name__, name, given[name], annotation)


@cache
def hints(thing: Any) -> dict[str, Any]:
    """The annotations of a class or a function, evaluated, with what `Annotated` adds."""
    return typing.get_type_hints(thing, include_extras=True)


def value(who: str, name: str, given: object, annotation: Any) -> None:
    """Check one value against an annotation; raises as `fields` does."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        for check in parts[1:]:
            if isinstance(check, Takes):
                check.check(who, name, given)
    elif origin in (Union, types.UnionType):
        _any_of(who, name, given, parts)
    elif origin is Literal:
        values.one_of(who, name, given, parts)
    elif isinstance(origin, type) and issubclass(origin, Callable):  # type: ignore[arg-type]
        if not callable(given):
            raise TypeError(values.sentence(who, name, "be a function", given))
    elif isinstance(origin, type) and issubclass(origin, Collection):
        _entries(who, name, given, origin, parts)
    elif annotation in PLAIN:
        PLAIN[annotation](who, name, given)
    elif isinstance(annotation, type) and issubclass(annotation, AbstractArray):
        tensors.shaped(who, name, given, annotation)
    elif _can_be_told(annotation):
        values.instance(who, name, given, annotation)


def _any_of(who: str, name: str, given: object, parts: Sequence[Any]) -> None:
    """One of several annotations; None is meant where it is among them."""
    if type(None) in parts and given is None:
        return
    kinds = [part for part in parts if part is not type(None)]
    errors: list[Exception] = []
    for kind in kinds:
        try:
            value(who, name, given, kind)
        except (TypeError, ValueError) as error:
            errors.append(error)
        else:
            return
    # a value of the right kind that is out of range says more than one of another kind
    raise next((e for e in errors if isinstance(e, ValueError)), errors[0])


def _entries(who: str, name: str, given: Any, kind: Any, parts: tuple[Any, ...]) -> None:
    """The kind of a collection, and each of its entries."""
    if not isinstance(given, kind) or isinstance(given, (str, bytes)):
        words = {tuple: "a tuple", list: "a list", set: "a set"}.get(kind, "a list or a tuple")
        words = "a mapping" if issubclass(kind, Mapping) else words
        raise TypeError(values.sentence(who, name, f"be {words}", given))
    if issubclass(kind, Mapping):
        return
    entries = [*given]
    fixed = kind is tuple and Ellipsis not in parts
    if fixed and len(entries) != len(parts):
        raise ValueError(values.sentence(who, name, f"have {len(parts)} entries", given))
    each = parts if fixed else parts[:1] * len(entries)
    for place, (entry, part) in enumerate(zip(entries, each, strict=True)):
        value(who, f"{name}[{place}]", entry, part)


def _can_be_told(annotation: Any) -> bool:
    """Whether an instance of this class can be told from other things."""
    if not isinstance(annotation, type) or annotation in (object, type(None)):
        return False
    protocol = getattr(annotation, "_is_protocol", False)
    return not protocol or getattr(annotation, "_is_runtime_protocol", False)


def _text(who: str, name: str, given: object) -> None:
    if not isinstance(given, str):
        raise TypeError(values.sentence(who, name, "be a text", given))


def _whole(who: str, name: str, given: object) -> None:
    if isinstance(given, Tensor):
        return
    if isinstance(given, bool) or not isinstance(given, Integral):
        raise TypeError(values.sentence(who, name, "be a whole number", given))


PLAIN: dict[Any, Check] = {
    bool: values.flag,
    int: _whole,
    float: values.number,
    str: _text,
}
