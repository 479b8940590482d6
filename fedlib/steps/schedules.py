"""Step sizes that fall with the round t = 1, 2, ..., and what convergence asks of them.

Ye and Cui average with two of them, rho the surrogates (3) and gamma the iterates (5): `PowerLaw`.
A `Schedule` is that of Dadras, Banerjee, Prakhya, Yurtsever, *Federated Frank-Wolfe Algorithm*
(ECML PKDD 2024, Theorems 1 to 3): the step `eta` in [0, 1], the growth of the penalty,
lambda_t = lambda_0 `growth`, and the weight `rho` of a new stochastic gradient; `share` is the
probability with which a client takes part in a round (the paper's p).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count, Nonnegative, Positive, Share

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

    scale: Positive
    exponent: Nonnegative = 0.0

    def __post_init__(self) -> None:
        checks.fields(self)

    def __call__(self, t: Round) -> Round:
        """The step size of round `t`, a number or a tensor."""
        if not isinstance(t, Tensor):
            checks.at_least("PowerLaw", "t", t, 1)
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


#: In (0, 1] in every round.
Averaging = Annotated[PowerLaw, checks.Takes(averaging)]


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


Number = float | Tensor


@runtime_checkable
class Schedule(Protocol):
    """What the methods ask; t is a 0-d tensor."""

    def eta(self, t: Float[Tensor, "*b"], share: Number) -> Float[Tensor, "*b"]:
        """The step size of round t."""
        ...

    def growth(self, t: Float[Tensor, "*b"], share: Number) -> Float[Tensor, "*b"]:
        """lambda_t / lambda_0."""
        ...

    def rho(self, t: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
        """The weight of the newest stochastic gradient."""
        ...


@dataclass(frozen=True)
class Convex:
    r"""Theorem 1: $\eta_t=2/(pt'+2)$, $\lambda_t=\lambda_0\sqrt{pt'+2}$ with $t'=t-1$.

    For p = 1 that is $2/(t+1)$ and $\lambda_0\sqrt{t+1}$. `grows=False` keeps $\lambda_t$ at
    $\lambda_0$, as the paper's Figure 3 does; no theorem covers it.

    >>> Convex().eta(torch.tensor([1.0, 2.0, 3.0]))
    tensor([1.0000, 0.6667, 0.5000])
    """

    grows: bool = True

    def __post_init__(self) -> None:
        checks.fields(self)

    def eta(self, t: Float[Tensor, "*b"], share: Number = 1.0) -> Float[Tensor, "*b"]:
        """2 / (p (t - 1) + 2)."""
        checks.arguments(Convex.eta, locals())
        return 2 / (share * (t - 1) + 2)

    def growth(self, t: Float[Tensor, "*b"], share: Number = 1.0) -> Float[Tensor, "*b"]:
        """The root of p (t - 1) + 2."""
        checks.arguments(Convex.growth, locals())
        return torch.sqrt(share * (t - 1) + 2) if self.grows else torch.ones_like(t)

    def rho(self, t: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
        """4 / (t + 7)^(2/3), Theorem 3's: Theorem 1 has no stochastic gradients."""
        checks.arguments(Convex.rho, locals())
        return 4 / (t + 7) ** (2 / 3)


@dataclass(frozen=True)
class Nonconvex:
    r"""Theorem 2, constant: $\eta=T^{-2/3}$, $\lambda=\lambda_0T^{1/3}$ for T rounds.

    For p < 1, T is replaced by $pT+1$. `grows=False` leaves the factor $T^{1/3}$ out.

    Raises ValueError or TypeError unless `rounds` is a whole number from 1 on.

    >>> Nonconvex(rounds=1000).eta(torch.tensor([1.0, 2.0]))
    tensor([0.0100, 0.0100])
    """

    rounds: Count
    grows: bool = True

    def __post_init__(self) -> None:
        checks.fields(self)

    def eta(self, t: Float[Tensor, "*b"], share: Number = 1.0) -> Float[Tensor, "*b"]:
        """T^(-2/3), or (p T + 1)^(-2/3)."""
        checks.arguments(Nonconvex.eta, locals())
        return self._horizon(t, share) ** (-2 / 3)

    def growth(self, t: Float[Tensor, "*b"], share: Number = 1.0) -> Float[Tensor, "*b"]:
        """T^(1/3), or (p T + 1)^(1/3)."""
        checks.arguments(Nonconvex.growth, locals())
        return self._horizon(t, share) ** (1 / 3) if self.grows else torch.ones_like(t)

    def rho(self, t: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
        """4 / (t + 7)^(2/3), Theorem 3's: Theorem 2 has no stochastic gradients."""
        checks.arguments(Nonconvex.rho, locals())
        return 4 / (t + 7) ** (2 / 3)

    def _horizon(self, t: Tensor, share: Number) -> Tensor:
        some = torch.ones_like(t) * share
        return torch.where(some < 1, some * self.rounds + 1, float(self.rounds))


@dataclass(frozen=True)
class Stochastic:
    r"""Theorem 3: $\eta_t=9/(t+8)$, $\lambda_t=\lambda_0\sqrt{t+8}$, $\rho_t=4/(t+7)^{2/3}$.

    It has no form for p < 1, so p is ignored. `grows` as in `Convex`.

    >>> Stochastic().rho(torch.tensor([1.0, 20.0]))
    tensor([1.0000, 0.4444])
    """

    grows: bool = True

    def __post_init__(self) -> None:
        checks.fields(self)

    def eta(self, t: Float[Tensor, "*b"], share: Number = 1.0) -> Float[Tensor, "*b"]:
        """9 / (t + 8)."""
        checks.arguments(Stochastic.eta, locals())
        del share
        return 9 / (t + 8)

    def growth(self, t: Float[Tensor, "*b"], share: Number = 1.0) -> Float[Tensor, "*b"]:
        """The root of t + 8."""
        checks.arguments(Stochastic.growth, locals())
        del share
        return torch.sqrt(t + 8) if self.grows else torch.ones_like(t)

    def rho(self, t: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
        """4 / (t + 7)^(2/3)."""
        checks.arguments(Stochastic.rho, locals())
        return 4 / (t + 7) ** (2 / 3)


@dataclass(frozen=True)
class Fixed:
    """The same step, penalty and weight in every round; no theorem covers it.

    Raises ValueError or TypeError unless step and weight lie in (0, 1].

    >>> Fixed(0.1).eta(torch.tensor([1.0, 2.0]))
    tensor([0.1000, 0.1000])
    """

    step: Share
    weight: Share = 1.0

    def __post_init__(self) -> None:
        checks.fields(self)

    def eta(self, t: Float[Tensor, "*b"], share: Number = 1.0) -> Float[Tensor, "*b"]:
        """The step."""
        checks.arguments(Fixed.eta, locals())
        del share
        return torch.ones_like(t) * self.step

    def growth(self, t: Float[Tensor, "*b"], share: Number = 1.0) -> Float[Tensor, "*b"]:
        """1."""
        checks.arguments(Fixed.growth, locals())
        del share
        return torch.ones_like(t)

    def rho(self, t: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
        """The weight."""
        checks.arguments(Fixed.rho, locals())
        return torch.ones_like(t) * self.weight
