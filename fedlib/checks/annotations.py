"""The check that an annotation stands for: see `fedlib.checks.declared`."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache, partial
from numbers import Integral
from typing import Annotated, Any, Literal, NamedTuple, Protocol, Union

from jaxtyping import AbstractArray

from fedlib.checks import tensors, values

Check = Callable[[str, str, Any], None]

#: Collections whose entries are looked at, and what a sentence calls them.
COLLECTIONS: dict[Any, str] = {
    tuple: "a tuple",
    list: "a list",
    set: "a set",
    frozenset: "a frozenset",
    dict: "a mapping",
    Mapping: "a mapping",
    Sequence: "a list or a tuple",
    Set: "a set",
}
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
LACKING = 3  # methods that a sentence lists


@dataclass(frozen=True)
class Takes:
    """The check of a field, in its annotation: `check(who, name, value)` raises one sentence."""

    check: Check


class Kind(NamedTuple):
    """What an annotation takes: in words (`a tuple`), and the check."""

    words: str
    check: Check


def kind_of(annotation: Any) -> Kind:
    """What an annotation takes; its check raises one sentence, TypeError or ValueError."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return _annotated(parts[0], [part for part in parts[1:] if isinstance(part, Takes)])
    if origin in (Union, types.UnionType):
        return _one_of_kinds([kind_of(part) for part in parts])
    if origin is Literal:
        words = f"one of {', '.join(map(repr, parts))}"
        return Kind(words, partial(values.one_of, options=parts))
    if Callable in (annotation, origin):
        return Kind("a function", _function)
    if (kind := origin or annotation) in COLLECTIONS:
        entries = [kind_of(part).check for part in parts if part is not Ellipsis]
        fixed = kind is tuple and origin is not None and Ellipsis not in parts
        return Kind(COLLECTIONS[kind], partial(_collection, kind=kind, of=entries, fixed=fixed))
    if annotation in PLAIN:
        return PLAIN[annotation]
    return _of_class(origin or annotation)


def _annotated(inner: Any, marks: list[Takes]) -> Kind:
    """A number is what the mark takes, anything else is looked at first."""
    if not marks:
        return kind_of(inner)
    words, check = kind_of(inner)
    checks = [mark.check for mark in marks]
    return Kind(words, partial(_all_of, checks=checks if inner in PLAIN else [check, *checks]))


def _all_of(who: str, name: str, given: object, checks: Sequence[Check]) -> None:
    for check in checks:
        check(who, name, given)


def _one_of_kinds(kinds: list[Kind]) -> Kind:
    """One of several; None is meant where it is among them."""
    none = PLAIN[type(None)]
    others, optional = [kind for kind in kinds if kind is not none], none in kinds
    words = " or ".join(kind.words for kind in kinds)
    if len(others) == 1 and optional:
        return Kind(words, partial(_optional, check=others[0].check))
    return Kind(words, partial(_any_of, checks=[kind.check for kind in kinds], words=words))


def _optional(who: str, name: str, given: object, check: Check) -> None:
    if given is not None:
        check(who, name, given)


def _any_of(who: str, name: str, given: object, checks: Sequence[Check], words: str) -> None:
    """A value of the right kind that is out of range says more than one of another kind."""
    telling: Exception | None = None
    for check in checks:
        try:
            check(who, name, given)
        except (ValueError, TypeError) as error:
            inside = isinstance(error, ValueError) or str(error).startswith(f"{who}: {name}[")
            telling = error if inside and telling is None else telling
        else:
            return
    raise telling or TypeError(values.sentence(who, name, f"be {words}", given))


def _collection(who: str, name: str, given: Any, kind: Any, of: list[Check], fixed: bool) -> None:
    """The kind of a collection, and each of its entries; of a mapping its keys and values."""
    if not isinstance(given, kind) or isinstance(given, (str, bytes)):
        raise TypeError(values.sentence(who, name, f"be {COLLECTIONS[kind]}", given))
    if fixed and len(given) != len(of):
        raise ValueError(values.sentence(who, name, f"have {len(of)} entries", given))
    if not of:
        return
    if isinstance(given, Mapping):
        for key, entry in given.items():
            of[0](who, f"every key of {name}", key)
            of[1](who, f"{name}[{key!r}]", entry)
        return
    for place, entry in enumerate(given):
        of[place if fixed else 0](who, f"{name}[{place}]", entry)


def _function(who: str, name: str, given: object) -> None:
    if not callable(given):
        raise TypeError(values.sentence(who, name, "be a function", given))


def _text(who: str, name: str, given: object) -> None:
    if not isinstance(given, str):
        raise TypeError(values.sentence(who, name, "be a text", given))


def _whole(who: str, name: str, given: object) -> None:
    if isinstance(given, bool) or not isinstance(given, Integral):
        raise TypeError(values.sentence(who, name, "be a whole number", given))


def _none(who: str, name: str, given: object) -> None:
    if given is not None:
        raise TypeError(values.sentence(who, name, "be None", given))


def _anything(who: str, name: str, given: object) -> None:
    """Nothing is asked."""


PLAIN: dict[Any, Kind] = {
    bool: Kind("True or False", values.flag),
    int: Kind("a whole number", _whole),
    float: Kind("a number", values.number),
    str: Kind("a text", _text),
    type(None): Kind("None", _none),
    Any: Kind("anything", _anything),
    object: Kind("anything", _anything),
}


def _of_class(kind: Any) -> Kind:
    """An instance of a class, of a protocol, or a tensor of jaxtyping's."""
    if not isinstance(kind, type) or typing.is_typeddict(kind):
        return PLAIN[Any]
    if issubclass(kind, AbstractArray):
        return Kind(tensors.words(kind), partial(tensors.shaped, annotation=kind))
    if not getattr(kind, "_is_protocol", False):
        return Kind(values.named(kind), partial(values.instance, kind=kind))
    if not getattr(kind, "_is_runtime_protocol", False):
        return PLAIN[Any]
    return Kind(values.named(kind), partial(_protocol, protocol=kind))


def _protocol(who: str, name: str, given: object, protocol: Any) -> None:
    if isinstance(given, type):
        words = f"be {values.named(protocol)}, not a class"
        raise TypeError(values.sentence(who, name, words, given, f"write {given.__name__}(...)"))
    kind: Any = type(given)
    methods, others = _members(protocol)
    lacking = [*_lacking(kind, protocol), *(n for n in others if not hasattr(given, n))]
    if lacking:
        partly = len(lacking) < len(methods) + len(others) or callable(given)
        remedy = f"it lacks {', '.join(lacking[:LACKING])}" if partly else ""
        rule = f"be {values.named(protocol)}"
        raise TypeError(values.sentence(who, name, rule, given, remedy))


@cache
def _members(protocol: type) -> tuple[dict[str, inspect.Signature], list[str]]:
    """The methods that a protocol names, and its other members."""
    bases = [b for b in protocol.__mro__ if getattr(b, "_is_protocol", False) and b is not Protocol]
    named = {n: v for base in bases for n, v in vars(base).items() if _is_public(n)}
    methods = {n: inspect.signature(v) for n, v in named.items() if inspect.isfunction(v)}
    fields = {n for base in bases for n in inspect.get_annotations(base) if _is_public(n)}
    return methods, sorted(({*named} - {*methods}) | fields)


def _is_public(name: str) -> bool:
    return name == "__call__" or not name.startswith("_")


@cache
def _lacking(kind: type, protocol: type) -> list[str]:
    """The methods of a protocol that a class has not, or that take something else."""
    methods, others = _members(protocol)
    alone = not others and [*methods] == ["__call__"]  # so weak that names must tell
    return [
        f"{name}{_arguments(wanted)}"
        for name, wanted in methods.items()
        if not _fits(_method(kind, name), wanted, alone)
    ]


def _method(kind: type, name: str) -> Any:
    """A class's own method; `getattr` would find those of all classes, such as their call."""
    return getattr(kind, name) if any(name in vars(base) for base in kind.__mro__) else None


def _arguments(signature: inspect.Signature) -> str:
    return f"({', '.join([*signature.parameters][1:])})"


def _fits(method: Any, wanted: inspect.Signature, by_name: bool) -> bool:
    """Whether a method takes what a protocol's does: as many arguments, or the same by name."""
    if not callable(method):
        return False
    try:
        own = inspect.signature(method)
    except (ValueError, TypeError):  # of what is written in C
        return False
    if by_name:
        return [*own.parameters][1:] == [*wanted.parameters][1:]
    places = [p for p in wanted.parameters.values() if p.kind in POSITIONAL]
    names = [p.name for p in wanted.parameters.values() if p.kind is p.KEYWORD_ONLY]
    try:
        own.bind(*places, **dict.fromkeys(names))
    except TypeError:
        return False
    return True
