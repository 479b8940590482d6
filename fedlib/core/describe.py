"""Descriptions of algorithms and problems for stored runs: dataclasses as plain JSON values."""

from collections.abc import Mapping
from dataclasses import field, fields, is_dataclass
from typing import Any

import numpy as np


def added_field(default: Any) -> Any:
    """A field that was added after runs had been stored; `describe` omits its default value.

    With the default the class behaves as before, so the keys of stored runs stay valid.
    """
    return field(default=default, metadata={"later": True})


def describe(value: Any) -> Any:
    """A JSON value that names a dataclass and its fields recursively; see also `added_field`."""
    if is_dataclass(value) and not isinstance(value, type):
        inner = {
            f.name: describe(x)
            for f in fields(value)
            for x in (getattr(value, f.name),)
            if not (f.metadata.get("later") and x == f.default)
        }
        return {"type": type(value).__name__, **inner}
    if isinstance(value, Mapping):
        return {str(k): describe(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [describe(v) for v in value]
    if isinstance(value, np.generic):  # a number of numpy's becomes one of Python's
        return describe(value.item())
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"describe: a configuration holds plain values and dataclasses, got {value!r}.")
