"""Fields of an algorithm that are multiplied by a function of the round."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.core.algorithm import Algorithm
from fedlib.core.describe import describe
from fedlib.core.floats import fill, floats
from fedlib.steps.schedules import SHOWN

Rule = Callable[[int], float]


class Schedules:
    """The scheduled fields of all grid points, and the rules for their factors.

    Raises ValueError for a field that the algorithm does not have as a float.
    """

    def __init__(
        self,
        rules: Mapping[str, Rule],
        grid: Sequence[Algorithm],
    ) -> None:
        self.rules = dict(rules)
        self.grid = grid
        self.factors = {name: dict[int, float]() for name in self.rules}
        numbers = [floats(algorithm) for algorithm in grid]
        for name in self.rules:
            checks.one_of("run", f"schedules of {type(grid[0]).__name__}", name, numbers[0])
        self.base = {name: [point[name] for point in numbers] for name in self.rules}

    def tensors(self, w: Float[Tensor, "d"]) -> dict[str, Float[Tensor, "G"]]:
        """The fields before the first round, with the dtype of `w`."""
        return {name: torch.tensor(x, dtype=w.dtype) for name, x in self.base.items()}

    def apply(
        self,
        hyper: Mapping[str, Float[Tensor, "G"]],
        number: int,
    ) -> None:
        """Write the fields' values in round `number`, counted from 1, into the tensors `hyper`.

        Raises TypeError or ValueError, with the round, for a factor that is not a finite number or
        that takes a field out of its range. A factor of 0 makes a field that must be positive the
        smallest positive number.
        """
        for name in self.rules:
            factor = self.factor(name, number)
            tiny = torch.finfo(hyper[name].dtype).tiny
            values = []
            for point, base in zip(self.grid, self.base[name], strict=True):
                value = base * factor
                try:
                    check_field(point, name, value)
                except ValueError as error:
                    if value != 0 or not is_allowed(point, name, tiny):
                        reason = str(error).removesuffix(".")
                        raise ValueError(
                            f"run: schedules[{name!r}] must keep {name} in its range, got "
                            f"{base} * {factor} ({reason}) in round {number}."
                        ) from error
                    value = tiny
                values.append(value)
            hyper[name].copy_(torch.tensor(values, dtype=hyper[name].dtype))

    def factor(self, name: str, number: int) -> float:
        """The factor of a field in a round."""
        try:
            factor = self.rules[name](number)
        except Exception as error:
            reason = str(error).partition("\n")[0].rstrip(".") or type(error).__name__
            raise ValueError(
                f"run: schedules[{name!r}] must be a function of the round that gives a factor, "
                f"but failed in round {number}: {reason}."
            ) from error
        if isinstance(factor, (Tensor, np.ndarray)) and factor.ndim == 0:
            factor = factor.item()
        checks.number("run", f"schedules[{name!r}]({number})", factor)
        self.factors[name][number] = float(factor)
        return float(factor)

    def describe(self, rounds: int) -> dict[str, Any]:
        """The rules in a configuration: a dataclass's fields, or a function's factors in rounds."""
        return {name: self._describe_rule(name, rounds) for name in self.rules}

    def _describe_rule(self, name: str, rounds: int) -> Any:
        rule = self.rules[name]
        if is_dataclass(rule):
            return describe(rule)
        factors = self.factors[name]
        description = {}
        for t in SHOWN:
            if t <= rounds:
                if t not in factors:
                    self.factor(name, t)
                description[str(t)] = factors[t]
        return description


def is_allowed(
    algorithm: Algorithm,
    name: str,
    value: float,
) -> bool:
    """Whether a field may have a value."""
    try:
        check_field(algorithm, name, value)
    except ValueError:
        return False
    return True


def check_field(
    algorithm: Algorithm,
    name: str,
    value: float,
) -> None:
    """Raise the ValueError of the algorithm's constructor for a value of one of its fields."""
    record = type(algorithm)
    if "." in name or getattr(record, "__post_init__", None) is not checks.fields:
        fill(algorithm, {name: value})
        return
    # the constructor would check all fields, which takes as long as a short round
    checks.value(record.__name__, name, value, checks.hints(record)[name])
