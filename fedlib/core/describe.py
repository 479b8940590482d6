"""Descriptions of algorithms and problems for stored runs: dataclasses as plain JSON values.

A stored run is found by its description, so names in descriptions outlive the names in the code:

- A field that is added has a default with which the class behaves as before. `added_field` leaves
  it out of the description.
- A field that is renamed keeps its first name, `field(metadata={"renamed_from": "tolerance"})`.
- A class, or a function that makes a problem, keeps its first name by a decorator,
  `@renamed_from("FedSGM")`.
"""

import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, field, fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

from fedlib import checks

T = TypeVar("T", bound=Callable[..., Any])

RENAMED = "renamed_from"


def added_field(default: Any) -> Any:
    """A field that was added after runs had been stored; `describe` omits its default value.

    With the default the class behaves as before, so the keys of stored runs stay valid.
    """
    return field(default=default, metadata={"later": True})


def renamed_from(name: str) -> Callable[[T], T]:
    """A class or a function under a new name; stored runs are still found by its first `name`."""

    def mark(target: T) -> T:
        setattr(target, RENAMED, name)
        return target

    return mark


def stored_name(target: Any, name: str) -> str:
    """The name under which stored runs know a class or a function that is now called `name`."""
    first_name: str = vars(target).get(RENAMED, name)  # getattr would read that of a base class
    return first_name


def describe(value: Any, omit: Iterable[str] = (), name: str = "value") -> Any:
    """A JSON value that names a dataclass and its fields recursively.

    Parameters
    ----------
    value : object
        A dataclass, or a number, text, mapping or sequence.
    omit : iterable of str
        Fields to leave out, by dotted name, such as `"lr"` or `"switch.beta"`.
    name : str
        What error messages call the value.

    Raises
    ------
    TypeError
        For a value that JSON cannot hold.
    ValueError
        If a field has the first name of another field.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return _describe_dataclass(value, frozenset(omit))
    if isinstance(value, Mapping):
        described = {}
        for key, entry in value.items():
            described[str(key)] = describe(entry, name=f"{name}[{key!r}]")
        return described
    if isinstance(value, (list, tuple)):
        return [describe(entry, name=f"{name}[{i}]") for i, entry in enumerate(value)]
    if isinstance(value, np.generic):  # a number of numpy's becomes one of Python's
        return describe(value.item())
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    rule = "be a number, a text, a list, a dict or a dataclass"
    remedy = f"write @dataclass(frozen=True) above class {type(value).__name__}"
    if isinstance(value, (type, types.FunctionType)):
        remedy = "pass an object of a dataclass"
    raise TypeError(checks.sentence("describe", name, rule, value, remedy))


def _describe_dataclass(value: Any, omit: frozenset[str]) -> dict[str, Any]:
    record = type(value)
    description = {"type": stored_name(record, record.__name__)}
    for item in fields(value):
        content = getattr(value, item.name)
        if item.name in omit or _is_as_before(item, content):
            continue
        name = item.metadata.get(RENAMED, item.name)
        if name in description:
            raise ValueError(
                f"describe: the fields of {record.__name__} must have first names of their own, "
                f"got {name!r} twice; give the newer field another name."
            )
        prefix = f"{item.name}."
        inner_omit = [path.removeprefix(prefix) for path in omit if path.startswith(prefix)]
        description[name] = describe(content, inner_omit, f"{record.__name__}.{item.name}")
    return description


def _is_as_before(item: Field[Any], content: Any) -> bool:
    """Whether a field that was added later has its default value."""
    return bool(item.metadata.get("later")) and content == item.default
