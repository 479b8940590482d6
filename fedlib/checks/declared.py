"""What a field or an argument takes, declared once, in its annotation.

A record of hyperparameters says `lr: Positive`, `local_steps: Count`, `switch: Switch`, and its
`__post_init__` calls `checks.fields(self)`; a function calls `checks.arguments(function, locals())`
in its first line. What an annotation asks for:

- `bool`, `int`, `float`, `str`: a flag, a whole number, a finite number, a text, and nothing that
  Python would take for one; a `Literal`: one of its values;
- a class: an instance, not the class itself; a protocol: an instance with its methods, which take
  what the protocol's take; a tensor of jaxtyping's: its dtype and shape;
- `X | Y`: one of them; `tuple[X, ...]`, `Sequence[X]`, `Mapping[K, V]`: every entry; a `Callable`:
  something to call;
- `Annotated[X, Takes(check)]` (`Positive`, `Count`, ...): an X, and what the check says.

Annotations that say something else are not checked here. A 0-d tensor passes where a float is
meant, because the run loop stacks hyperparameters that were checked when each record was made.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import sys
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache, partial
from numbers import Integral, Real
from typing import Annotated, Any

import numpy as np
from torch import Tensor

from fedlib.checks import values
from fedlib.checks.annotations import Check, Takes, kind_of


def _threshold(who: str, name: str, value: object) -> None:
    if isinstance(value, (bool, Tensor)) or value != math.inf:
        values.number(who, name, value)


def between(
    low: float, high: float, *, open_low: bool = False, open_high: bool = False, note: str = ""
) -> Takes:
    """Takes a number between two ends, as `in_range` does."""
    ends = {"low": low, "high": high, "open_low": open_low, "open_high": open_high}
    return Takes(partial(values.in_range, **ends, note=note))  # type: ignore[arg-type]


def least(low: float) -> Takes:
    """Takes a number not below `low`."""
    return Takes(partial(values.at_least, low=low))


def counted(low: int, high: int | None = None) -> Takes:
    """Takes a whole number not below `low`, nor above `high`."""
    return Takes(partial(values.count, low=low, high=high))


def _some(who: str, name: str, value: Any) -> None:
    if len(value) == 0:
        raise ValueError(values.sentence(who, name, "not be empty", value))


Number = Annotated[float, Takes(values.number)]
Positive = Annotated[float, Takes(values.positive)]
Nonnegative = Annotated[float, Takes(values.nonnegative)]
#: In (0, 1].
Share = Annotated[float, between(0, 1, open_low=True)]
#: In [0, 1].
Fraction = Annotated[float, between(0, 1)]
#: A finite number, or infinity for "never".
Threshold = Annotated[float, Takes(_threshold)]
#: 1, 2, ...
Count = Annotated[int, Takes(values.count)]
#: 0, 1, 2, ...
Whole = Annotated[int, counted(0)]
#: Takes what is not empty, beside another annotation.
SOME = Takes(_some)


def fields(record: Any) -> None:
    """Check all fields of a dataclass against their annotations.

    Numbers of numpy's, also in tuples, become Python's: stored configurations know no others.

    Raises
    ------
    TypeError, ValueError
        one sentence that names the class and the first field that does not fit.
    """
    kind: Any = type(record)
    for name, check in _fields(kind):
        given = getattr(record, name)
        check(kind.__name__, name, given)
        own = _plain(given)
        if own is not given:
            object.__setattr__(record, name, own)


def arguments(function: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Check what a function was given, `locals()` in its first line, against its annotations.

    Raises
    ------
    TypeError, ValueError
        one sentence that names the function and the first argument that does not fit.
    """
    who = function.__qualname__.rpartition("<locals>.")[2].removesuffix(".__call__")
    for name, check in _arguments(function):
        if name in given:
            check(who, name, given[name])


def value(who: str, name: str, given: object, annotation: Any) -> None:
    """Check one value against an annotation; raises as `fields` does."""
    kind_of(annotation).check(who, name, given)


@cache
def hints(thing: Any) -> dict[str, Any]:
    """The annotations of a class or a function, evaluated, with what `Annotated` adds.

    `Any` for one that names what is not known where it stands, such as a class made in a function.
    """
    try:
        return typing.get_type_hints(thing, include_extras=True)
    except NameError:
        owners = reversed(thing.__mro__) if isinstance(thing, type) else (inspect.unwrap(thing),)
        return {
            name: _evaluated(text, vars(sys.modules[owner.__module__]))
            for owner in owners
            for name, text in inspect.get_annotations(owner).items()
        }


def _evaluated(annotation: Any, known: dict[str, Any]) -> Any:
    """An annotation that was written as a text; `Any` where a name in it is not known."""
    stand_in = type("_", (), {"__annotations__": {"it": annotation}})
    try:
        return typing.get_type_hints(stand_in, known, include_extras=True)["it"]
    except NameError:
        return Any


@cache
def _fields(kind: Any) -> tuple[tuple[str, Check], ...]:
    """The check of every field that a class is made with."""
    known = hints(kind)
    made_with = [f.name for f in dataclasses.fields(kind) if f.init]
    return tuple((name, kind_of(known[name]).check) for name in made_with)


@cache
def _arguments(function: Callable[..., Any]) -> tuple[tuple[str, Check], ...]:
    """The check of every argument that is annotated."""
    known = hints(function)
    parameters = inspect.signature(function).parameters.items()
    given = {name: _gathered(p, known[name]) for name, p in parameters if name in known}
    return tuple((name, kind_of(annotation).check) for name, annotation in given.items())


def _gathered(parameter: inspect.Parameter, annotation: Any) -> Any:
    """What a function finds under an argument's name: of `*these: X` a tuple of X."""
    if parameter.kind is parameter.VAR_POSITIONAL:
        return types.GenericAlias(tuple, (annotation, ...))
    if parameter.kind is parameter.VAR_KEYWORD:
        return types.GenericAlias(dict, (str, annotation))
    return annotation


def _plain(given: Any) -> Any:
    """The same with Python's numbers in place of others."""
    if type(given) in (bool, int, float, str):
        return given
    if isinstance(given, tuple):
        own = [_plain(entry) for entry in given]
        same = all(a is b for a, b in zip(own, given, strict=True))
        return given if same or type(given) is not tuple else tuple(own)
    if isinstance(given, np.bool_):
        return bool(given)
    if isinstance(given, Real) and not isinstance(given, (int, float)):
        return int(given) if isinstance(given, Integral) else float(given)
    return float(given) if isinstance(given, np.floating) else given
