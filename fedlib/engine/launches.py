"""A compiled function as its kernels alone, on tensors that stay where they are.

What inductor writes around its kernels is Python, and makes every tensor between two kernels anew
in each call; in small rounds that takes longer than the kernels do. What one call launches is
therefore noted, with the tensors, and launched again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

KERNEL = "cpp_"  # what the names of inductor's kernels begin with
#: Bytes of all tensors of a call up to which it is noted: beyond, the kernels take the time, and
#: the compiler's own calls use memory again that is free.
MOST = 2**23

Function = Callable[..., Sequence[Shaped[Tensor, "..."]]]


class Unsteady(RuntimeError):
    """A call does more than launch kernels and write to tensors that are there."""


class Notes(TorchDispatchMode):
    """What is launched meanwhile: the kernels of some names, and operations of torch in place."""

    def __init__(self, names: dict[str, Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.steps: list[tuple[Callable[..., Any], Sequence[Any], dict[str, Any]]] = []
        self.names, self.kernels = names, {k: v for k, v in names.items() if k.startswith(KERNEL)}

    def __enter__(self) -> Notes:
        self.names.update({k: self._noted(v) for k, v in self.kernels.items()})
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: object) -> None:
        self.names.update(self.kernels)
        super().__exit__(*error)  # type: ignore[no-untyped-call]

    def _noted(self, kernel: Callable[..., Any]) -> Callable[..., None]:
        def launch(*args: Any) -> None:
            self.steps.append((kernel, args, {}))
            kernel(*args)

        return launch

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        found = func(*args, **given)
        if func.is_view:  # of a tensor that stays where it is
            return found
        if not (isinstance(found, Tensor) and any(found is x for x in _tensors((args, given)))):
            raise Unsteady(func)
        self.steps.append((func, args, given))
        return found


class Launches:
    """The kernels that one call of a compiled function launched, to be launched again.

    Parameters
    ----------
    function : what was compiled.
    names : the global names of what the compiler wrote.
    arguments : an example of its arguments; the first `fixed` are the same in every call.

    Raises
    ------
    Unsteady
        if the call makes tensors by operations of torch, or the tensors are large.
    """

    def __init__(
        self, function: Function, names: dict[str, Any], arguments: Sequence[Any], fixed: int
    ) -> None:
        self.arguments = [*arguments[:fixed], *(x.clone() for x in arguments[fixed:])]
        with Notes(names) as notes:
            self.outputs = list(function(*self.arguments))
        self.steps = notes.steps
        if sum(x.nbytes for x in _tensors([step[1:] for step in self.steps])) > MOST:
            raise Unsteady("large")

    def __call__(self, *arguments: Shaped[Tensor, "..."]) -> list[Shaped[Tensor, "..."]]:
        """What the function gives for such arguments."""
        for own, x in zip(self.arguments, arguments, strict=True):
            if own is not x:
                own.copy_(x)
        for step, args, given in self.steps:
            step(*args, **given)
        return [x.clone() for x in self.outputs]


def launches(
    function: Function, made: Sequence[Any], arguments: Sequence[Any], fixed: int
) -> Function:
    """The kernels of a function alone, or itself where they do not give what it gives.

    `made` has what inductor made of the function's graph.
    """
    # another version of inductor may make something else
    with suppress(Unsteady, AttributeError, LookupError, AssertionError):
        names = made[-1].current_callable.__func__.__globals__
        fast = Launches(function, names, arguments, fixed)
        others = [*arguments[:fixed], *(x.flip(-1) if x.dim() else x for x in arguments[fixed:])]
        found, expected = fast(*others), [*function(*others)]
        torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
        return fast
    return function


def _tensors(tree: Any) -> list[Tensor]:
    return [x for x in pytree.tree_leaves(tree) if isinstance(x, Tensor)]
