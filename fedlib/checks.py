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
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from functools import cache, partial
from numbers import Integral, Real
from typing import Annotated, Any, Literal, NamedTuple, Union

import numpy as np
import torch
from jaxtyping import AbstractArray, Float, Shaped
from torch import Tensor


def sentence(
    subject: str,
    name: str,
    rule: str,
    value: object,
    remedy: str = "",
) -> str:
    """The error message `WHO: NAME must RULE, got VALUE; REMEDY`, with its full stop."""
    ending = ""
    if remedy:
        ending = f"; {remedy}"
    return f"{subject}: {name} must {rule}, got {short(value)}{ending}."


def short(value: object) -> str:
    """A value in at most 60 characters; a tensor with axes is shown by its dtype and shape.

    A number of numpy is shown as one of Python.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Tensor) and value.ndim:
        return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    text = repr(value).replace("\n", " ")
    if len(text) <= 60:
        return text
    return f"{text[:57]}..."


def require(
    fits: object,
    subject: str,
    name: str,
    rule: str,
    value: object,
    remedy: str = "",
) -> None:
    """Raise ValueError with a `sentence` unless the value fits."""
    if not fits:
        raise ValueError(sentence(subject, name, rule, value, remedy))


#: What error messages call the most frequent ranges without an upper end.
HALF_LINES = {
    (-math.inf, False): "be a finite number",
    (0, True): "be positive",
    (0, False): "be nonnegative",
}


def in_range(
    subject: str,
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
        raise TypeError(sentence(subject, name, "be a number", value))
    try:
        x = float(value)
    except OverflowError:  # an integer beyond all floats
        x = math.inf
    above = low < x if open_low else low <= x
    below = x < high if open_high else x <= high
    left = "["
    if open_low:
        left = "("
    right = "]"
    if open_high:
        right = ")"
    rule = f"lie in {left}{low:g}, {high:g}{right}"
    if high == math.inf:
        rule = HALF_LINES.get((low, open_low), rule)
        if low > -math.inf and not math.isfinite(x):
            rule += " and finite"
    require(math.isfinite(x) and above and below, subject, name, rule, value)


#: Require a finite number, a positive one, a nonnegative one; they raise the errors of `in_range`.
number = in_range
positive = partial(in_range, low=0, open_low=True)
nonnegative = partial(in_range, low=0)


def count(
    subject: str,
    name: str,
    value: object,
    low: int = 1,
    high: int | None = None,
    note: str = "",
) -> None:
    """Require a whole number from `low` on, up to `high` if given; `note` explains the range.

    Raises TypeError for a value that is not an integer (such as a bool, a tensor or the float 3.0),
    ValueError for an integer out of range.
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(sentence(subject, name, "be a whole number", value))
    fits = int(value) >= low
    rule = f"be at least {low}"
    if high is not None:
        fits = fits and int(value) <= high
        rule = f"lie in {low}..{high}"
    if note:
        rule += f" ({note})"
    require(fits, subject, name, rule, value)


def one_of(
    subject: str,
    name: str,
    value: object,
    options: Collection[object],
) -> None:
    """Require one of the options, equal and of the same type; raises ValueError otherwise."""
    fits = any(type(value) is type(option) and value == option for option in options)
    names = ", ".join(map(repr, options))
    require(fits, subject, name, f"be one of {names}", value)


def finite(
    subject: str,
    name: str,
    tensor: Shaped[Tensor, "..."],
    remedy: str = "",
) -> None:
    """Require a tensor without NaN and infinity; the ValueError says how many entries are bad."""
    bad = int((~torch.isfinite(tensor)).sum())
    if not bad:
        return
    ending = ""
    if remedy:
        ending = f"; {remedy}"
    raise ValueError(
        f"{subject}: {name} must be finite, "
        f"got {bad} of {tensor.numel()} entries NaN or infinite{ending}."
    )


def plain(subject: str, name: str, tensor: Shaped[Tensor, "..."]) -> None:
    """Require a dense tensor of real numbers that no gradient is taken of."""
    real = isinstance(tensor, Tensor) and not tensor.is_complex()
    require(real, subject, name, "be a tensor of real numbers", tensor)
    dense = tensor.layout is torch.strided
    require(dense, subject, name, "be dense", tensor, "use tensor.to_dense()")
    constant = not tensor.requires_grad
    require(constant, subject, name, "have no gradient", tensor, "use tensor.detach()")


def labelled(
    subject: str,
    X: Shaped[Tensor, "R ..."],
    y: Shaped[Tensor, "R"],
) -> None:
    """Require some plain features without NaN and infinity, and a label for each of their rows."""
    plain(subject, "X", X)
    require(X.numel(), subject, "X", "not be empty", X)
    if X.is_floating_point():
        finite(subject, "X", X, "drop or impute these rows")
    rule = f"have a label for each of the {len(X)} rows of X"
    require(len(X) == len(y), subject, "y", rule, len(y))


def labels01(
    subject: str,
    name: str,
    labels: Shaped[Tensor, "..."],
    remedy: str = "",
) -> None:
    """Require labels in {0, 1} of any dtype; the ValueError shows the first values."""
    values = sorted(set(labels.flatten().tolist()))
    fits = set(values) <= {0, 1}
    require(fits, subject, name, "be 0 or 1", values[:6], remedy)


def vector(
    subject: str,
    name: str,
    argument: Any,
    dim: int | None = None,
) -> None:
    """Require a nonempty vector of floats, of `dim` entries if given; its values are not read.

    Shapes are known under `vmap` and while a round is recorded, so methods may check them.
    """
    value(subject, name, argument, Float[Tensor, "d"])
    fits = len(argument) and dim in (None, len(argument))
    require(fits, subject, name, f"be a vector of floats of {dim or 'some'} entries", argument)


def matrix(subject: str, name: str, argument: Any) -> None:
    """Require a nonempty matrix of floats; its values are not read."""
    value(subject, name, argument, Float[Tensor, "m d"])
    require(argument.numel(), subject, name, "not be empty", argument)


class Takes(NamedTuple):
    """A check inside a field's annotation: `check(subject, name, value)` raises one sentence.

    `name` is the annotation's name on the reference pages, if it has one.
    """

    check: Callable[[str, str, Any], None]
    name: str = ""

    def __repr__(self) -> str:
        return self.name or "Takes"


def between(
    low: float,
    high: float = math.inf,
    *,
    name: str = "",
    **ends: bool,
) -> Takes:
    """Accept a number between two ends, as `in_range` does; `ends` are `open_low`, `open_high`."""
    return Takes(partial(in_range, low=low, high=high, **ends), name)  # type: ignore[arg-type]


def counted(
    low: int,
    high: int | None = None,
    name: str = "",
) -> Takes:
    """Accept a whole number that is at least `low` and at most `high`."""
    return Takes(partial(count, low=low, high=high), name)


def _threshold(subject: str, name: str, value: object) -> None:
    if isinstance(value, (bool, Tensor)) or value != math.inf:
        number(subject, name, value)


def _bound(subject: str, name: str, value: object) -> None:
    if isinstance(value, (bool, Tensor)) or value not in (math.inf, -math.inf):
        number(subject, name, value)


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
_float_type = partial(one_of, options=(torch.float32, torch.float64))
#: torch.float32 or torch.float64.
FloatType = Annotated[torch.dtype, Takes(_float_type, "FloatType")]
#: Used beside another annotation: requires that the value is not empty.
SOME = Takes(lambda subject, name, x: require(len(x), subject, name, "not be empty", x))


def fields(record: Any) -> None:
    """Check all fields of a dataclass against their annotations.

    numpy's numbers, also in tuples, become Python's, because stored configurations hold only these.
    Raises TypeError or ValueError that names the class and the first field that does not fit.
    """
    record_class: Any = type(record)
    annotations = hints(record_class)
    tests = _quick_tests(record_class)
    for field in dataclasses.fields(record_class):
        if field.init:
            argument = getattr(record, field.name)
            if tests.get(field.name, _never)(argument):
                continue
            value(record_class.__name__, field.name, argument, annotations[field.name])
            object.__setattr__(record, field.name, _of_python(argument))


class Checked:
    """Base of dataclasses whose `fields` are checked when an object is made."""

    __post_init__ = fields


LARGE = 1e300  # a finite float; a fast test leaves larger numbers to `in_range`


def _of_python(argument: Any) -> Any:
    """Replace all numbers by numbers of Python's types."""
    if type(argument) is tuple:
        return tuple(map(_of_python, argument))
    if isinstance(argument, np.generic):
        return argument.item()
    if isinstance(argument, Real) and not isinstance(argument, (int, float)):
        return float(argument)
    return argument


def arguments(function: Callable[..., Any], values: Mapping[str, Any]) -> None:
    """Check a function's arguments against its annotations; call it with `locals()` first.

    Raises TypeError or ValueError that names the function and the first argument that does not fit.
    """
    subject = function.__qualname__.rpartition("<locals>.")[2].removesuffix(".__call__")
    tests = _quick_tests(function)
    for name, annotation in hints(function).items():
        if name in values and not tests[name](values[name]):
            value(subject, name, values[name], annotation)


@cache
def _quick_tests(owner: Any) -> dict[str, Callable[[Any], bool]]:
    """For every annotation of a class or a function, the test that `_quick_test` makes of it."""
    return {name: _quick_test(annotation) for name, annotation in hints(owner).items()}


def _quick_test(annotation: Any) -> Callable[[Any], bool]:
    """A fast test for the most frequent values, which passes none that does not fit.

    A value that fails may fit nevertheless: `value` decides, and has the words for an error.
    """
    origin = typing.get_origin(annotation) or annotation
    members = typing.get_args(annotation)
    if origin in (bool, int, str, type(None)):
        return lambda x: type(x) is origin
    if origin is float:
        return _inside(-math.inf, math.inf)
    if origin is Annotated and len(members) == 2:
        return _quick_number(members[1])
    if origin in (Union, types.UnionType):
        tests = [_quick_test(member) for member in members]
        return lambda x: any(test(x) for test in tests)
    if origin is tuple and Ellipsis in members:
        of_entry = _quick_test(members[0])
        return lambda x: type(x) is tuple and all(map(of_entry, x))
    if origin is Mapping and members:
        of_key, of_entry = map(_quick_test, members)
        return lambda x: type(x) is dict and all(map(of_key, x)) and all(map(of_entry, x.values()))
    return _never


def _quick_number(rule: Any) -> Callable[[Any], bool]:
    """The fast test of an annotated number."""
    check = getattr(rule, "check", None)
    function = getattr(check, "func", check)
    ends = getattr(check, "keywords", {})
    if function is count:
        low = ends.get("low", 1)
        high = ends.get("high")
        return lambda x: type(x) is int and low <= x and (high is None or x <= high)
    if function is in_range:
        return _inside(ends.get("low", -math.inf), ends.get("high", math.inf))
    return _never


def _inside(low: float, high: float) -> Callable[[Any], bool]:
    """The fast test of a number between two ends, which are not among the values that pass."""
    low = max(low, -LARGE)
    high = min(high, LARGE)
    return lambda x: type(x) in (int, float) and low < x < high


def _never(_: Any) -> bool:
    return False


@cache
def hints(owner: Any) -> dict[str, Any]:
    """The evaluated annotations of a class or a function; unknown names become `Any`.

    If an annotation takes an attribute of an unknown name, all annotations become `Any`.
    """
    unknown: dict[str, Any] = {}
    while True:
        try:
            return typing.get_type_hints(owner, localns=unknown, include_extras=True)
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
#: What many of them are called.
PLURALS = {
    "a whole number": "whole numbers",
    "a number": "numbers",
    "a text": "texts",
    "a function": "functions",
}
COLLECTIONS = (tuple, list, set, frozenset, dict, Mapping, Sequence, Set)
ENTRIES = {
    "Float": "floats",
    "Int": "whole numbers",
    "Integer": "whole numbers",
    "Bool": "truth values",
    "Real": "real numbers",
}


def value(
    subject: str,
    name: str,
    argument: Any,
    annotation: Any,
) -> None:
    """Check one value against an annotation; raises the errors of `fields`."""
    origin = typing.get_origin(annotation) or annotation
    members = typing.get_args(annotation)
    if origin is Annotated:
        _annotated(subject, name, argument, members)
    elif origin in (Union, types.UnionType):
        _any_of(subject, name, argument, annotation)
    elif origin is Literal:
        one_of(subject, name, argument, members)
    elif origin is float:
        number(subject, name, argument)
    elif origin in COLLECTIONS:
        _collection(subject, name, argument, annotation)
    elif origin in PLAIN:
        _, passes = PLAIN[origin]
        fits = passes(argument)
        if fits and origin is type and members:
            fits = issubclass(argument, members)
        if not fits:
            raise TypeError(sentence(subject, name, f"be {_words(annotation)}", argument))
    elif _is_class(origin):
        _instance(subject, name, argument, origin)


def _is_class(annotation: Any) -> bool:
    """Whether an annotation is a class of which a value has to be an instance."""
    if not isinstance(annotation, type) or typing.is_typeddict(annotation):
        return False
    return annotation not in (object, Any)


def _annotated(
    subject: str,
    name: str,
    argument: Any,
    members: tuple[Any, ...],
) -> None:
    """Check a value against the members of `Annotated`: a type, and perhaps some `Takes`."""
    annotation, *marks = members
    rules = [mark for mark in marks if isinstance(mark, Takes)]
    if not rules or annotation not in (int, float):  # the rules of numbers check the type, too
        value(subject, name, argument, annotation)
    for rule in rules:
        rule.check(subject, name, argument)


def _words(annotation: Any) -> str:
    """An annotation in words, such as "a tuple", "a FedSGM", "an Algorithm"."""
    origin = typing.get_origin(annotation) or annotation
    members = typing.get_args(annotation)
    if origin is Annotated:
        return _words(members[0])
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(_words, members)))
    if origin is Literal:
        options = ", ".join(map(repr, members))
        return f"one of {options}"
    if origin is Hashable:
        return "a text, a number or a tuple of them"
    if origin in PLAIN:
        words, _ = PLAIN[origin]
        if origin is type and members:
            words += f" of {members[0].__name__}"
        return words
    name = origin.__name__
    if issubclass(origin, AbstractArray):
        entries = ENTRIES.get(name.partition("[")[0], "numbers")
        shape = ", ".join(origin.dim_str.split())
        return f"a tensor of {entries} of shape [{shape}]"
    article = "a"
    if name[0] in "AEI":
        article = "an"
    words = f"{article} {name}"
    member_words = [_words(member) for member in members if member is not Ellipsis]
    if origin in COLLECTIONS and len(member_words) == 1 and member_words[0] in PLURALS:
        words += f" of {PLURALS[member_words[0]]}"
    return words


def _any_of(
    subject: str,
    name: str,
    argument: object,
    annotation: Any,
) -> None:
    """Require one of several types.

    A value out of range is reported before a wrong entry of a collection, this before a wrong type.
    """
    out_of_range: ValueError | None = None
    wrong_entry: TypeError | None = None
    remedy = ""
    for member in typing.get_args(annotation):
        try:
            return value(subject, name, argument, member)
        except TypeError as error:
            if _is_collection(argument, member):
                wrong_entry = wrong_entry or error
            remedy = remedy or _conversion(argument, member)
        except ValueError as error:
            if out_of_range is None and typing.get_origin(member) is not Literal:
                out_of_range = error
    if out_of_range is not None:
        raise out_of_range
    if wrong_entry is not None:
        raise wrong_entry
    raise TypeError(sentence(subject, name, f"be {_words(annotation)}", argument, remedy))


def _is_collection(argument: object, annotation: Any) -> bool:
    """Whether a value is a collection of the type that an annotation declares."""
    origin = typing.get_origin(annotation) or annotation
    if origin not in COLLECTIONS or isinstance(argument, (str, bytes)):
        return False
    return isinstance(argument, origin)


def _conversion(argument: object, annotation: Any) -> str:
    """How to convert an iterable to the collection that an annotation declares, if it is known."""
    origin = typing.get_origin(annotation) or annotation
    if origin not in (tuple, list, Sequence) or isinstance(argument, (str, bytes, type)):
        return ""
    target = "list"
    if origin is tuple:
        target = "tuple"
    if isinstance(argument, Mapping):
        return f"pass {target}(....values())"
    if not isinstance(argument, Iterable) or not getattr(argument, "ndim", 1):
        return ""
    members = typing.get_args(annotation)
    numbers = bool(members) and _words(members[0]) in ("a number", "a whole number")
    if numbers and target == "list" and hasattr(argument, "tolist"):
        return "call .tolist()"
    return f"pass {target}(...)"


def _collection(
    subject: str,
    name: str,
    argument: Any,
    annotation: Any,
) -> None:
    """Check the type of a collection and of each entry; in a mapping, of each key and value."""
    origin = typing.get_origin(annotation)
    members = typing.get_args(annotation)
    if not _is_collection(argument, annotation):
        remedy = _conversion(argument, annotation)
        raise TypeError(sentence(subject, name, f"be {_words(annotation)}", argument, remedy))
    if origin is None:
        return
    if isinstance(argument, Mapping):
        key_annotation, entry_annotation = members
        for entry_key, entry in argument.items():
            value(subject, f"every key of {name}", entry_key, key_annotation)
            value(subject, f"{name}[{entry_key!r}]", entry, entry_annotation)
        return
    if origin is not tuple or Ellipsis in members:
        for position, entry in enumerate(argument):
            value(subject, f"{name}[{position}]", entry, members[0])
        return
    require(len(argument) == len(members), subject, name, f"have {len(members)} entries", argument)
    for position, entry in enumerate(argument):
        value(subject, f"{name}[{position}]", entry, members[position])


def _instance(
    subject: str,
    name: str,
    argument: Any,
    required: Any,
) -> None:
    """Require an instance of a class, an object that fits a protocol, or a jaxtyping tensor."""
    is_protocol = getattr(required, "_is_protocol", False)
    remedy = ""
    if isinstance(argument, type):
        if is_protocol or issubclass(argument, required):
            remedy = f"write {argument.__name__}(...)"
    elif is_protocol:
        lacking = _lacking(argument.__class__, required)
        if not lacking:
            return
        methods = ", ".join(lacking[:3])
        remedy = f"it lacks {methods}"
    elif isinstance(argument, required):
        return
    elif issubclass(required, Checked):
        remedy = _construction(required)
    message = sentence(subject, name, f"be {_words(required)}", argument, remedy)
    if isinstance(argument, Tensor) and issubclass(required, AbstractArray):
        raise ValueError(message)
    raise TypeError(message)


def _construction(record: type[Checked]) -> str:
    """How to make an object of a record, or of a class of one's own in its place."""
    names = ", ".join(inspect.signature(record).parameters)
    remedy = f"write {record.__name__}({names})"
    if "__call__" in vars(record):
        remedy += ", or derive a frozen dataclass from it with a __call__ of its own"
    return remedy


@cache
def _lacking(checked: type, protocol: Any) -> list[str]:
    """The methods of a runtime protocol that a class lacks or defines with other arguments."""
    methods = _methods(protocol)
    lacking = []
    for name in methods:
        parameters = _argument_names(inspect.signature(getattr(protocol, name)))
        with suppress(AttributeError, ValueError, TypeError):  # missing, no function, or from C
            signature = inspect.signature(getattr(checked, name))
            signature.bind(None, *parameters)
            # protocols of `__call__` alone differ by the names of their arguments only
            if methods != ["__call__"] or _argument_names(signature) == parameters:
                continue
        listed = ", ".join(parameters)
        lacking.append(f"{name}({listed})")
    return lacking


def _methods(protocol: Any) -> list[str]:
    """The names of the methods that a runtime protocol and its bases require."""
    names = []
    for base in protocol.__mro__:
        if not getattr(base, "_is_runtime_protocol", False):
            continue
        for name, attribute in vars(base).items():
            is_public = name == "__call__" or not name.startswith("_")
            if inspect.isfunction(attribute) and is_public and name not in names:
                names.append(name)
    return names


def _argument_names(signature: inspect.Signature) -> list[str]:
    """The names of a method's arguments after `self`."""
    return list(signature.parameters)[1:]
