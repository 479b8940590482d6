"""Bad values of every kind of argument, and the calls that put each in each place of a function."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from judging import Case

from fedlib import problems
from fedlib.core import Problem

NAN, INF = math.nan, math.inf
NUMBERS = (True, "1", NAN, INF, -INF, 1j, [1.0], {}, b"1")
COUNT = (*NUMBERS, None, 0, -1, 2.0, 2.5, np.float64(2))
WHOLE = (*NUMBERS, None, -1, 2.0, 2.5)
SEED = (*WHOLE, 2**63, torch.tensor(1))
POSITIVE = (*NUMBERS, None, 0, 0.0, -0.5)
NONNEGATIVE = (*NUMBERS, None, -1, -0.5)
SHARE = (*NUMBERS, None, 0, 0.0, -0.1, 1.1, 2)
INSIDE = (*SHARE, 1, 1.0)
NUMBER = (*NUMBERS, None)
FLAG = ("no", "True", 1, 0, None, [True], 0.0)
TEXT = ("no such thing", "", 3, None, ["a"], b"a")
NAME = ("", 3, None, ["a"], b"a")
DTYPE = ("float32", float, None, 32, np.float32, torch.int64, torch.complex64, torch.float16)
RNG = (None, 0, "0", torch.Generator, np.random.default_rng(0))
CONFIG = ([1], "x", 3, {"a": object()}, {"a": torch.ones(2)}, {"a": NAN}, {"a": {1, 2}})
FUNCTION = ("f", 3, None, [], object)
PROBLEM = (None, "np", 3, Problem, problems.quadratics, [], {})
RECORD = (None, "x", 3, [], {}, object())
PATH = (3, None, b"a.json", ["a.json"], 1.5)


def tensors(shape: tuple[int, ...], entries: str = "float") -> tuple[Any, ...]:
    """What is no tensor of this shape with such entries."""
    good = torch.ones(shape, dtype=torch.float64)
    wrong = [good.tolist(), good.numpy(), None, "x", 3, torch.ones, good.to(torch.complex64)]
    wrong += [torch.ones(*shape, 1, 1), torch.tensor(1.0), good.unsqueeze(0)]
    if entries == "float":
        broken = good.clone()
        broken[(0,) * len(shape)] = NAN
        return (*wrong, good.long(), good.bool(), broken, good * INF)
    return (*wrong, good, good / 2)


def without(values: tuple[Any, ...], *ones: object) -> tuple[Any, ...]:
    """The values but for some that a place takes."""
    return tuple(v for v in values if not any(v is one for one in ones))


@dataclass(frozen=True)
class Calls:
    """A function, arguments with which it works, and bad values by the name of the argument.

    `also` has further words that may stand for an argument in the sentence.
    """

    function: Callable[..., Any]
    good: Callable[[], dict[str, Any]]
    bad: Mapping[str, tuple[Any, ...]]
    also: Mapping[str, tuple[str, ...]]
    name: str = ""

    @property
    def called(self) -> str:
        return self.name or getattr(self.function, "__name__", "?")

    def cases(self) -> Iterator[Case]:
        """Every bad value in its place."""
        for argument, values in self.bad.items():
            names = (argument, *self.also.get(argument, ()))
            for value in values:
                attempt = partial(self.call, **{argument: value})
                yield Case(f"{self.called}({argument}={told(value)})", attempt, names)

    def call(self, **changes: Any) -> Any:
        """The function, with changes to what it works with."""
        return self.function(**{**self.good(), **changes})


def told(value: Any) -> str:
    """A value, short."""
    if isinstance(value, torch.Tensor):
        kind = f"{value.dtype} {list(value.shape)}".removeprefix("torch.")
        plain = value.is_meta or value.is_complex() or bool(torch.isfinite(value).all())
        return kind if plain else f"{kind}, not finite"
    text = getattr(value, "__name__", None) or repr(value)
    return " ".join(text.split())[:50]
