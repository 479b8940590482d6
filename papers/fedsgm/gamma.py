"""Gamma, the one constant in which the FedSGM theorems differ, and what follows from it.

W and F are the two papers, E1, E2, ... their errata, as `papers.fedsgm.theory` names them. With
D >= |w0 - w*|, G-Lipschitz losses, E local steps and T rounds, the mean regret is at most
D^2 / (2 lr E T) + lr G^2 Gamma; the best `lr` is `step_size`, the value there is `bound`.
"""

import math
from math import sqrt
from typing import Literal

Version = Literal["printed", "corrected"]


def bound(D: float, G: float, E: int, T: int, gamma: float) -> float:
    """B(Gamma) = D G sqrt(2 Gamma / (E T)), the regret bound at the best step size."""
    return D * G * sqrt(2 * gamma / (E * T))


def step_size(D: float, G: float, E: int, T: int, gamma: float) -> float:
    """eta(Gamma) = D / (G sqrt(2 E T Gamma)), which balances the two terms of the bound."""
    return D / (G * sqrt(2 * E * T * gamma))


def regret_bound(
    D: float,
    G: float,
    E: int,
    T: int,
    gamma: float,
    lr: float,
) -> float:
    """D^2 / (2 lr E T) + lr G^2 Gamma: the bound at any step size; `bound` is its minimum."""
    return D**2 / (2 * lr * E * T) + lr * G**2 * gamma


def soft_beta(
    tolerance: float, regret: float, version: Literal["papers", "direct"] = "papers"
) -> float:
    """Smallest beta for which an argument for soft switching closes, given a bound on the regret.

    Papers: 1 / (tolerance - regret), which with tolerance = 2 B is their 2 / tolerance. Direct
    (ours): a quarter of that, as the ramp itself says how far below the threshold a round with
    weight sigma is, (1 - sigma) / beta and not 1 / beta. Both are infinite where
    tolerance = regret, which is how F's Theorems 2, 5 and 8 read with Gamma rounded up (E1).
    """
    slack = tolerance - regret
    if slack <= 0:
        return math.inf
    if version == "papers":
        return 1 / slack
    return 1 / (4 * slack)


def soft_excess(tolerance: float, regret: float, beta: float) -> float:
    """How far soft switching's objective gap may lie above the tolerance (ours).

    max(0, 1 / beta - 2 sqrt((tolerance - regret) / beta)) below beta = `soft_beta(direct)`, zero
    from there on. `regret` is any bound on the mean regret that does not exceed the tolerance.
    """
    if beta >= soft_beta(tolerance, regret, "direct"):
        return 0.0
    return 1 / beta - 2 * sqrt((tolerance - regret) / beta)


def gamma_local(E: int, version: Literal["stated", "proved", "direct"] = "stated") -> float:
    """Gamma without compression, W A.3 and F Theorems 3-5, 10: direct <= proved <= stated.

    Stated: 2 E^2. Proved: Gamma_0 = E/2 + 1 + E^2/3, what the papers' proofs show. Direct (ours):
    3E/2 - 1, with the drift bounded by Cauchy-Schwarz instead of Young's inequality.
    """
    values = {
        "stated": 2.0 * E**2,
        "proved": E / 2 + 1 + E**2 / 3,
        "direct": 1.5 * E - 1,
    }
    return values[version]


def gamma_unbiased(E: int, qu: float, N: int) -> float:
    """2 E^2 + E qu / (2N), W Theorems 1 and 2 (W Theorem 7 prints q for qu)."""
    return gamma_local(E) + E * qu / (2 * N)


def gamma_unbiased_direct(E: int, qu: float, N: int) -> float:
    """3E/2 - 1 + E qu / (2N) (ours): the same new term on top of the smaller local one."""
    return gamma_local(E, "direct") + E * qu / (2 * N)


def residual_limit(q: float) -> float:
    """Limit 2 (1-q)(2-q) / q^2 of |e_j|^2 / (E G)^2 under error feedback; below 4 (1-q) / q^2.

    The fixed point of x <- (1 - q/2) x + (1-q)(2-q)/q, F Theorem 6's recursion with Young parameter
    q / (2 (1-q)). F's Lemma 9 misprints its root (erratum E13).
    """
    return 2 * (1 - q) * (2 - q) / q**2


def gamma_feedback(E: int, q: float, q0: float) -> float:
    """2 E^2 + 2E sqrt(1-q)/q + 4E sqrt(10 (1-q0))/(q0 q), F Theorems 1 (full), 2, 6, 8."""
    residual = 2 * E * sqrt(1 - q) / q
    gap = 4 * E * sqrt(10 * (1 - q0)) / (q0 * q)
    return gamma_local(E) + residual + gap


def gamma_feedback_direct(E: int, q: float, q0: float) -> float:
    """3E/2 - 1 + E r + E r0 (1+s)/(1-s), s = sqrt(1-q), r = s/(1-s), r0 alike from q0 (ours).

    The same proof as `gamma_feedback`, with the triangle inequality (Minkowski's, for random
    compressors) in the place of Young's: |e_t| <= r E G, |v_t| <= (1+s)/(1-s) E G.
    """
    s = sqrt(1 - q)
    s0 = sqrt(1 - q0)
    residual = s / (1 - s)
    residual_0 = s0 / (1 - s0)
    gap = E * residual_0 * (1 + s) / (1 - s)
    return gamma_local(E, "direct") + E * residual + gap


def gamma_partial(
    E: int,
    q: float,
    q0: float,
    ratio: float,
    version: Version = "printed",
    theorem: Literal[1, 7] = 1,
) -> float:
    """Gamma with error feedback and sampled clients, F Theorems 1 (partial) and 7; ratio = N / n.

    Printed: Theorem 7 has sqrt(1-q) in its third term where Theorem 1 and the proof have sqrt(1-q0)
    (erratum E2). Corrected: that term is 80 E sqrt(1-q0)/(q0 q^2), because the proof uses
    |v_t| <= 2EG where only 2 sqrt(10) EG / q is shown (E3). Neither version becomes
    2 E^2 at q = q0 = 1: the term 20E/q^2 stays.
    """
    up = sqrt(1 - q)
    down = sqrt(1 - q0)
    second = 16 * E * ratio * sqrt(10) * up * down / (q0 * q**2)
    if version == "corrected":
        third = 80 * E * down / (q0 * q**2)
    elif theorem == 1:
        third = 8 * E * sqrt(10) * down / (q0 * q)
    else:
        third = 8 * E * sqrt(10) * up / (q0 * q)
    fourth = 20 * E / q**2 + ratio * 4 * E * sqrt(10) * up / q**2
    return gamma_local(E) + second + third + fourth


def gamma_partial_direct(E: int, q: float, q0: float, ratio: float) -> float:
    """Gamma of F Theorem 1 (partial) without its second term and with half its third (ours).

    The proof bounds <ehat, v> and <ehat, e_t - e_{t+1}> one by one; their difference is
    <ehat, delta> with |delta| <= EG. So Theorem 1's printed Gamma is valid after all, though E3's
    step is not; the note on compression has the three lines.
    """
    down = 4 * E * sqrt(10 * (1 - q0)) / (q0 * q)
    up = ratio * 4 * E * sqrt(10 * (1 - q)) / q**2
    return gamma_local(E) + down + 20 * E / q**2 + up
