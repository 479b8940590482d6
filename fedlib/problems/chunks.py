"""How many rows a module may evaluate at a time, such that its activations need little memory."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

LIMIT = 2**25  # bytes of activations that are held at a time; smaller problems are not split


class CountedBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of all results of torch's operations."""

    total: int = 0

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Any = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run one operation and add the size of its results."""
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        for leaf in pytree.tree_leaves(result):
            if isinstance(leaf, Tensor):
                self.total += leaf.nbytes
        return result


def bytes_of(function: Callable[..., Any], *arguments: Any) -> int:
    """The bytes of all intermediate results of a call."""
    counted = CountedBytes()  # type: ignore[no-untyped-call]
    with torch.no_grad(), counted:
        function(*arguments)
    return int(counted.total)


def rows_at_a_time(apply: Callable[..., Any], w: Tensor, inputs: Tensor) -> int:
    """How many rows of the inputs `[R, ...]` a module evaluates at a time; R if they all fit.

    Rows are split only if the module gives one result for each row, from this row alone.
    """
    count = len(inputs)
    sample = inputs[:4]
    half = len(sample) // 2
    if not half:
        return count
    sample_bytes = bytes_of(apply, w, sample)
    half_bytes = bytes_of(apply, w, sample[:half])
    row_bytes = (sample_bytes - half_bytes) / (len(sample) - half)
    if row_bytes * count <= LIMIT:
        return count
    if not rows_are_apart(apply, w, sample):
        return count
    return max(1, int(LIMIT / row_bytes))


def rows_are_apart(apply: Callable[..., Any], w: Tensor, inputs: Tensor) -> bool:
    """Whether a module gives one result for each row, from this row alone."""
    try:
        with torch.no_grad():
            together = apply(w, inputs)
            outputs = [apply(w, row.unsqueeze(0)) for row in inputs]
            apart = torch.cat(outputs)
    except Exception:  # no tensor, or a module that does not take one row alone
        return False
    if not isinstance(together, Tensor) or together.shape != apart.shape:
        return False
    eps = torch.finfo(w.dtype).eps
    tolerance = max(1e-4, 8 * eps)
    return torch.allclose(apart, together, rtol=tolerance, atol=tolerance)
