r"""Step sizes that fall with the round, and the conditions that convergence asks of them.

Ye and Cui average with two of them: rho the surrogates (3), gamma the iterates (5), both counted
from t = 1 on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from torch import Tensor

from fedlib import checks

__all__ = ["Condition", "PowerLaw", "averaging", "conditions", "power_law"]

Round = TypeVar("Round", float, Tensor)


@dataclass(frozen=True)
class PowerLaw:
    r"""The step size `scale / t ** exponent` of round t = 1, 2, ...; exponent 0 is a constant.

    >>> PowerLaw(0.9, 0.5)(4)
    0.45

    Parameters
    ----------
    scale : the value at t = 1, positive.
    exponent : how fast it falls, nonnegative.
    """

    scale: float
    exponent: float = 0.0

    def __post_init__(self) -> None:
        """Check the parameters."""
        checks.positive("PowerLaw", "scale", self.scale)
        checks.nonnegative("PowerLaw", "exponent", self.exponent)

    def __call__(self, t: Round) -> Round:
        """The step size of round `t`, a number or a tensor."""
        value: Round = self.scale / t**self.exponent
        return value


def averaging(who: str, name: str, rule: PowerLaw) -> None:
    """Require step sizes that can be weights of a running average: in (0, 1] for all t >= 1.

    Raises
    ------
    TypeError
        for anything but a `PowerLaw`.
    ValueError
        for a power law that starts above 1 (it falls from there on).
    """
    power_law(who, name, rule)
    if not isinstance(rule.scale, Tensor) and rule.scale > 1:
        wanted = "lie in (0, 1] for all t >= 1"
        raise ValueError(checks.sentence(who, name, wanted, rule, "take a scale of at most 1"))


def power_law(who: str, name: str, rule: object) -> None:
    """Raise TypeError for anything but a `PowerLaw`."""
    if not isinstance(rule, PowerLaw):
        raise TypeError(checks.sentence(who, name, "be a PowerLaw", rule))


class Condition(NamedTuple):
    """One requirement on the step sizes, whether it holds, and why."""

    name: str
    holds: bool
    why: str


def conditions(rho: PowerLaw, gamma: PowerLaw) -> tuple[Condition, ...]:
    r"""What Theorems 1-4 ask of rho and gamma, (4) and (6), decided from the exponents.

    With rho = a_1 / t^alpha and gamma = a_2 / t^beta: a sum is infinite if and only if its exponent
    is at most 1, a limit is 0 if and only if its exponent is positive. The last one,
    $\sum \rho^2 < \infty$, is not in (4); the lemma on averaged estimates that the proof cites
    needs it.

    >>> [c.name for c in conditions(PowerLaw(0.9, 0.3), PowerLaw(0.9, 0.35)) if not c.holds]
    ['sum gamma^2 < inf', 'sum rho^2 < inf']
    >>> all(c.holds for c in conditions(PowerLaw(1.0, 0.6), PowerLaw(1.0, 0.65)))
    True
    """
    alpha, beta = rho.exponent, gamma.exponent
    return (
        _sum("rho", alpha, finite=False),
        _limit("rho", alpha),
        _sum("gamma", beta, finite=False),
        _limit("gamma", beta),
        _sum("gamma^2", 2 * beta, finite=True),
        _limit("gamma / rho", beta - alpha),
        _sum("rho^2", 2 * alpha, finite=True),
    )


def _sum(term: str, exponent: float, *, finite: bool) -> Condition:
    converges = exponent > 1
    why = f"{term} falls as t^-{exponent:.4g}, whose sum is {'finite' if converges else 'infinite'}"
    return Condition(f"sum {term} {'<' if finite else '='} inf", converges == finite, why)


def _limit(term: str, exponent: float) -> Condition:
    falls = exponent > 1e-12  # a difference of exponents such as 0.35 - 0.35 may be off by rounding
    verb = f"falls as t^-{exponent:.4g}" if falls else f"goes as t^{-exponent + 0.0:.4g}"
    return Condition(f"lim {term} = 0", falls, f"{term} {verb}")
