"""All algorithms, one file per paper or family of baselines.

The list of them is read off the folder: the dataclasses with a round that its files define. A file
whose name begins with an underscore holds what several of them share.
"""

from dataclasses import is_dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Any


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


globals().update(_found())
__all__ = sorted(_found())

#: Every algorithm; the common test holds each of them to account.
ALGORITHMS = tuple(_found().values())
