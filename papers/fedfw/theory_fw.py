"""The bounds of the Federated Frank-Wolfe theorems, as pure functions of floats.

Dadras, Banerjee, Prakhya, Yurtsever, *Federated Frank-Wolfe Algorithm*, ECML PKDD 2024 (arXiv
2408.10090). F is the mean of N L-smooth functions f_i over a convex set of diameter D; X collects
the clients' models x_i, w is their mean, F_hat(X) = mean_i f_i(x_i), dist(X, C) the root of
sum_i |x_i - w|^2.

Where the paper prints something else than its argument gives, the functions here are what the
argument gives, and say so.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt


@dataclass(frozen=True)
class Constants:
    """What the bounds ask for; each ignores the letters it does not use."""

    L: float  # smoothness of every f_i
    D: float  # diameter of the feasible set
    N: int  # clients
    lam0: float  # lambda_0
    dual: float = 0.0  # |Y*|_F; one is Y*_i = (grad F(w*) - grad f_i(w*)) / N
    slope: float = 0.0  # |grad F_hat(X*)|_F = sqrt(sum_i |grad f_i(w*)|^2) / N
    spread: float = 0.0  # E = F(w_1) - mean_i min f_i over the set (Theorem 2)
    sigma: float = 0.0  # root of the largest variance of a stochastic gradient of f_i
    first: float = 0.0  # |grad F_hat(X_1) - D_1|_F with D_1 = 0 (Theorem 3)

    @property
    def G(self) -> float:
        """Lemma 2, a bound on |grad F_hat|: L D / sqrt(N) + slope.

        The statement prints L D / N; |X - X*|_F is at most sqrt(N) D.
        """
        curvature = self.L * self.D / sqrt(self.N)
        return curvature + self.slope


def cube_root(x: int) -> float:
    """The cube root of a positive number."""
    return float(x ** (1 / 3))


def convex_surrogate(c: Constants, t: int) -> float:
    """Theorem 1, (31): F_hat_t(X_{t+1}) - F*, the penalized objective after round t."""
    steps = c.L / (t + 1)
    penalty = c.N * c.lam0 / sqrt(t + 1)
    return 2 * c.D**2 * (steps + penalty)


def convex_distance(c: Constants, t: int) -> float:
    """Theorem 1, (37): dist(X_{t+1}, C) after round t."""
    curvature = c.L + c.N * c.lam0
    root = c.D * sqrt(c.lam0 * curvature)
    lam = c.lam0 * sqrt(t + 1)
    return 2 / lam * (c.dual + root)


def convex_excess(c: Constants, t: int) -> float:
    """Theorem 1, (38): F(w_t) - F* after t - 1 rounds, t >= 2."""
    curvature = c.L / sqrt(t) + c.N * c.lam0
    root = c.D * sqrt(c.lam0 * curvature)
    lam = c.lam0 * sqrt(t)
    to_mean = 2 * c.G / lam * (c.dual + root)
    surrogate = convex_surrogate(c, t - 1)
    return surrogate + to_mean


def nonconvex_surrogate(c: Constants, rounds: int) -> float:
    """Theorem 2, (52): the smallest gap of the surrogate in T rounds, sum_i <g_i, x_i - s_i>."""
    root = cube_root(rounds)
    penalty = c.N * c.D**2 * c.lam0 / 2
    fall = (c.spread + penalty) / root
    steps = c.L * c.D**2 / (2 * root**2)
    return fall + steps


def nonconvex_distance(c: Constants, rounds: int) -> float:
    """Theorem 2, (57): dist(X, C) in that round."""
    lam = c.lam0 * cube_root(rounds)
    surrogate = nonconvex_surrogate(c, rounds)
    return c.G / lam + sqrt(surrogate / lam)


def nonconvex_gap(c: Constants, rounds: int) -> float:
    """Theorem 2, (62): the smallest Frank-Wolfe gap of F at w in T rounds."""
    surrogate = nonconvex_surrogate(c, rounds)
    distance = nonconvex_distance(c, rounds)
    slope = c.G + c.L * c.D
    return surrogate + slope * distance


def _noise(c: Constants) -> float:
    """C of Lemma 3; printed with D for sqrt(N) D and N sigma^2 for sigma^2 / N."""
    at_start = 7 ** (2 / 3) * c.first**2
    sampling = 16 * c.sigma**2 / c.N
    motion = 81 * c.L**2 * c.D**2 / c.N
    Q = max(at_start, sampling + motion)
    curvature = c.L + c.N * c.lam0
    steps = 81 / 2 * c.D**2 * curvature
    errors = 9 * sqrt(c.N) * c.D * sqrt(Q)
    return steps + errors


def stochastic_surrogate(c: Constants, t: int) -> float:
    """Lemma 3, (66): E F_hat(X_t) - F* before round t."""
    noise = cube_root(9) * _noise(c)
    return noise / cube_root(t + 7)


def stochastic_distance(c: Constants, t: int) -> float:
    """Lemma 3, (67), printed for the square: E dist(X_t, C) before round t."""
    from_dual = 2 * c.dual / (c.lam0 * sqrt(t + 7))
    noise = 2 * cube_root(9) * _noise(c)
    spread = 2 * sqrt(noise / c.lam0)
    from_noise = spread / (t + 7) ** (5 / 12)
    return float(from_dual + from_noise)


def stochastic_excess(c: Constants, t: int) -> float:
    """Theorem 3, (68): E F(w_t) - F* before round t."""
    surrogate = stochastic_surrogate(c, t)
    distance = stochastic_distance(c, t)
    return surrogate + c.G * distance
