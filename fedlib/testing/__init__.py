"""Checks for algorithms."""

from fedlib.testing.contract import check_algorithm

__all__ = ["check_algorithm"]
