"""What the notes on Federated Frank-Wolfe measure: small sums over clients, plain loops.

Plain NumPy, apart from the library's own FedFW and from `papers.fedfw.theory`, so that a check in a
note compares two things that were made apart. A leading axis R holds independent runs; n clients,
as in the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Array = NDArray[np.float64]
Oracle = Callable[[Array], Array]


def ball(radius: float) -> Oracle:
    """Oracle of the Euclidean ball, on the last axis; its centre for the direction 0."""
    return lambda g: -radius * g / np.maximum(np.linalg.norm(g, axis=-1, keepdims=True), 1e-300)


def cross(radius: float) -> Oracle:
    """Oracle of the l1 ball, on the last axis; the first of several largest entries."""

    def ask(g: Array) -> Array:
        largest = np.abs(g).argmax(-1)[..., None]
        answer = np.zeros_like(g)
        np.put_along_axis(answer, largest, np.take_along_axis(g, largest, -1), -1)
        return np.asarray(-radius * np.sign(answer))

    return ask


def box(low: Sequence[float] | float, high: Sequence[float] | float) -> Oracle:
    """Oracle of the box between `low` and `high`, on the last axis."""
    return lambda g: np.where(g > 0, np.asarray(low), np.asarray(high)) + 0 * g


@dataclass(frozen=True)
class Bowls:
    """f_i(x) = sum_k h_ik (x_k - a_ik)^2 / 2 + s cos(2 x_k), and samples whose mean f_i is.

    Attributes
    ----------
    h, a : curvatures and centres, `[n, d]`.
    s : size of the ripples; f_i is not convex if 4 s exceeds some h_ik.
    offsets : of the samples' centres from a_i, `[n, m, d]` with mean 0 over the m samples.
    """

    h: Array
    a: Array
    s: float = 0.0
    offsets: Array | None = None

    @property
    def smoothness(self) -> float:
        """L, a Lipschitz constant of every grad f_i."""
        return float(self.h.max() + 4 * self.s)

    @property
    def noise(self) -> float:
        """sigma: the root of the largest variance of one sample's gradient; 0 without samples."""
        if self.offsets is None:
            return 0.0
        return float(np.sqrt(np.square(self.h[:, None] * self.offsets).sum(-1).mean(1).max()))

    def values(self, x: Array) -> Array:
        """f_i(x_i), `[..., n]`, for `x` of shape `[..., n, d]`."""
        bowl = self.h * np.square(x - self.a) / 2 + self.s * np.cos(2 * x)
        return np.asarray(bowl.sum(-1))

    def value(self, x: Array) -> Array:
        """F(x), `[...]`, for `x` of shape `[..., d]`."""
        return np.asarray(self.values(x[..., None, :]).mean(-1))

    def gradients(self, x: Array, rng: Generator | None = None) -> Array:
        """Gradients of f_i at x_i, `[..., n, d]`; with `rng` of one sample for each client."""
        exact = self.h * (x - self.a) - 2 * self.s * np.sin(2 * x)
        if rng is None or self.offsets is None:
            return np.asarray(exact)
        n, m, _ = self.offsets.shape
        drawn = self.offsets[np.arange(n), rng.integers(m, size=x.shape[:-1])]
        return np.asarray(exact - self.h * drawn)

    def gradient(self, x: Array) -> Array:
        """The gradient of F, `[..., d]`."""
        return np.asarray(self.gradients(x[..., None, :]).mean(-2))

    def spread(self, radius: float) -> float:
        """A bound on zeta: root of mean_i |grad f_i - grad F|^2, on the cube of half-width radius.

        The ripples cancel, and each entry is affine in one x_k: its square is largest at an end.
        """
        b = self.h * self.a
        ends = radius * np.array([-1.0, 1.0])[:, None, None]
        apart = (self.h - self.h.mean(0)) * ends - (b - b.mean(0))
        return float(np.sqrt(np.square(apart).mean(1).max(0).sum()))

    def floor(self, radius: float) -> float:
        """A lower bound of mean_i min f_i on the cube: the least of a grid, less its error."""
        grid, step = np.linspace(-radius, radius, 2001, retstep=True)
        x = grid[:, None, None]
        single = self.h * np.square(x - self.a) / 2 + self.s * np.cos(2 * x)
        steepest = np.abs(self.h) * (radius + np.abs(self.a)) + 2 * self.s
        return float((single.min(0) - steepest * step / 2).sum(-1).mean())

    def minimizer(self, radius: float, norm: int) -> Array:
        """x* of F on the l1 or l2 ball, `[d]`, by bisection; without ripples."""
        h = self.h.mean(0)
        b = (self.h * self.a).mean(0)

        def at(nu: float) -> Array:
            if norm == 2:
                return np.asarray(b / (h + nu))
            return np.asarray(np.sign(b) * np.maximum(np.abs(b) - nu, 0) / h)

        low = 0.0
        high = float(np.abs(b).sum() / min(radius, 1.0) + 1)
        if np.linalg.norm(at(0.0), norm) <= radius:
            return at(0.0)
        for _ in range(200):
            middle = (low + high) / 2
            above = np.linalg.norm(at(middle), norm) > radius
            low, high = (middle, high) if above else (low, middle)
        return at(high)


def bowls(
    rng: Generator, clients: int, dim: int, s: float = 0.0, samples: int = 0, apart: float = 1.0
) -> Bowls:
    """A random instance: curvatures in [0.5, 1.5], centres `apart` from a common one."""
    h = rng.uniform(0.5, 1.5, (clients, dim))
    a = rng.standard_normal(dim) + apart * rng.standard_normal((clients, dim))
    offsets = rng.standard_normal((clients, samples, dim)) if samples else None
    return Bowls(h, a, s, None if offsets is None else offsets - offsets.mean(1, keepdims=True))


class Schedule(NamedTuple):
    """eta_t, lambda_t and rho_t for t = 1, ..., T, each `[T]`."""

    eta: Array
    lam: Array
    rho: Array


def schedule(kind: str, rounds: int, lam0: float, share: float = 1.0) -> Schedule:
    """The paper's: "convex" and "nonconvex" with participation `share`, or "stochastic"."""
    t = np.arange(1.0, rounds + 1)
    ones = np.ones(rounds)
    if kind == "convex":
        u = share * (t - 1) + 2
        return Schedule(2 / u, lam0 * np.sqrt(u), ones)
    if kind == "nonconvex":
        u = (rounds if share == 1 else share * rounds + 1) * ones
        return Schedule(u ** (-2 / 3), lam0 * u ** (1 / 3), ones)
    return Schedule(9 / (t + 8), lam0 * np.sqrt(t + 8), 4 / (t + 7) ** (2 / 3))


class Path(NamedTuple):
    """What a run passed through; `x[t]` and `server[t]` are before round t + 1, T + 1 of them."""

    x: Array  # [T + 1, R, n, d]
    server: Array  # [T + 1, R, d]
    g: Array  # [T, R, n, d]  what the oracle was asked
    s: Array  # [T, R, n, d]  what was sent
    d: Array  # [T, R, n, d]  averaged gradients, 1 / n included


def run(
    problem: Bowls,
    oracle: Oracle | Sequence[Oracle],
    plan: Schedule,
    start: Array,
    rng: Generator | None = None,
    *,
    share: float = 1.0,
    plus: float = 0.0,
    quality: float = 1.0,
    slip: Array | None = None,
) -> Path:
    """Algorithm 1 in a plain loop, R runs at once, all clients from the start.

    Args:
        problem: with samples, gradients are of one sample a client and round.
        oracle: of the set, or one for each client.
        plan: FedFW-sto if rho_t < 1 somewhere.
        start: `[R, d]`.
        rng: of the samples and the coins; needed for either.
        share: probability of taking part; the server follows (40).
        plus: FedFW+ with this dual step; 0 for FedFW.
        quality: m; the answer is moved towards x_i until this share of the gap is left.
        slip: `[T]`, additive error of all clients together, made in the same way.
    """
    n = len(problem.h)
    oracles = [oracle] * n if callable(oracle) else list(oracle)
    slips = np.zeros(len(plan.eta)) if slip is None else slip
    x = np.repeat(start[:, None], n, 1)
    y = np.zeros_like(x)
    d = np.zeros_like(x)
    server = start
    xs = [x]
    servers = [server]
    kept = []
    for eta, lam, rho, wrong in zip(*plan, slips, strict=True):
        d = (1 - rho) * d + rho * problem.gradients(x, rng) / n
        off = x - server[:, None]
        y = y + plus * off
        g = d + lam * off + y
        s = np.stack([ask(g[:, i]) for i, ask in enumerate(oracles)], 1)
        gap = (g * (x - s)).sum(-1)
        if quality < 1 or wrong:
            left = np.maximum(quality - wrong / n / np.where(gap > 0, gap, 1.0), 0)
            s = x + left[..., None] * (s - x)
        active = np.ones(x.shape[:2]) if rng is None else rng.random(x.shape[:2]) < share
        move = eta * active[..., None] * (s - x)
        x = x + move
        server = server + move.mean(1)
        xs.append(x)
        servers.append(server)
        kept.append((g, s, d))
    return Path(np.stack(xs), np.stack(servers), *(np.stack(z) for z in zip(*kept, strict=True)))


def naive(problem: Bowls, oracle: Oracle, eta: Array, start: Array) -> Array:
    """Scheme (20), one oracle call for each client at the common model, `[T + 1, R, d]`."""
    x = start
    path = [start]
    for step in eta:
        s = oracle(problem.gradients(x[:, None]))
        x = (1 - step) * x + step * s.mean(1)
        path.append(x)
    return np.stack(path)


def distance(x: Array) -> Array:
    """dist(X, C), `[...]`, for `x` of shape `[..., n, d]`."""
    return np.asarray(np.sqrt(np.square(x - x.mean(-2, keepdims=True)).sum((-2, -1))))


def surrogate(problem: Bowls, x: Array, lam: Array) -> Array:
    """F_hat(X) + lam dist^2 / 2, `[T, R]`, for `x` `[T, R, n, d]` and `lam` `[T]`."""
    return np.asarray(problem.values(x).mean(-1) + lam[:, None] / 2 * distance(x) ** 2)


def fw_gap(problem: Bowls, oracle: Oracle, x: Array) -> Array:
    """(11): max_u <grad F(x), x - u>, `[...]`, for `x` of shape `[..., d]`."""
    g = problem.gradient(x)
    return np.asarray((g * (x - oracle(g))).sum(-1))
