"""A recording beside the function itself, and what simplification leaves of it."""

import torch

from fedlib.engine.operations import operations
from fedlib.engine.record import record
from fedlib.engine.simplify import simplify


def simplified(function, *example):
    """Names of the operations left after simplification, and the simplified module."""

    def flat(*inputs):
        found = function(*inputs)
        return found if isinstance(found, tuple) else (found,)

    module = operations(flat, example)
    simplify(module)
    calls = [n.target for n in module.graph.nodes if n.op == "call_function"]
    return [c.__name__.partition(".")[0] for c in calls], module


def same(function, *example):
    """The recording of `function`, checked bit for bit on the example and on other arguments."""
    replay = record(function, *example)
    for arguments in (example, [x * 2 - 1 for x in example]):
        expected = function(*arguments)
        expected = expected if isinstance(expected, tuple) else (expected,)
        given = replay(*arguments)
        given = given if isinstance(given, tuple) else (given,)
        for a, b in zip(given, expected, strict=True):
            assert a.dtype == b.dtype
            assert torch.equal(a, b)
    return replay
