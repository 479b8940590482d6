"""Readers of one client's rows: tensors, arrays, lists and dicts as plain dense tensors."""

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Shaped
from numpy.typing import NDArray
from torch import Tensor
from torch.masked import MaskedTensor
from torch.utils._python_dispatch import is_traceable_wrapper_subclass
from torch.utils.data import DataLoader, Dataset

from fedlib import checks
from fedlib.problems.datasets import read_all

#: The inputs, the target and the further columns of some rows.
Rows = Sequence[Shaped[Tensor, "m ..."]]

#: What to do with an array that does not hold real numbers, by the kind of its dtype.
REMEDIES = {
    "c": "pass the real and the imaginary part, see torch.view_as_real",
    "M": "pass numbers, such as the days since a date",
    "m": "pass numbers, such as days",
    "V": "pass an array of one kind of numbers",
}
UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)  # torch cannot index or stack them
LARGEST = 2**63 - 1  # of int64


def remedy_for(kind: str) -> str:
    """What to do with values of a dtype, whose `kind` is a letter of numpy's."""
    return REMEDIES.get(kind, "encode texts and objects as numbers")


def as_rows(who: str, label: str, given: Any, columns: Sequence[Hashable]) -> Rows:
    """One client's `(inputs, target, further columns)` as tensors.

    `given` is a tuple or list of tensors, arrays or lists; a torch Dataset or DataLoader, which is
    read once (see `read_all`); or a dict, whose entries other than `columns` are the inputs and the
    target, in this order. Raises ValueError or TypeError that names the client and the part that is
    not a dense tensor of real numbers.
    """
    names = ("inputs", "target", *columns)
    if isinstance(given, (Dataset, DataLoader)):
        given = read_all(who, label, given)
    if isinstance(given, Mapping):
        first = [key for key in given if key not in columns]
        rule = f"have two entries beside {list(columns)}: inputs and target"
        checks.require(len(first) == 2, who, label, rule, list(given))
        given = [given[key] for key in (*first, *columns)]
    checks.value(who, label, given, tuple | list)
    rule = f"be {len(names)} tensors: {', '.join(map(str, names))}"
    checks.require(len(given) == len(names), who, label, rule, len(given))
    return tuple(as_tensor(who, f"{n} of {label}", x) for n, x in zip(names, given, strict=True))


def as_tensor(who: str, name: str, given: Any) -> Shaped[Tensor, "m ..."]:
    """Convert a tensor, an array or a list of real numbers to a plain dense tensor on the CPU.

    Raises TypeError or ValueError for gaps, and for all that are not real numbers.
    """
    x = given if isinstance(given, Tensor) else tensor_of_array(who, name, given)
    check_plain(who, name, x)
    if x.is_quantized:
        x = x.dequantize()
    x = x.detach().as_subclass(Tensor).cpu().resolve_neg()
    if x.dtype in UNSIGNED:
        largest = int(x.numpy().max(initial=0))
        checks.require(largest <= LARGEST, who, name, "hold whole numbers below 2^63", largest)
        x = x.to(torch.int64)
    return x


def tensor_of_array(who: str, name: str, given: Any) -> Tensor:
    """The tensor of an array, of a frame or of a list."""
    if isinstance(given, np.ma.MaskedArray):
        gaps = int(np.ma.getmaskarray(given).sum())
        remedy = "drop these rows, or fill them with .filled(value)"
        checks.require(not gaps, who, name, "have no masked entries", gaps, remedy)
    try:
        if holds_tensors(given):
            return torch.as_tensor(given)
        array = np.asarray(given)
        if array.dtype == object and array.ndim:
            array = np.array(array.tolist())  # plain numbers give an array of numbers
    except Exception as error:
        raise not_numbers(who, name, given, str(error).partition("\n")[0]) from error
    if array.dtype.kind not in "biuf":
        remedy = "call .toarray()" if hasattr(given, "toarray") else remedy_for(array.dtype.kind)
        raise not_numbers(who, name, given, str(array.dtype), remedy)
    return torch.as_tensor(plain_array(array))


def holds_tensors(given: Any) -> bool:
    """Whether a list has a tensor in it."""
    return isinstance(given, (list, tuple)) and any(isinstance(x, Tensor) for x in given)


def not_numbers(who: str, name: str, given: Any, why: str, remedy: str = "") -> TypeError:
    """The error for an array that does not hold real numbers."""
    rule = f"hold real numbers ({why})"
    return TypeError(checks.sentence(who, name, rule, given, remedy))


def plain_array(array: NDArray[Any]) -> NDArray[Any]:
    """An array that torch takes: writable, in this machine's byte order, without odd strides."""
    dtype = array.dtype.newbyteorder("=")
    if dtype.kind == "f" and dtype.itemsize > 8:
        dtype = np.dtype(np.float64)  # torch has no longer floats
    odd = any(stride < 0 or stride % array.itemsize for stride in array.strides)
    if odd or dtype != array.dtype or not array.flags.writeable:
        return np.array(array, dtype=dtype, order="C")
    return array


def check_plain(who: str, name: str, x: Tensor) -> None:
    """Raise ValueError unless a tensor is dense, has values and rows, and holds real numbers."""
    fits = x.layout is torch.strided and not x.is_nested and x.dim()
    got = "nested" if x.is_nested else (x.layout, *x.shape)
    remedy = "call .to_dense(), or pad nested rows"
    checks.require(fits, who, name, "be dense, with a row a sample", got, remedy)
    masked = isinstance(x, MaskedTensor)
    remedy = "drop these rows, or fill the gaps with .to_tensor(value)"
    checks.require(not masked, who, name, "have no masked entries", type(x).__name__, remedy)
    plain = not is_traceable_wrapper_subclass(x) and not x.is_meta
    remedy = "convert it to an ordinary tensor"
    checks.require(plain, who, name, "hold its own values", type(x).__name__, remedy)
    checks.require(not x.is_complex(), who, name, "hold real numbers", x, REMEDIES["c"])


def cast(x: Shaped[Tensor, "*b"], dtype: torch.dtype, *, whole: bool = True) -> Any:
    """Convert floats and truth values to the parameters' dtype, whole numbers to int64.

    Inputs of bytes are pictures and stay bytes, unless `whole`.
    """
    if x.is_floating_point() or x.dtype == torch.bool:
        return x.to(dtype)
    return x if x.dtype == torch.uint8 and not whole else x.to(torch.int64)


def check_range(who: str, name: str, x: Shaped[Tensor, "m ..."], dtype: torch.dtype) -> None:
    """Raise ValueError unless finite floats stay finite in the parameters' dtype."""
    if not x.is_floating_point() or not x.numel():
        return
    largest = torch.finfo(dtype).max
    most = max(abs(float(end)) for end in x.aminmax())
    remedy = "scale the numbers, or convert the module with .double()"
    checks.require(most <= largest, who, name, f"hold numbers that {dtype} can hold", most, remedy)


def digest(tensors: Sequence[Shaped[Tensor, "..."]]) -> str:
    """The SHA-256 digest of the rows, by which a stored run recognizes its data."""
    sha = hashlib.sha256()
    for x in tensors:
        if x.dtype == torch.bfloat16 or (x.is_floating_point() and x.itemsize == 1):
            x = x.float()  # numpy has no such dtype
        sha.update(f"{x.dtype} {list(x.shape)}".encode())
        sha.update(x.contiguous().view(-1).numpy().view(np.uint8).data)
    return sha.hexdigest()[:16]
