"""Step sizes that decrease with the round t = 1, 2, ....

Ye and Cui average the surrogates (3) with a step size rho and the iterates (5) with a step size
gamma; both are a `PowerLaw`. A `Schedule` belongs to Dadras, Banerjee, Prakhya, Yurtsever,
*Federated Frank-Wolfe Algorithm* (ECML PKDD 2024, Theorems 1 to 3). It has the step `eta` in
[0, 1], the `growth` of the penalty, lambda_t = lambda_0 `growth`, and the weight `rho` of a new
stochastic gradient. `share` is the probability that a client takes part in a round (the paper's p).
"""

from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count, Nonnegative, Positive, Share
from fedlib.shapes import Vector

Round = TypeVar("Round", float, Tensor)


@dataclass(frozen=True)
class PowerLaw(checks.Checked):
    """The step size `scale / t ** exponent` of round t = 1, 2, ....

    >>> PowerLaw(0.9, 0.5)(4)
    0.45

    Parameters
    ----------
    scale : float
        The step size of round 1.
    exponent : float
        How fast it falls; 0 keeps it constant.
    """

    scale: Positive
    exponent: Nonnegative = 0.0

    def __call__(self, t: Round) -> Round:
        """The step size of round `t`, a number or a tensor."""
        value: Round = self.scale / t**self.exponent
        return value


def averaging(caller: str, name: str, law: PowerLaw) -> None:
    """Require weights of a running average: raise ValueError for a law that starts above 1."""
    fits = isinstance(law.scale, Tensor) or law.scale <= 1
    rule = "lie in (0, 1] for all t >= 1"
    checks.require(fits, caller, name, rule, law, "take a scale of at most 1")


#: A law whose values lie in (0, 1] in every round.
Averaging = Annotated[PowerLaw, checks.Takes(averaging, "Averaging")]
Number = float | Tensor
SHOWN = (1, 2, 3, 10, 100, 1000)  # rounds that stand for a schedule, in its tests and descriptions
Rounds = Float[Tensor, "*b"]


@runtime_checkable
class Schedule(Protocol):
    """The step size, penalty and averaging weight of round t, a 0-d tensor."""

    def eta(self, t: Rounds, share: Number) -> Rounds:
        """The step size of round t."""

    def growth(self, t: Rounds, share: Number) -> Rounds:
        """lambda_t / lambda_0."""

    def rho(self, t: Rounds) -> Rounds:
        """The weight of the newest stochastic gradient."""


def check_schedule(caller: str, schedule: Schedule, share: float, w: Vector) -> None:
    """Raise ValueError if a schedule leaves its range in one of the rounds `SHOWN`.

    The step is in [0, 1], or the model leaves the feasible set; the penalty's growth is positive.
    """
    for number in SHOWN:
        t = w.new_tensor(float(number))
        eta = schedule.eta(t, share)
        growth = schedule.growth(t, share)
        checks.in_range(caller, f"schedule.eta({number})", _number(eta), 0.0, 1.0)
        checks.positive(caller, f"schedule.growth({number})", _number(growth))


def _number(value: Any) -> Any:
    """A 0-d tensor as a number; anything else as it is."""
    if isinstance(value, Tensor) and value.ndim == 0:
        return value.item()
    return value


class Rho(checks.Checked):
    """Base of the theorems' schedules: checked fields, and one weight of stochastic gradients."""

    def rho(self, t: Rounds) -> Rounds:
        """4 / (t + 7)^(2/3) as in Theorem 3; Theorems 1 and 2 use no stochastic gradients."""
        return 4 / (t + 7) ** (2 / 3)


@dataclass(frozen=True)
class Convex(Rho):
    r"""FedFW, Theorem 1: $\eta_t=2/q,\;\lambda_t=\lambda_0\sqrt q,\;q=p(t-1)+2$, p `participation`.

    For p = 1 these are $2/(t+1)$ and $\lambda_0\sqrt{t+1}$.

    Parameters
    ----------
    grows : bool
        False keeps lambda_t at lambda_0, as in the paper's Figure 3; no theorem covers this.

    >>> Convex().eta(torch.tensor([1.0, 2.0, 3.0]))
    tensor([1.0000, 0.6667, 0.5000])
    """

    grows: bool = True

    def eta(self, t: Rounds, share: Number = 1.0) -> Rounds:
        """2 / (p (t - 1) + 2)."""
        return 2 / (share * (t - 1) + 2)

    def growth(self, t: Rounds, share: Number = 1.0) -> Rounds:
        """The square root of p (t - 1) + 2."""
        if not self.grows:
            return torch.ones_like(t)
        return torch.sqrt(share * (t - 1) + 2)


@dataclass(frozen=True)
class Nonconvex(Rho):
    r"""FedFW, Theorem 2, constant for T rounds: $\eta=T^{-2/3}$ and $\lambda=\lambda_0T^{1/3}$.

    Parameters
    ----------
    rounds : int
        T, the number of rounds; if p, the method's `participation`, is below 1, pT + 1 replaces T.
    grows : bool
        False leaves out the factor $T^{1/3}$.

    >>> Nonconvex(rounds=1000).eta(torch.tensor([1.0, 2.0]))
    tensor([0.0100, 0.0100])
    """

    rounds: Count
    grows: bool = True

    def eta(self, t: Rounds, share: Number = 1.0) -> Rounds:
        """T^(-2/3), or (p T + 1)^(-2/3) for p < 1."""
        return self._horizon(t, share) ** (-2 / 3)

    def growth(self, t: Rounds, share: Number = 1.0) -> Rounds:
        """T^(1/3), or (p T + 1)^(1/3) for p < 1."""
        if not self.grows:
            return torch.ones_like(t)
        return self._horizon(t, share) ** (1 / 3)

    def _horizon(self, t: Tensor, share: Number) -> Tensor:
        p = torch.ones_like(t) * share
        expected = p * self.rounds + 1
        return torch.where(p < 1, expected, float(self.rounds))


@dataclass(frozen=True)
class Stochastic(Rho):
    r"""FedFW, Theorem 3: $\eta_t=9/(t+8)$, $\lambda_t=\lambda_0\sqrt{t+8}$, $\rho_t=4/(t+7)^{2/3}$.

    Theorem 3 has no form for p < 1, so p is ignored.

    Parameters
    ----------
    grows : bool
        False keeps lambda_t at lambda_0; no theorem covers this.

    >>> Stochastic().rho(torch.tensor([1.0, 20.0]))
    tensor([1.0000, 0.4444])
    """

    grows: bool = True

    def eta(self, t: Rounds, share: Number = 1.0) -> Rounds:
        """9 / (t + 8)."""
        return 9 / (t + 8)

    def growth(self, t: Rounds, share: Number = 1.0) -> Rounds:
        """The square root of t + 8."""
        if not self.grows:
            return torch.ones_like(t)
        return torch.sqrt(t + 8)


@dataclass(frozen=True)
class Fixed(checks.Checked):
    """The same step, penalty and weight in every round; no theorem covers this schedule.

    >>> Fixed(0.1).eta(torch.tensor([1.0, 2.0]))
    tensor([0.1000, 0.1000])

    Parameters
    ----------
    step : float
        eta, the step size, in (0, 1].
    weight : float
        rho, the weight of the newest stochastic gradient, which only FedFW-sto uses.
    """

    step: Share
    weight: Share = 1.0

    def eta(self, t: Rounds, share: Number = 1.0) -> Rounds:
        """The constant step."""
        return torch.ones_like(t) * self.step

    def growth(self, t: Rounds, share: Number = 1.0) -> Rounds:
        """1 in every round."""
        return torch.ones_like(t)

    def rho(self, t: Rounds) -> Rounds:
        """The constant weight."""
        return torch.ones_like(t) * self.weight
