"""The methods of the papers and their baselines.

`ALGORITHMS` is read off the folder: it lists the dataclasses with a method `round`.
"""

from dataclasses import is_dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import torch

_FILES = [import_module(f"{__name__}.{file.name}") for file in iter_modules(__path__)]
_OWN: list[Any] = [
    x for f in _FILES for x in vars(f).values() if getattr(x, "__module__", "") == f.__name__
]

#: Every algorithm of the library; one common test checks all of them.
ALGORITHMS: tuple[Any, ...] = tuple(x for x in _OWN if is_dataclass(x) and hasattr(x, "round"))
globals().update({method.__name__: method for method in ALGORITHMS})
__all__ = sorted(method.__name__ for method in ALGORITHMS)
# so that `torch.load` reads back what `torch.save(trace.state, path)` wrote
_STATES = [x for f in _FILES for x in vars(f).values() if hasattr(x, "_fields")]
torch.serialization.add_safe_globals(_STATES)
