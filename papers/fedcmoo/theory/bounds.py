"""The constants of FedCMOO's convergence theorem, as pure functions of floats.

Askin, Sharma, Joshi, Joe-Wong, "Federated communication-efficient multi-objective optimization"
(AISTATS 2025): Lemmas 2 to 7, Theorem 1 and Corollary 1.1, which are about Algorithm 10.

`version="printed"` is what the paper states. `version="corrected"` changes what does not hold as
printed (Lemma 6). `version="ours"` is what a more careful use of the same argument gives. The
book's notes on FedCMOO prove all three.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Literal

from fedlib import checks

Version = Literal["printed", "corrected", "ours"]


@dataclass(frozen=True)
class Setting:
    """What the theorem is applied to. The units are those of a gradient for b and both sigmas."""

    b: float  # bound of every client's gradient of every objective (A4)
    L: float = 1.0  # smoothness (A1)
    sigma_l: float = 0.0  # standard deviation of a stochastic gradient (A2)
    sigma_g: float = 0.0  # heterogeneity (A3)
    q: float = 0.0  # variance factor of the unbiased compressor (A5)
    M: int = 1  # objectives
    N: int = 1  # clients
    n: int = 1  # participants of the local steps
    n_gram: int = 1  # n', clients of each of the two Gram factors
    tau: int = 1  # local steps
    T: int = 1  # rounds


@dataclass(frozen=True)
class Rates:
    """The three step sizes: of the clients, of the server, and of the weights (beta)."""

    eta_c: float
    eta_s: float
    beta: float


@dataclass(frozen=True)
class Bound:
    """The four terms of Theorem 1, in units of a squared gradient."""

    start: float  # delta / (T eta_c eta_s tau)
    weights: float
    drift: float
    step: float

    @property
    def total(self) -> float:
        """The bound on the mean over rounds of E|J w|^2."""
        return self.start + self.weights + self.drift + self.step


def gram_variance(s: Setting, *, misprint: bool = False) -> float:
    """S_1, the bound on the variance of a column of Y_j; no sampling term for a single client.

    With `misprint` the first term lacks its factor sigma_l^2, as in some displays of the paper.
    """
    noise_factor = 1.0 if misprint else s.sigma_l**2
    noise = (1 + s.q) / s.n_gram * noise_factor
    compression = s.q / s.n_gram * s.b**2
    if s.N == 1:
        return noise + compression
    sampling = (s.N - s.n_gram) / (s.n_gram * (s.N - 1)) * s.sigma_g**2
    return noise + compression + sampling


def gram_constant(s: Setting, version: Version = "printed") -> float:
    """C_1 = (sqrt(S_1) + b)^2; ours is S_1 + b^2, between a half and all of it."""
    variance = gram_variance(s)
    if version == "ours":
        return variance + s.b**2
    return (sqrt(variance) + s.b) ** 2


def weight_move(s: Setting, beta: float, version: Version = "printed") -> float:
    """Lemma 4, beta sqrt(M) C: bounds E|w(t+1) - w(t)|."""
    return beta * sqrt(s.M) * gram_constant(s, version)


def weight_regret(s: Setting, beta: float, version: Version = "printed") -> float:
    """The last term of Lemma 5, beta M C^2 / 2."""
    return beta * s.M * gram_constant(s, version) ** 2 / 2


def step_square(s: Setting, version: Version = "printed") -> float:
    """Lemma 6, the bound on E|mean of Delta_i|^2: without or with the cross term.

    Printed b^2 + sigma_l^2 / (n tau), which holds for one local step only; with more of them,
    (b + sigma_l / sqrt(n tau))^2.
    """
    noise = s.sigma_l / sqrt(s.n * s.tau)
    if version == "printed" or s.tau == 1:
        return s.b**2 + noise**2
    return (s.b + noise) ** 2


def drift(s: Setting, eta_c: float, version: Version = "printed") -> float:
    """Lemma 7, the price of local steps. Ours needs no condition on `eta_c`.

    Raises:
        ValueError: `eta_c` exceeds 1 / (2 L tau), which the printed lemma asks for.
    """
    if version == "ours":
        steps = s.b * (s.tau - 1) / 2 + s.sigma_l * sqrt((s.tau - 1) / 2)
        return s.L * eta_c * s.b * steps
    limit = 1 / (2 * s.L * s.tau)
    checks.in_range(
        "drift",
        "eta_c",
        eta_c,
        0,
        limit * (1 + 1e-12),
    )
    steps = sqrt(s.tau) * s.sigma_l + s.b * sqrt(2 * s.tau * (s.tau - 1))
    return s.L * eta_c * s.b * steps


def theorem_1(
    s: Setting,
    rates: Rates,
    gap: float,
    version: Version = "printed",
) -> Bound:
    """The four terms of Theorem 1.

    Args:
        s: the constants of the assumptions.
        rates: the step sizes.
        gap: delta, sum_k w_k(0) (F_k(x(0)) - min F_k), in units of a loss.
        version: which constants.
    """
    eta = rates.eta_c * rates.eta_s * s.tau
    move = weight_move(s, rates.beta, version)
    regret = weight_regret(s, rates.beta, version)
    return Bound(
        start=gap / (s.T * eta),
        weights=move * sqrt(s.M) * s.b**2 + regret,
        drift=drift(s, rates.eta_c, version),
        step=s.L * eta / 2 * step_square(s, version),
    )


def corollary(s: Setting, version: Version = "printed") -> Rates:
    """The step sizes of Corollary 1.1; ours divides beta by S_1 + b^2, so that units agree.

    Raises:
        ValueError: tau T < 4, for which the printed drift bound does not apply.
    """
    local_steps = s.tau * s.T
    if version != "ours" and local_steps < 4:
        rule = "be at least 4 (Lemma 7)"
        raise ValueError(checks.sentence("corollary", "tau T", rule, local_steps))
    scale = gram_constant(s, "ours") if version == "ours" else 1.0
    eta_c = 1 / (s.L * s.tau * sqrt(local_steps))
    return Rates(eta_c=eta_c, eta_s=sqrt(s.tau), beta=1 / (s.M * sqrt(s.T) * scale))
