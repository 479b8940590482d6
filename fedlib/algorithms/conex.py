"""ConEx: constraint extrapolation inside a proximal-point loop.

Boob, Deng, Lan, *Stochastic first-order methods for convex and nonconvex functional constrained
optimization*, Mathematical Programming 197, 2023.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch

from fedlib.checks import Count, Nonnegative, Positive, Share
from fedlib.core.client import Client
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info, Problem
from fedlib.shapes import Scalar, Vector
from fedlib.steps.switching import loss_weights
from fedlib.work.centralized import Centralized


class ConExState(NamedTuple):
    """The state of ConEx."""

    w: Vector  # the iterate w_t
    center: Vector  # the proximal centre u
    previous: Vector  # w_{t-1}
    value: Scalar  # phi_1(w_{t-1})
    slope: Vector  # the gradient of phi_1 at w_{t-1}
    model: Scalar  # l_{t-1}, the last linear model's value
    y: Scalar  # the multiplier
    total: Vector  # sum of gamma_t w_{t+1}, scaled so that the last gamma is 1
    weight: Scalar  # sum of gamma_t, scaled in the same way
    step: Scalar  # inner steps done since the last restart


@dataclass(frozen=True)
class ConEx(Centralized):
    r"""Constraint extrapolation inside a proximal-point loop, with all data in one place.

    With phi_0(w) = f(w) + mu_0 |w - u|^2 and phi_1(w) = g(w) + mu_1 |w - u|^2:

        1  E times a round, each with fresh batches:
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
    >>> run(method, problem, rounds=50).late("distance").round(1)
    array([0.])

    Parameters
    ----------
    lr : float
        Step size of the model, 1 / eta in the source.
    dual_lr : float
        Step size of the multiplier, 1 / tau in the source.
    tolerance : float
        The constraint is g <= level + tolerance.
    level : float
        The constraint is g <= level + tolerance.
    theta : float
        Factor of the extrapolation. The output averages the models of the inner loop with the
        weights theta^-t.
    inner_steps : int
        Number of steps between two moves of the proximal centre.
    prox : float
        mu_0, the weight of the proximal term of f.
    constraint_prox : float
        mu_1, the weight of the proximal term of g; it may be 0 if g is convex.
    steps : int
        E, the number of steps in a round, as in the centralized curves of the FedSGM papers.
    batch_size : int or None
        Number of rows in the batch for grad f, drawn anew for every step; None for all.
    value_batch_size : int or None
        Number of rows in the batch for g and grad g, drawn anew for every step; None for all.

    Run this method on a problem with one client. The metrics describe w_t, not the average.

    Differs: the step sizes are constant, and theta = gamma = 1 as in the source unless `theta` is
    smaller. A restart keeps the multiplier. One batch yields both the value and the gradient of g;
    the source draws two. No message is sent, so no bits are counted.

    Reference: Boob, Deng, Lan (2023): ConEx, and the proximal-point method around it. The full
    FedSGM paper names ConEx as a baseline of its Figure 7, but states no settings.
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

    def init(self, problem: Problem) -> ConExState:
        """Check the problem; the multiplier starts at 0."""
        w = super().init(problem).w
        zero = w.new_zeros(())
        zeros = torch.zeros_like(w)
        return ConExState(
            w=w,
            center=w,
            previous=w,
            value=zero,
            slope=zeros,
            model=zero,
            y=zero,
            total=zeros,
            weight=zero,
            step=zero,
        )

    def round(
        self,
        fed: Federation,
        state: ConExState,
        draw: Draw,
    ) -> tuple[ConExState, Info]:
        """Make `steps` steps on the pooled data."""
        pool = fed.only_client(draw)
        for step in range(self.steps):  # 1
            start = self.restarted(state)
            state, g = self.inner_step(fed, pool, start, step)
        return state, fed.info(g_hat=g, sigma=state.y)

    def inner_step(
        self,
        fed: Federation,
        pool: Client,
        state: ConExState,
        step: int,
    ) -> tuple[ConExState, Scalar]:
        """Make one step; return the next state and g(w)."""
        w = state.w
        moved = w - state.center
        values = self.values(pool, step)
        value = pool.constraint(w, values)
        g, sign = fed.constraint(value.unsqueeze(0))
        phi = g + self.constraint_prox * moved @ moved
        only_constraint = loss_weights(torch.zeros_like(g), sign)
        slope = pool.gradient(w, values, only_constraint) + 2 * self.constraint_prox * moved

        starts = state.step == 0
        linear_model = state.value + state.slope @ (w - state.previous)
        model = torch.where(starts, phi, linear_model)  # 3
        last_model = torch.where(starts, model, state.model)
        extrapolated = (1 + self.theta) * model - self.theta * last_model
        s = extrapolated - self.level - self.tolerance  # 4
        y = (state.y + self.dual_lr * s).clamp(min=0)  # 5

        objective_slope = pool.gradient(w, pool.batch(step), pool.objective_weights(w))
        direction = objective_slope + 2 * self.prox * moved + y * slope
        w_next = fed.project(w - self.lr * direction)  # 6
        state = ConExState(
            w=w_next,
            center=state.center,
            previous=w,
            value=phi,
            slope=slope,
            model=model,
            y=y,
            total=self.theta * state.total + w_next,  # 7
            weight=self.theta * state.weight + 1,  # 7
            step=state.step + 1,
        )
        return state, g

    def restarted(self, state: ConExState) -> ConExState:
        """Start a new inner loop if the last one is complete; else return the state unchanged."""
        done = state.step >= self.inner_steps  # 2
        center = torch.where(done, self.output(state), state.center)
        keep = torch.where(done, 0.0, 1.0).to(state.step.dtype)
        return state._replace(
            w=torch.where(done, center, state.w),
            center=center,
            total=keep * state.total,
            weight=keep * state.weight,
            step=keep * state.step,
        )

    def output(self, state: ConExState) -> Vector:
        """The average `[d]` of the current inner loop; before its first step the centre."""
        started = state.weight > 0
        average = state.total / state.weight.clamp(min=1)
        return torch.where(started, average, state.center)  # 8
