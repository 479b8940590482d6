"""Derived numbers of study cartpole."""

from __future__ import annotations

from fedlib.numbers import Number
from fedlib.studies.base import Params, Traces

__all__ = ["derive"]


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Nothing yet."""
    del traces, p
    return {}
