"""Torch's settings around a run, which must not change its numbers."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch.utils import _pytree as pytree

from fedlib.core.problem import Problem


@contextmanager
def plain_torch(device: torch.device) -> Iterator[None]:
    """Compute as torch does by default, whatever the caller has set for this thread.

    Autocast and inference mode are off, autograd is on, and new tensors are on the CPU unless they
    name a device.
    """
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        for kind in {"cpu", device.type}:
            if torch.amp.is_autocast_available(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        if torch.get_default_device().type != "cpu":
            stack.enter_context(torch.device("cpu"))
        yield


def without_inference(problem: Problem) -> Problem:
    """The problem with copies of the tensors that autograd cannot follow.

    Such tensors were made in inference mode.
    """
    tensors = problem.tensors()
    if not any(x.is_inference() for x in pytree.tree_leaves(tensors)):
        return problem
    plain = pytree.tree_map(lambda x: x.clone() if x.is_inference() else x, tensors)
    return problem.with_tensors(plain)
