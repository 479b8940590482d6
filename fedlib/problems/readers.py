"""Readers of one client's rows: tensors, arrays, lists and dicts as plain dense tensors."""

import hashlib
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.masked import MaskedTensor
from torch.utils._python_dispatch import is_traceable_wrapper_subclass
from torch.utils.data import DataLoader, Dataset

from fedlib import checks
from fedlib.problems.datasets import read_all
from fedlib.shapes import AnyRows, AnyTensor

#: The inputs, the target and the further columns of some rows.
Rows = Sequence[AnyRows]

#: What to do with an array that does not hold real numbers, by the kind of its dtype.
REMEDIES = {
    "c": "pass the real and the imaginary part, see torch.view_as_real",
    "M": "pass numbers, such as the days since a date",
    "m": "pass numbers, such as days",
    "V": "pass an array of one kind of numbers",
}
UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)  # torch cannot index or stack them
LARGEST = 2**63 - 1  # of int64


def remedy_for(letter: str) -> str:
    """What to do with values of a dtype, whose `kind` is a letter of numpy's."""
    return REMEDIES.get(letter, "encode texts and objects as numbers")


def as_rows(caller: str, label: str, client: Any, columns: Sequence[Hashable]) -> Rows:
    """One client's `(inputs, target, further columns)` as tensors.

    `client` is a tuple or list of tensors, arrays or lists; a torch Dataset or DataLoader, which is
    read once (see `read_all`); or a dict, whose entries other than `columns` are the inputs and the
    target, in this order. Raises ValueError or TypeError that names the client and the part that is
    not a dense tensor of real numbers.
    """
    names = ("inputs", "target", *columns)
    if isinstance(client, (Dataset, DataLoader)):
        client = read_all(caller, label, client)
    if isinstance(client, Mapping):
        keys = [key for key in client if key not in columns]
        rule = f"have two entries beside {list(columns)}: inputs and target"
        checks.require(len(keys) == 2, caller, label, rule, list(client))
        keys.extend(columns)
        client = [client[key] for key in keys]
    remedy = ""
    if not isinstance(client, (tuple, list)):
        rule = "be a tuple (inputs, target), a dict, a Dataset or a DataLoader"
        if isinstance(client, type):
            remedy = f"write {client.__name__}(...)"
        raise TypeError(checks.sentence(caller, label, rule, client, remedy))
    expected = len(names)
    count = len(client)
    listed = ", ".join(map(str, names))
    rule = f"be {expected} tensors: {listed}"
    if count > expected:
        remedy = "name further ones in columns"
    checks.require(count == expected, caller, label, rule, count, remedy)
    rows = []
    for name, values in zip(names, client, strict=True):
        title = f"{name} of {label}"
        rows.append(as_tensor(caller, title, values))
    return tuple(rows)


def as_tensor(caller: str, name: str, values: Any) -> AnyRows:
    """Convert a tensor, an array or a list of real numbers to a plain dense tensor on the CPU.

    Raises TypeError or ValueError for gaps, and for all that are not real numbers.
    """
    x = values
    if not isinstance(x, Tensor):
        x = tensor_of_array(caller, name, values)
    check_plain(caller, name, x)
    if x.is_quantized:
        x = x.dequantize()
    if x.is_floating_point() and x.itemsize == 1:
        x = x.float()  # torch computes nothing with floats of 8 bits
    x = x.detach().as_subclass(Tensor)
    x = x.cpu().resolve_neg()
    if x.dtype in UNSIGNED:
        array = x.numpy()
        largest = int(array.max(initial=0))
        rule = "hold whole numbers below 2^63"
        checks.require(largest <= LARGEST, caller, name, rule, largest)
        x = x.to(torch.int64)
    return x


def tensor_of_array(caller: str, name: str, values: Any) -> Tensor:
    """The tensor of an array, of a frame or of a list."""
    if isinstance(values, Mapping):
        raise not_numbers(caller, name, values, "a dict", "pass one of its entries")
    if isinstance(values, (Iterator, Set)):
        class_name = type(values).__name__
        raise not_numbers(caller, name, values, class_name, "pass list(...)")
    if isinstance(values, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(values)
        gaps = int(mask.sum())
        remedy = "drop these rows, or fill them with .filled(value)"
        checks.require(not gaps, caller, name, "have no masked entries", gaps, remedy)
    try:
        if holds_tensors(values):
            tensors = [torch.as_tensor(x) for x in values]
            return torch.stack(tensors)
        array = np.asarray(values)
        if array.dtype == object and array.ndim:
            array = np.array(array.tolist())  # plain numbers give an array of numbers
    except Exception as error:
        reason, _, _ = str(error).partition("\n")
        raise not_numbers(caller, name, values, reason) from error
    letter = array.dtype.kind
    if letter not in "biuf":
        remedy = remedy_for(letter)
        if hasattr(values, "toarray"):
            remedy = "call .toarray()"
        elif letter == "O" and any(map(is_gap, array.flat)):
            remedy = "drop or impute the rows with gaps"
        raise not_numbers(caller, name, values, str(array.dtype), remedy)
    return torch.as_tensor(plain_array(array))


def is_gap(value: Any) -> bool:
    """Whether an entry stands for a missing value: None, NaN, or pandas' NA and NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and math.isnan(value)


def holds_tensors(values: Any) -> bool:
    """Whether a list has a tensor in it."""
    if not isinstance(values, (list, tuple)):
        return False
    return any(isinstance(x, Tensor) for x in values)


def not_numbers(
    caller: str,
    name: str,
    values: Any,
    reason: str,
    remedy: str = "",
) -> TypeError:
    """The error for an array that does not hold real numbers."""
    rule = f"hold real numbers ({reason})"
    return TypeError(checks.sentence(caller, name, rule, values, remedy))


def plain_array(array: NDArray[Any]) -> NDArray[Any]:
    """An array that torch takes: writable, in this machine's byte order, without odd strides."""
    dtype = array.dtype.newbyteorder("=")
    if dtype.kind == "f" and dtype.itemsize > 8:
        dtype = np.dtype(np.float64)  # torch has no longer floats
    odd = any(stride < 0 or stride % array.itemsize for stride in array.strides)
    must_copy = odd or array.dtype != dtype
    if array.flags.writeable and not must_copy:
        return array
    return np.array(array, dtype=dtype, order="C")


def check_plain(caller: str, name: str, x: Tensor) -> None:
    """Raise ValueError unless a tensor is dense, has values and rows, and holds real numbers."""
    is_dense = x.layout is torch.strided and not x.is_nested
    form: Any = "nested"
    if not x.is_nested:
        form = (x.layout, *x.shape)
    rule = "be dense, with a row a sample"
    remedy = "call .to_dense(), or pad nested rows"
    checks.require(is_dense, caller, name, rule, form, remedy)
    checks.require(x.dim(), caller, name, "have a row a sample", "a single number")
    class_name = type(x).__name__
    if x.is_meta:
        class_name = "a tensor on the meta device"
    is_masked = isinstance(x, MaskedTensor)
    remedy = "drop these rows, or fill the gaps with .to_tensor(value)"
    checks.require(not is_masked, caller, name, "have no masked entries", class_name, remedy)
    is_plain = not is_traceable_wrapper_subclass(x) and not x.is_meta
    remedy = "convert it to an ordinary tensor"
    checks.require(is_plain, caller, name, "hold its own values", class_name, remedy)
    checks.require(not x.is_complex(), caller, name, "hold real numbers", x, REMEDIES["c"])


def cast_rows(rows: Rows, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """Convert floats and truth values to the parameters' dtype, whole numbers to int64.

    Inputs of bytes, which come first, are pictures and stay bytes.
    """
    converted = []
    for position, x in enumerate(rows):
        if x.is_floating_point() or x.dtype == torch.bool:
            x = x.to(dtype)
        elif x.dtype != torch.uint8 or position > 0:
            x = x.to(torch.int64)
        converted.append(x)
    return tuple(converted)


def cast_as(data: Rows, rows: Rows) -> tuple[Tensor, ...]:
    """Some rows, with floats instead of whole numbers where the data hold floats."""
    converted = []
    for x, column in zip(rows, data, strict=False):
        if column.is_floating_point():
            x = x.to(column.dtype)
        converted.append(x)
    return tuple(converted)


def check_range(caller: str, name: str, x: AnyRows, dtype: torch.dtype) -> None:
    """Raise ValueError unless finite floats stay finite in the parameters' dtype."""
    if not x.is_floating_point() or not x.numel():
        return
    largest = torch.finfo(dtype).max
    low, high = x.aminmax()
    size = max(-float(low), float(high))
    rule = f"hold numbers that {dtype} can hold"
    remedy = "scale the numbers, or convert the module with .double()"
    checks.require(size <= largest, caller, name, rule, size, remedy)


def is_exact(x: AnyRows, dtype: torch.dtype) -> bool:
    """Whether a dtype holds the numbers of a tensor without rounding."""
    restored = x.to(dtype).to(x.dtype)
    return bool((restored == x).all())


def digest(tensors: Sequence[AnyTensor]) -> str:
    """The SHA-256 digest of the rows, by which a stored run recognizes its data."""
    sha = hashlib.sha256()
    for x in tensors:
        is_short = x.is_floating_point() and x.itemsize == 1
        if is_short or x.dtype == torch.bfloat16:
            x = x.float()  # numpy has no such dtype
        header = f"{x.dtype} {list(x.shape)}"
        sha.update(header.encode())
        flat = x.contiguous().view(-1)
        array = flat.numpy()
        numbers = array.view(np.uint8)
        sha.update(numbers.data)
    return sha.hexdigest()[:16]
