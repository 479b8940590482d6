"""Tail bounds for sampled clients and minibatches, and the constants that follow from them.

F: "FedSGM: A Unified Framework for Constraint Aware, Bidirectionally Compressed, Multi-step
Federated Optimization"; the lemmas and assumptions are numbered as there. Letters as in
`papers.fedsgm.theory`: n of N clients take part, E local steps, T rounds, probability of failure
delta. A number s is a *proxy* of X if E exp(x (X - E X)) <= exp(s x^2 / 2) for all x. "Ours" are
smaller constants, or repaired ones; the book's notes on sampled clients and on minibatches prove
them.
"""

from dataclasses import replace
from math import log, sqrt
from typing import Literal

from papers.fedsgm.gamma import gamma_local
from papers.fedsgm.theory import Rate, Setting, hard_rate

Residual = Literal["printed", "corrected", "direct"]


def sampling_walk(s: Setting, lr: float, proxy: float = 16.0) -> float:
    """Lemma 4: bound on the sum over rounds of 2 lr <full mean - sampled mean, w_t - w*>.

    lr E G D sqrt(2 proxy T / n log(1/delta)). F has proxy 16; Hoeffding's inequality for inner
    products of range 2 E G D needs 4.
    """
    tail = log(1 / s.delta)
    spread = 2 * proxy * s.T / s.participants * tail
    return lr * s.E * s.G * s.D * sqrt(spread)


def estimate_error(s: Setting, sigma_b: float = 0.0, value_batch: int = 1) -> float:
    """Lemma 7, with a minibatch Lemma 8: largest error of the constraint value in T rounds.

    sqrt(2/n (sigma^2 + sigma_b^2 / value_batch) log(2T/delta)).
    """
    variance = s.sigma**2 + sigma_b**2 / value_batch
    tail = log(2 * s.T / s.delta)
    return sqrt(2 / s.participants * variance * tail)


def drift_bound(
    s: Setting,
    lr: float,
    sigma_xi: float,
    version: Literal["printed", "direct"] = "printed",
) -> float:
    """Lemma 3: the sum over local steps of |w_t - w_{j,tau}|^2, all rounds and clients at once.

    lr^2 E^3 [2/3 G^2 + k sigma_xi^2 (1 + log(NTE/delta))], k = 1 printed, 2/3 by the proof itself.
    """
    k = 1.0 if version == "printed" else 2 / 3
    tail = 1 + log(s.N * s.T * s.E / s.delta)
    of_gradients = 2 / 3 * s.G**2
    of_noise = k * sigma_xi**2 * tail
    return lr**2 * s.E**3 * (of_gradients + of_noise)


def noise_walk(
    s: Setting,
    lr: float,
    sigma_xi: float,
    proxy: float = 1.0,
) -> float:
    """Lemma 5: bound on the sum of 2 lr <mean gradient noise, w_t - w*> over rounds and steps.

    2 lr D sigma_xi sqrt(2 proxy E T / n log(1/delta)); `proxy` is that of a scalar with
    E exp(X^2) <= e: 1 in F, 3/2 by the textbook inequality.
    """
    tail = log(1 / s.delta)
    spread = 2 * proxy * s.E * s.T / s.participants * tail
    return 2 * lr * s.D * sigma_xi * sqrt(spread)


def square_bound(
    s: Setting,
    lr: float,
    sigma_xi: float,
    version: Literal["printed", "proved"] = "printed",
) -> float:
    """Lemma 6: bound on 2 lr^2 |full mean - sampled stochastic mean|^2, all rounds at once.

    Printed: 8 lr^2 E / n (E G^2 + sigma_xi^2) log(4T/delta), from inequalities for scalars. Proved
    (ours): 4 lr^2 / n (E^2 G^2 (1 + sqrt(2 log(2T/delta)))^2 + 3 E sigma_xi^2 log(4T/delta)).
    """
    n = s.participants
    tail = log(4 * s.T / s.delta)
    if version == "printed":
        of_one_step = s.E * s.G**2 + sigma_xi**2
        return 8 * lr**2 * s.E / n * of_one_step * tail
    deviation = 1 + sqrt(2 * log(2 * s.T / s.delta))
    of_sampling = (s.E * s.G * deviation) ** 2
    of_noise = 3 * s.E * sigma_xi**2 * tail
    return 4 * lr**2 / n * (of_sampling + of_noise)


def residual_bound(
    E: int,
    G: float,
    q: float,
    ratio: float,
    version: Residual = "corrected",
) -> float:
    """Lemma 9: bound on |1/n sum of all residuals|, deterministic uplink, ratio = N / n.

    Corrected: ratio 2 sqrt(1-q)/q E G. Printed with (E G)^2 for E G (erratum E13). Direct (ours):
    ratio r/(1-r) E G, r = sqrt(1-q), by the triangle inequality.
    """
    r = sqrt(1 - q)
    step = E * G
    if version == "direct":
        return ratio * r / (1 - r) * step
    if version == "printed":
        return ratio * 2 * r / q * step**2
    return ratio * 2 * r / q * step


def gamma_sampled(E: int, q: float, q0: float, ratio: float) -> float:
    """Gamma of F Theorem 1 (partial) by triangle inequalities (ours), ratio = N / n.

    E - 1 + E m^2 / 2 + E m r0/(1-r0) + ratio E m r/(1-r) with r = sqrt(1-q), r0 = sqrt(1-q0) and
    m = (1+r)/(1-r), the longest message in units of E G. At q = q0 = 1 it is 3E/2 - 1, that of
    Theorem 4.
    """
    r = sqrt(1 - q)
    r0 = sqrt(1 - q0)
    longest = (1 + r) / (1 - r)
    gap = r0 / (1 - r0)
    residual = ratio * r / (1 - r)
    square = E / 2 * (longest**2 - 1)
    products = E * longest * (gap + residual)
    return gamma_local(E, "direct") + square + products


def sampled_rate(s: Setting, one_sample: bool = False) -> Rate:
    """What F Theorems 1 (partial) and 4 can promise with the smaller constants (ours).

    q = q0 = 1 is Theorem 4. `one_sample`: the promise for Algorithm 1 as printed, where the clients
    that are asked for the constraint value also make the step: the martingale argument is lost, and
    the term G D sqrt(2/n log(4T/delta)) does not vanish as T grows.
    """
    r = sqrt(1 - s.q)
    gamma = gamma_sampled(s.E, s.q, s.q0, s.ratio)
    boundary = s.ratio * s.D * s.G * r / (1 - r) / s.T
    if one_sample:
        error = estimate_error(replace(s, delta=s.delta / 2))
        walk = s.G * s.D * sqrt(2 / s.participants * log(4 * s.T / s.delta))
    else:
        third = replace(s, delta=s.delta / 3)
        error = estimate_error(third)
        walk = sampling_walk(third, 1.0, proxy=4.0) / (s.E * s.T)
    return hard_rate(s, gamma, boundary + walk, error, "corrected")


def gamma_noisy(s: Setting, sigma_xi: float) -> float:
    """Gamma of F Theorem 9 with minibatch gradients (ours), at most its G_eff / G^2.

    (E - 1)(1 + R/G) + (E G + Q)^2 / (2 E G^2), where R = sigma_xi sqrt(1 + log(7NTE/delta)) bounds
    every single noise and Q = sqrt(3 E / n log(14T/delta)) sigma_xi the norm of a round's mean
    noise. Without noise it is 3E/2 - 1, that of Theorem 4.
    """
    single_tail = 1 + log(7 * s.N * s.T * s.E / s.delta)
    mean_tail = log(14 * s.T / s.delta)
    single = sigma_xi * sqrt(single_tail)
    mean = sigma_xi * sqrt(3 * s.E / s.participants * mean_tail)
    drift = (s.E - 1) * (1 + single / s.G)
    longest_step = s.E * s.G + mean
    return drift + longest_step**2 / (2 * s.E * s.G**2)


def noisy_rate(
    s: Setting,
    sigma_xi: float,
    sigma_b: float,
    value_batch: int,
) -> Rate:
    """What F Theorem 9 can promise with `gamma_noisy`, Hoeffding's proxy and 3/2 in Lemma 5 (ours).

    Without compression; the other arguments are those of `theory.theorem_9`.
    """
    seventh = replace(s, delta=s.delta / 7)
    gamma = gamma_noisy(s, sigma_xi)
    walk = sampling_walk(seventh, 1.0, proxy=4.0)
    noise = noise_walk(seventh, 1.0, sigma_xi, proxy=1.5)
    extra = (walk + noise) / (s.E * s.T)
    return hard_rate(
        s,
        gamma,
        extra,
        estimate_error(seventh, sigma_b, value_batch),
        "corrected",
    )
