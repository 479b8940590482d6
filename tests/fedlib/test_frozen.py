"""Algorithms and ingredients cannot be changed once they are made, so that they can be shared."""

import inspect
import pkgutil
from dataclasses import is_dataclass
from importlib import import_module

import pytest

import fedlib

FOLDERS = ("algorithms", "compress", "sets", "steps", "weights")


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_dataclass_is_frozen(folder):
    package = getattr(fedlib, folder)
    modules = [
        import_module(f"{package.__name__}.{m.name}")
        for m in pkgutil.iter_modules(package.__path__)
    ]
    found = {
        kind
        for module in modules
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if is_dataclass(kind) and kind.__module__.startswith(package.__name__)
    }
    assert len(found) > 2
    assert [kind for kind in found if not kind.__dataclass_params__.frozen] == []
