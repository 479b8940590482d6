"""What a stored run says of its algorithm and problem: dataclasses as plain JSON values."""

from collections.abc import Mapping
from dataclasses import Field, field, fields, is_dataclass
from typing import Any

import numpy as np


def added_field(default: Any) -> Any:
    """Field added after runs were stored; `describe` omits it at its default.

    The class then does what it did before, so that keys of stored runs stay valid.
    """
    return field(default=default, metadata={"later": True})


def describe(value: Any) -> Any:
    """A JSON value that names a dataclass and its fields, recursively; see also `added_field`."""
    if is_dataclass(value) and not isinstance(value, type):
        said = {f.name: getattr(value, f.name) for f in fields(value) if _is_said(value, f)}
        inner = {name: describe(x) for name, x in said.items()}
        return {"type": type(value).__name__, **inner}
    if isinstance(value, Mapping):
        return {str(k): describe(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [describe(v) for v in value]
    if isinstance(value, np.generic):  # one of numpy's numbers, as that of Python
        return describe(value.item())
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"describe: a configuration holds plain values and dataclasses, got {value!r}.")


def _is_said(value: Any, f: Field[Any]) -> bool:
    """Whether a field belongs into the description of a dataclass."""
    return not (f.metadata.get("later") and getattr(value, f.name) == f.default)
