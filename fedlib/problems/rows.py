"""Clients' rows in the forms that people have them in, as tensors."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Shaped
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, default_collate

from fedlib import checks

#: Inputs, target and further columns of some rows.
Rows = Sequence[Shaped[Tensor, "m ..."]]


def as_rows(who: str, label: str, given: Any, columns: Sequence[Hashable]) -> Rows:
    """One client's `(inputs, target, further columns)` as tensors.

    `given` is a tuple or list of tensors, arrays or lists; a torch Dataset or DataLoader, which is
    read once from its first sample to its last; or a dict, whose entries other than `columns` are
    the inputs and the target, in this order.

    Raises ValueError or TypeError that names the client, and the part that is no dense tensor of
    numbers.
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
    """A tensor, an array or a list of numbers as a dense tensor on the CPU."""
    if isinstance(given, np.ndarray) and not given.dtype.isnative:
        given = given.astype(given.dtype.newbyteorder("="))
    if isinstance(given, np.ndarray) and not given.flags.writeable:
        given = given.copy()  # torch warns of an array that must not be written to
    try:
        x = torch.as_tensor(given)
    except (TypeError, ValueError, RuntimeError) as error:
        why = str(error).partition("\n")[0]
        raise TypeError(checks.sentence(who, name, f"hold numbers ({why})", given)) from None
    dense = x.layout is torch.strided and not x.is_nested
    rule, remedy = "be a dense tensor", "call .to_dense(), or pad nested rows"
    checks.require(dense, who, name, rule, x.layout if not x.is_nested else "nested", remedy)
    checks.require(x.dim(), who, name, "have a row a sample", list(x.shape))
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
    """Floats and truth values in the dtype of the parameters, whole numbers as int64.

    Bytes of inputs stay bytes where not `whole`: they are pictures.
    """
    if x.is_floating_point() or x.dtype == torch.bool:
        return x.to(dtype)
    return x if x.dtype == torch.uint8 and not whole else x.to(torch.int64)
