"""What a run computes, in short: by it a checkpoint or a trace is known to belong to the run.

Functions are told apart by their bytecode, defaults and closures, and by the globals that they
read, followed through functions, classes and objects of people's own. Functions of installed
packages and of this library count by their names and closures. Numbers are told apart exactly, but
float tensors up to rounding, since another machine may round data differently.

Not seen are: a change smaller than rounding; an installed package of another version; what code
reads from files, from the environment, or by names that it computes; and what lies beyond `MOST`
objects. Another version of Python has other bytecode, so it refuses earlier checkpoints.
"""

import builtins
import dis
import functools
import hashlib
import math
import os
import sys
import sysconfig
import types
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from fedlib.core.identity import Identity
from fedlib.core.problem import Problem
from fedlib.core.sampling import seeded

MOST = 100_000  # objects that one part of a run may hold before the rest is passed over
WIDTH = 4096  # entries of a row when a tensor is projected
PROJECTIONS = 3
CHUNK = 16  # rows that are converted to float64 at a time
#: Types whose values are their text.
PLAIN = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    torch.dtype,
    torch.device,
)
#: Types whose values are known by their names.
NAMED = (
    types.BuiltinFunctionType,
    types.ModuleType,
    np.ufunc,
    torch.Generator,
)
#: What a class holds that says nothing of what it does.
BOOKKEEPING = {
    "__dict__",
    "__weakref__",
    "__module__",
    "__doc__",
    "__annotations__",
    "__firstlineno__",
    "__static_attributes__",
    "_abc_impl",
}
#: Folders whose code counts by its name: installed packages, Python, and this library.
LIBRARIES = tuple(
    f"{Path(folder).resolve()}{os.sep}"
    for folder in (
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("purelib"),
        sysconfig.get_path("platlib"),
        Path(__file__).parents[1],
    )
)


def identify(
    algorithms: Sequence[Any],
    problem: Problem,
    tensors: Sequence[Shaped[Tensor, "..."]],
    schedules: Mapping[str, Callable[[int], float]],
) -> Identity:
    """The identity of a run: its algorithms, its problem's functions, its data, its schedules.

    Parameters
    ----------
    algorithms : sequence of Algorithm
        The points of the grid.
    problem : Problem
        The problem of the first seed.
    tensors : sequence of Tensor
        The tensors of all seeds.
    schedules : mapping of str to callable
        The rules of scheduled fields.
    """
    contents: dict[str, Any] = {"algorithm": list(algorithms), "data": list(tensors)}
    tensor_fields = problem.tensors()
    for item in fields(problem):
        if item.name not in tensor_fields:
            contents[f"problem.{item.name}"] = getattr(problem, item.name)
    for name, rule in schedules.items():
        contents[f"schedules[{name!r}]"] = rule
    identity = Identity()
    for name, content in contents.items():
        walk = Walk()
        walk.add(content)
        identity.digests[name] = walk.sha.hexdigest()
        if walk.tensors:
            sketches = [sketch(x) for x in walk.tensors]
            identity.sketches[name] = torch.stack(sketches)
    return identity


@functools.lru_cache(maxsize=100)
def weights(count: int, seed: int) -> Float[Tensor, "count P"]:
    """Fixed Gaussian weights for projections."""
    rng = seeded(seed, "split")
    return torch.randn(count, PROJECTIONS, generator=rng, dtype=torch.float64)


def sketch(x: Float[Tensor, "..."]) -> Float[Tensor, "P_plus_2"]:
    """Some projections of a tensor, its length, and the tolerance for them, in float64."""
    flat = x.detach().reshape(-1)
    rows = math.ceil(len(flat) / WIDTH)
    projections = torch.zeros(PROJECTIONS, dtype=torch.float64)
    square = torch.zeros((), dtype=torch.float64)
    column_weights = weights(WIDTH, 0)
    row_weights = weights(rows, 1)
    for start in range(0, rows, CHUNK):
        end = start + CHUNK
        entries = flat[start * WIDTH : end * WIDTH].cpu().double()
        square_of_chunk = entries.dot(entries)
        if not square_of_chunk.isfinite():
            entries = entries.nan_to_num(0.5, 1.5, -1.5)
            square_of_chunk = entries.dot(entries)
        square += square_of_chunk
        count = len(entries) // WIDTH
        full_rows = entries[: count * WIDTH].view(count, WIDTH)
        projected = row_weights[start : start + count] * (full_rows @ column_weights)
        projections += projected.sum(0)
        last_row = entries[count * WIDTH :]
        if len(last_row):
            projected = last_row @ column_weights[: len(last_row)]
            projections += row_weights[start + count] * projected
    tolerance = torch.finfo(x.dtype).eps ** (2 / 3)
    length_and_tolerance = torch.tensor([float(square) ** 0.5, tolerance])
    return torch.cat([projections, length_and_tolerance.double()])


@dataclass
class Walk:
    """A digest of an object and of all that it holds; float tensors are kept for their sketches."""

    sha: Any = field(default_factory=hashlib.sha256)
    tensors: list[Float[Tensor, "..."]] = field(default_factory=list)
    seen: dict[int, tuple[int, Any]] = field(default_factory=dict)  # objects are kept alive

    def note(self, *words: object) -> None:
        """Add some words to the digest."""
        self.sha.update(repr(words).encode())

    def add(self, x: Any) -> None:
        """Add an object."""
        if isinstance(x, np.generic):
            self.note(type(x).__name__, str(x))
        elif isinstance(x, PLAIN):
            self.note(type(x).__name__, x)
        elif id(x) in self.seen:
            number, _ = self.seen[id(x)]
            self.note("seen", number)
        elif len(self.seen) < MOST:
            number = len(self.seen)
            self.seen[id(x)] = (number, x)
            try:
                self._add_new(x)
            except RecursionError:
                self.note("deep")

    def _add_new(self, x: Any) -> None:
        if isinstance(x, Tensor):
            self._add_tensor(x)
        elif isinstance(x, np.ndarray):
            self._add_array(x)
        elif isinstance(x, (list, tuple, deque)):
            self.note(type(x).__name__, len(x))
            self._add_all(x)
        elif isinstance(x, (set, frozenset)):
            self.note("set", sorted(digest_of(entry) for entry in x))
        elif isinstance(x, (dict, types.MappingProxyType)):
            self.note("mapping", len(x))
            for key, value in x.items():
                self._add_all((key, value))
        elif isinstance(x, functools.partial):
            self.note("partial")
            self._add_all((x.func, x.args, x.keywords))
        elif isinstance(x, types.MethodType):
            self.note("method")
            self._add_all((x.__func__, x.__self__))
        elif isinstance(x, types.FunctionType):
            self._add_function(x)
        elif isinstance(x, type):
            self._add_class(x)
        elif isinstance(x, NAMED):
            module = getattr(x, "__module__", "")
            name = getattr(x, "__name__", "")
            self.note(type(x).__name__, module, name)
        elif hasattr(x, "__wrapped__"):  # a cache, whose content says nothing
            self._add_all((x.__wrapped__,))
        else:
            self._add_object(x)

    def _add_all(self, objects: Any) -> None:
        for x in objects:
            self.add(x)

    def _add_tensor(self, x: Tensor) -> None:
        self.note("tensor", str(x.dtype), tuple(x.shape))
        if x.layout is not torch.strided:
            x = x.to_dense()
        if x.is_meta:
            return
        if x.is_floating_point():
            self.tensors.append(x.detach())
            return
        entries = x.detach().cpu().contiguous().reshape(-1)
        self.sha.update(entries.view(torch.uint8).numpy().tobytes())

    def _add_array(self, x: np.ndarray) -> None:
        self.note("array", str(x.dtype), x.shape)
        if x.dtype.kind == "f" and x.dtype.isnative and x.itemsize in (2, 4, 8):
            copied = np.ascontiguousarray(x).copy()
            self.tensors.append(torch.from_numpy(copied))
        elif x.dtype.hasobject:
            self._add_all(x.tolist())
        else:
            self.sha.update(np.ascontiguousarray(x).tobytes())

    def _add_function(self, function: types.FunctionType) -> None:
        self.note("function", function.__module__, function.__qualname__)
        self._add_all((function.__defaults__, function.__kwdefaults__))
        for cell in function.__closure__ or ():
            try:
                self.add(cell.cell_contents)
            except ValueError:  # a variable without a value
                self.note("empty")
        if not is_library(str(function.__globals__.get("__name__"))):
            self._add_code(function.__code__, function.__doc__)
            self._add_globals(function)

    def _add_code(self, code: types.CodeType, doc: str | None = None) -> None:
        self.note("code", code.co_code.hex(), code.co_names, code.co_argcount)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._add_code(constant)
            elif constant is not doc:
                self.add(constant)

    def _add_globals(self, function: types.FunctionType) -> None:
        names = set(function.__code__.co_names)
        for name in sorted(global_names(function.__code__)):
            if name in function.__globals__:
                value = function.__globals__[name]
                self.note("global", name)
                self.add(value)
                if isinstance(value, types.ModuleType) and not is_library(value.__name__):
                    for attribute in sorted(vars(value).keys() & names):
                        self.add(vars(value)[attribute])

    def _add_class(self, record: type) -> None:
        self.note("class", record.__module__, record.__qualname__)
        if not is_library(record.__module__):
            self._add_all(record.__bases__)
            for name, value in vars(record).items():
                if name not in BOOKKEEPING and not name.startswith("__dataclass_"):
                    self.note("attribute", name)
                    self.add(value)

    def _add_object(self, x: Any) -> None:
        if isinstance(x, (staticmethod, classmethod)):
            self.add(x.__func__)
            return
        if isinstance(x, property):
            self._add_all((x.fget, x.fset))
            return
        self.add(type(x))
        if is_dataclass(x):
            for item in fields(x):
                if item.compare:
                    self.note("field", item.name)
                    self.add(getattr(x, item.name, None))
            return
        if isinstance(x, nn.Module):
            for name, value in sorted(vars(x).items()):
                self.note("attribute", name)
                if "hook" in name and isinstance(value, dict):
                    # hooks are numbered in the order in which a process adds them
                    value = list(value.values())
                self.add(value)
            return
        if is_library(type(x).__module__):
            self.add(pickled_parts(x))
            return
        for name, value in own_attributes(x):
            self.note("attribute", name)
            self.add(value)


def pickled_parts(x: Any) -> Any:
    """What pickle would store of an object of an installed package, which leaves out its caches."""
    try:
        return x.__reduce_ex__(2)
    except Exception:  # a lock, a file and the like
        return None


def digest_of(x: Any) -> str:
    """The digest of one object."""
    walk = Walk()
    walk.add(x)
    return str(walk.sha.hexdigest())


def own_attributes(x: Any) -> list[tuple[str, Any]]:
    """The attributes of an object by name, without values that it caches."""
    attributes = dict(getattr(x, "__dict__", {}))
    for record in type(x).__mro__:
        for name, value in vars(record).items():
            if isinstance(value, functools.cached_property):
                attributes.pop(name, None)
            elif isinstance(value, types.MemberDescriptorType) and hasattr(x, name):  # a slot
                attributes[name] = getattr(x, name)
    return sorted(attributes.items())


@functools.lru_cache(maxsize=10_000)
def global_names(code: types.CodeType) -> set[str]:
    """The names of globals that some code reads, with the code of functions inside it."""
    names = set()
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names.add(str(instruction.argval))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names.update(global_names(constant))
    return {name for name in names if not hasattr(builtins, name)}


def is_library(name: str) -> bool:
    """Whether a module belongs to Python, an installed package or this library."""
    module = sys.modules.get(name)
    if module is None:
        return False
    file = getattr(module, "__file__", None)
    if file is None:  # built in, or a notebook
        return name in sys.builtin_module_names
    return is_library_file(file)


@functools.cache
def is_library_file(name: str) -> bool:
    """Whether a file belongs to Python, an installed package or this library."""
    return str(Path(name).resolve()).startswith(LIBRARIES)
