"""Modules of several inputs: the inputs of a row are packed into one, and unpacked for the module.

A problem stores one tensor of inputs, so everything that handles rows works for such modules too.
"""

import inspect
import math
from collections.abc import Hashable, Mapping, Sequence, Sized
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from fedlib import checks, models
from fedlib.problems.datasets import read_all
from fedlib.problems.readers import as_tensor, check_range, is_exact
from fedlib.shapes import AnyTensor, Vector, WholeNumber

Inputs = tuple[Shaped[Tensor, "m ..."], ...]


@dataclass(frozen=True)
class Packing:
    """How the inputs of a row are packed.

    `shapes` and `dtypes` are those of a row's inputs, None for floats, which have the dtype of the
    packed tensor. `arguments` are the module's arguments: the number of an input, or a default.
    `names` are the arguments that are inputs, if the module names them.
    """

    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[torch.dtype | None, ...]
    arguments: tuple[Any, ...]
    names: tuple[str, ...] = ()

    def unpack(self, packed: Shaped[Tensor, "B n"]) -> list[Any]:
        """The module's arguments for some rows."""
        sizes = [prod(shape) for shape in self.shapes]
        columns = torch.split(packed, sizes, dim=-1)
        inputs = []
        forms = zip(columns, self.shapes, self.dtypes, strict=True)
        for entries, shape, dtype in forms:
            x = entries.reshape(len(packed), *shape)
            if dtype is not None:
                x = x.to(dtype)
            inputs.append(x)
        arguments = []
        for argument in self.arguments:
            if isinstance(argument, InputNumber):
                argument = inputs[argument.number]
            arguments.append(argument)
        return arguments


@dataclass(frozen=True)
class InputNumber:
    """The number of an input that an argument of a module takes."""

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
        coin: WholeNumber | None = None,
    ) -> AnyTensor:
        """The module's output; dropout is active only if `train`."""
        inputs = self.packing.unpack(packed)
        return self.function(w, *inputs, train=train, coin=coin)

    def changed_buffers(self, packed: Shaped[Tensor, "B n"]) -> list[str]:
        """The buffers that the module itself changes in a call."""
        inputs = self.packing.unpack(packed)
        return self.function.changed_buffers(*inputs)

    @property
    def constants(self) -> Mapping[str, Tensor]:
        """The module's buffers and frozen parameters."""
        return self.function.constants

    @property
    def dropout(self) -> tuple[str, ...]:
        """The names of the layers with dropout."""
        return self.function.dropout


def pack_client(
    caller: str,
    label: str,
    client: Any,
    columns: Sequence[Hashable],
    module: nn.Module,
    packing: Packing | None,
) -> tuple[Any, Packing | None]:
    """A client's rows in a form that `as_rows` reads, with several inputs packed into one.

    `packing` is that of the clients before; the first client determines it. Rows with one input
    are returned as they are. Raises ValueError or TypeError that names the client.
    """
    if isinstance(client, (Dataset, DataLoader)):
        client = read_all(caller, label, client)
    if isinstance(client, Mapping):
        client = divided_dict(caller, label, client, columns, module)
    if not isinstance(client, (tuple, list)) or len(client) < 2:
        return client, packing
    inputs, target, *further = client
    if not is_several(inputs, target, module):
        return client, packing
    names: list[str] = []
    if isinstance(inputs, Mapping):
        order = [*forward_arguments(module), *inputs]
        names = sorted(inputs, key=order.index)
        inputs = [inputs[argument] for argument in names]
    name = f"inputs of {label}"
    tensors = tuple(as_tensor(caller, name, x) for x in inputs)
    if packing is None:
        packing = packing_of(caller, names, tensors, module)
    rule = f"be for the arguments {list(packing.names)}, as those of the clients before"
    fits = not names or tuple(names) == packing.names
    checks.require(fits, caller, name, rule, names)
    packed = pack(caller, label, packing, tensors, models.float_type(module))
    return [packed, target, *further], packing


def divided_dict(
    caller: str,
    label: str,
    entries: Mapping[str, Any],
    columns: Sequence[Hashable],
    module: nn.Module,
) -> Any:
    """A dict with several arguments of the module as inputs, target and columns; else the dict.

    The target is the only entry that is neither a column nor an argument of the module.
    """
    arguments = forward_arguments(module)
    names = [key for key in entries if key in arguments and key not in columns]
    if len(names) < 2:
        return entries
    inputs = {name: entries[name] for name in names}
    targets = [key for key in entries if key not in inputs and key not in columns]
    rule = f"have one entry, the target, beside {list(columns)} and the inputs {list(inputs)}"
    remedy = "name further entries in columns"
    checks.require(len(targets) == 1, caller, label, rule, targets, remedy)
    missing = [column for column in columns if column not in entries]
    rule = f"have the columns {list(columns)}"
    checks.require(not missing, caller, label, rule, list(entries))
    further = [entries[str(column)] for column in columns]
    target = entries[targets[0]]
    return [inputs, target, *further]


def is_several(inputs: Any, target: Any, module: nn.Module) -> bool:
    """Whether the inputs of a client are several tensors, arrays or frames.

    A list of lists is one array, and so is a list of rows, which is as long as the target.
    """
    if isinstance(inputs, Mapping):
        return True
    if not isinstance(inputs, (tuple, list)):
        return False
    if not 2 <= len(inputs) <= most_inputs(module):
        return False
    if not all(map(has_rows, inputs)):
        return False
    rows = 0
    if isinstance(target, Sized):
        rows = len(target)
    return all(len(x) == rows for x in inputs) or len(inputs) != rows


def has_rows(x: Any) -> bool:
    """Whether an input is a tensor, an array or a frame with rows."""
    return bool(getattr(x, "ndim", 0)) and hasattr(x, "__len__")


def packing_of(caller: str, names: Sequence[str], inputs: Inputs, module: nn.Module) -> Packing:
    """How to pack inputs such as those of the first client.

    `names` are the arguments that the inputs are for; without names, they are the first arguments.
    Raises ValueError if the module has no such argument.
    """
    arguments: list[Any] = [InputNumber(number) for number in range(len(inputs))]
    if names:
        defaults = forward_arguments(module)
        unknown = [name for name in names if name not in defaults]
        order = list(defaults)
        rule = f"name arguments of the module, {order}"
        checks.require(not unknown, caller, "the inputs", rule, unknown)
        positions = [order.index(name) for name in names]
        end = max(positions) + 1
        arguments = list(defaults.values())[:end]
        for number, position in enumerate(positions):
            arguments[position] = InputNumber(number)
    dtypes: list[torch.dtype | None] = []
    for x in inputs:
        if x.is_floating_point() or x.dtype == torch.bool:
            dtypes.append(None)
        elif x.dtype == torch.uint8:
            dtypes.append(torch.uint8)
        else:
            dtypes.append(torch.int64)
    shapes = tuple(tuple(x.shape[1:]) for x in inputs)
    positional = tuple(forward_arguments(module))
    argument_names = tuple(names) or positional[: len(inputs)]
    return Packing(shapes, tuple(dtypes), tuple(arguments), argument_names)


def pack(
    caller: str, label: str, packing: Packing, inputs: Inputs, dtype: torch.dtype
) -> Shaped[Tensor, "m n"]:
    """Pack a client's inputs: whole numbers alone as int64, else in `dtype`.

    Raises ValueError if the inputs are not shaped as those of the first client, if they have
    different numbers of rows, if `dtype` cannot hold their numbers, or if an input that is of whole
    numbers, or of bytes, at the first client holds others.
    """
    shapes = [list(x.shape[1:]) for x in inputs]
    expected = [list(shape) for shape in packing.shapes]
    name = f"inputs of {label}"
    rule = f"have rows of the shapes {expected}"
    checks.require(shapes == expected, caller, name, rule, shapes)
    counts = sorted(set(map(len, inputs)))
    checks.require(len(counts) == 1, caller, name, "have equally many rows", counts)
    if None not in packing.dtypes:
        dtype = torch.int64
    rule = f"hold whole numbers that {dtype} can hold beside the floats"
    remedy = "convert the module with .double()"
    packed = []
    for x, first_dtype in zip(inputs, packing.dtypes, strict=True):
        checks.finite(caller, name, x, "drop or impute these rows")
        if dtype.is_floating_point:
            check_range(caller, name, x, dtype)
        if first_dtype is not None:
            same_rule = f"hold numbers of {first_dtype} alone, as those of the first client"
            convert = "convert this input of every client to one dtype"
            same = is_exact(x, first_dtype)
            checks.require(same, caller, name, same_rule, x, convert)
        fits = x.is_floating_point() or is_exact(x, dtype)
        checks.require(fits, caller, name, rule, x, remedy)
        entries = x.to(dtype)
        packed.append(entries.reshape(len(x), -1))
    return torch.cat(packed, 1)


def most_inputs(module: nn.Module) -> float:
    """How many inputs a module's forward method takes by position at most."""
    parameters = inspect.signature(module.forward).parameters.values()
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return math.inf
    return len(forward_arguments(module))


def forward_arguments(module: nn.Module) -> dict[str, Any]:
    """The arguments of a module's forward method by name, with their defaults."""
    defaults = {}
    signature = inspect.signature(module.forward)
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            default = parameter.default
            defaults[name] = None if default is parameter.empty else default
    return defaults
