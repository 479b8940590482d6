"""Whether a round draws random numbers, seen from its own thread."""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


def draws_numbers(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bool:
    """Call a function; whether it draws from torch's global generator in this thread.

    The state of that generator alone does not tell, since other threads may draw meanwhile.
    """
    watch = _Watch()
    with watch:
        function(*arguments)
    return watch.has_drawn


class _Watch(TorchDispatchMode):
    """Notes the operations of its own thread that move torch's global generator."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.has_drawn = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # the signature is torch's
        kwargs = kwargs or {}
        own = any(isinstance(x, torch.Generator) for x in (*args, *kwargs.values()))
        if own or torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*args, **kwargs)
        before = torch.get_rng_state()  # such an operation may draw nothing, as dropout of 0
        result = func(*args, **kwargs)
        self.has_drawn |= not torch.equal(before, torch.get_rng_state())
        return result
