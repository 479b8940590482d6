"""The constants of the FedSGM theorems, as pure functions of floats.

W: Upadhyay, Moon, Hashemi, "Switching Gradient Methods for Constrained Federated Optimization"
(OPT workshop, 2025). F: "FedSGM: A Unified Framework for Constraint Aware, Bidirectionally
Compressed, Multi-step Federated Optimization". Paper: m of n clients take part -> here n of N.

All theorems come from one inequality. With D >= |w0 - w*|, G-Lipschitz losses, E local steps and T
rounds, the mean regret is at most D^2 / (2 lr E T) + lr G^2 Gamma. A theorem is its Gamma; the best
`lr` is `step_size`, the value there is `bound`, and the tolerance (the papers' epsilon) is `bound`
plus the terms that sampling adds. Natural logarithms throughout.

`version="printed"` is what the paper states. `version="corrected"` is what its argument gives once
the errors named in the docstring are repaired (the book's derivation notes prove the repairs).
"""

import math
from dataclasses import dataclass, replace
from math import log, sqrt

from papers.fedsgm.gamma import (
    Version,
    bound,
    gamma_feedback,
    gamma_local,
    gamma_partial,
    gamma_unbiased,
    step_size,
)


@dataclass(frozen=True)
class Setting:
    """What a theorem is applied to; a theorem ignores the letters it does not use."""

    D: float  # |w0 - w*| (all clients take part) or the diameter of the feasible set
    G: float  # Lipschitz constant of every f_j and g_j
    E: int  # local steps
    T: int  # rounds
    N: int = 1  # clients
    n: int | None = None  # participants, None for all
    q: float = 1.0  # uplink contraction, E|C(x) - x|^2 <= (1 - q)|x|^2 (F-A3)
    q0: float = 1.0  # downlink contraction
    qu: float = 0.0  # variance factor of an unbiased uplink (W-A2)
    sigma: float = 0.0  # the sampled mean of g_j is sigma^2 / n sub-Gaussian (F-A4)
    delta: float = 0.05  # allowed probability of failure

    @property
    def participants(self) -> int:
        """n, or N when everybody takes part."""
        return self.N if self.n is None else self.n

    @property
    def ratio(self) -> float:
        """N / n."""
        return self.N / self.participants


@dataclass(frozen=True)
class Rate:
    """What a theorem prescribes and promises.

    The promise is `f(mean iterate) - f* <= accuracy` and `g(mean iterate) <= accuracy`, with
    probability 1 - delta where clients are sampled.
    """

    gamma: float
    lr: float
    tolerance: float  # epsilon, the switching threshold to run with
    beta: float  # smallest sharpness of soft switching covered; inf for hard switching
    accuracy: float


def workshop_theorem_1(s: Setting) -> Rate:
    """W Theorems 1 and 6: hard, all clients, unbiased uplink; proved in the mean only (E9)."""
    return hard_rate(s, gamma_unbiased(s.E, s.qu, s.N))


def theorem_1_partial(s: Setting, version: Version = "printed") -> Rate:
    """F Theorem 1, n of N clients. Printed accuracy: eps + sigma sqrt(3 log(T/delta) / n) (E4)."""
    gamma = gamma_partial(s.E, s.q, s.q0, s.ratio, version)
    rate = _partial(s, gamma, version, _boundary(s))
    if version == "corrected":
        return rate
    excess = s.sigma * sqrt(3 / s.participants * log(s.T / s.delta))
    return replace(rate, accuracy=rate.tolerance + excess)


def theorem_2(s: Setting, version: Version = "printed") -> Rate:
    """F Theorems 2, 8: soft, all clients, error feedback; tolerance B printed, 2B proved (E1)."""
    return _soft(s, gamma_feedback(s.E, s.q, s.q0), version)


def theorem_3(s: Setting) -> Rate:
    """F Theorem 3: hard, all clients, no compression; tolerance sqrt(4 D^2 G^2 E / T)."""
    return hard_rate(s, gamma_local(s.E))


def theorem_4(s: Setting, version: Version = "printed") -> Rate:
    """F Theorem 4: hard, n of N clients, no compression; printed accuracy omits a term (E4)."""
    return _partial(s, gamma_local(s.E), version)


def theorem_5(s: Setting, version: Version = "printed") -> Rate:
    """F Theorem 5: soft, all clients, no compression; tolerance B printed, 2B proved (E1)."""
    return _soft(s, gamma_local(s.E), version)


def theorem_6(s: Setting) -> Rate:
    """F Theorems 6 and 1 (all clients): hard, error feedback up, primal EF21 down.

    Theorem 1 (ii) prints g - g(w*) <= epsilon; the proof gives g <= epsilon only (E5).
    """
    return hard_rate(s, gamma_feedback(s.E, s.q, s.q0))


def theorem_9(
    s: Setting,
    sigma_xi: float,
    sigma_b: float,
    value_batch: int,
    version: Version = "printed",
) -> Rate:
    """F Theorem 9: hard, minibatches, n of N clients. `gamma` is its G_eff / G^2 (E4: accuracy).

    Args: noise levels of gradients and of constraint values (F-A5), rows a value is estimated on.
    """
    n = s.participants
    drift_tail = 1 + log(7 * s.N * s.T * s.E / s.delta)
    square_tail = log(28 * s.T / s.delta)
    drift = s.E**2 * sigma_xi**2 * drift_tail
    square = 4 / n * (s.E * s.G**2 + sigma_xi**2) * square_tail
    gamma = 3 * s.E**2 + (drift + square) / s.G**2
    tail = log(7 / s.delta)
    walk = 4 * s.G * s.D * sqrt(2 / (n * s.T) * tail)
    noise = 2 * s.D * sigma_xi * sqrt(2 / (n * s.E * s.T) * tail)
    variance = s.sigma**2 + sigma_b**2 / value_batch
    estimate = sqrt(2 / n * variance * log(14 * s.T / s.delta))
    return hard_rate(s, gamma, walk + noise, estimate, version)


def theorem_10(
    s: Setting,
    rho: float,
    multiplier: float,
    version: Version = "printed",
) -> Rate:
    """F Theorem 10: rho-weakly convex f, convex g, hard, n of N clients (E4: accuracy).

    `accuracy` bounds the mean of g over the good rounds; the mean distance to the prox points is at
    most sqrt((1 + multiplier) accuracy / (rho_hat - 2 rho)). `multiplier` is Lemma 10's Lambda =
    (G D + rho_hat D^2) / -g(Slater point).
    """
    n = s.participants
    walk = 4 * s.G * s.D / sqrt(n * s.T) * sqrt(2 * log(4 / s.delta))
    estimate = s.sigma * sqrt(2 / n * log(8 * s.T / s.delta)) * (1 + multiplier)
    curvature = s.D**2 * rho / (8 * s.E * s.T)
    return hard_rate(
        s,
        gamma_local(s.E),
        curvature + walk,
        estimate,
        version,
    )


def _soft(s: Setting, gamma: float, version: Version) -> Rate:
    """Tolerance B as F states, or 2B as both papers' proofs choose; beta = 2 / tolerance."""
    rate = hard_rate(s, gamma)
    factor = 2 if version == "corrected" else 1
    epsilon = factor * rate.tolerance
    return Rate(
        gamma,
        rate.lr,
        tolerance=epsilon,
        beta=2 / epsilon,
        accuracy=epsilon,
    )


def _boundary(s: Setting) -> float:
    """The boundary term of the summation by parts, (N/n) 2DG sqrt(1-q) / (q T)."""
    return s.ratio * 2 * s.D * s.G * sqrt(1 - s.q) / (s.q * s.T)


def _partial(
    s: Setting,
    gamma: float,
    version: Version,
    boundary: float = 0.0,
) -> Rate:
    walk = 4 * s.D * s.G / sqrt(s.participants * s.T) * sqrt(2 * log(3 / s.delta))
    estimate = s.sigma * sqrt(2 / s.participants * log(6 * s.T / s.delta))
    return hard_rate(s, gamma, boundary + walk, estimate, version)


def hard_rate(
    s: Setting,
    gamma: float,
    extra: float = 0.0,
    error: float = 0.0,
    version: Version = "printed",
) -> Rate:
    """The rate of hard switching from its Gamma: promise B + `extra` + 2 `error`.

    The threshold is the same (printed), or one error less (E4).
    """
    lr = step_size(s.D, s.G, s.E, s.T, gamma)
    accuracy = bound(s.D, s.G, s.E, s.T, gamma) + extra + 2 * error
    tolerance = accuracy - error if version == "corrected" else accuracy
    return Rate(gamma, lr, tolerance, math.inf, accuracy)
