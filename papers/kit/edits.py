"""What a reader changed in the experiment of a page: code, data, parameters.

A stored run is found by its configuration, which names classes and says what a problem says of
itself. That does not tell a pasted class from the library's, nor ten features from thirty. So what
a page is given is held against what its study declares: algorithms by their classes and fields,
problems by all that they hold, of every seed. Code of `fedlib` and `papers` that was replaced in
this process counts as changed, too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from numbers import Number
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch

from fedlib.core import Problem
from papers.kit.store import Spec

PACKAGES = ("fedlib", "papers")
#: They decide where runs and files lie and how they look, not what a run computes.
KEEPERS = ("papers.kit", "fedlib.data.cache")
CONSTANTS = (bool, int, float, str, tuple)
#: Names that Python and pydantic change by themselves.
BOOKKEEPING = ("__dict__", "__weakref__", "__doc__", "__abstractmethods__", "__annotations__")
MISSING = object()
SHOWN = 2  # differences that a line names


class Difference(NamedTuple):
    """Two values that differ, and the dotted place of both."""

    place: str
    given: Any
    declared: Any


def of_runs(given: Mapping[str, Spec], declared: Mapping[str, Spec]) -> dict[str, str]:
    """The runs that are not as their study declares them, each with what differs in words."""
    of_problems: dict[tuple[Any, ...], list[str]] = {}
    changed = {}
    for name, spec in given.items():
        key = (id(spec.problem), repr(declared[name].maker()), spec.seeds)
        if key not in of_problems:
            of_problems[key] = of_problem(spec, declared[name])
        words = [*of_algorithm(spec.algorithm, declared[name].algorithm), *of_problems[key]]
        if words:
            changed[name] = "; ".join(words[:SHOWN])
    return changed


def of_algorithm(given: Any, declared: Any) -> list[str]:
    """What differs between two algorithms, in words; nothing where both are one."""
    return [_in_words(difference, "parameter") for difference in differences(given, declared)]


def of_problem(given: Spec, declared: Spec) -> list[str]:
    """What differs between the problems of two runs, in words.

    One function with equal arguments makes one problem, and no data are needed to see that. Another
    function is asked for its problem of every seed.
    """
    if _function(given.problem) is _function(declared.problem):
        arguments = differences(given.arguments(), declared.arguments())
        return [_in_words(difference, "data") for difference in arguments]
    for seed in declared.seeds:
        for difference in differences(given.problem(seed), declared.problem(seed)):
            return [_of_data(difference, seed)]
    return []


def differences(given: Any, declared: Any, place: str = "") -> Iterator[Difference]:
    """Where two values differ: records by their fields, functions by their code and closure.

    Functions are equal only if they come from one definition, so that a copy in a notebook, equal
    or not, differs from ours.
    """
    yield from _compare(given, declared, place, set())


def replaced() -> list[str]:
    """Names in our packages that mean another code or constant than when they were imported."""
    found = []
    for owner, names in _IMPORTED.items():
        now = vars(owner)
        found += [
            f"{_title(owner)}.{name}"
            for name, then in names.items()
            if _state(now.get(name, MISSING)) != then
        ]
        if isinstance(owner, type):
            added = [name for name in now if name not in names and _is_code(now[name])]
            found += [f"{_title(owner)}.{name}" for name in added]
    return sorted(found)


def remember() -> None:
    """Note what our packages hold, once for every module and class; `replaced` compares."""
    for name, module in list(sys.modules.items()):
        if not _is_ours(name) or module in _IMPORTED:
            continue
        _IMPORTED[module] = _states(module)
        for value in vars(module).values():
            if isinstance(value, type) and _is_ours(value.__module__):
                _IMPORTED.setdefault(value, _states(value))


#: Modules and classes of our packages -> what each of their names meant when they were imported.
_IMPORTED: dict[Any, dict[str, Any]] = {}


def _is_ours(module: str) -> bool:
    parts = module.partition(".")[0]
    return parts in PACKAGES and not any(
        module == keeper or module.startswith(f"{keeper}.") for keeper in KEEPERS
    )


def _title(owner: Any) -> str:
    """The full name of a module or a class."""
    if isinstance(owner, ModuleType):
        return owner.__name__
    return f"{owner.__module__}.{owner.__qualname__}"


def _states(owner: Any) -> dict[str, Any]:
    """What the names of a module or a class mean, where that is code or a constant."""
    return {
        name: _state(value)
        for name, value in vars(owner).items()
        if name not in BOOKKEEPING
        and not name.startswith(("__pydantic", "_abc"))
        and (_is_code(value) or isinstance(value, CONSTANTS) or _is_table(name, value))
    }


def _is_code(value: Any) -> bool:
    return isinstance(
        value, FunctionType | BuiltinFunctionType | type | classmethod | staticmethod | property
    )


def _is_table(name: str, value: Any) -> bool:
    """Whether a name in capitals stands for a table of constants, which can be changed in place."""
    return name.isupper() and not name.startswith("_") and isinstance(value, dict | list)


def _state(value: Any) -> Any:
    """What tells whether a name still means the same; of a function also what it executes."""
    if isinstance(value, bool | int | float | str):
        return type(value), value
    if isinstance(value, dict | list):
        return id(value), value, repr(value)
    plain = getattr(value, "__func__", value)
    if isinstance(plain, FunctionType):
        defaults = repr((plain.__defaults__, plain.__kwdefaults__))
        return id(value), value, plain.__code__, defaults
    return id(value), value


def _function(problem: Callable[[int], Problem]) -> Any:
    """The function of a problem, without the arguments that `partial` binds."""
    return getattr(problem, "func", problem)


def _in_words(difference: Difference, word: str) -> str:
    """A difference of two values: other code, or another value of what `word` names."""
    given = difference.given
    code = given if isinstance(given, type | FunctionType) else type(given)
    if isinstance(given, FunctionType) or (
        code is not type(difference.declared) and _foreign(code)
    ):
        return f"code: {_named(code)}"
    return f"{word}: {_values(difference)}"


def _of_data(difference: Difference, seed: int) -> str:
    """A difference of two problems: other code in it, or other data."""
    field = difference.place.partition(".")[0] or "problem"
    if callable(difference.given) or callable(difference.declared):
        return f"code: problem.{field}"
    return f"data: problem.{field} of seed {seed}"


def _foreign(code: Any) -> bool:
    """Whether code is neither ours nor Python's own."""
    return getattr(code, "__module__", "").partition(".")[0] not in (*PACKAGES, "builtins")


def _named(code: Any) -> str:
    """A class or a function, and where it is from."""
    module = getattr(code, "__module__", "")
    where = "this notebook" if module == "__main__" else module
    return f"{getattr(code, '__qualname__', code)} of {where}"


def _values(difference: Difference) -> str:
    """Both values, of a record its name."""
    now, then = (
        type(x).__name__ if is_dataclass(x) else "nothing" if x is MISSING else repr(x)
        for x in difference[1:]
    )
    return f"{difference.place or 'algorithm'} {now}, not {then}"


def _compare(
    given: Any, declared: Any, place: str, seen: set[tuple[int, int]]
) -> Iterator[Difference]:
    pair = (id(given), id(declared))
    if given is declared or pair in seen:
        return
    seen.add(pair)  # of values that refer to themselves
    now, then = _parts(given), _parts(declared)
    if now is None or then is None or _kind(given) is not _kind(declared):
        if not _equal(given, declared):
            yield Difference(place, given, declared)
        return
    for name in dict.fromkeys([*now, *then]):
        inner = f"{place}.{name}".lstrip(".")
        yield from _compare(now.get(name, MISSING), then.get(name, MISSING), inner, seen)


def _kind(value: Any) -> Any:
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


def _equal(given: Any, declared: Any) -> bool:
    """Whether two values are one; functions and classes are only if they are one object."""
    if isinstance(given, Number) and isinstance(declared, Number):
        both_missing = given != given and declared != declared  # not a number
        return bool(given == declared) or both_missing
    if type(given) is not type(declared) or isinstance(given, type | FunctionType | ModuleType):
        return False
    if isinstance(given, torch.Tensor):
        return given.dtype == declared.dtype and torch.equal(given, declared)
    if isinstance(given, np.ndarray):
        return given.dtype == declared.dtype and np.array_equal(given, declared)
    if isinstance(given, torch.Generator):
        return torch.equal(given.get_state(), declared.get_state())
    try:
        return bool(given == declared)
    except (TypeError, ValueError, RuntimeError):  # of tables, whose entries are compared
        return False


def _fields(record: Any) -> dict[str, Any]:
    """The fields of a record, and methods that were put into it alone."""
    own = {f.name: getattr(record, f.name) for f in fields(record)}
    methods = {
        name: value
        for name, value in getattr(record, "__dict__", {}).items()
        if name not in own and isinstance(getattr(type(record), name, None), FunctionType)
    }
    return {**own, **methods}


def _bound(function: FunctionType) -> dict[str, Any]:
    """What a function remembers: its defaults and the variables of its closure."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    closure = {}
    for name, cell in cells:
        try:
            closure[name] = cell.cell_contents
        except ValueError:  # not yet assigned
            closure[name] = MISSING
    return {"defaults": (function.__defaults__, function.__kwdefaults__), **closure}
