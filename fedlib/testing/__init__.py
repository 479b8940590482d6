"""What holds an algorithm to account: it reaches its clients through messages alone."""

from fedlib.testing.contract import hold_to_account

__all__ = ["hold_to_account"]
