"""Checks for algorithms, and a small example of each algorithm."""

from fedlib.testing.contract import check_algorithm

__all__ = ["check_algorithm"]
