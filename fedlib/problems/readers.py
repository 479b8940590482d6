"""Readers: frames, arrays, Datasets and DataLoaders as dense tensors, one row a sample."""

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Shaped
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, default_collate

from fedlib import checks

if TYPE_CHECKING:
    from pandas import DataFrame

#: The inputs, the target and the further columns of some rows.
Rows = Sequence[Shaped[Tensor, "m ..."]]


def as_rows(who: str, label: str, given: Any, columns: Sequence[Hashable]) -> Rows:
    """One client's `(inputs, target, further columns)` as tensors.

    `given` is a tuple or list of tensors, arrays or lists; a torch Dataset or DataLoader, which is
    read once from its first sample to its last; or a dict, whose entries other than `columns` are
    the inputs and the target, in this order. Raises ValueError or TypeError that names the client
    and the part that is not a dense tensor of numbers.
    """
    names = ("inputs", "target", *columns)
    if isinstance(given, (Dataset, DataLoader)):
        given = _collated(given)
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
    """Convert a tensor, an array or a list of numbers to a dense tensor on the CPU."""
    if isinstance(given, np.ndarray) and not given.dtype.isnative:
        given = given.astype(given.dtype.newbyteorder("="))
    if isinstance(given, np.ndarray) and not given.flags.writeable:
        given = given.copy()  # torch warns of read-only arrays
    try:
        x = torch.as_tensor(given)
    except (TypeError, ValueError, RuntimeError) as error:
        why = str(error).partition("\n")[0]
        raise TypeError(checks.sentence(who, name, f"hold numbers ({why})", given)) from None
    fits = x.layout is torch.strided and not x.is_nested and x.dim()
    rule, remedy = "be dense, with a row a sample", "call .to_dense(), or pad nested rows"
    got = "nested" if x.is_nested else (x.layout, *x.shape)
    checks.require(fits, who, name, rule, got, remedy)
    return x.detach().cpu()


def _collated(given: Any) -> Any:
    """All samples of a Dataset or a DataLoader as one batch."""
    if isinstance(given, DataLoader):
        collate, dataset = given.collate_fn, given.dataset
    else:
        collate, dataset = default_collate, given
    if hasattr(dataset, "__len__"):
        return collate([dataset[i] for i in range(len(dataset))])
    batches = list(given)
    if isinstance(batches[0], Mapping):
        return {key: torch.cat([b[key] for b in batches]) for key in batches[0]}
    return [torch.cat([torch.as_tensor(x) for x in part]) for part in zip(*batches, strict=True)]


def cast(x: Shaped[Tensor, "*b"], dtype: torch.dtype, *, whole: bool = True) -> Any:
    """Convert floats and truth values to the parameters' dtype, whole numbers to int64.

    Inputs of bytes are pictures and stay bytes, unless `whole`.
    """
    if x.is_floating_point() or x.dtype == torch.bool:
        return x.to(dtype)
    return x if x.dtype == torch.uint8 and not whole else x.to(torch.int64)


def tensors_of(
    who: str,
    frame: "DataFrame",
    features: list[Hashable],
    others: Sequence[Hashable],
    *also: Hashable,
) -> Rows:
    """Features `[R, p]` and other columns `[R]` of a frame; raises unless all are finite.

    The frame must have each column exactly once, those in `also` too, and at least one row.
    """
    checks.require(len(frame), who, "a frame", "have rows", 0)
    labels = [*frame.columns]
    for column in (*also, *features, *others):
        rule = f"hold {'one' if column in labels else 'the'} column {column!r}"
        near = ", ".join(map(repr, get_close_matches(str(column), map(str, labels), n=3)))
        remedy = f"nearest: {near}" if near else ""
        checks.require(labels.count(column) == 1, who, "the frame", rule, labels, remedy)
    for column in (*features, *others):
        values, what = frame[column], f"column {column!r}"
        fits, remedy = values.dtype.kind in "biuf", "pass it through pandas.get_dummies"
        checks.require(fits, who, what, "hold numbers", values.dtype, remedy)
        floats = torch.tensor(values.to_numpy(dtype="float64", na_value=float("nan")))
        checks.finite(who, what, floats, "drop or impute these rows")
    # pandas' own dtypes, such as Int64, have a plain dtype of the same name
    plain = (
        x.to_numpy(dtype=getattr(x.dtype, "numpy_dtype", x.dtype))
        for x in (frame[column] for column in others)
    )
    inputs = torch.tensor(frame[features].to_numpy(dtype="float64"))
    return inputs, *(as_tensor(who, "a column", x) for x in plain)


def digest(tensors: Sequence[Shaped[Tensor, "..."]]) -> str:
    """The SHA-256 digest of the rows, by which a stored run recognizes its data."""
    sha = hashlib.sha256()
    for x in tensors:
        x = x.float() if x.dtype == torch.bfloat16 else x  # numpy has no bfloat16
        sha.update(f"{x.dtype} {list(x.shape)}".encode() + x.contiguous().numpy().tobytes())
    return sha.hexdigest()[:16]
