"""What the code of `fedlib` and `papers` was when it was imported, and what was replaced since."""

from __future__ import annotations

import sys
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

PACKAGES = ("fedlib", "papers")
#: They decide where runs and files lie and how they look, not what a run computes.
KEEPERS = ("papers.kit", "fedlib.data.cache")
CODE = (FunctionType, BuiltinFunctionType, type, classmethod, staticmethod, property)
CONSTANTS = (bool, int, float, str, tuple)
MUTABLE = (dict, list, set)
#: Names that Python and pydantic change by themselves.
BOOKKEEPING = ("__dict__", "__weakref__", "__doc__", "__abstractmethods__", "__annotations__")
MISSING = object()

#: Modules and classes of our packages -> what each of their names meant when they were imported.
_IMPORTED: dict[Any, dict[str, Any]] = {}


def remember() -> None:
    """Note what our packages hold, once for every module and class; `replaced` compares."""
    for name, module in list(sys.modules.items()):
        if not _is_watched(name) or module in _IMPORTED:
            continue
        _IMPORTED[module] = _states(module)
        for value in vars(module).values():
            if isinstance(value, type) and _is_watched(value.__module__):
                _IMPORTED.setdefault(value, _states(value))


def replaced() -> list[str]:
    """Names in our packages that mean another code or constant than when they were imported."""
    names = []
    for owner, states in _IMPORTED.items():
        names += [f"{_title(owner)}.{name}" for name in _replaced_in(owner, states)]
    return sorted(names)


def _replaced_in(owner: Any, states: dict[str, Any]) -> list[str]:
    """The names of one module or class that mean something else; of a class also new methods."""
    today = vars(owner)
    names = [name for name, state in states.items() if _state(today.get(name, MISSING)) != state]
    if isinstance(owner, type):
        names += [name for name in today if name not in states and isinstance(today[name], CODE)]
    return names


def _is_watched(module: str) -> bool:
    """Whether a module has code that runs depend on."""
    if module.partition(".")[0] not in PACKAGES:
        return False
    return not any(f"{module}.".startswith(f"{keeper}.") for keeper in KEEPERS)


def _title(owner: Any) -> str:
    """The full name of a module or a class."""
    if isinstance(owner, ModuleType):
        return owner.__name__
    return f"{owner.__module__}.{owner.__qualname__}"


def _states(owner: Any) -> dict[str, Any]:
    """What the names of a module or a class mean: code, constants, records, tables."""
    return {name: _state(value) for name, value in vars(owner).items() if _counts(name, value)}


def _counts(name: str, value: Any) -> bool:
    """Whether a run may depend on what a name means.

    Not on what Python keeps there, on another module, nor on what our code itself fills: the names
    of such dictionaries, lists and sets begin with a line.
    """
    if name in BOOKKEEPING or name.startswith(("__pydantic", "_abc")):
        return False
    if isinstance(value, CODE + CONSTANTS):
        return True
    if name.startswith("__") or isinstance(value, ModuleType):
        return False
    return not (name.startswith("_") and isinstance(value, MUTABLE))


def _state(value: Any) -> Any:
    """What tells whether a name still means the same; of a function also what it executes."""
    function = getattr(value, "__func__", value)
    content: Any = None
    if isinstance(function, FunctionType):
        content = function.__code__, repr((function.__defaults__, function.__kwdefaults__))
    elif not isinstance(value, CODE):
        content = repr(value)  # a record or a table may be changed in place
    return id(value), value, content
