"""Figures of study cartpole."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fedlib.plot import Draw
from fedlib.trace import Trace

__all__ = ["FIGURES"]

FIGURES: dict[str, Callable[[Mapping[str, Trace]], Draw]] = {}
