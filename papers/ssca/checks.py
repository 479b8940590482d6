"""What the notes on SSCA measure: small finite sums, plain loops of the method, dual programs.

Plain NumPy, so that a check compares two things that were made apart: nothing here knows the
library's own SSCA. As in the paper, rho averages surrogates, gamma averages iterates, and tau is
the curvature of a surrogate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from fedlib.core.trace import Array
from fedlib.steps import PowerLaw

Rows = NDArray[np.intp]


def power_law(scale: float, exponent: float, rounds: int) -> Array:
    """`scale` t^-`exponent` for t = 1, ..., T."""
    t = np.arange(1.0, rounds + 1)
    return np.asarray(scale * t**-exponent)


def bias(rho: Array) -> Array:
    """1 / kappa_t: by how much (9) is shorter than the minimizer of the averages (3)."""
    return np.asarray(1 / (1 - np.cumprod(1 - rho)))


@dataclass(frozen=True)
class Program:
    """Minimize a0'w + tau0 |w|^2 + c sum_m [A_m + B_m'w + tau |w|^2]_+, one program a row."""

    a0: Array  # [R, d]
    A: Array  # [R, M]     constants less levels
    B: Array  # [R, M, d]
    tau0: float
    tau: float
    c: float


def minimizer(p: Program, nu: Array) -> Array:
    """w(nu) = -(a0 + B'nu) / (2 (tau0 + tau sum nu)), `[R, d]`."""
    slope, curvature = _lagrangian(p, nu)
    return np.asarray(-slope / (2 * curvature)[:, None])


def primal(p: Program, w: Array) -> Array:
    """The program's objective at `w`, `[R]`."""
    square = np.square(w).sum(-1)
    objective = (p.a0 * w).sum(-1) + p.tau0 * square
    constraints = p.A + np.einsum("rmd,rd->rm", p.B, w) + p.tau * square[:, None]
    violation = np.maximum(constraints, 0).sum(-1)
    return np.asarray(objective + p.c * violation)


def dual(p: Program, nu: Array) -> Array:
    """h(nu), never above `primal` for nu in [0, c]^M, `[R]`."""
    slope, curvature = _lagrangian(p, nu)
    lowest = -np.square(slope).sum(-1) / (4 * curvature)
    return np.asarray((p.A * nu).sum(-1) + lowest)


def multipliers(p: Program, sweeps: int = 1) -> Array:
    """Cyclic coordinate ascent on `dual` from 0, each step in closed form, `[R, M]`."""
    nu = np.zeros_like(p.A)
    for _ in range(sweeps):
        for m in range(p.A.shape[1]):
            nu[:, m] = 0.0
            nu[:, m] = best_multiplier(p, nu, m)
    return nu


def best_multiplier(p: Program, others: Array, m: int) -> Array:
    """The maximizer of `dual` in nu_m, `[R]`; in `others` it is 0."""
    slope, curvature = _lagrangian(p, others)
    B = p.B[:, m]
    numerator = np.square(slope - (curvature / p.tau)[:, None] * B).sum(-1)
    denominator = np.square(B).sum(-1) - 4 * p.tau * p.A[:, m]
    falls = denominator > 0  # otherwise `dual` grows up to nu_m = c
    root = p.tau * np.sqrt(numerator / np.where(falls, denominator, 1.0))
    inside = np.clip((root - curvature) / p.tau, 0, p.c)
    return np.where(falls, inside, p.c)


def _lagrangian(p: Program, nu: Array) -> tuple[Array, Array]:
    """Slope and curvature of the program's Lagrangian, `[R, d]` and `[R]`."""
    slope = p.a0 + np.einsum("rm,rmd->rd", nu, p.B)
    curvature = p.tau0 + p.tau * nu.sum(-1)
    return slope, curvature


@dataclass(frozen=True)
class Ripples:
    """f_n(w) = sum_k h_nk (w_k - a_nk)^2 / 2 + s cos(2 w_k) - level, and its mean F over n."""

    h: Array  # [N, d]
    a: Array  # [N, d]
    s: float = 0.0  # F is not convex if 4 s exceeds a mean curvature
    level: float = 0.0  # of a constraint F <= 0

    @property
    def smoothness(self) -> float:
        """A Lipschitz constant of grad F."""
        return float(self.h.mean(0).max() + 4 * self.s)

    def value(self, w: Array, rows: Rows | None = None) -> Array:
        """Mean over the rows `[R, B]` (None: all) at `w` `[..., d]`, `[...]`."""
        h, a = self._rows(rows)
        bowls = (h * np.square(w[..., None, :] - a)).sum(-1).mean(-1) / 2
        return np.asarray(bowls + self.s * np.cos(2 * w).sum(-1) - self.level)

    def gradient(self, w: Array, rows: Rows | None = None) -> Array:
        """Mean gradient over the rows `[R, B]` (None: all) at `w`, `[..., d]`."""
        h, a = self._rows(rows)
        bowls = (h * (w[..., None, :] - a)).mean(-2)
        return np.asarray(bowls - 2 * self.s * np.sin(2 * w))

    def _rows(self, rows: Rows | None) -> tuple[Array, Array]:
        if rows is None:
            return self.h, self.a
        return self.h[rows], self.a[rows]


def ripples(
    rng: Generator,
    samples: int,
    dim: int,
    s: float = 0.0,
    centre: float = 0.0,
    level: float = 0.0,
) -> Ripples:
    """A random instance: curvatures in [0.5, 1.5], centres around `centre`."""
    h = rng.uniform(0.5, 1.5, (samples, dim))
    a = centre + rng.standard_normal((samples, dim))
    return Ripples(h, a, s, level)


@dataclass(frozen=True)
class Surrogates:
    """Averaged surrogates A_m + B_m'w + tau |w|^2 of the objective and M constraints."""

    A: Array  # [R, 1 + M]
    B: Array  # [R, 1 + M, d]
    tau: float

    def averaged(
        self,
        rho: float,
        w: Array,
        values: Array,
        slopes: Array,
    ) -> "Surrogates":
        """With weight `rho` for the surrogates that values and slopes at `w` `[R, d]` make."""
        square = np.square(w).sum(-1)[:, None]
        constants = values - (slopes * w[:, None]).sum(-1) + self.tau * square
        return Surrogates(
            A=(1 - rho) * self.A + rho * constants,
            B=(1 - rho) * self.B + rho * (slopes - 2 * self.tau * w[:, None]),
            tau=self.tau,
        )

    def values(self, w: Array) -> Array:
        """At `w` `[R, d]`, `[R, 1 + M]`."""
        square = np.square(w).sum(-1)[:, None]
        return np.asarray(self.A + np.einsum("rmd,rd->rm", self.B, w) + self.tau * square)

    def gradients(self, w: Array) -> Array:
        """At `w` `[R, d]`, `[R, 1 + M, d]`."""
        return np.asarray(self.B + 2 * self.tau * w[:, None])

    def program(self, c: float) -> Program:
        """The server's program with the penalty c."""
        return Program(
            a0=self.B[:, 0],
            A=self.A[:, 1:],
            B=self.B[:, 1:],
            tau0=self.tau,
            tau=self.tau,
            c=c,
        )


def no_surrogates(
    runs: int,
    constraints: int,
    dim: int,
    tau: float,
) -> Surrogates:
    """The start of the averages: 0."""
    count = 1 + constraints
    return Surrogates(A=np.zeros((runs, count)), B=np.zeros((runs, count, dim)), tau=tau)


class Path(NamedTuple):
    """What a run passed through, round by round; in a single round without the axis T."""

    w: Array  # [T, R, d]
    step: Array  # [T, R, d]  best response less w
    error: Array  # [T, R]    largest |grad of the averaged surrogate - grad F_m| at w
    gap: Array  # [T, R]      largest |value of the averaged surrogate - F_m| at w, constraints only
    nu: Array  # [T, R, M]


def ssca(
    functions: Sequence[Ripples],
    rho: Array,
    gamma: Array,
    tau: float,
    batch: int,
    start: Array,
    rng: Generator,
    c: float = 1.0,
) -> Path:
    """Algorithm 1 (one part) or 2 (more) in a plain loop, R runs at once from `start` `[R, d]`.

    `functions` are the objective, then constraints, over the same samples; rho and gamma `[T]`;
    batches are drawn with replacement; c is the penalty.
    """
    runs, dim = start.shape
    constraints = len(functions) - 1
    samples = len(functions[0].h)
    sweeps = 1 if constraints < 2 else 100
    surrogates = no_surrogates(runs, constraints, dim, tau)
    w = start
    visited = []
    for weight, pace in zip(rho, gamma, strict=True):
        rows = rng.integers(samples, size=(runs, batch))
        values, slopes = evaluate(functions, w, rows)
        surrogates = surrogates.averaged(weight, w, values, slopes)
        program = surrogates.program(c)
        nu = multipliers(program, sweeps)
        step = minimizer(program, nu) - w
        error, gap = _tracking(functions, surrogates, w)
        visited.append(Path(w, step, error, gap, nu))
        w = w + pace * step
    return Path(*map(np.stack, zip(*visited, strict=True)))


def evaluate(
    functions: Sequence[Ripples], w: Array, rows: Rows | None = None
) -> tuple[Array, Array]:
    """Values `[R, 1 + M]` and gradients `[R, 1 + M, d]` of all functions at `w` `[R, d]`."""
    values = [function.value(w, rows) for function in functions]
    slopes = [function.gradient(w, rows) for function in functions]
    return np.stack(values, axis=1), np.stack(slopes, axis=1)


def _tracking(
    functions: Sequence[Ripples], surrogates: Surrogates, w: Array
) -> tuple[Array, Array]:
    """`error` and `gap` of `Path` at `w`, each `[R]`."""
    values, slopes = evaluate(functions, w)
    wrong_slopes = np.linalg.norm(surrogates.gradients(w) - slopes, axis=-1)
    wrong_values = np.abs(surrogates.values(w) - values)[:, 1:]
    return wrong_slopes.max(1), wrong_values.max(1, initial=0.0)


def binned_means(values: Array, first: int) -> tuple[Rows, Array]:
    """Last rounds and means of stretches from round `first` on, about even on a log axis.

    A mean is over the rounds, the leading axis of `values`, and over the runs.
    """
    ends = np.unique(np.geomspace(first, len(values), 30).astype(int))
    means = [values[low:high].mean() for low, high in pairwise(ends)]
    return ends[1:], np.array(means)


class Condition(NamedTuple):
    """One requirement on the step sizes, and whether it holds."""

    name: str
    holds: bool


def conditions(rho: PowerLaw, gamma: PowerLaw) -> tuple[Condition, ...]:
    r"""What Theorems 1-4 ask of rho and gamma, (4) and (6), decided from the exponents.

    With rho = a_1 / t^alpha and gamma = a_2 / t^beta: a sum is infinite if and only if its exponent
    is at most 1, a limit is 0 if and only if its exponent is positive. The last one,
    $\sum \rho^2 < \infty$, is not in (4); the lemma on averaged estimates that the proof cites
    needs it.

    >>> from fedlib import PowerLaw
    >>> [c.name for c in conditions(PowerLaw(0.9, 0.3), PowerLaw(0.9, 0.35)) if not c.holds]
    ['sum gamma^2 < inf', 'sum rho^2 < inf']
    >>> all(c.holds for c in conditions(PowerLaw(1.0, 0.6), PowerLaw(1.0, 0.65)))
    True
    """
    alpha = rho.exponent
    beta = gamma.exponent
    faster = beta - alpha > 1e-12  # a difference such as 0.35 - 0.35 may be off by rounding
    return (
        Condition("sum rho = inf", alpha <= 1),
        Condition("lim rho = 0", alpha > 0),
        Condition("sum gamma = inf", beta <= 1),
        Condition("lim gamma = 0", beta > 0),
        Condition("sum gamma^2 < inf", 2 * beta > 1),
        Condition("lim gamma / rho = 0", faster),
        Condition("sum rho^2 < inf", 2 * alpha > 1),
    )
