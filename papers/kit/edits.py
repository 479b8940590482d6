"""What a reader changed in the experiment of a page: code, data, parameters.

A stored run is found by its configuration, which names classes and says what a problem says of
itself. That does not tell a pasted class from the library's, nor ten features from thirty. So what
a page is given is compared with what its study declares: algorithms by their classes and fields,
problems by all that they hold, of every seed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from numbers import Number
from types import FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch

from fedlib.core import Problem
from papers.kit.snapshot import MISSING, PACKAGES
from papers.kit.store import Spec

SHOWN = 2  # differences that a line names
#: The values that were compared already, by their addresses; it keeps them, so none is used twice.
Seen = dict[tuple[int, int], tuple[Any, Any]]


class Difference(NamedTuple):
    """A reader's value that is not the study's, and the dotted place of both."""

    place: str
    theirs: Any
    ours: Any


def of_runs(theirs: Mapping[str, Spec], ours: Mapping[str, Spec]) -> dict[str, str]:
    """The runs that are not as their study declares them, each with what differs in words."""
    of_problems: dict[tuple[Any, ...], list[str]] = {}
    changed = {}
    for name, spec in theirs.items():
        key = (id(spec.problem), repr(ours[name].maker()), spec.seeds)
        if key not in of_problems:
            of_problems[key] = of_problem(spec, ours[name])
        words = of_algorithm(spec.algorithm, ours[name].algorithm) + of_problems[key]
        if words:
            changed[name] = "; ".join(words[:SHOWN])
    return changed


def of_algorithm(theirs: Any, ours: Any) -> list[str]:
    """What differs between two algorithms, in words; nothing where both are one."""
    return [_in_words(difference, "parameter") for difference in differences(theirs, ours)]


def of_problem(theirs: Spec, ours: Spec) -> list[str]:
    """What differs between the problems of two runs, in words.

    One function with equal arguments makes one problem, and no data are needed to see that. Another
    function is asked for its problem of every seed.
    """
    if _function(theirs.problem) is _function(ours.problem):
        arguments = differences(theirs.arguments(), ours.arguments())
        return [_in_words(difference, "data") for difference in arguments]
    for seed in ours.seeds:
        for difference in differences(theirs.problem(seed), _made_anew(ours.problem, seed)):
            _forget(ours.problem)
            return [_of_data(difference, seed)]
    return []


def differences(theirs: Any, ours: Any) -> Iterator[Difference]:
    """Where two values differ: records by their fields, functions by their code and closure.

    Functions are equal only if they come from one definition, so that a copy in a notebook, equal
    or not, differs from ours.
    """
    yield from _compare(theirs, ours, "", {})


def _function(problem: Callable[[int], Problem]) -> Any:
    """The function of a problem, without the arguments that `partial` binds."""
    return getattr(problem, "func", problem)


def _made_anew(problem: Callable[[int], Problem], seed: int) -> Problem:
    """The problem of a seed without a cache, whose tensors a reader may have changed in place."""
    plain: Callable[..., Problem] = inspect.unwrap(_function(problem))
    arguments = getattr(problem, "args", ())
    return plain(*arguments, seed, **getattr(problem, "keywords", {}))


def _forget(problem: Callable[[int], Problem]) -> None:
    """Empty the cache of a study's problems, so that its own runs do not use a reader's data."""
    function = _function(problem)
    if hasattr(function, "cache_clear"):
        function.cache_clear()


def _in_words(difference: Difference, word: str) -> str:
    """A difference of two values: other code, or another value of what `word` names."""
    value = difference.theirs
    if isinstance(value, FunctionType):
        return f"code: {_named(value)}"
    code = value if isinstance(value, type) else type(value)
    if code is not type(difference.ours) and _is_foreign(code):
        return f"code: {_named(code)}"
    dotted_name = difference.place or "algorithm"
    return f"{word}: {dotted_name} {_shown(value)}, not {_shown(difference.ours)}"


def _of_data(difference: Difference, seed: int) -> str:
    """A difference of two problems: other code in it, or other data."""
    field = difference.place.partition(".")[0] or "problem"
    if callable(difference.theirs) or callable(difference.ours):
        return f"code: problem.{field}"
    return f"data: problem.{field} of seed {seed}"


def _is_foreign(code: Any) -> bool:
    """Whether a class is neither ours nor Python's own."""
    package = getattr(code, "__module__", "").partition(".")[0]
    return package not in (*PACKAGES, "builtins")


def _named(code: Any) -> str:
    """A class or a function, and where it is from."""
    module = getattr(code, "__module__", "")
    where = "this notebook" if module == "__main__" else module
    return f"{getattr(code, '__qualname__', code)} of {where}"


def _shown(value: Any) -> str:
    """A value in words; of a record its class."""
    if value is MISSING:
        return "nothing"
    return type(value).__name__ if is_dataclass(value) else repr(value)


def _compare(theirs: Any, ours: Any, place: str, seen: Seen) -> Iterator[Difference]:
    pair = (id(theirs), id(ours))
    if theirs is ours or pair in seen:
        return
    seen[pair] = (theirs, ours)  # values may refer to themselves
    their_parts = _parts(theirs)
    our_parts = _parts(ours)
    if their_parts is None or our_parts is None or _form(theirs) is not _form(ours):
        if not _equal(theirs, ours):
            yield Difference(place, theirs, ours)
        return
    for name in dict.fromkeys([*their_parts, *our_parts]):
        inner = f"{place}.{name}".lstrip(".")
        their_part = their_parts.get(name, MISSING)
        our_part = our_parts.get(name, MISSING)
        yield from _compare(their_part, our_part, inner, seen)


def _form(value: Any) -> Any:
    """The type of a value; one for all lists and tuples, and the definition of a function."""
    if type(value) in (list, tuple):
        return list
    return value.__code__ if isinstance(value, FunctionType) else type(value)


def _parts(value: Any) -> dict[Any, Any] | None:
    """The values that a value consists of, by name; None where it is one value."""
    if isinstance(value, torch.Tensor | np.ndarray | type | ModuleType):
        return None
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list | tuple):
        return dict(enumerate(value))
    if isinstance(value, FunctionType):
        return _bound(value)
    if isinstance(value, MethodType):
        return {"function": value.__func__, "object": value.__self__}
    if isinstance(value, partial):
        return {"function": value.func, "arguments": value.args, **value.keywords}
    if is_dataclass(value):
        return _fields(value)
    plain = type(value).__eq__ is object.__eq__  # type: ignore[comparison-overlap]
    return dict(vars(value)) if plain and hasattr(value, "__dict__") else None


def _equal(theirs: Any, ours: Any) -> bool:
    """Whether two values are one; functions and classes are only if they are one object."""
    if isinstance(theirs, Number) and isinstance(ours, Number):
        both_missing = theirs != theirs and ours != ours  # not a number
        return bool(theirs == ours) or both_missing
    if type(theirs) is not type(ours) or isinstance(theirs, type | FunctionType | ModuleType):
        return False
    if isinstance(theirs, torch.Tensor):
        return theirs.dtype == ours.dtype and torch.equal(theirs, ours)
    if isinstance(theirs, np.ndarray):
        return theirs.dtype == ours.dtype and np.array_equal(theirs, ours)
    if isinstance(theirs, torch.Generator):
        return torch.equal(theirs.get_state(), ours.get_state())
    try:
        return bool(theirs == ours)
    except (TypeError, ValueError, RuntimeError):  # of tables, whose entries are compared
        return False


def _fields(record: Any) -> dict[str, Any]:
    """The fields of a record, and methods that were put into it alone."""
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    for name, value in getattr(record, "__dict__", {}).items():
        if name not in values and isinstance(getattr(type(record), name, None), FunctionType):
            values[name] = value
    return values


def _bound(function: FunctionType) -> dict[str, Any]:
    """What a function remembers: its defaults and the variables of its closure."""
    values: dict[str, Any] = {
        "defaults": function.__defaults__,
        "keyword defaults": function.__kwdefaults__,
    }
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            values[name] = cell.cell_contents
        except ValueError:  # not yet assigned
            values[name] = MISSING
    return values
