r"""The server's problem of SSCA with constraints: a quadratic objective with penalized quadratics.

It has a closed solution for at most one constraint, and a primal-dual interior point method for
several (Ye and Cui, arXiv 2104.06011, Problems 2, 5, 7, 10 and (38), Lemma 1). It is part of a
round, so it is written in torch and never branches on a tensor.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib.shapes import Gram, Scalar, Vector

Number = float | Tensor
#: A number for each of the M constraints.
PerConstraint = Float[Tensor, "M"]

STEPS = 40  # steps of the interior point method, used for two constraints or more
SHRINK = 0.1  # a step aims at this share of the mean complementarity
LEAST = 1e-20  # the smallest aim, as a share of the first complementarity
CLOSE = 0.99  # a step covers at most this share of the way to the next bound


class Response(NamedTuple):
    """The solution of the server's convex problem."""

    w: Vector  # the minimizer
    nu: PerConstraint  # the constraints' multipliers, in [0, c]
    slack: PerConstraint  # by how much each constraint is violated, nonnegative


def best_response(
    objective: Vector,
    linear: Float[Tensor, "M d"],
    constant: PerConstraint,
    levels: PerConstraint,
    *,
    tau: Number,
    penalty: Number,
    curvature: Number,
) -> Response:
    r"""Solve the problem of SSCA's server (its paper's Problems 2, 5, 7, 10 and (38)) in float64.

    .. math:: \min_{w, s \ge 0} a_0^\top w + \tau_0 \|w\|^2 + c \sum_m s_m \quad\text{s.t.}\quad
        A_m + B_m^\top w + \tau \|w\|^2 \le U_m + s_m .

    The minimizer of the Lagrangian is $w(\nu) = -(a_0 + B^\top \nu) / 2 (\tau_0 + \tau \sum \nu)$,
    where the multipliers solve the dual

    .. math:: \max_{0 \le \nu \le c} \; -\sum_m \nu_m (U_m - A_m)
        - \frac{\|a_0 + B^\top \nu\|^2}{4 (\tau_0 + \tau \sum_m \nu_m)} .

    With one constraint, set $u = \tau_0 + \tau \nu$ and $p = a_0 - (\tau_0 / \tau) B$. The dual's
    derivative is $\frac{1}{4 \tau} (\tau^2 \|p\|^2 / u^2 - \|B\|^2 - 4 \tau (U - A))$ and falls in
    u. So $u = \tau \|p\| / \sqrt{\|B\|^2 + 4 \tau (U - A)}$, clipped to $0 \le \nu \le c$; if the
    root's argument is not positive, $\nu = c$. For $a_0 = 0$, $\tau_0 = 1$ this is Lemma 1.
    With several constraints, Newton's method follows the points with
    $z_m \nu_m = z'_m (c - \nu_m) = \mu$, where $z' - z$ is the slope of the dual, as $\mu$ goes
    to 0; the duality gap is $2 M \mu$. Without constraints w is $-a_0 / 2 \tau_0$.

    Parameters
    ----------
    objective : Tensor
        a_0 of the objective `a_0' w + tau_0 |w|^2`.
    linear, constant, levels : Tensor
        B, A and U of the constraints `A + B w + tau |w|^2 <= U + s`; without rows if there are
        none.
    tau, curvature : float or Tensor
        The curvatures tau of the constraints and tau_0 of the objective, positive.
    penalty : float or Tensor
        c, the positive weight of the slacks s.
    """
    gram = gram_matrix(linear)
    cross = inner_products(linear, objective)
    square = inner_products(objective, objective)
    gap = levels - constant
    dual = _Dual(
        gram=gram.double(),
        cross=cross.double(),
        square=square.double(),
        gap=gap.double(),
        tau=tau,
        curvature=curvature,
        top=linear.new_zeros((), dtype=torch.float64) + penalty,
    )
    nu = dual.solution().to(linear.dtype)
    total_curvature = curvature + tau * nu.sum()
    w = -(objective + nu @ linear) / (2 * total_curvature)
    values = constant - levels + inner_products(linear, w) + tau * inner_products(w, w)
    slack = values.clamp(min=0)
    return Response(w=w, nu=nu, slack=slack)


def gram_matrix(rows: Float[Tensor, "M d"]) -> Gram:
    """The inner products of all pairs of rows."""
    products = [inner_products(rows, row) for row in rows]
    if not products:
        return rows.new_zeros(0, 0)
    return torch.stack(products)


def inner_products(
    x: Float[Tensor, "*rows d"],
    y: Float[Tensor, "*#rows d"],
) -> Float[Tensor, "*rows"]:
    """The inner products of rows `x` with rows `y` or one vector `y`, which lose few digits.

    Slacks are small differences of large inner products. For several runs together, `@` becomes a
    batched product, which adds one entry after another: in float32, the product of 100,000 entries
    then has four correct digits. A sum adds in pairs.
    """
    return (x * y).sum(-1)


class _Dual(NamedTuple):
    """The concave dual of the server's problem, in terms of inner products."""

    gram: Gram  # B B'
    cross: PerConstraint  # B a_0
    square: Scalar  # |a_0|^2
    gap: PerConstraint  # U - A
    tau: Number
    curvature: Number
    top: Scalar  # c

    def solution(self) -> PerConstraint:
        """The multipliers, by the formula for one constraint or else the interior point method."""
        count = len(self.gap)
        if count == 0:
            return torch.zeros_like(self.gap)
        if count == 1:
            return self.closed_form()
        return self.central_path()

    def closed_form(self) -> Float[Tensor, "1"]:
        """The solution for one constraint."""
        ratio = self.curvature / self.tau
        square = self.gram[0]
        p = self.square - 2 * ratio * self.cross + ratio**2 * square
        denominator = square + 4 * self.tau * self.gap
        positive = denominator > 0
        divisor = torch.where(positive, denominator, 1)
        quotient = p.clamp(min=0) / divisor
        root = quotient.sqrt() - ratio
        inside = root.clamp(min=0).minimum(self.top)
        return torch.where(positive, inside, self.top)

    def slope(
        self,
        nu: PerConstraint,
    ) -> tuple[PerConstraint, Gram]:
        """The dual's gradient, and its Hessian times -1."""
        u = self.curvature + self.tau * nu.sum()
        product = self.cross + self.gram @ nu  # B a, for a = a_0 + B' nu = -2 u w
        length = self.square + nu @ (self.cross + product)  # |a|^2
        pull = self.tau / u
        gradient = -self.gap - product / (2 * u) + self.tau * length / (4 * u**2)
        # inner products of the constraints' gradients B_m + 2 tau w; the Hessian is -these / (2 u)
        sums = product.unsqueeze(1) + product
        inner = self.gram - pull * sums + pull**2 * length
        return gradient, inner / (2 * u)

    def central_path(self) -> PerConstraint:
        """The end of the central path, by primal-dual steps from an interior point."""
        middle = self.top / 2
        largest = self.curvature / self.tau
        start = middle.clamp(max=largest)
        nu = torch.zeros_like(self.gap) + start
        gradient, _ = self.slope(nu)
        magnitudes = gradient.abs() + self.gap.abs()
        size = magnitudes.amax().clamp(min=LEAST)
        low = torch.zeros_like(nu) + size
        high = torch.zeros_like(nu) + size
        point = (nu, low, high)
        smallest_aim = LEAST * size * self.top
        for _ in range(STEPS):
            moved = self.newton_step(*point, smallest_aim)
            finite = torch.stack(moved).isfinite().all()  # else the end of the path is reached
            point = (
                torch.where(finite, moved[0], point[0]),
                torch.where(finite, moved[1], point[1]),
                torch.where(finite, moved[2], point[2]),
            )
        return point[0]

    def newton_step(
        self,
        nu: PerConstraint,
        low: PerConstraint,
        high: PerConstraint,
        smallest_aim: Scalar,
    ) -> tuple[PerConstraint, PerConstraint, PerConstraint]:
        """One primal-dual step; `low` and `high` are the multipliers of 0 <= nu and nu <= c."""
        gradient, curve = self.slope(nu)
        room = self.top - nu
        complementarity = nu @ low + room @ high
        count = 2 * len(nu)
        mean_aim = SHRINK * complementarity / count
        aim = mean_aim.clamp(min=smallest_aim)
        matrix = curve + torch.diag(low / nu + high / room)
        slope = gradient + aim / nu - aim / room
        step, _ = torch.linalg.solve_ex(matrix, slope)
        low_step = aim / nu - low - low / nu * step
        high_step = aim / room - high + high / room * step
        room_length = _reach(room, -step)
        primal = torch.minimum(_reach(nu, step), room_length)
        high_length = _reach(high, high_step)
        dual = torch.minimum(_reach(low, low_step), high_length)
        moved_nu = nu + primal * step
        moved_low = low + dual * low_step
        moved_high = high + dual * high_step
        return moved_nu, moved_low, moved_high


def _reach(x: PerConstraint, step: PerConstraint) -> Scalar:
    """The largest step length, at most 1, that keeps `x` positive."""
    falls = step < 0
    slope = torch.where(falls, step, -1)
    limit = -CLOSE * x / slope
    lengths = torch.where(falls, limit, 1)
    return lengths.amin().clamp(max=1)
