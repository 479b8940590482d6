"""A condition that several studies of FedSGM ask for."""

from __future__ import annotations

from papers.kit.rules import Condition, of


def alike(a: str, b: str, margin: float) -> Condition:
    """Whether the mean of `a` is that of `b` but for a share of it: equivalence, seed by seed."""
    inside = (of(a) <= (1 + margin) * of(b)) & (of(a) >= (1 - margin) * of(b))
    return Condition(f"{{}} within {100 * margin:.3g} % of {{}}", (a, b), inside.holds)
