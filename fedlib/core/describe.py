"""Descriptions of algorithms and problems in stored runs: dataclasses as plain JSON values."""

from collections.abc import Mapping
from dataclasses import field, fields, is_dataclass
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
    if isinstance(value, np.generic):  # one of numpy's numbers, as that of Python
        return describe(value.item())
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"describe: a configuration holds plain values and dataclasses, got {value!r}.")
