"""Policies that act, and the trust-region steps that improve them."""

from fedlib.policy.policies import Episodes, Gaussian, Head, Logits, Simulator

__all__ = ["Episodes", "Gaussian", "Head", "Logits", "Simulator"]
