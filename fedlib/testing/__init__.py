"""What holds an algorithm to account: it reaches its clients through messages alone."""

from fedlib.testing.contract import check_algorithm

__all__ = ["check_algorithm"]
