"""Argument checks that annotations declare; every error message is one sentence of this form.

    FedSGM: participants must lie in 1..20 (the problem's clients), got 25.

A record of hyperparameters derives from `Checked` and annotates its fields, as in `lr: Positive`. A
function calls `checks.arguments(function, locals())` in its first line. The annotation decides:

- `bool`, `int`, `float`, `str`, `Literal`: the value has this type; nothing is converted;
- a class: the value is an instance of it; a protocol: the value has its methods, with arguments of
  the same names; a jaxtyping tensor: the value has its dtype and number of axes;
- `X | Y`: the value fits one of them; `tuple[X, ...]`, `Sequence[X]`, `Mapping[K, V]`: every entry
  fits;
- `Annotated[X, Takes(check)]` (`Positive`, `Count`, ...): the value is an X and passes the check.

Other annotations are not checked; `require` states what annotations cannot. A 0-d tensor passes as
a number: the run loop stacks hyperparameters that were checked before, and code under `vmap` cannot
branch on a tensor.
"""

import dataclasses
import inspect
import math
import types
import typing
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from contextlib import suppress
from functools import cache, partial
from numbers import Integral, Real
from typing import Annotated, Any, Literal, NamedTuple, Union

import numpy as np
import torch
from jaxtyping import AbstractArray, Float, Shaped
from torch import Tensor


def sentence(who: str, name: str, rule: str, value: object, remedy: str = "") -> str:
    """The error message `WHO: NAME must RULE, got VALUE; REMEDY`, with its full stop."""
    return f"{who}: {name} must {rule}, got {short(value)}{f'; {remedy}' if remedy else ''}."


def short(value: object) -> str:
    """A value in at most 60 characters; a tensor with axes is shown by its dtype and shape."""
    if isinstance(value, Tensor) and value.ndim:
        return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    text = repr(value).replace("\n", " ")
    return text if len(text) <= 60 else f"{text[:57]}..."


def require(fits: object, who: str, name: str, rule: str, value: object, remedy: str = "") -> None:
    """Raise ValueError with a `sentence` unless the value fits."""
    if not fits:
        raise ValueError(sentence(who, name, rule, value, remedy))


#: What error messages call the most frequent ranges without an upper end.
HALF_LINES = {
    (-math.inf, False): "be a finite number",
    (0, True): "be positive",
    (0, False): "be nonnegative",
}


def in_range(
    who: str,
    name: str,
    value: object,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> None:
    """Require a finite number in an interval, which includes its ends unless they are open.

    Raises TypeError for a value that is not a number, ValueError for a number out of range.
    """
    if isinstance(value, Tensor) and value.ndim == 0 and value.dtype != torch.bool:
        return
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(sentence(who, name, "be a number", value))
    try:
        x = float(value)
    except OverflowError:  # an integer beyond all floats
        x = math.inf
    closed = not ((open_low and x == low) or (open_high and x == high))
    rule = f"lie in {'(' if open_low else '['}{low:g}, {high:g}{')' if open_high else ']'}"
    if high == math.inf:
        rule = HALF_LINES.get((low, open_low), rule)
    require(closed and math.isfinite(x) and low <= x <= high, who, name, rule, value)


#: Require a finite number, a positive one, a nonnegative one; they raise the errors of `in_range`.
number = in_range
positive = partial(in_range, low=0, open_low=True)
nonnegative = partial(in_range, low=0)


def count(
    who: str, name: str, value: object, low: int = 1, high: int | None = None, note: str = ""
) -> None:
    """Require a whole number from `low` on, up to `high` if given; `note` explains the range.

    Raises TypeError for a value that is not an integer (such as a bool, a tensor or the float 3.0),
    ValueError for an integer out of range.
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(sentence(who, name, "be a whole number", value))
    rule = f"be at least {low}" if high is None else f"lie in {low}..{high}"
    fits = low <= int(value) and (high is None or int(value) <= high)
    require(fits, who, name, f"{rule} ({note})" if note else rule, value)


def one_of(who: str, name: str, value: object, options: Collection[object]) -> None:
    """Require one of the options, equal and of the same type; raises ValueError otherwise."""
    fits = any(type(value) is type(option) and value == option for option in options)
    require(fits, who, name, f"be one of {', '.join(map(repr, options))}", value)


def finite(who: str, name: str, tensor: Shaped[Tensor, "..."], remedy: str = "") -> None:
    """Require a tensor without NaN and infinity; the ValueError says how many entries are bad."""
    if bad := int((~torch.isfinite(tensor)).sum()):
        got = f"{bad} of {tensor.numel()} entries NaN or infinite{f'; {remedy}' if remedy else ''}"
        raise ValueError(f"{who}: {name} must be finite, got {got}.")


def labelled(who: str, X: Shaped[Tensor, "R ..."], y: Shaped[Tensor, "R"]) -> None:
    """Require features without NaN and infinity, and a label for each of their rows."""
    if X.is_floating_point():
        finite(who, "X", X, "drop or impute these rows")
    require(len(X) == len(y), who, "y", f"have a label for each of the {len(X)} rows of X", len(y))


def labels01(who: str, name: str, labels: Shaped[Tensor, "..."], remedy: str = "") -> None:
    """Require labels in {0, 1} of any dtype; the ValueError shows the first values."""
    values = sorted(set(labels.flatten().tolist()))
    require({*values} <= {0, 1}, who, name, "be 0 or 1", values[:6], remedy)


def vector(who: str, name: str, given: Any, dim: int | None = None) -> None:
    """Require a nonempty vector of floats, of `dim` entries if given; its values are not read.

    Shapes are known under `vmap` and while a round is recorded, so methods may check them.
    """
    value(who, name, given, Float[Tensor, "d"])
    fits = len(given) and dim in (None, len(given))
    require(fits, who, name, f"be a vector of floats of {dim or 'some'} entries", given)


def matrix(who: str, name: str, given: Any) -> None:
    """Require a nonempty matrix of floats; its values are not read."""
    value(who, name, given, Float[Tensor, "m d"])
    require(given.numel(), who, name, "not be empty", given)


class Takes(NamedTuple):
    """A check inside a field's annotation: `check(who, name, value)` raises one sentence.

    `name` is the annotation's name on the reference pages, if it has one.
    """

    check: Callable[[str, str, Any], None]
    name: str = ""

    def __repr__(self) -> str:
        return self.name or "Takes"


def between(low: float, high: float = math.inf, *, name: str = "", **ends: bool) -> Takes:
    """Accept a number between two ends, as `in_range` does; `ends` are `open_low`, `open_high`."""
    return Takes(partial(in_range, low=low, high=high, **ends), name)  # type: ignore[arg-type]


def counted(low: int, high: int | None = None, name: str = "") -> Takes:
    """Accept a whole number that is at least `low` and at most `high`."""
    return Takes(partial(count, low=low, high=high), name)


def _threshold(who: str, name: str, value: object) -> None:
    if isinstance(value, (bool, Tensor)) or value != math.inf:
        number(who, name, value)


def _bound(who: str, name: str, value: object) -> None:
    if isinstance(value, (bool, Tensor)) or value not in (math.inf, -math.inf):
        number(who, name, value)


Number = Annotated[float, Takes(number, "Number")]
Positive = Annotated[float, Takes(positive, "Positive")]
Nonnegative = Annotated[float, Takes(nonnegative, "Nonnegative")]
#: A number in (0, 1].
Share = Annotated[float, between(0, 1, open_low=True, name="Share")]
#: A number in [0, 1].
Fraction = Annotated[float, between(0, 1, name="Fraction")]
#: A finite number, or infinity for "never".
Threshold = Annotated[float, Takes(_threshold, "Threshold")]
#: A number, or minus or plus infinity for "no bound".
Bound = Annotated[float, Takes(_bound, "Bound")]
#: A positive whole number.
Count = Annotated[int, Takes(count, "Count")]
#: A nonnegative whole number.
Whole = Annotated[int, counted(0, name="Whole")]
#: A whole number from which `seeded` can make a seed: it takes twice the number, plus one.
Seed = Annotated[int, counted(0, 2**63 - 1, name="Seed")]
#: A generator on the CPU; torch raises an error where another device's generator is used.
Rng = torch.Generator
#: torch.float32 or torch.float64.
FloatType = Annotated[
    torch.dtype, Takes(partial(one_of, options=(torch.float32, torch.float64)), "FloatType")
]
#: Used beside another annotation: requires that the value is not empty.
SOME = Takes(lambda who, name, x: require(len(x), who, name, "not be empty", x))


def fields(record: Any) -> None:
    """Check all fields of a dataclass against their annotations.

    numpy's numbers, also in tuples, become Python's, because stored configurations hold only these.
    Raises TypeError or ValueError that names the class and the first field that does not fit.
    """
    kind: Any = type(record)
    for name in (f.name for f in dataclasses.fields(kind) if f.init):
        given = getattr(record, name)
        value(kind.__name__, name, given, hints(kind)[name])
        object.__setattr__(record, name, _of_python(given))


class Checked:
    """Base of dataclasses whose `fields` are checked when an object is made."""

    __post_init__ = fields


def _of_python(given: Any) -> Any:
    """Replace all numbers by numbers of Python's types."""
    if type(given) is tuple:
        return tuple(map(_of_python, given))
    if isinstance(given, np.generic):
        return given.item()
    other = isinstance(given, Real) and not isinstance(given, (int, float))
    return float(given) if other else given


def arguments(function: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Check a function's arguments against its annotations; call it with `locals()` first.

    Raises TypeError or ValueError that names the function and the first argument that does not fit.
    """
    who = function.__qualname__.rpartition("<locals>.")[2].removesuffix(".__call__")
    for name, annotation in hints(function).items():
        if name in given:
            value(who, name, given[name], annotation)


@cache
def hints(thing: Any) -> dict[str, Any]:
    """The evaluated annotations of a class or a function; unknown names become `Any`.

    If an annotation takes an attribute of an unknown name, all annotations become `Any`.
    """
    unknown: dict[str, Any] = {}
    while True:
        try:
            return typing.get_type_hints(thing, localns=unknown, include_extras=True)
        except NameError as error:
            unknown[str(error.name)] = Any
        except AttributeError:  # an annotation takes an attribute of an unknown name
            return defaultdict(lambda: Any)


#: Plain types: their name in an error message, and the test that a value passes.
PLAIN: dict[Any, tuple[str, Callable[[Any], bool]]] = {
    bool: ("True or False", lambda x: isinstance(x, (bool, np.bool_))),
    int: ("a whole number", lambda x: isinstance(x, Integral) and not isinstance(x, bool)),
    float: ("a number", lambda x: isinstance(x, Real)),
    str: ("a text", lambda x: isinstance(x, str)),
    type(None): ("None", lambda x: x is None),
    type: ("a class", lambda x: isinstance(x, type)),
    Callable: ("a function", callable),
}
COLLECTIONS = (tuple, list, set, frozenset, dict, Mapping, Sequence, Set)
ENTRIES = {"Float": "floats", "Int": "whole numbers", "Bool": "truth values"}


def value(who: str, name: str, given: Any, annotation: Any) -> None:
    """Check one value against an annotation; raises the errors of `fields`."""
    kind, parts = typing.get_origin(annotation) or annotation, typing.get_args(annotation)
    if kind is Annotated:
        marks = [part for part in parts[1:] if isinstance(part, Takes)]
        if not marks or parts[0] not in (int, float):  # the marks of numbers check the type, too
            value(who, name, given, parts[0])
        for mark in marks:
            mark.check(who, name, given)
    elif kind in (Union, types.UnionType):
        _any_of(who, name, given, annotation)
    elif kind is Literal:
        one_of(who, name, given, parts)
    elif kind is float:
        number(who, name, given)
    elif kind in COLLECTIONS:
        _collection(who, name, given, annotation)
    elif kind in PLAIN:
        if not PLAIN[kind][1](given) or (kind is type and parts and not issubclass(given, parts)):
            raise TypeError(sentence(who, name, f"be {_words(annotation)}", given))
    elif isinstance(kind, type) and kind not in (object, Any) and not typing.is_typeddict(kind):
        _instance(who, name, given, kind)


def _words(annotation: Any) -> str:
    """An annotation in words, such as "a tuple", "a FedSGM", "an Algorithm"."""
    kind, parts = typing.get_origin(annotation) or annotation, typing.get_args(annotation)
    if kind is Annotated:
        return _words(parts[0])
    if kind in (Union, types.UnionType):
        return " or ".join(map(_words, parts))
    if kind is Literal:
        return f"one of {', '.join(map(repr, parts))}"
    if kind in PLAIN:
        return PLAIN[kind][0] + (f" of {parts[0].__name__}" if kind is type and parts else "")
    if issubclass(kind, AbstractArray):
        what = ENTRIES.get(kind.__name__.partition("[")[0], "numbers")
        return f"a tensor of {what} of shape [{', '.join(kind.dim_str.split())}]"
    return f"{'an' if kind.__name__[0] in 'AEI' else 'a'} {kind.__name__}"


def _any_of(who: str, name: str, given: object, annotation: Any) -> None:
    """Require one of several types; a value out of range is reported before a wrong type."""
    error: ValueError | None = None
    for part in typing.get_args(annotation):
        try:
            return value(who, name, given, part)
        except TypeError:
            continue
        except ValueError as wrong:
            error = error or (None if typing.get_origin(part) is Literal else wrong)
    raise error or TypeError(sentence(who, name, f"be {_words(annotation)}", given))


def _collection(who: str, name: str, given: Any, annotation: Any) -> None:
    """Check the type of a collection and of each entry; in a mapping, of each key and value."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if not isinstance(given, origin or annotation) or isinstance(given, (str, bytes)):
        raise TypeError(sentence(who, name, f"be {_words(annotation)}", given))
    if origin is None:
        return
    if isinstance(given, Mapping):
        for entry_key, entry in given.items():
            value(who, f"every key of {name}", entry_key, parts[0])
            value(who, f"{name}[{entry_key!r}]", entry, parts[1])
        return
    each = parts if origin is tuple and Ellipsis not in parts else parts[:1] * len(given)
    require(len(given) == len(each), who, name, f"have {len(each)} entries", given)
    for place, (entry, part) in enumerate(zip(given, each, strict=True)):
        value(who, f"{name}[{place}]", entry, part)


def _instance(who: str, name: str, given: Any, kind: Any) -> None:
    """Require an instance of a class, an object that fits a protocol, or a jaxtyping tensor."""
    protocol, a_class = getattr(kind, "_is_protocol", False), isinstance(given, type)
    lacking = _lacking(given.__class__, kind) if protocol else []
    if not a_class and (not lacking if protocol else isinstance(given, kind)):
        return
    remedy = f"it lacks {', '.join(lacking[:3])}" if lacking else ""
    if a_class:
        remedy = f"write {given.__name__}(...)" if protocol or issubclass(given, kind) else ""
    tensor = isinstance(given, Tensor) and issubclass(kind, AbstractArray)
    error = ValueError if tensor else TypeError
    raise error(sentence(who, name, f"be {_words(kind)}", given, remedy))


@cache
def _lacking(kind: Any, protocol: Any) -> list[str]:
    """The methods of a runtime protocol that a class lacks or defines with other arguments."""
    bases = [b for b in protocol.__mro__ if getattr(b, "_is_runtime_protocol", False)]
    names = dict.fromkeys(n for b in bases for n, x in vars(b).items() if inspect.isfunction(x))
    wanted = [n for n in names if n == "__call__" or not n.startswith("_")]
    lacking = []
    for name in wanted:
        taken = [*inspect.signature(getattr(protocol, name)).parameters][1:]
        with suppress(AttributeError, ValueError, TypeError):  # missing, no function, or from C
            own = inspect.signature(getattr(kind, name))
            own.bind(None, *taken)
            # a protocol of `__call__` alone is told from others by its argument names only
            if wanted != ["__call__"] or [*own.parameters][1:] == taken:
                continue
        lacking.append(f"{name}({', '.join(taken)})")
    return lacking
