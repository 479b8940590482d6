"""Federated Frank-Wolfe: smaller bounds, participation and wrong oracles.

Dadras, Banerjee, Prakhya, Yurtsever, *Federated Frank-Wolfe Algorithm*, ECML PKDD 2024 (arXiv
2408.10090). `papers.fedfw.theory_fw` has the paper's bounds with corrected constants. Here are
those that the same arguments give with more care, in which n and a dual solution do not occur; zeta
bounds, over the set, the root of mean_i |grad f_i - grad F|^2. The book's notes on FedFW prove
them.
"""

from __future__ import annotations

from math import sqrt

from papers.fedfw.theory_fw import Constants


def convex(
    c: Constants,
    t: int,
    *,
    share: float = 1.0,
    quality: float = 1.0,
    slip: float = 0.0,
    start: float = 0.0,
) -> float:
    """Theorem 1 after round t: E F_hat_t(X_{t+1}) - F*, also with participation and wrong oracles.

    With q = share quality and k = 2 / q - 1,
    k (k - 1) / ((t + k) (t + k - 1)) start
    + 2 D^2 / quality (L / (q t + 2) + 2 N lam0 / (3 sqrt(q t + 2 - q))) + slip / quality.

    Args:
        c: L, D, N, lam0 are used; with a set for each client, D^2 is the mean of theirs.
        t: round, from 1 on.
        share: p, the probability of taking part; the schedule is the one for p `quality`.
        quality: m, every oracle attains at least this share of its client's gap.
        slip: additive error of all clients together, in every round.
        start: F(x_1) - F*, forgotten at once if share = quality = 1.
    """
    q = share * quality
    k = 2 / q - 1
    forgotten = k * (k - 1) / ((t + k) * (t + k - 1))
    penalty = 2 * c.N * c.lam0 / (3 * sqrt(q * t + 2 - q))
    steps = 2 * c.D**2 / quality * (c.L / (q * t + 2) + penalty)
    return forgotten * start + steps + slip / quality


def convex_at_mean(
    c: Constants,
    zeta: float,
    t: int,
    *,
    share: float = 1.0,
    quality: float = 1.0,
    slip: float = 0.0,
    start: float = 0.0,
) -> float:
    """E F(w_{t+1}) - F* after round t: `convex` and zeta^2 / (2 N lambda_t)."""
    at_clients = convex(
        c,
        t,
        share=share,
        quality=quality,
        slip=slip,
        start=start,
    )
    lam = c.lam0 * sqrt(share * quality * (t - 1) + 2)
    return at_clients + zeta**2 / (2 * c.N * lam)


def nonconvex(
    c: Constants,
    rounds: int,
    *,
    share: float = 1.0,
    quality: float = 1.0,
    slip: float = 0.0,
) -> float:
    """Theorem 2 for T rounds: the smallest mean gap of the surrogate, E min over t.

    With P = T, or p T + 1 for p = `share` < 1: spread P^(2/3) / (p T) + L D^2 / (2 P^(2/3))
    + N D^2 lam0 / (2 P^(1/3)), then plus `slip`, all divided by `quality`.
    """
    cube = _cube(rounds, share)
    start = c.spread * cube**2 / (share * rounds)
    steps = c.L * c.D**2 / (2 * cube**2) + c.N * c.D**2 * c.lam0 / (2 * cube)
    return (start + steps + slip) / quality


def nonconvex_at_mean(
    c: Constants,
    zeta: float,
    rounds: int,
    *,
    share: float = 1.0,
    quality: float = 1.0,
    slip: float = 0.0,
) -> float:
    """The smallest mean Frank-Wolfe gap of F at w: (L D + zeta)^2 / (4 N lambda) more."""
    at_clients = nonconvex(
        c,
        rounds,
        share=share,
        quality=quality,
        slip=slip,
    )
    lam = c.lam0 * _cube(rounds, share)
    return at_clients + (c.L * c.D + zeta) ** 2 / (4 * c.N * lam)


def stochastic(c: Constants, t: int) -> float:
    """Theorem 3 after round t of FedFW-sto: E F_hat_t(X_{t+1}) - F*, three powers of t + 8.

    9/8 D sqrt(N Q) / (t + 8)^(1/3) + 81/16 D^2 (N lam0 / (t + 8)^(1/2) + L / (t + 8)) with
    N Q = 16/3 sigma^2 + 27/4 L^2 D^2.
    """
    NQ = 16 / 3 * c.sigma**2 + 27 / 4 * c.L**2 * c.D**2
    noise = 9 / 8 * c.D * sqrt(NQ) / (t + 8) ** (1 / 3)
    rates = c.N * c.lam0 / sqrt(t + 8) + c.L / (t + 8)
    return float(noise + 81 / 16 * c.D**2 * rates)


def _cube(rounds: int, share: float) -> float:
    """The third root of T for full participation, of p T + 1 otherwise."""
    if share == 1:
        return float(rounds ** (1 / 3))
    return float((share * rounds + 1) ** (1 / 3))
