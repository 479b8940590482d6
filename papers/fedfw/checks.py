"""What the notes on Federated Frank-Wolfe measure: small sums over clients, plain loops.

Plain NumPy, apart from the library's own FedFW and from `papers.fedfw.theory`, so that a check in a
note compares two things that were made apart. A leading axis R holds independent runs; n clients,
as in the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.optimize import brentq

from papers.fedfw.theory_fw import Constants

Array = NDArray[np.float64]
Oracle = Callable[[Array], Array]


def ball(radius: float) -> Oracle:
    """Oracle of the Euclidean ball, on the last axis; its centre for the direction 0."""

    def ask(g: Array) -> Array:
        length = np.linalg.norm(g, axis=-1, keepdims=True)
        positive = np.maximum(length, 1e-300)
        return np.asarray(-radius * g / positive)

    return ask


def cross(radius: float) -> Oracle:
    """Oracle of the l1 ball, on the last axis; the first of several largest entries."""

    def ask(g: Array) -> Array:
        largest = np.abs(g).argmax(-1, keepdims=True)
        sign = np.sign(np.take_along_axis(g, largest, -1))
        answer = np.zeros_like(g)
        np.put_along_axis(answer, largest, -radius * sign, -1)
        return answer

    return ask


def box(low: Sequence[float] | float, high: Sequence[float] | float) -> Oracle:
    """Oracle of the box between `low` and `high`, on the last axis."""
    lowest = np.asarray(low)
    highest = np.asarray(high)
    return lambda g: np.where(g > 0, lowest, highest)


def norm_ball(norm: int, radius: float) -> Oracle:
    """Oracle of the l1 ball for `norm` 1, of the Euclidean ball for 2."""
    if norm == 1:
        return cross(radius)
    return ball(radius)


def points_in_ball(
    rng: Generator,
    shape: Sequence[int],
    norm: int,
    radius: float,
    power: float = 1.0,
) -> Array:
    """Random points of the l1 or l2 ball, `shape`; nearer to its surface for a smaller `power`."""
    directions = rng.standard_normal(shape)
    lengths = np.linalg.norm(directions, norm, axis=-1)
    shares = rng.random(shape[:-1]) ** power
    scales = radius * (shares / lengths)
    return np.asarray(directions * scales[..., None])


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
        errors = self.h[:, None] * self.offsets  # [n, m, d]
        variances = np.square(errors).sum(-1).mean(1)
        return float(np.sqrt(variances.max()))

    def values(self, x: Array) -> Array:
        """f_i(x_i), `[..., n]`, for `x` of shape `[..., n, d]`."""
        return np.asarray(self.by_entry(x).sum(-1))

    def by_entry(self, x: Array) -> Array:
        """What each entry of x_i adds to f_i(x_i), `[..., n, d]`."""
        bowl = self.h * np.square(x - self.a) / 2
        ripple = self.s * np.cos(2 * x)
        return np.asarray(bowl + ripple)

    def value(self, x: Array) -> Array:
        """F(x), `[...]`, for `x` of shape `[..., d]`."""
        return np.asarray(self.values(x[..., None, :]).mean(-1))

    def gradients(self, x: Array, rng: Generator | None = None) -> Array:
        """Gradients of f_i at x_i, `[..., n, d]`; with `rng` of one sample for each client."""
        bowl = self.h * (x - self.a)
        exact = bowl - 2 * self.s * np.sin(2 * x)
        if rng is None or self.offsets is None:
            return np.asarray(exact)
        n, m, _ = self.offsets.shape
        samples = rng.integers(m, size=x.shape[:-1])
        drawn = self.offsets[np.arange(n), samples]
        return np.asarray(exact - self.h * drawn)

    def gradient(self, x: Array) -> Array:
        """The gradient of F, `[..., d]`."""
        return np.asarray(self.gradients(x[..., None, :]).mean(-2))

    def spread(self, radius: float) -> float:
        """A bound on zeta: root of mean_i |grad f_i - grad F|^2, on the cube of half-width radius.

        The ripples cancel, and each entry is affine in one x_k: its square is largest at an end.
        """
        b = self.h * self.a
        ends = radius * np.array([-1.0, 1.0])
        slopes = (self.h - self.h.mean(0)) * ends[:, None, None]
        apart = slopes - (b - b.mean(0))  # [2, n, d]
        mean_squares = np.square(apart).mean(1)
        largest = mean_squares.max(0)
        return float(np.sqrt(largest.sum()))

    def floor(self, radius: float) -> float:
        """A lower bound of mean_i min f_i on the cube: the least of a grid, less its error."""
        grid, step = np.linspace(-radius, radius, 2001, retstep=True)
        single = self.by_entry(grid[:, None, None])
        farthest = radius + np.abs(self.a)
        steepest = np.abs(self.h) * farthest + 2 * self.s
        least = single.min(0) - steepest * step / 2  # [n, d]
        return float(least.sum(-1).mean())

    def minimizer(self, radius: float, norm: int) -> Array:
        """x* of F on the l1 or l2 ball, `[d]`, by its multiplier; without ripples."""
        h = self.h.mean(0)
        b = (self.h * self.a).mean(0)

        def at(nu: float) -> Array:
            if norm == 2:
                return np.asarray(b / (h + nu))
            shrunk = np.maximum(np.abs(b) - nu, 0)
            return np.asarray(np.sign(b) * shrunk / h)

        def outside(nu: float) -> float:
            return float(np.linalg.norm(at(nu), norm)) - radius

        if outside(0.0) <= 0:
            return at(0.0)
        high = float(np.abs(b).sum() / min(radius, 1.0) + 1)
        return at(brentq(outside, 0.0, high, xtol=1e-15))


def bowls(
    rng: Generator,
    clients: int,
    dim: int,
    s: float = 0.0,
    samples: int = 0,
) -> Bowls:
    """A random instance: curvatures in [0.5, 1.5], centres normal around a common one."""
    h = rng.uniform(0.5, 1.5, (clients, dim))
    common = rng.standard_normal(dim)
    a = common + rng.standard_normal((clients, dim))
    if samples == 0:
        return Bowls(h, a, s)
    offsets = rng.standard_normal((clients, samples, dim))
    return Bowls(h, a, s, offsets - offsets.mean(1, keepdims=True))


def parabolas(curvature: float, centres: Sequence[float]) -> Bowls:
    """f_i(x) = `curvature` (x - a_i)^2 / 2 on the line, with a client for each centre a_i."""
    a = np.array(centres)[:, None]
    return Bowls(h=np.full_like(a, curvature), a=a)


@dataclass(frozen=True)
class Instance:
    """Convex losses on the l1 or l2 ball, and what the bounds ask for.

    Attributes
    ----------
    problem : the losses, without ripples.
    norm : 1 or 2.
    radius : of the ball; D is twice it.
    """

    problem: Bowls
    norm: int
    radius: float

    @property
    def oracle(self) -> Oracle:
        """The ball's oracle."""
        return norm_ball(self.norm, self.radius)

    @cached_property
    def best(self) -> Array:
        """x*, `[d]`."""
        return self.problem.minimizer(self.radius, self.norm)

    @cached_property
    def least(self) -> float:
        """F*."""
        return float(self.problem.value(self.best))

    @property
    def zeta(self) -> float:
        """A bound on the largest spread of the clients' gradients."""
        return self.problem.spread(self.radius)

    @cached_property
    def dual(self) -> Array:
        """Y*, `[n, d]`."""
        g = lifted_gradient(self.problem, self.best)
        return np.asarray(g.mean(0) - g)

    def constants(self, lam0: float) -> Constants:
        """The letters of the bounds, with X* for the point of Lemma 2."""
        return Constants(
            L=self.problem.smoothness,
            D=2 * self.radius,
            N=len(self.problem.h),
            lam0=lam0,
            dual=float(np.linalg.norm(self.dual)),
            slope=float(np.linalg.norm(lifted_gradient(self.problem, self.best))),
            sigma=self.problem.noise,
        )


def lifted_gradient(problem: Bowls, x: Array) -> Array:
    """The gradient of F_hat where all clients have the model `x` `[d]`, `[n, d]`."""
    n = len(problem.h)
    return problem.gradients(np.tile(x, (n, 1))) / n


def constants_at_centre(problem: Bowls, radius: float, lam0: float) -> Constants:
    """The letters of the bounds for losses that are not convex: start and X of Lemma 2 are 0."""
    centre = np.zeros(problem.h.shape[1])
    return Constants(
        L=problem.smoothness,
        D=2 * radius,
        N=len(problem.h),
        lam0=lam0,
        slope=float(np.linalg.norm(lifted_gradient(problem, centre))),
        spread=float(problem.value(centre)) - problem.floor(radius),
    )


class Schedule(NamedTuple):
    """eta_t, lambda_t and rho_t for t = 1, ..., T, each `[T]`."""

    eta: Array
    lam: Array
    rho: Array


def schedule(
    name: str,
    rounds: int,
    lam0: float,
    share: float = 1.0,
) -> Schedule:
    """The paper's: "convex" and "nonconvex" with participation `share`, or "stochastic"."""
    t = np.arange(1.0, rounds + 1)
    ones = np.ones(rounds)
    if name == "convex":
        u = share * (t - 1) + 2
        return Schedule(eta=2 / u, lam=lam0 * np.sqrt(u), rho=ones)
    if name == "nonconvex":
        passed = rounds if share == 1 else share * rounds + 1
        u = passed * ones
        return Schedule(eta=u ** (-2 / 3), lam=lam0 * u ** (1 / 3), rho=ones)
    return Schedule(
        eta=9 / (t + 8),
        lam=lam0 * np.sqrt(t + 8),
        rho=4 / (t + 7) ** (2 / 3),
    )


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
    if slip is None:
        slip = np.zeros(len(plan.eta))
    server = start
    x = np.repeat(start[:, None], n, axis=1)
    y = np.zeros_like(x)
    d = np.zeros_like(x)
    models = [x]
    servers = [server]
    rounds = []
    for eta, lam, rho, error in zip(*plan, slip, strict=True):
        fresh = problem.gradients(x, rng) / n
        d = (1 - rho) * d + rho * fresh
        drift = x - server[:, None]
        y = y + plus * drift
        g = d + lam * drift + y
        s = answers(oracles, g)
        if quality < 1 or error > 0:
            s = worse(s, x, g, quality, error)
        move = eta * (s - x)
        if rng is not None:
            active = rng.random(x.shape[:2]) < share
            move = move * active[..., None]
        x = x + move
        server = server + move.mean(1)
        models.append(x)
        servers.append(server)
        rounds.append((g, s, d))
    questions, answered, averaged = map(np.stack, zip(*rounds, strict=True))
    return Path(
        x=np.stack(models),
        server=np.stack(servers),
        g=questions,
        s=answered,
        d=averaged,
    )


def answers(oracles: Sequence[Oracle], g: Array) -> Array:
    """What each client's oracle says to its direction, `[R, n, d]` like `g`."""
    each_client = [ask(g[:, i]) for i, ask in enumerate(oracles)]
    return np.stack(each_client, axis=1)


def worse(
    s: Array,
    x: Array,
    g: Array,
    quality: float,
    error: float,
) -> Array:
    """The answers moved towards x_i: `quality` of each gap is left, less the client's `error`/n."""
    n = x.shape[1]
    gap = (g * (x - s)).sum(-1)
    divisor = np.where(gap > 0, gap, 1.0)
    left = np.maximum(quality - error / n / divisor, 0)
    return np.asarray(x + left[..., None] * (s - x))


def naive(
    problem: Bowls,
    oracle: Oracle,
    eta: Array,
    start: Array,
) -> Array:
    """Scheme (20), one oracle call for each client at the common model, `[T + 1, R, d]`."""
    x = start
    path = [start]
    for step in eta:
        gradients = problem.gradients(x[:, None])
        answer = oracle(gradients).mean(1)
        x = (1 - step) * x + step * answer
        path.append(x)
    return np.stack(path)


def distance(x: Array) -> Array:
    """dist(X, C), `[...]`, for `x` of shape `[..., n, d]`."""
    off = x - x.mean(-2, keepdims=True)
    return np.asarray(np.linalg.norm(off, axis=(-2, -1)))


def surrogate(problem: Bowls, x: Array, lam: Array) -> Array:
    """F_hat(X) + lam dist^2 / 2, `[T, R]`, for `x` `[T, R, n, d]` and `lam` `[T]`."""
    penalty = lam[:, None] / 2 * distance(x) ** 2
    return np.asarray(problem.values(x).mean(-1) + penalty)


def fw_gap(problem: Bowls, oracle: Oracle, x: Array) -> Array:
    """(11): max_u <grad F(x), x - u>, `[...]`, for `x` of shape `[..., d]`."""
    g = problem.gradient(x)
    return np.asarray((g * (x - oracle(g))).sum(-1))


def surrogate_gap(oracle: Oracle, path: Path) -> Array:
    """max_S <grad F_hat_t(X_t), X_t - S> of the models before every round, `[T, R]`."""
    gaps = path.g * (path.x[:-1] - oracle(path.g))
    return np.asarray(gaps.sum((-2, -1)))


class Progress(NamedTuple):
    """Of a convex problem after each round, means over the runs, each `[T]`."""

    h: Array  # F_hat_t(X_{t+1}) - F*
    excess: Array  # F(w_{t+1}) - F*
    distance: Array  # dist(X_{t+1}, C)


def progress(
    problem: Bowls,
    path: Path,
    plan: Schedule,
    least: float,
) -> Progress:
    """What the convex bounds are about, for runs of `plan`; `least` is F*."""
    models = path.x[1:]
    penalized = surrogate(problem, models, plan.lam)
    values = problem.value(path.server[1:])
    return Progress(
        h=penalized.mean(1) - least,
        excess=values.mean(1) - least,
        distance=distance(models).mean(1),
    )


def each(
    bound: Callable[..., float],
    rounds: Iterable[int],
    *args: Any,
    **options: Any,
) -> Array:
    """A bound of `theory` or `theory_fw` at every round, `[T]`."""
    return np.array([bound(*args, t, **options) for t in rounds])


def distance_bound(c: Constants, lam: Array, h: Array) -> Array:
    """The bound of dist(X_{t+1}, C) that a bound `h` of h_t gives, `[T]`."""
    from_dual = 2 * c.dual / lam
    return np.asarray(from_dual + np.sqrt(2 * h / lam))


def spaced(rounds: int, number: int) -> NDArray[np.int64]:
    """Indices of at most `number` of the rounds, about even on a logarithmic axis."""
    marks = np.geomspace(1, rounds, number).astype(int)
    return np.unique(marks) - 1


def fitted_power(t: Array, x: Array) -> float:
    """The power p of the line through log t and log x, as of x = t^p."""
    power, _ = np.polyfit(np.log(t), np.log(x), 1)
    return float(power)
