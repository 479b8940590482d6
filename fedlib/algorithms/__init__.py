"""All algorithms, one file per paper or family of baselines.

The list of them is read off the folder: the dataclasses with a round that its files define. A file
whose name begins with an underscore holds what several of them share.
"""

from dataclasses import is_dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import torch


def _found() -> dict[str, Any]:
    """The algorithms by name, file by file."""
    files = [name for _, name, _ in iter_modules(__path__) if not name.startswith("_")]
    modules = [import_module(f"{__name__}.{name}") for name in files]
    return {
        name: thing
        for module in modules
        for name, thing in vars(module).items()
        if getattr(thing, "__module__", "") == module.__name__
        and is_dataclass(thing)
        and hasattr(thing, "round")
    }


def _states() -> list[Any]:
    """All that the files define, the states of the algorithms among it."""
    files = [name for _, name, _ in iter_modules(__path__)]
    return [x for name in files for x in vars(import_module(f"{__name__}.{name}")).values()]


globals().update(_found())
# so that `torch.load` reads back what `torch.save(trace.state, path)` wrote
torch.serialization.add_safe_globals(
    [thing for thing in _states() if isinstance(thing, type) and hasattr(thing, "_fields")]
)
__all__ = sorted(_found())

#: Every algorithm; the common test holds each of them to account.
ALGORITHMS = tuple(_found().values())
