"""What the note on FedCMOO's theorem measures: the Gram factors, the weights, Algorithm 10.

Plain NumPy, apart from the library's own algorithms and from `bounds`, so that a check in the note
compares two things that were computed apart. A leading axis R holds independent runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from papers.fedcmoo.theory.bounds import Rates, Setting

Array = NDArray[np.float64]


def project_simplex(v: Array) -> Array:
    """The nearest points of the probability simplex, `[..., M]` (sorting rule)."""
    ordered = -np.sort(-v, axis=-1)
    counts = np.arange(1, v.shape[-1] + 1)
    excess = (np.cumsum(ordered, -1) - 1) / counts
    rank = (ordered > excess).sum(-1, keepdims=True)
    level = np.take_along_axis(excess, rank - 1, -1)
    return np.asarray(np.maximum(v - level, 0))


def random_gradients(
    rng: Generator,
    clients: int,
    dim: int,
    objectives: int,
    b: float,
    spread: float,
) -> Array:
    """Client gradients `[N, d, M]`, every column of length `b`, around M random directions."""
    centre = rng.standard_normal((dim, objectives))
    apart = rng.standard_normal((clients, dim, objectives))
    gradients = centre + spread * apart
    lengths = np.linalg.norm(gradients, axis=1, keepdims=True)
    return np.asarray(b * gradients / lengths)


def column_variance(gradients: Array, s: Setting) -> Array:
    """E|column of Y_j - column of J|^2, exactly, `[M]`, with the noise and Q of `gram_factor`.

    q / n' (sigma_l^2 + mean_i |g_i|^2) + sigma_l^2 / n' + the variance of a mean of n' of N.
    """
    clients = len(gradients)
    noise = s.sigma_l**2
    size = np.square(gradients).sum(1).mean(0)
    compression = s.q * (noise + size)
    deviations = gradients - gradients.mean(0)
    spread = np.square(deviations).sum(1).mean(0)
    sampling = (clients - s.n_gram) / max(clients - 1, 1) * spread
    return np.asarray((compression + noise + sampling) / s.n_gram)


def gram_factor(
    gradients: Array,
    s: Setting,
    rng: Generator,
    *,
    common: bool = False,
) -> Array:
    """One Y of Algorithm 9 for each run, `[R, d, M]`.

    n' of N clients without replacement, Gaussian noise of variance sigma_l^2 on every column, and
    Rand-K with K = d / (1 + q) on every column.

    Args:
        gradients: of all clients, `[R, N, d, M]`.
        s: n', sigma_l and q are used.
        rng: source of the draws.
        common: the same noise and the same kept entries for all columns of a client.
    """
    runs, clients, dim, objectives = gradients.shape
    participants = _sampled(rng, runs, clients, s.n_gram)
    columns = 1 if common else objectives
    shape = (runs, s.n_gram, dim, columns)
    deviation = s.sigma_l / np.sqrt(dim)
    noise = deviation * rng.standard_normal(shape)
    sampled = np.take_along_axis(gradients, participants[:, :, None, None], 1)
    messages = sampled + noise
    entries = round(dim / (1 + s.q))  # K of Rand-K
    if entries < dim:
        order = rng.random(shape).argsort(2)
        ranks = order.argsort(2)
        messages = messages * (ranks < entries) * (dim / entries)
    return np.asarray(messages.mean(1))


def _sampled(
    rng: Generator,
    runs: int,
    clients: int,
    count: int,
) -> NDArray[np.intp]:
    """Clients drawn without replacement for each run, `[R, count]`."""
    order = rng.random((runs, clients)).argsort(1)
    return order[:, :count]


@dataclass(frozen=True)
class Waves:
    """f_ik(x) = (b^2 / L) sin((L / b) u_ik . x + phase_ik): A1 and A4 hold with L and b, exactly.

    Attributes
    ----------
    directions : unit vectors u, `[N, d, M]`.
    phases : `[N, M]`.
    b, L : bound of the gradients, smoothness.
    """

    directions: Array
    phases: Array
    b: float
    L: float

    @property
    def floor(self) -> float:
        """A lower bound of every F_k."""
        return -(self.b**2) / self.L

    def losses(self, x: Array) -> Array:
        """F_k, `[R, M]`, at `x`, `[R, d]`."""
        projections = np.einsum("ndm,rd->rnm", self.directions, x)
        angle = self.L / self.b * projections + self.phases
        height = self.b**2 / self.L
        return np.asarray(height * np.sin(angle).mean(1))

    def gradients(self, x: Array, clients: NDArray[np.intp] | None = None) -> Array:
        """Of some clients, `[R, n, d, M]`.

        `x` is `[R, d]` or one point a client, `[R, n, d]`; `clients` is `[R, n]`, None for all.
        """
        if clients is None:
            count = len(self.phases)
            clients = np.broadcast_to(np.arange(count), (len(x), count))
        if x.ndim == 2:
            x = x[:, None]
        u = self.directions[clients]
        projections = (u * x[..., None]).sum(2)
        angle = self.L / self.b * projections + self.phases[clients]
        slope = self.b * np.cos(angle)
        return np.asarray(slope[:, :, None] * u)


def waves(
    rng: Generator,
    s: Setting,
    dim: int,
    spread: float,
) -> Waves:
    """A random instance with N clients and M objectives whose clients differ by `spread`."""
    common = rng.uniform(-1, 1, s.M)
    phases = common + spread * rng.standard_normal((s.N, s.M))
    directions = random_gradients(
        rng,
        s.N,
        dim,
        s.M,
        1.0,
        spread,
    )
    return Waves(directions, phases, s.b, s.L)


def local_work(
    problem: Waves,
    s: Setting,
    x: Array,
    w: Array,
    eta_c: float,
    rng: Generator,
) -> Array:
    """Mean of the Delta_i of n clients after tau local steps from `x` `[R, d]` with `w` `[R, M]`.

    Returns:
        `[R, d]`.
    """
    participants = _sampled(rng, len(x), s.N, s.n)
    points = np.repeat(x[:, None], s.n, 1)
    scale = s.sigma_l / np.sqrt(x.shape[-1])
    for _ in range(s.tau):
        exact = problem.gradients(points, participants)
        g = exact + scale * rng.standard_normal(exact.shape)
        weighted = np.einsum("rndm,rm->rnd", g, w)
        points = points - eta_c * weighted
    travelled = x - points.mean(1)
    return np.asarray(travelled / (s.tau * eta_c))


def theory_run(
    problem: Waves,
    s: Setting,
    rates: Rates,
    runs: int,
    rng: Generator,
) -> Array:
    """|J(x(t)) w(t)|^2 of Algorithm 10 from x = 0 and equal weights, `[R, T]`."""
    x = np.zeros((runs, problem.directions.shape[1]))
    w = np.full((runs, s.M), 1 / s.M)
    squares = np.empty((runs, s.T))
    for t in range(s.T):
        gradients = problem.gradients(x)
        combined = np.einsum("rdm,rm->rd", gradients.mean(1), w)
        squares[:, t] = np.square(combined).sum(1)
        Y_1 = gram_factor(gradients, s, rng)
        Y_2 = gram_factor(gradients, s, rng)
        slope = np.einsum("rdk,rdm,rm->rk", Y_1, Y_2, w)
        w = project_simplex(w - rates.beta * slope)
        update = local_work(
            problem,
            s,
            x,
            w,
            rates.eta_c,
            rng,
        )
        x = x - rates.eta_s * rates.eta_c * s.tau * update
    return squares
