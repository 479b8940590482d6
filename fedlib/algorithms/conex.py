"""Inexact proximal points with constraint extrapolation (IPP ConEx), centralized.

Boob, Deng, Lan, *Stochastic first-order methods for convex and nonconvex functional constrained
optimization*, Mathematical Programming 197, 2023: the constraint-extrapolation method (ConEx) and
the proximal-point method around it for nonconvex problems. The full FedSGM paper names it as a
baseline of its Figure 7 without settings.

Boob et al. -> here: inverse step sizes eta_t, tau_t -> 1 / `lr`, 1 / `dual_lr`, both constant;
theta_t -> `theta`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.algorithms._central import check_centralized, draw_steps, step_values
from fedlib.checks import Count, Nonnegative, Positive, Share
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info, Problem
from fedlib.core.sampling import check_work


class State(NamedTuple):
    """What ConEx carries from step to step."""

    w: Float[Tensor, "d"]  # the iterate w_t
    center: Float[Tensor, "d"]  # the proximal centre u
    before: Float[Tensor, "d"]  # w_{t-1}
    value: Float[Tensor, ""]  # phi_1(w_{t-1})
    slope: Float[Tensor, "d"]  # the gradient of phi_1 at w_{t-1}
    model: Float[Tensor, ""]  # l_{t-1}, the last linear model's value
    y: Float[Tensor, ""]  # the multiplier
    total: Float[Tensor, "d"]  # sum of gamma_t w_{t+1}, scaled so that the last gamma is 1
    weight: Float[Tensor, ""]  # the same sum of gamma_t
    step: Float[Tensor, ""]  # inner steps done since the last restart


@dataclass(frozen=True)
class ConEx:
    r"""Constraint extrapolation inside a proximal-point loop, on all data in one place.

    With phi_0(w) = f(w) + mu_0 |w - u|^2 and phi_1(w) = g(w) + mu_1 |w - u|^2:

        1  `steps` times a round, each with fresh batches:
        2      every `inner_steps` steps: u <- the average of line 7, w <- u, start inner loop anew
        3      l_t = phi_1(w_{t-1}) + <grad phi_1(w_{t-1}), w_t - w_{t-1}>   (first: phi_1(w_0))
        4      s_t = (1 + theta) l_t - theta l_{t-1} - level - tolerance     (first: l_{-1} = l_0)
        5      y <- max(0, y + dual_lr s_t)
        6      w_{t+1} = project(w_t - lr (grad phi_0(w_t) + y grad phi_1(w_t)))
        7      average of w_1, ..., w_{t+1} with weights gamma_t = theta^-t
        8  output: the average of the inner loop under way

    >>> from fedlib import ConEx, problems, run
    >>> problem = problems.quadratics(torch.ones(1, 2), torch.zeros(1, 2), level=0.5)
    >>> method = ConEx(lr=0.1, dual_lr=0.1, tolerance=0.05)
    >>> run(method, problem, rounds=50, progress=False).late("distance").round(1)
    array([0.])

    Parameters
    ----------
    lr : primal step, 1 / eta of the source.
    dual_lr : dual step, 1 / tau of the source.
    tolerance, level : the constraint is g <= level + tolerance.
    theta : extrapolation in (0, 1]; gamma_t theta = gamma_{t-1} fixes the average's weights.
    inner_steps : N, steps between two moves of the proximal centre.
    prox : mu_0.
    constraint_prox : mu_1; 0 is allowed where g is convex.
    steps : steps a round, E for the papers' centralized curves.
    batch_size, value_batch_size : rows of the batch for grad f, and of the one for g and grad g,
        drawn anew for every step; None for all rows.

    Run it on a problem with one client. Metrics are those of w_t, not of the average.

    Differs: constant steps, the source's family theta = gamma = 1 unless `theta` is less; the
    multiplier is kept over restarts; value and gradient of g come from one batch, where the source
    draws two. Nothing crosses a line, so no bits are counted.

    Raises
    ------
    ValueError, TypeError
        at construction or in `init`, one sentence, for a parameter out of range.
    """

    lr: Positive
    dual_lr: Positive
    tolerance: float
    level: float = 0.0
    theta: Share = 1.0
    inner_steps: Count = 100
    prox: Nonnegative = 0.05
    constraint_prox: Nonnegative = 0.05
    steps: Count = 1
    batch_size: Count | None = None
    value_batch_size: Count | None = None

    def __post_init__(self) -> None:
        checks.fields(self)

    def init(self, problem: Problem) -> State:
        """Check against the problem; the multiplier starts at 0."""
        check_centralized("ConEx", problem)
        check_work("ConEx", problem, 1, self.batch_size, self.value_batch_size)
        w, zero = problem.w0, problem.w0.new_zeros(())
        none = torch.zeros_like(w)
        return State(w, w, w, zero, none, zero, zero, none, zero, zero)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        return draw_steps(problem, rng, self.steps, self.batch_size, self.value_batch_size)  # 1

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        """`steps` steps on the pooled data."""
        pool, now = fed.only_client(draw), state
        for step in range(self.steps):  # 1
            now = self.restarted(now)
            w, moved = now.w, now.w - now.center
            values = step_values(pool, step, self.steps)
            g, sign = fed.constraint(pool.constraint(w, values).unsqueeze(0))
            phi = g + self.constraint_prox * moved @ moved
            only_g = torch.stack([torch.zeros_like(sign), sign])
            slope = pool.gradient(w, values, only_g) + 2 * self.constraint_prox * moved
            first = now.step == 0
            model = torch.where(first, phi, now.value + now.slope @ (w - now.before))  # 3
            last = torch.where(first, model, now.model)
            s = (1 + self.theta) * model - self.theta * last - self.level - self.tolerance  # 4
            y = (now.y + self.dual_lr * s).clamp(min=0)  # 5
            grad = pool.gradient(w, pool.batch(step), pool.objective_weights(w))
            grad = grad + 2 * self.prox * moved + y * slope
            after = fed.project(w - self.lr * grad)  # 6
            total, weight = self.theta * now.total + after, self.theta * now.weight + 1  # 7
            now = State(after, now.center, w, phi, slope, model, y, total, weight, now.step + 1)
        return now, fed.info(g_hat=g, sigma=y)

    def restarted(self, now: State) -> State:
        """The state itself, or that of a new inner loop if the last one is complete."""
        done = now.step >= self.inner_steps  # 2
        center = torch.where(done, self.output(now), now.center)
        fresh = torch.where(done, 0.0, 1.0).to(now.step.dtype)
        return now._replace(
            w=torch.where(done, center, now.w),
            center=center,
            total=fresh * now.total,
            weight=fresh * now.weight,
            step=fresh * now.step,
        )

    def output(self, state: State) -> Float[Tensor, "d"]:
        """The average `[d]` of the inner loop under way; the centre before its first step."""
        started = state.weight > 0
        return torch.where(started, state.total / state.weight.clamp(min=1), state.center)  # 8
