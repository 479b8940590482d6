"""Modules of several inputs: the inputs of a row are packed into one, and unpacked for the module.

A problem stores one tensor of inputs, so everything that handles rows works for such modules too.
"""

import inspect
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch
from jaxtyping import Int, Shaped
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from fedlib import checks, models
from fedlib.problems.datasets import read_all
from fedlib.problems.readers import as_tensor
from fedlib.shapes import Vector

Inputs = tuple[Shaped[Tensor, "m ..."], ...]


@dataclass(frozen=True)
class Packing:
    """How the inputs of a row are packed.

    `shapes` and `dtypes` are those of a row's inputs, None for floats, which have the dtype of the
    packed tensor. `arguments` are the module's arguments: the number of an input, or a default.
    """

    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[torch.dtype | None, ...]
    arguments: tuple[Any, ...]

    def unpack(self, packed: Shaped[Tensor, "B n"]) -> list[Any]:
        """The module's arguments for some rows."""
        sizes = [prod(shape) for shape in self.shapes]
        parts = torch.split(packed, sizes, dim=-1)
        inputs = []
        for part, shape, dtype in zip(parts, self.shapes, self.dtypes, strict=True):
            part = part.reshape(len(packed), *shape)
            inputs.append(part if dtype is None else part.to(dtype))
        return [inputs[a.number] if isinstance(a, Place) else a for a in self.arguments]


@dataclass(frozen=True)
class Place:
    """The number of an input among the arguments of a module."""

    number: int


@dataclass(frozen=True)
class OfPacked:
    """A module as a function of its parameters and of packed inputs."""

    function: models.ModuleFunction
    packing: Packing

    def __call__(
        self,
        w: Vector,
        packed: Shaped[Tensor, "B n"],
        *,
        train: bool = True,
        coin: Int[Tensor, ""] | None = None,
    ) -> Shaped[Tensor, "..."]:
        """The module's output; dropout is active only if `train`."""
        return self.function(w, *self.packing.unpack(packed), train=train, coin=coin)

    @property
    def constants(self) -> Mapping[str, Tensor]:
        """The module's buffers and frozen parameters."""
        return self.function.constants

    @property
    def dropout(self) -> tuple[str, ...]:
        """The names of the layers with dropout."""
        return self.function.dropout


def pack_client(
    who: str,
    label: str,
    given: Any,
    columns: Sequence[Hashable],
    module: nn.Module,
    packing: Packing | None,
) -> tuple[Any, Packing | None]:
    """A client's rows in a form that `as_rows` reads, with several inputs packed into one.

    `packing` is that of the clients before; the first client determines it. Rows with one input
    are returned as they are. Raises ValueError or TypeError that names the client.
    """
    if isinstance(given, (Dataset, DataLoader)):
        given = read_all(who, label, given)
    if isinstance(given, Mapping):
        given = divided_dict(who, label, given, columns, module)
    if not isinstance(given, (tuple, list)) or len(given) < 2:
        return given, packing
    inputs, target, *others = given
    if not is_several(inputs, target):
        return given, packing
    names: list[str] = []
    parts = inputs
    if isinstance(inputs, Mapping):
        order = [*forward_arguments(module), *inputs]
        names = sorted(inputs, key=order.index)
        parts = [inputs[name] for name in names]
    tensors = tuple(as_tensor(who, f"inputs of {label}", x) for x in parts)
    if packing is None:
        packing = packing_of(who, names, tensors, module)
    packed = pack(who, label, packing, tensors, models.float_type(module))
    return [packed, target, *others], packing


def divided_dict(
    who: str,
    label: str,
    entries: Mapping[str, Any],
    columns: Sequence[Hashable],
    module: nn.Module,
) -> Any:
    """A dict with several arguments of the module as inputs, target and columns; else the dict.

    The target is the only entry that is neither a column nor an argument of the module.
    """
    arguments = forward_arguments(module)
    inputs = {key: x for key, x in entries.items() if key in arguments and key not in columns}
    if len(inputs) < 2:
        return entries
    others = [key for key in entries if key not in inputs and key not in columns]
    rule = f"have one entry, the target, beside {list(columns)} and the inputs {list(inputs)}"
    checks.require(len(others) == 1, who, label, rule, others, "name further entries in columns")
    missing = [column for column in columns if column not in entries]
    checks.require(not missing, who, label, f"have the columns {list(columns)}", list(entries))
    return [inputs, entries[others[0]], *(entries[str(column)] for column in columns)]


def is_several(inputs: Any, target: Any) -> bool:
    """Whether the inputs of a client are several tensors or arrays, as long as the target.

    A list of lists is one array, and so is a list of rows.
    """
    if isinstance(inputs, Mapping):
        return True
    if not isinstance(inputs, (tuple, list)) or len(inputs) < 2:
        return False
    tensors = all(isinstance(x, (Tensor, np.ndarray)) for x in inputs)
    return tensors and all(x.ndim and len(x) == len(target) for x in inputs)


def packing_of(who: str, names: Sequence[str], inputs: Inputs, module: nn.Module) -> Packing:
    """How to pack inputs such as those of the first client.

    `names` are the arguments that the inputs are for; without names, they are the first arguments.
    Raises ValueError if the module has no such argument.
    """
    arguments: list[Any] = [Place(k) for k in range(len(inputs))]
    if names:
        defaults = forward_arguments(module)
        wrong = [name for name in names if name not in defaults]
        rule = f"name arguments of the module, {[*defaults]}"
        checks.require(not wrong, who, "the inputs", rule, wrong)
        last = max([*defaults].index(name) for name in names)
        arguments = [*defaults.values()][: last + 1]
        for k, name in enumerate(names):
            arguments[[*defaults].index(name)] = Place(k)
    dtypes: list[torch.dtype | None] = []
    for x in inputs:
        float_or_bool = x.is_floating_point() or x.dtype == torch.bool
        whole = torch.uint8 if x.dtype == torch.uint8 else torch.int64
        dtypes.append(None if float_or_bool else whole)
    return Packing(tuple(tuple(x.shape[1:]) for x in inputs), tuple(dtypes), tuple(arguments))


def pack(
    who: str, label: str, packing: Packing, inputs: Inputs, dtype: torch.dtype
) -> Shaped[Tensor, "m n"]:
    """Pack a client's inputs: whole numbers alone as int64, else in `dtype`.

    Raises ValueError if the inputs are not shaped as those of the first client, if they have
    different numbers of rows, or if `dtype` cannot hold their whole numbers.
    """
    shapes = [list(x.shape[1:]) for x in inputs]
    wanted = [list(shape) for shape in packing.shapes]
    name = f"inputs of {label}"
    checks.require(shapes == wanted, who, name, f"have rows of the shapes {wanted}", shapes)
    counts = sorted({len(x) for x in inputs})
    checks.require(len(counts) == 1, who, name, "have equally many rows", counts)
    common = torch.int64 if None not in packing.dtypes else dtype
    for x in inputs:
        exact = x.is_floating_point() or bool((x.to(common).to(x.dtype) == x).all())
        rule = f"hold whole numbers that {common} can hold beside the floats"
        checks.require(exact, who, name, rule, x, "convert the module with .double()")
    return torch.cat([x.reshape(len(x), -1).to(common) for x in inputs], 1)


def forward_arguments(module: nn.Module) -> dict[str, Any]:
    """The arguments of a module's forward method by name, with their defaults."""
    parameters = inspect.signature(module.forward).parameters.values()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found = {p.name: p.default for p in parameters if p.kind in positional}
    return {k: None if x is inspect.Parameter.empty else x for k, x in found.items()}
