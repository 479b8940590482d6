"""Step sizes and penalties of Federated Frank-Wolfe, as functions of the round t = 1, 2, ...

Dadras, Banerjee, Prakhya, Yurtsever, *Federated Frank-Wolfe Algorithm*, ECML PKDD 2024, Theorems 1
to 3. A schedule gives the step `eta` in [0, 1], the growth of the penalty, lambda_t = lambda_0
`growth`, and the weight `rho` of a new stochastic gradient. `share` is the probability with which a
client takes part in a round (the paper's p).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from fedlib import checks

__all__ = ["Convex", "Fixed", "Nonconvex", "Schedule", "Stochastic"]

Number = float | Tensor


@runtime_checkable
class Schedule(Protocol):
    """What the methods ask; t is a 0-d tensor."""

    def eta(self, t: Tensor, share: Number) -> Tensor:
        """The step size of round t."""
        ...

    def growth(self, t: Tensor, share: Number) -> Tensor:
        """lambda_t / lambda_0."""
        ...

    def rho(self, t: Tensor) -> Tensor:
        """The weight of the newest stochastic gradient."""
        ...


@dataclass(frozen=True)
class Convex:
    r"""Theorem 1: $\eta_t=2/(pt'+2)$, $\lambda_t=\lambda_0\sqrt{pt'+2}$ with $t'=t-1$.

    For p = 1 that is $2/(t+1)$ and $\lambda_0\sqrt{t+1}$. `grows=False` keeps $\lambda_t$ at
    $\lambda_0$, as the paper's Figure 3 does; no theorem covers it.
    """

    grows: bool = True

    def eta(self, t: Tensor, share: Number = 1.0) -> Tensor:
        """2 / (p (t - 1) + 2)."""
        return 2 / (share * (t - 1) + 2)

    def growth(self, t: Tensor, share: Number = 1.0) -> Tensor:
        """The root of p (t - 1) + 2."""
        return torch.sqrt(share * (t - 1) + 2) if self.grows else torch.ones_like(t)

    def rho(self, t: Tensor) -> Tensor:
        """4 / (t + 7)^(2/3), Theorem 3's: Theorem 1 has no stochastic gradients."""
        return 4 / (t + 7) ** (2 / 3)


@dataclass(frozen=True)
class Nonconvex:
    r"""Theorem 2, constant: $\eta=T^{-2/3}$, $\lambda=\lambda_0T^{1/3}$ for T rounds.

    For p < 1, T is replaced by $pT+1$. `grows=False` leaves the factor $T^{1/3}$ out.

    Raises ValueError or TypeError unless `rounds` is a whole number from 1 on.
    """

    rounds: int
    grows: bool = True

    def __post_init__(self) -> None:
        checks.count("Nonconvex", "rounds", self.rounds)

    def eta(self, t: Tensor, share: Number = 1.0) -> Tensor:
        """T^(-2/3), or (p T + 1)^(-2/3)."""
        return self._horizon(t, share) ** (-2 / 3)

    def growth(self, t: Tensor, share: Number = 1.0) -> Tensor:
        """T^(1/3), or (p T + 1)^(1/3)."""
        return self._horizon(t, share) ** (1 / 3) if self.grows else torch.ones_like(t)

    def rho(self, t: Tensor) -> Tensor:
        """4 / (t + 7)^(2/3), Theorem 3's: Theorem 2 has no stochastic gradients."""
        return 4 / (t + 7) ** (2 / 3)

    def _horizon(self, t: Tensor, share: Number) -> Tensor:
        some = torch.ones_like(t) * share
        return torch.where(some < 1, some * self.rounds + 1, float(self.rounds))


@dataclass(frozen=True)
class Stochastic:
    r"""Theorem 3: $\eta_t=9/(t+8)$, $\lambda_t=\lambda_0\sqrt{t+8}$, $\rho_t=4/(t+7)^{2/3}$.

    It has no form for p < 1, so p is ignored. `grows` as in `Convex`.
    """

    grows: bool = True

    def eta(self, t: Tensor, share: Number = 1.0) -> Tensor:
        """9 / (t + 8)."""
        del share
        return 9 / (t + 8)

    def growth(self, t: Tensor, share: Number = 1.0) -> Tensor:
        """The root of t + 8."""
        del share
        return torch.sqrt(t + 8) if self.grows else torch.ones_like(t)

    def rho(self, t: Tensor) -> Tensor:
        """4 / (t + 7)^(2/3)."""
        return 4 / (t + 7) ** (2 / 3)


@dataclass(frozen=True)
class Fixed:
    """The same step, penalty and weight in every round; no theorem covers it.

    Raises ValueError or TypeError unless step and weight lie in (0, 1].
    """

    step: float
    weight: float = 1.0

    def __post_init__(self) -> None:
        checks.in_range("Fixed", "step", self.step, 0, 1, open_low=True)
        checks.in_range("Fixed", "weight", self.weight, 0, 1, open_low=True)

    def eta(self, t: Tensor, share: Number = 1.0) -> Tensor:
        """The step."""
        del share
        return torch.ones_like(t) * self.step

    def growth(self, t: Tensor, share: Number = 1.0) -> Tensor:
        """1."""
        del share
        return torch.ones_like(t)

    def rho(self, t: Tensor) -> Tensor:
        """The weight."""
        return torch.ones_like(t) * self.weight
