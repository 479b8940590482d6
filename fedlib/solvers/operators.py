"""Solvers on the CPU as torch operators.

Solvers that branch on values can neither be mapped by `vmap` nor recorded with a round. As a custom
operator, such a solver receives the problems of all seeds as one batch, in float64 on the CPU.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedlib.shapes import AnyTensor

Array = NDArray[np.float64]


def batched_operator(
    schema: str,
    shape: Callable[[Any], torch.Size],
) -> Callable[..., Any]:
    """Decorator that makes a function on the CPU the torch operator `fedlib::FUNCTION`.

    Parameters
    ----------
    schema : str
        The operator's signature in torch's notation. Every tensor has a leading batch axis, which
        absorbs the axis that `vmap` maps over.
    shape : Callable
        A function of the tuple of all arguments that returns the result's shape.

    (A shape checker would hide the annotations from which torch could make a schema.)
    """

    def decorate(function: Callable[..., Tensor]) -> Any:
        operator = torch.library.custom_op(
            f"fedlib::{function.__name__}",
            function,
            mutates_args=(),
            schema=schema,
        )

        @operator.register_fake
        def _(*arguments: Any) -> Tensor:
            empty: Tensor = arguments[0].new_empty(shape(arguments))
            return empty

        @operator.register_vmap
        def _(
            info: Any,
            in_dims: tuple[int | None, ...],
            *arguments: Any,
        ) -> tuple[Tensor, int]:
            size = info.batch_size
            merged = []
            for argument, axis in zip(arguments, in_dims, strict=True):
                merged.append(absorb(argument, axis, size))
            result = operator(*merged)
            return result.unflatten(0, (size, -1)), 0

        return operator

    return decorate


def absorb(
    argument: Any,
    axis: int | None,
    size: int,
) -> Any:
    """Merge a mapped axis of length `size` into the leading batch axis of a tensor."""
    if not isinstance(argument, Tensor):
        return argument
    if axis is None:
        return argument.expand(size, *argument.shape).flatten(0, 1)
    return argument.movedim(axis, 0).flatten(0, 1)


def on_cpu(x: AnyTensor) -> Array:
    """The values as a numpy array in float64."""
    values = x.detach().cpu()
    array = values.double().numpy()
    return np.asarray(array)
