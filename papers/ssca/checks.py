"""What the notes on SSCA measure: small finite sums, plain loops of the method, dual programs.

Plain NumPy, so that a check compares two things that were made apart: nothing here knows the
library's own SSCA. As in the paper, rho averages surrogates, gamma averages iterates, and tau is
the curvature of a surrogate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from fedlib.core.trace import Array
from fedlib.steps import PowerLaw

Rows = NDArray[np.intp]


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
    slope = p.a0 + np.einsum("rm,rmd->rd", nu, p.B)
    return np.asarray(-slope / (2 * (p.tau0 + p.tau * nu.sum(-1)))[:, None])


def primal(p: Program, w: Array) -> Array:
    """The program's objective at `w`, `[R]`."""
    square = np.square(w).sum(-1)
    above = p.A + np.einsum("rmd,rd->rm", p.B, w) + p.tau * square[:, None]
    return np.asarray((p.a0 * w).sum(-1) + p.tau0 * square + p.c * np.maximum(above, 0).sum(-1))


def dual(p: Program, nu: Array) -> Array:
    """h(nu), never above `primal` for nu in [0, c]^M, `[R]`."""
    slope = p.a0 + np.einsum("rm,rmd->rd", nu, p.B)
    curvature = p.tau0 + p.tau * nu.sum(-1)
    return np.asarray((p.A * nu).sum(-1) - np.square(slope).sum(-1) / (4 * curvature))


def multipliers(p: Program, sweeps: int = 1) -> Array:
    """Cyclic coordinate ascent on `dual` from 0, each step in closed form, `[R, M]`."""
    nu = np.zeros_like(p.A)
    for _ in range(sweeps):
        for m in range(p.A.shape[1]):
            other_multipliers = np.where(np.arange(p.A.shape[1]) == m, 0.0, nu)
            slope = p.a0 + np.einsum("rm,rmd->rd", other_multipliers, p.B)
            curvature = p.tau0 + p.tau * other_multipliers.sum(-1)
            B = p.B[:, m]
            gamma = np.square(slope - (curvature / p.tau)[:, None] * B).sum(-1)
            den = np.square(B).sum(-1) - 4 * p.tau * p.A[:, m]
            u = p.tau * np.sqrt(gamma / np.where(den > 0, den, 1.0))
            nu[:, m] = np.where(den > 0, np.clip((u - curvature) / p.tau, 0, p.c), p.c)
    return nu


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
        """Mean over the rows `[R, B]` (None: all) at `w` `[R, d]`, `[R]`."""
        h, a = self._rows(rows)
        bowls = (h * np.square(w[:, None] - a)).sum(-1).mean(-1) / 2
        return np.asarray(bowls + self.s * np.cos(2 * w).sum(-1) - self.level)

    def gradient(self, w: Array, rows: Rows | None = None) -> Array:
        """Mean gradient over the rows `[R, B]` (None: all) at `w`, `[R, d]`."""
        h, a = self._rows(rows)
        return np.asarray((h * (w[:, None] - a)).mean(1) - 2 * self.s * np.sin(2 * w))

    def _rows(self, rows: Rows | None) -> tuple[Array, Array]:
        return (self.h[None], self.a[None]) if rows is None else (self.h[rows], self.a[rows])


def ripples(
    rng: Generator, samples: int, dim: int, s: float = 0.0, centre: float = 0.0, level: float = 0.0
) -> Ripples:
    """A random instance: curvatures in [0.5, 1.5], centres around `centre`."""
    h = rng.uniform(0.5, 1.5, (samples, dim))
    return Ripples(h, centre + rng.standard_normal((samples, dim)), s, level)


class Path(NamedTuple):
    """What a run passed through, round by round."""

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

    `parts` are the objective, then constraints, over the same samples; rho and gamma `[T]`; batches
    are drawn with replacement; c is the penalty.
    """
    w = start
    count = len(functions)
    B = np.zeros((len(w), count, w.shape[1]))
    A = np.zeros((len(w), count))
    kept: list[tuple[Array, ...]] = []
    for weight, pace in zip(rho, gamma, strict=True):
        rows = rng.integers(len(functions[0].h), size=(len(w), batch))
        slope = np.stack([function.gradient(w, rows) for function in functions], 1)
        value = np.stack([function.value(w, rows) for function in functions], 1)
        flat = value - (slope * w[:, None]).sum(-1) + tau * np.square(w).sum(-1)[:, None]
        B = (1 - weight) * B + weight * (slope - 2 * tau * w[:, None])
        A = (1 - weight) * A + weight * flat
        program = Program(B[:, 0], A[:, 1:], B[:, 1:], tau, tau, c)
        nu = multipliers(program, sweeps=1 if count < 3 else 100)
        step = minimizer(program, nu) - w
        kept.append((w, step, *_errors(functions, w, A, B, tau), nu))
        w = w + pace * step
    return Path(*(np.stack(column) for column in zip(*kept, strict=True)))


def _errors(
    functions: Sequence[Ripples], w: Array, A: Array, B: Array, tau: float
) -> tuple[Array, Array]:
    slope = np.stack([function.gradient(w) for function in functions], 1)
    value = np.stack([function.value(w) for function in functions], 1)
    wrong = np.linalg.norm(B + 2 * tau * w[:, None] - slope, axis=-1).max(1)
    surrogate = A + np.einsum("rmd,rd->rm", B, w) + tau * np.square(w).sum(-1)[:, None]
    gap = np.abs(surrogate - value)[:, 1:]
    return wrong, gap.max(1, initial=0.0)


class Condition(NamedTuple):
    """One requirement on the step sizes, whether it holds, and why."""

    name: str
    holds: bool
    why: str


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
    conditions_of_pair = []
    for form, term, exponent in (
        ("sum", "rho", alpha),
        ("lim", "rho", alpha),
        ("sum", "gamma", beta),
        ("lim", "gamma", beta),
        ("sum", "gamma^2", 2 * beta),
        ("lim", "gamma / rho", beta - alpha),
        ("sum", "rho^2", 2 * alpha),
    ):
        if form == "lim":
            falls = exponent > 1e-12  # a difference such as 0.35 - 0.35 may be off by rounding
            verb = f"falls as t^-{exponent:.4g}" if falls else f"goes as t^{-exponent + 0.0:.4g}"
            conditions_of_pair.append(Condition(f"lim {term} = 0", falls, f"{term} {verb}"))
            continue
        end = "finite" if exponent > 1 else "infinite"
        squares = "^2" in term
        why = f"{term} falls as t^-{exponent:.4g}, whose sum is {end}"
        name = f"sum {term} {'<' if squares else '='} inf"
        conditions_of_pair.append(Condition(name, squares == (exponent > 1), why))
    return tuple(conditions_of_pair)
